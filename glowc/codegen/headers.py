"""Which runtime headers include which others, so that a bundle has all that its kernels need."""

from __future__ import annotations

import re
from collections.abc import Iterable
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
