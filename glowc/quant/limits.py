"""What a compiled model takes of a board, and what it may take at most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """What a compiled model takes: bytes of constants, of the arena and of code, predicted instructions."""

    constants_bytes: int
    arena_bytes: int
    insns: int
    code_bytes: int = 0

    @property
    def flash_bytes(self) -> int:
        """The bytes of constants and code."""
        return self.constants_bytes + self.code_bytes


@dataclass(frozen=True, slots=True)
class Limits:
    """What it may take at most; None where there is no limit."""

    flash_bytes: int | None = None
    arena_bytes: int | None = None
    insns: int | None = None

    def hold(self, size: Size) -> bool:
        """Say whether a model of this size is within all limits."""
        return not self.exceeded(size)

    def exceeded(self, size: Size) -> list[str]:
        """Return what is too much, in words."""
        parts = (
            (size.flash_bytes, self.flash_bytes, "bytes of flash for constants and code"),
            (size.arena_bytes, self.arena_bytes, "bytes of arena"),
            (size.insns, self.insns, "instructions"),
        )
        return [f"{n:,} {what}, at most {most:,}" for n, most, what in parts if most is not None and n > most]
