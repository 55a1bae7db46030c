"""A bundle's files as a build system takes them: its folders and descriptions around the sources, or one file of C.

The files that describe a format are templates, found by listing `templates/export/<format>`; NAME in their paths
stands for the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from glowc.errors import InputError
from glowc.paths import data_dir

FOLDER, SINGLE = "folder", "single"
LINKED = {"asm": ".S", "object": ".o"}
"""The forms of constants in which their file becomes a part of the image, and what ends the name of the source."""
WEIGHTS = ("c", *LINKED, "blob", "file")
"""The forms of constants."""
_LARGE_BYTES = 1 << 20  # C of more constants takes the compiler seconds
_INCLUDE = re.compile(r'#include "([^"]+)"')
_CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)")


@dataclass(frozen=True, slots=True)
class Form:
    """Where a format has the C files; `flags`: its description passes -ffp-contract=off, so the C need not say it."""

    sources: str
    flags: bool


FORMS: Mapping[str, Form] = {
    SINGLE: Form("", flags=False),
    "cmake": Form("", flags=True),
    "zephyr": Form("src", flags=True),
    "arduino": Form("src", flags=False),
    "platformio": Form("src", flags=True),
    "cmsis-pack": Form("src", flags=False),
    "esp-idf": Form("src", flags=True),
}
"""The formats besides the plain folder."""

_EXACT = """\
/* Products and sums round one by one, whatever the command line says: results are the same on every core. */
#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

"""
_UNUSED = """\
/* The runtime has functions that this model does not call; in one file clang would name them. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunused-function"
#endif

"""


def exported(
    name: str, form: str, files: Mapping[str, str], foreign: Collection[str], render: Callable[[str], str]
) -> dict[str, str]:
    """Return the files of the bundle of model `name` in a format of FORMS, by path.

    `files` are those of the plain folder, `foreign` the ones among them that plugins brought along; `render` prints a
    template. Raises InputError for a format that there is not.
    """
    if form not in FORMS:
        raise InputError(f'unknown format "{form}"', details=["known: " + ", ".join((FOLDER, *FORMS))])
    sources = {file: text for file, text in files.items() if file.endswith((".c", ".h", ".S"))}
    if form == SINGLE:
        sources = _in_one(name, sources, foreign)
    if not FORMS[form].flags:
        sources[f"{name}.c"] = sources[f"{name}.c"].replace("#include ", f"{_EXACT}#include ", 1)
    here = {placed(form, file): text for file, text in sources.items()}
    return {**here, **{path.replace("NAME", name): render(template) for path, template in _templates(form)}}


def check_core(form: str, cpu: str, lacking: Collection[str]) -> None:
    """Raise InputError where no chip of a format has the core that the C asks for; `lacking`: what others lack."""
    if form == "esp-idf" and lacking:
        raise InputError(f"--format esp-idf: the kernels are for {cpu}, and no chip of ESP-IDF has that core",
                         hint="--board host gives portable C, which Xtensa and RISC-V cores run")  # fmt: skip


def check_package(form: str, fields: Collection[str]) -> None:
    """Raise InputError where a format has no place for the fields of a package."""
    if fields and form in (FOLDER, SINGLE, "zephyr"):
        raise InputError(f"--package {next(iter(fields))}=...: --format {form} is no package",
                         hint="--format arduino, platformio, esp-idf, cmsis-pack or cmake")  # fmt: skip


def weights_of(wanted: str, form: str, weights_bytes: int) -> str:
    """Return the one of WEIGHTS that is meant: "auto" is C, and assembly for many constants where a format takes it."""
    if wanted == "auto":
        return "asm" if _takes_linked(form) and weights_bytes >= _LARGE_BYTES else "c"
    return "c" if wanted == "array" else wanted


def _takes_linked(form: str) -> bool:
    return form in (FOLDER, "cmake")  # the others list C files, which are all that some build systems know


def check_weights(form: str, weights: str) -> None:
    """Raise InputError where a format has no place for the form of the constants."""
    if weights in LINKED and not _takes_linked(form):
        raise InputError(
            f"--weights {weights}: --format {form} takes C files", hint="--weights c, or --format folder or cmake"
        )


def placed(form: str, file: str) -> str:
    """Return the path of a C file of a bundle in a format of FORMS."""
    return f"{FORMS[form].sources}/{file}" if FORMS[form].sources else file


def _templates(form: str) -> Iterator[tuple[str, str]]:
    """Yield the path of every file that describes a format, with its template."""
    root = data_dir("templates")
    for path in sorted((root / "export" / form).rglob("*.j2")):
        yield path.relative_to(root / "export" / form).as_posix().removesuffix(".j2"), path.relative_to(root).as_posix()


def _in_one(name: str, files: Mapping[str, str], foreign: Collection[str]) -> dict[str, str]:
    """Return one header and one source of a model; test vectors and files of plugins stay files."""
    apart = {file: text for file, text in files.items() if file in foreign or file.startswith(f"{name}_golden.")}
    header = _Inlined({file: text for file, text in files.items() if file not in apart})
    interface = header.text(files[f"{name}.h"])
    inside = {file: text for file, text in files.items() if file not in (*apart, f"{name}.h")}
    source = _Inlined(inside)
    code = files[f"{name}.c"].replace("#include ", f"{_UNUSED}#include ", 1)
    body = source.text(code) + "\n" + source.text(files[f"{name}_weights.c"])
    return {f"{name}.h": interface, f"{name}.c": body, **apart}


class _Inlined:
    """Text with the files that it includes in their places, each once: again only where it may have been skipped."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._stack: list[str] = []  # the conditions of the preprocessor around the current line
        self._seen: dict[str, list[frozenset[str]]] = {}

    def text(self, text: str) -> str:
        """Return text in which every include of one of the files is its content."""
        return "\n".join(line for part in self._lines(text) for line in part) + "\n"

    def _lines(self, text: str) -> Iterator[list[str]]:
        guard = re.search(r"^#ifndef (\w+)\n#define \1$", text, re.M)
        for line in text.splitlines():
            included = _INCLUDE.match(line)
            if included is None or included[1] not in self._files:
                self._note(line, guard[1] if guard else "")
                yield [line]
            elif not any(seen <= self._conditions for seen in self._seen.get(included[1], [])):
                self._seen.setdefault(included[1], []).append(self._conditions)
                yield from self._lines(self._files[included[1]])

    @property
    def _conditions(self) -> frozenset[str]:
        return frozenset(condition for condition in self._stack if condition)

    def _note(self, line: str, guard: str) -> None:
        """Follow the conditions; a header's own guard is none, as its second text is not wanted."""
        found = _CONDITION.match(line)
        if found is None:
            return
        kind, condition = found[1], found[2].split("/*")[0].strip()
        if kind == "endif":
            self._stack.pop()
        elif kind in ("elif", "else"):
            self._stack[-1] = f"{kind} {condition} of {self._stack[-1]}"
        else:
            self._stack.append("" if condition == guard else f"{kind} {condition}")
