"""The element types that weights can have in a file, and the codes that there are of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from glowc.quant.scheme import LARGEST_CODE

Array = np.ndarray
BYTE, NIBBLE, CRUMB = 8, 4, 2
"""Bits that codes of weights have."""


class WeightType(StrEnum):
    """The element type of weights in the file; a palette has 16 or 4 int8 codes of its own for each layer."""

    INT8 = "int8"
    PALETTE4 = "palette4"
    INT4 = "int4"
    PALETTE2 = "palette2"
    INT2 = "int2"

    @property
    def bits(self) -> int:
        """How many bits a weight has."""
        return _BITS[self]

    @property
    def indexed(self) -> bool:
        """Whether they are places in a palette."""
        return self in (WeightType.PALETTE4, WeightType.PALETTE2)


_BITS = {
    WeightType.INT8: BYTE, WeightType.PALETTE4: NIBBLE, WeightType.INT4: NIBBLE, WeightType.PALETTE2: CRUMB,
    WeightType.INT2: CRUMB,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grid:
    """The codes that weights may have: the numbers of a type, or those of a palette, ascending."""

    kind: WeightType = WeightType.INT8
    palette: tuple[int, ...] = ()

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and the highest code; -128 is left out, of 16 or 4 codes none is."""
        if self.palette:
            return self.palette[0], self.palette[-1]
        half = 1 << (self.kind.bits - 1)
        return (-LARGEST_CODE, LARGEST_CODE) if self.kind.bits == BYTE else (-half, half - 1)

    def nearest(self, values: Array) -> Array:
        """Return the nearest codes of values in units of a code, as floats."""
        if not self.palette:
            return np.asarray(np.clip(np.rint(values), *self.limits))
        levels = np.asarray(self.palette, np.float64)
        return np.asarray(levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, values)])


BYTES = Grid()
"""The codes of int8 weights."""
