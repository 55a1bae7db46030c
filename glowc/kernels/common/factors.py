"""Layers on codes that end as TensorFlow Lite does: a multiplier of 31 bits and a shift for each output channel.

A factor is mul * 2^(shift - 31) (glowc/graph/fixed_point.py). Vectors round the upper half of the product, which is
mul * sum * 2^-31, and shift it to the right by -shift places; halves of those are rounded away from zero, which is up
after one was taken from what is negative. So that there is such a half, there must be at least one place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import UNFIT, KernelVariant, Prepared, prepare
from glowc.kernels.common.constants import EMPTY
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

FIXED = frozenset({"weights", "bias", "mul", "shift"})
"""The constants of a layer that ends in a multiplier and a shift."""
FIXED_EMPTY: Arrays = {"bias": np.zeros(1, np.int32), "mul": np.zeros(1, np.int32), "shift": np.zeros(1, np.int8)}
"""What stands for them where they lie in the stream of the weights."""
LEAST_MUL = 1 << 30
MOST_PLACES = 31


@dataclass(frozen=True, slots=True)
class Ends:
    """How sums of each output end.

    `words` are int32[O], the bits of float32 scales or multipliers, `shifts` int8[O], None: there are scales, `factors`
    float64[O] what sums are multiplied by.
    """

    words: np.ndarray
    shifts: np.ndarray | None
    factors: np.ndarray

    @staticmethod
    def of(constants: Arrays, count: int) -> Ends:
        """Return the ends of `count` outputs, which may share one."""
        if "scale" in constants:
            scale = np.broadcast_to(constants["scale"].reshape(-1), (count,)).astype(np.float32)
            return Ends(scale.view(np.int32), None, scale.astype(np.float64))
        mul, shift = (np.broadcast_to(constants[key].reshape(-1), (count,)) for key in ("mul", "shift"))
        return Ends(mul.astype(np.int32), shift.astype(np.int8), np.ldexp(mul.astype(np.float64), shift - np.int64(31)))

    @property
    def empty(self) -> Arrays:
        """What stands for the constants that lie in the stream."""
        return {**EMPTY} if self.shifts is None else {**FIXED_EMPTY}

    @property
    def constants(self) -> Arrays:
        """One entry for each output, as kernels read them that have no stream."""
        if self.shifts is None:
            return {"scale": np.ascontiguousarray(self.words).view(np.float32)}
        return {"mul": np.ascontiguousarray(self.words), "shift": np.ascontiguousarray(self.shifts)}


def fit(constants: Arrays) -> bool:
    """Say whether every factor has a multiplier of 31 bits and is shifted by 1 to 31 places to the right."""
    mul, shift = constants["mul"].astype(np.int64), constants["shift"].astype(np.int64)
    return bool((mul >= LEAST_MUL).all() and (shift <= -1).all() and (shift >= -MOST_PLACES).all())


def high_factors(constants: Arrays, count: int, bits: int) -> Arrays | None:
    """Return the constants of `count` outputs whose codes are upper parts of products; None where one's are not.

    TensorFlow Lite's code of a sum of int16 codes, (sum * m + half) >> n with m < 2^15, is (sum * mul + half) >> bits
    with mul = m * 2^(bits - n), where 0 <= bits - n <= 16: one instruction that rounds. The sums fit 32 bits.
    """
    mul, shift = (np.broadcast_to(constants[key].reshape(-1), (count,)).astype(np.int64) for key in ("mul", "shift"))
    left = shift + (bits - 15)
    if left.min() < 0 or left.max() > 16:
        return None
    reduced = np.where(mul < 0x7FFF0000, (mul + (1 << 15)) >> 16, 0x7FFF)
    return {"bias": constants["bias"].astype(np.int32), "mul": (reduced << left).astype(np.int32)}


def is_right_shift(instr: Instr, key: str = "shift") -> bool:
    """Say whether sums of a kernel with one factor are multiplied and shifted to the right."""
    return -MOST_PLACES <= instr.int_(key) <= -1


def is_rectified(instr: Instr) -> bool:
    """Say whether no code is below the zero point: how halves of what is negative are rounded then does not count."""
    return instr.int_("out_min") == instr.int_("out_zp")


def with_factors(plain: KernelVariant, header: str) -> KernelVariant:
    """Return a variant for layers with factors that fit, of one whose preparation takes those as well as scales.

    They end by functions of another header.
    """

    def prepare_fixed(constants: Arrays, instr: Instr) -> Prepared:
        return prepare(plain, constants, instr) if fit(constants) else UNFIT

    return replace(plain, prepare=prepare_fixed, packs=FIXED, header=header)
