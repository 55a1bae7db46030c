"""Constants of few different codes: 4 or 2 bits tell them, as the codes themselves or as indices of a palette."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NARROW_BITS = (2, 4)
"""Bits of codes, or of indices, that constants of bytes may be stored in."""


@dataclass(frozen=True, slots=True)
class FewCodes:
    """Codes of so many bits: signed numbers, or, where there is a `palette`, places in it (ascending int8 codes)."""

    bits: int
    palette: tuple[int, ...] = ()

    def indices(self, codes: np.ndarray) -> np.ndarray | None:
        """Return what is stored of int8 codes: uint8 below 2 ** bits; None where a code has no such number."""
        table = np.full(256, 255, np.uint8)
        table[np.asarray(self.codes, np.int64) & 0xFF] = np.arange(len(self.codes))
        found = table[np.ascontiguousarray(codes).view(np.uint8)]
        return None if found.max(initial=0) >= 1 << self.bits else found

    @property
    def codes(self) -> tuple[int, ...]:
        """The codes that there are, in the order of what is stored of them."""
        half = 1 << (self.bits - 1)
        return self.palette or tuple(range(-half, half))


def few_codes(codes: np.ndarray) -> FewCodes | None:
    """Return in how few bits int8 codes can be told, the numbers themselves before a palette; None: not in fewer."""
    if codes.dtype != np.int8 or not codes.size:
        return None
    counts = np.bincount(np.ascontiguousarray(codes).reshape(-1).view(np.uint8), minlength=256)
    found = tuple(sorted(int(code) for code in np.flatnonzero(counts).astype(np.uint8).view(np.int8)))
    for bits in NARROW_BITS:
        half = 1 << (bits - 1)
        if -half <= found[0] and found[-1] < half:
            return FewCodes(bits)
        if len(found) <= 1 << bits:
            return FewCodes(bits, found)
    return None
