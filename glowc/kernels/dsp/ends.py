"""What the ending of a layer reads of each channel: a float32 scale, or TensorFlow Lite's multiplier and shift.

A fixed ending has two words, 2 mul - 2^32 and the places of the shift less one (runtime_c/dsp/glow_dsp_q31.h), the
places of the channels of a block in one word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from glowc.graph.fixed_point import scaled
from glowc.graph.numerics import requantize
from glowc.kernels.common.factors import LEAST_MUL
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.straight import Line
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

LEAST_LINES = 0.5
"""Of all channels, or pairs of them: where fewer have lines none end by those."""


class Ends(Protocol):
    """The endings of the channels of a layer."""

    @property
    def may_be_negative(self) -> bool:
        """True where a negated sum has an ending as well."""
        ...

    @property
    def factor(self) -> float:
        """What sums of all channels are multiplied by, 0 where they have several."""
        ...

    @property
    def first(self) -> Ends:
        """That of the first channel."""
        ...

    def filled(self, count: int) -> Ends:
        """Return those of so many channels, of which the last ones are not used."""
        ...

    def negated(self, signs: np.ndarray) -> Ends:
        """Return those of channels whose sums are negated where `signs` is -1."""
        ...

    def codes(self, sums: np.ndarray, instr: Instr) -> np.ndarray:
        """Return the codes of a sum of each channel."""
        ...

    def words(self, channels: int) -> np.ndarray:
        """Return the int32 words [blocks, n] of blocks of so many channels."""
        ...


@dataclass(frozen=True, slots=True)
class Scales:
    """float32 scales [O]."""

    scales: np.ndarray
    may_be_negative: bool = True

    @property
    def factor(self) -> float:
        """The scale."""
        return float(self.scales[0]) if (self.scales == self.scales[0]).all() else 0.0

    @property
    def first(self) -> Scales:
        """One scale."""
        return Scales(self.scales[:1])

    def filled(self, count: int) -> Scales:
        """Scales of 0."""
        return Scales(np.pad(self.scales, (0, count - self.scales.size)))

    def negated(self, signs: np.ndarray) -> Scales:
        """Negative scales: the product that is rounded is the same."""
        return Scales(self.scales * signs.astype(np.float32))

    def codes(self, sums: np.ndarray, instr: Instr) -> np.ndarray:
        """Codes by float32 products."""
        return requantize(sums, self.scales, instr.int_("out_zp"), instr.int_("out_min"), instr.int_("out_max"))

    def words(self, channels: int) -> np.ndarray:
        """A word a channel."""
        return np.ascontiguousarray(self.scales).view(np.int32).reshape(-1, channels)


@dataclass(frozen=True, slots=True)
class Factors:
    """Multipliers and shifts [O]."""

    mul: np.ndarray
    shift: np.ndarray
    may_be_negative: bool = False

    @property
    def factor(self) -> float:
        """The multiplier, shifted."""
        same = (self.mul == self.mul[0]).all() and (self.shift == self.shift[0]).all()
        return float(self.mul[0]) * 2.0 ** (int(self.shift[0]) - 31) if same else 0.0

    @property
    def first(self) -> Factors:
        """One multiplier and shift."""
        return Factors(self.mul[:1], self.shift[:1])

    def filled(self, count: int) -> Factors:
        """The least multiplier."""
        more = (0, count - self.mul.size)
        return Factors(np.pad(self.mul, more, constant_values=LEAST_MUL), np.pad(self.shift, more, constant_values=-1))

    def negated(self, signs: np.ndarray) -> Factors:
        """The same: no channel is negated, for halves are rounded up before they are rounded away."""
        assert (signs == 1).all()
        return self

    def codes(self, sums: np.ndarray, instr: Instr) -> np.ndarray:
        """Codes by fixed-point products."""
        y = scaled(sums, self.mul, self.shift) + instr.int_("out_zp")
        return np.asarray(np.clip(y, instr.int_("out_min"), instr.int_("out_max")))

    @property
    def muls(self) -> np.ndarray:
        """The words of the multipliers."""
        return np.asarray(2 * self.mul - (1 << 32))

    @property
    def places(self) -> np.ndarray:
        """The places of the shifts less one."""
        return np.asarray(-self.shift - 1)

    def words(self, channels: int) -> np.ndarray:
        """The word of the places, then a multiplier a channel."""
        places = self.places.reshape(-1, channels) << (8 * np.arange(channels))
        mul = self.muls.reshape(-1, channels)
        return np.concatenate((places.sum(1, keepdims=True), mul), axis=1).astype(np.int32)


def line() -> Line:
    """Return how lines of sums are computed (runtime_c/dsp/glow_dsp.h)."""
    shift, fraction = (header_number("glow_dsp.h", f"GLOW_DSP_LINE_{name}") for name in ("SHIFT", "FRACTION"))
    return Line(shift, 32, fraction, added=True)


def ends_of(constants: Arrays, count: int) -> Ends:
    """Return the endings of `count` channels from the constants of a layer."""
    if "mul" in constants:
        return factors_of(constants, count)
    return Scales(np.array(np.broadcast_to(constants["scale"], (count,)), np.float32))


def factors_of(constants: Arrays, count: int) -> Factors:
    """Return the multipliers and shifts of `count` channels."""
    mul, shift = (np.array(np.broadcast_to(constants[key], (count,)), np.int64) for key in ("mul", "shift"))
    return Factors(mul, shift)


def ends_bytes(*, fixed: bool) -> int:
    """Return the bytes of biases and endings of a block of four channels."""
    return 4 * (4 + (1 + 4 if fixed else 4))


def fixed_end(instr: Instr) -> str:
    """Tell how codes end: r8, v8 where the sign of a sum does not count; r8, n8: without limits."""
    low, high, zp = instr.int_("out_min"), instr.int_("out_max"), instr.int_("out_zp")
    limited = low > -128 or high < 127
    return ("v8" if limited else "r8") if low == zp else ("s8" if limited else "n8")
