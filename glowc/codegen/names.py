"""C names and literals: identifiers from the user's names, unique and never a keyword."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

import numpy as np

LONGEST = 40  # characters of an identifier before its number
_WIDTH = 112  # of a comment's line, and of a literal's
_KEYWORDS = frozenset({
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
    "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "main",
    "errno",
})  # fmt: skip


def c_ident(text: str) -> str:
    """Return a C identifier close to `text`."""
    ident = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "x"
    ident = f"m_{ident}" if ident[0].isdigit() else ident
    return f"{ident}_" if ident in _KEYWORDS else ident


def short_ident(text: str, longest: int = LONGEST) -> str:
    """Return a C identifier of at most `longest` characters: names of nodes that a converter joined have hundreds."""
    return c_ident(text)[:longest].rstrip("_") or "x"


def c_string(text: str) -> str:
    """Return a C string literal of `text`, on several lines where it is long.

    What is not printable ASCII becomes a question mark.
    """
    plain = re.sub(r"[^ -~]", "?", text)
    return "\n        ".join(_literal(plain[i : i + _WIDTH]) for i in range(0, max(len(plain), 1), _WIDTH))


def _literal(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"\?(?=\?)", r"?\\", plain) + '"'  # two in a row may begin a trigraph


def in_comment(text: str) -> str:
    """Return `text` as it may stand in a C comment, on one line."""
    return " ".join(text.replace("*/", "* /").replace("/*", "/ *").split())


def wrapped(text: str, indent: int = 0) -> str:
    """Return the text of a comment that begins `indent` characters from the left, on several lines where it is long.

    Names that a converter joined by semicolons end a line there.
    """
    if len(text) <= _WIDTH:
        return text
    parts = textwrap.wrap(text.replace(";", "; "), _WIDTH, break_on_hyphens=False)
    return f"\n{' ' * indent}   ".join(parts)


def is_ident(text: str) -> bool:
    """True for a C identifier that is no keyword."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is not None and text not in _KEYWORDS


def unique_idents(names: Iterable[str], longest: int = LONGEST) -> dict[str, str]:
    """Map names to C identifiers of at most `longest` characters and a number, in order.

    They are distinct, also when upper-cased.
    """
    result: dict[str, str] = {}
    taken: set[str] = set()
    numbers: dict[str, int] = {}  # where the search for a number goes on
    for name in names:
        base = ident = short_ident(name, longest)
        while ident.upper() in taken:
            numbers[base] = numbers.get(base, 1) + 1
            ident = f"{base}_{numbers[base]}"
        taken.add(ident.upper())
        result[name] = ident
    return result


def c_values(array: np.ndarray) -> list[str]:
    """Return the elements as C literals, in row-major order."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "f":
        return _floats(flat)
    if flat.dtype.kind == "b":
        return ["1" if v else "0" for v in flat]
    return _integers(flat)


_LITERALS = {"uint32": "{}u", "uint64": "UINT64_C({})", "int64": "INT64_C({})"}


def _integers(flat: np.ndarray) -> list[str]:
    form, bits = _LITERALS.get(flat.dtype.name), 8 * flat.dtype.itemsize
    texts = list(map(str if form is None else form.format, flat.tolist()))
    if flat.dtype.kind == "i" and bits >= 32:  # C has no literal of the least one
        for i in np.flatnonzero(flat == np.iinfo(flat.dtype).min):
            texts[i] = f"INT{bits}_MIN"
    return texts


def _floats(flat: np.ndarray) -> list[str]:
    """Return the shortest literals of the same numbers; millions of weights, hence no test for each of them."""
    if flat.dtype.itemsize == 2:
        return [str(v) for v in flat.view(np.uint16).tolist()]
    suffix = "f" if flat.dtype.itemsize == 4 else ""
    texts = [np.format_float_scientific(v, unique=True, trim="0") + suffix for v in flat]
    for i in np.flatnonzero((flat == 0) | ~np.isfinite(flat)):
        texts[i] = _special(float(flat[i]), suffix)
    return texts


def _special(value: float, suffix: str) -> str:
    if value != value:
        return "NAN"
    return ("INFINITY" if value > 0 else "-INFINITY") if value else f"0.0{suffix}"


def prints_math(array: np.ndarray) -> bool:
    """Say whether literals of the elements are macros of math.h: infinities, and what is not a number."""
    return array.dtype.kind == "f" and array.dtype.itemsize > 2 and not bool(np.isfinite(array).all())


def c_lines(array: np.ndarray, width: int = 108) -> str:
    """Return the elements as lines of C literals, at most `width` characters each."""
    values = c_values(array)
    longest = max((len(v) for v in values), default=1) + 2
    per_line = max(1, (width - 2) // longest)
    if len(values) > 32:
        per_line = 1 << (per_line.bit_length() - 1)
    rows = (values[i : i + per_line] for i in range(0, len(values), per_line))
    return "\n".join("  " + ", ".join(row) + "," for row in rows)
