"""Sizes as people write them: 8192, 8K, 2M, 0x2000."""

from __future__ import annotations

import re

from glowc.errors import InputError

_SIZE = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9][0-9_]*)\s*([kKmMgG]?)(?:i?[bB])?")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_size(text: str) -> int:
    """Return a size in bytes; K, M and G are 1024, 1024^2 and 1024^3. Raises InputError for what is none, or 0."""
    found = _SIZE.fullmatch(text.strip())
    size = int(found[1].replace("_", ""), 16 if found[1][:2].lower() == "0x" else 10) if found is not None else 0
    if found is None or size == 0:
        raise InputError(f"{text!r} is no size in bytes", hint="8192, 8K, 2M or 0x2000")
    return size * _UNITS[found[2].lower()]
