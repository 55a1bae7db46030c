"""Reads the listings of objdump."""

from __future__ import annotations

import re

OBJDUMP = "arm-none-eabi-objdump"
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(?:[0-9a-f]{4} ?)+\s+(\S.*)$")


def bodies(listing: str) -> dict[str, list[str]]:
    """Return the lines of each function, relocations included."""
    found: dict[str, list[str]] = {}
    body: list[str] = []
    for line in listing.splitlines():
        if name := _FUNCTION.match(line):
            body = found.setdefault(name[1], [])
        else:
            body.append(line)
    return found


def insn_of(line: str) -> tuple[int, str] | None:
    """Return the address and the text of an instruction; None when the line is something else."""
    found = _LINE.match(line)
    return (int(found[1], 16), found[2].replace("\t", " ")) if found else None
