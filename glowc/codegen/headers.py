"""Which runtime headers include which others, so that a bundle has all that its kernels need, and what calls what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from glowc.paths import runtime_header

RUNTIME_FILES = ("glow_numeric.h", "glow_runtime.h", "glow_status.h")
"""The headers that are in every bundle."""
_INCLUDE = re.compile(r'^ *# *include "(\w+\.h)"', re.MULTILINE)


@cache
def included(header: str) -> tuple[str, ...]:
    """Return the headers that one of runtime_c includes itself, but for those of every bundle; a plugin's: none."""
    try:
        text = runtime_header(header).read_text(encoding="utf-8")
    except KeyError:
        return ()
    return tuple(name for name in dict.fromkeys(_INCLUDE.findall(text)) if name not in RUNTIME_FILES)


def with_included(headers: Iterable[str]) -> list[str]:
    """Return headers and those that they include, sorted."""
    wanted, found = list(headers), set[str]()
    while wanted:
        header = wanted.pop()
        if header not in found:
            found.add(header)
            wanted += included(header)
    return sorted(found)


_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MACRO = re.compile(r"^# *define (GLOW_\w+)((?:.*\\\n)*.*)", re.MULTILINE)
_FUNCTION = re.compile(r"^(\w[^;{}()]*)\b(glow_\w+)\(([^;{}]*)\) *\{(.*)((?:\n(?!\}).*)*)", re.MULTILINE)
_NAME = re.compile(r"\b(?:glow|GLOW)_\w+")


@cache
def _named(header: str) -> Mapping[str, frozenset[str]]:
    """Return what each function and macro of a header names; a plugin's: none."""
    try:
        text = _COMMENT.sub("", runtime_header(header).read_text(encoding="utf-8"))
    except KeyError:
        return {}
    found: dict[str, set[str]] = {}
    for name, body in _MACRO.findall(text):
        found.setdefault(name, set()).update(_NAME.findall(body))
    for _, name, parameters, line, body in _FUNCTION.findall(_MACRO.sub("", text)):
        found.setdefault(name, set()).update(_NAME.findall(parameters + line + body))
    return {name: frozenset(names) for name, names in found.items()}


def reached(text: str, headers: Iterable[str]) -> frozenset[str]:
    """Return the functions of the runtime that a text in C leads to: those that it names, and all that these name.

    `headers` have them all. What a compiler leaves out is among them.
    """
    return _reached(frozenset(_NAME.findall(text)), tuple(headers))


@cache
def _reached(names: frozenset[str], headers: tuple[str, ...]) -> frozenset[str]:
    seen, todo, calls = set[str](), list(names), _calls(headers)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += calls.get(name, ())
    return frozenset(name for name in seen if name.startswith("glow_"))


@cache
def _calls(headers: tuple[str, ...]) -> Mapping[str, Iterable[str]]:
    """Return what each function and macro of headers, and of those of every bundle, names."""
    found: dict[str, frozenset[str]] = {}
    for header in (*RUNTIME_FILES, *headers):
        for name, names in _named(header).items():
            found[name] = found.get(name, frozenset()) | names
    return found
