"""A kernel's function as users get it: the rendered text with its literals folded, indented, its signature wrapped.

What functions cost is counted in lines of the rendered text (`glowc.select`), which knows nothing of this. Indented:
two spaces for each block; what continues a line moves along with it. Preprocessor lines stay where they are; strings
and comments stay as they are, whatever brackets they contain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from glowc.codegen.fold import fold
from glowc.codegen.kernels import ArgsStruct, render_kernel
from glowc.program.ir import Instr

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//.*|/\*|[][(){}]|[^\s"\'/\[\](){}]+|/')
_CLOSING = frozenset(")]}")


def indented(text: str) -> str:
    """Return the text with its lines indented by the blocks that they are in, and at most one empty line in a row."""
    state = _State()
    lines = [state.line(line.rstrip()) for line in text.split("\n")]
    return re.sub(r"\n\n+(?=\n)", "\n", "\n".join(lines)) if not state.stack else text


@dataclass(slots=True)
class _State:
    """Where the next line stands: the brackets around it, `{` of blocks and `(` of all others."""

    stack: list[str] = field(default_factory=list)
    last: str = ";"
    comment: bool = False
    moved: int = 0

    def line(self, line: str) -> str:
        """Return one line, indented; the next one stands after it."""
        bare = line.lstrip()
        if not bare or (bare[0] == "#" and not self.comment):
            return line
        was = len(line) - len(bare)
        now = self._place(bare, was)
        self._read(bare)
        return " " * now + bare

    def _place(self, bare: str, was: int) -> int:
        continues = self.comment or "(" in self.stack or self.last not in (";", "{", "}", ":")
        level = 2 * (self.stack.count("{") - (bare[0] == "}" and not continues))
        if not continues:
            self.moved = level - was
            return level
        now = was + self.moved
        return now if now > level or self.comment else level + 4

    def _read(self, bare: str) -> None:
        at = 0
        if self.comment:
            at = self._comment_end(bare, 0)
        while at >= 0 and (match := _TOKEN.search(bare, at)):
            at = match.end()
            if match[0] == "/*":
                at = self._comment_end(bare, at)
            elif not match[0].startswith("//"):
                self._token(match[0])

    def _comment_end(self, bare: str, at: int) -> int:
        end = bare.find("*/", at)
        self.comment = end < 0
        return end + 2 if end >= 0 else -1

    def _token(self, token: str) -> None:
        if token in ("(", "["):
            self.stack.append("(")
        elif token == "{":
            value = "(" in self.stack or self.last[-1] in "=,({"
            self.stack.append("(" if value and self.last != "{" else "{")
        elif token in _CLOSING and self.stack:
            self.stack.pop()
        self.last = token if token in "{}" else token[-1]


_WIDTH = 120
_KINDS = {"int32_t": "i", "float": "f"}


def print_kernel(instr: Instr, fn: str, struct: ArgsStruct | None = None) -> str:
    """Return the C definitions of the function for `instr` and its helpers; with `struct`, `p` points to one."""
    return tidy(render_kernel(instr, fn, struct), struct)


def tidy(text: str, struct: ArgsStruct | None = None) -> str:
    """Return rendered functions as they are printed; `struct` is what `p` points to."""
    fields = {f"p->{name}": _KINDS[ctype] for name, ctype in struct.fields} if struct is not None else {}
    lines = indented(fold(text, fields)).split("\n")
    return "\n".join(_wrapped(line) if line.endswith(") {") and line[0] not in " }" else line for line in lines)


def _wrapped(signature: str) -> str:
    """Return the first line of a function in lines of at most 120 columns, where its parameters allow that."""
    lines = [""]
    for part in signature.split(", "):
        longer = f"{lines[-1]}, {part}" if lines[-1] else part
        if len(longer) < _WIDTH or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(f"    {part}")
    return ",\n".join(lines)
