"""Numbers that C and Python share: sizes and limits, which a header of runtime_c defines and a packing reads there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from glowc.errors import InternalError
from glowc.paths import runtime_header

_MACRO = re.compile(r"^#define (GLOW_\w+) (\d+)(?=\s)", re.M)
_ENUM = re.compile(r"^enum \{([^}]*)\}", re.M)
_MEMBER = re.compile(r"(GLOW_\w+) = (\d+)")


@cache
def header_number(header: str, name: str) -> int:
    """Return the number `name` of a header: a member of an enum, or a macro where assembly prints it.

    The header is read when the first of its numbers is asked for. Raises InternalError when it has no such number.
    """
    try:
        return _numbers(header)[name]
    except KeyError:
        raise InternalError(f"{header} of runtime_c has no number {name}") from None


@cache
def _numbers(header: str) -> Mapping[str, int]:
    text = runtime_header(header).read_text(encoding="utf-8")
    members = (pair for body in _ENUM.findall(text) for pair in _MEMBER.findall(body))
    return {name: int(value) for name, value in (*members, *_MACRO.findall(text))}
