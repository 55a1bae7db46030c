"""A range of real values -> scale and zero point, by one of four schemas.

real = scale * (q - zero_point), q in int8, or in int16 where that is asked for. The schemas have Glow's names;
`symmetric_with_uint8` shifts values that are never negative to the whole range of codes (as int8 codes: zero point
-128), others are symmetric. int16 is symmetric by every schema, with zero point 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

QMIN, QMAX = -128, 127
LARGEST_CODE = 127  # of symmetric values: -127 to 127
LARGEST_CODE16 = 32767
SMALLEST_SCALE = 1e-30  # far from subnormal float32


class Schema(StrEnum):
    """How a range becomes a scale and a zero point."""

    ASYMMETRIC = "asymmetric"
    SYMMETRIC = "symmetric"
    SYMMETRIC_WITH_UINT8 = "symmetric_with_uint8"
    SYMMETRIC_WITH_POWER2_SCALE = "symmetric_with_power2_scale"


class Activations(StrEnum):
    """The element type of the codes between layers; weights are int8 with either."""

    INT8 = "int8"
    INT16 = "int16"

    @property
    def bits(self) -> int:
        """The bits of a code."""
        return 8 if self is Activations.INT8 else 16


@dataclass(frozen=True, slots=True)
class Params:
    """The quantisation of one tensor, in int8 codes, or those of 16 bits."""

    scale: float
    zero_point: int
    bits: int = 8

    @property
    def dtype(self) -> np.dtype[np.signedinteger]:
        """The element type of the codes."""
        return np.dtype(np.int8 if self.bits == 8 else np.int16)

    @property
    def low(self) -> float:
        """The lowest value that a code stands for."""
        return (self.qmin - self.zero_point) * self.scale

    @property
    def high(self) -> float:
        """The highest value that a code stands for."""
        return (self.qmax - self.zero_point) * self.scale

    @property
    def qmin(self) -> int:
        """The lowest code."""
        return -(1 << (self.bits - 1))

    @property
    def qmax(self) -> int:
        """The highest code."""
        return (1 << (self.bits - 1)) - 1

    def values(self, codes: np.ndarray) -> np.ndarray:
        """Return what codes stand for, as float32."""
        return np.asarray((codes.astype(np.float32) - np.float32(self.zero_point)) * np.float32(self.scale))

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Return the nearest codes of float values."""
        with np.errstate(over="ignore"):  # a mask far below all codes
            codes = np.rint(values / np.float32(self.scale)) + self.zero_point
        return np.asarray(np.clip(codes, self.qmin, self.qmax).astype(self.dtype))


def params_of(low: float, high: float, schema: Schema = Schema.ASYMMETRIC, bits: int = 8) -> Params:
    """Return the quantisation of values from `low` to `high`; 0 always has a code."""
    low, high = min(low, 0.0), max(high, 0.0)
    if bits == 16:
        return _sixteen(max(-low, high), schema)
    if low == high:
        return Params(float(np.float32(1 / 128)), 0)  # nothing but zeros: any scale holds them
    if schema is Schema.SYMMETRIC_WITH_UINT8 and low == 0:
        return Params(_scale(high / (QMAX - QMIN)), QMIN)
    if schema is not Schema.ASYMMETRIC:
        scale = max(-low, high) / LARGEST_CODE
        power = schema is Schema.SYMMETRIC_WITH_POWER2_SCALE
        return Params(_scale(2.0 ** np.ceil(np.log2(max(scale, SMALLEST_SCALE))) if power else scale), 0)
    scale = _scale((high - low) / (QMAX - QMIN))
    return Params(scale, int(np.clip(round(QMIN - low / scale), QMIN, QMAX)))


def _sixteen(size: float, schema: Schema) -> Params:
    scale = _scale(size / LARGEST_CODE16) if size else 2.0**-15
    power = schema is Schema.SYMMETRIC_WITH_POWER2_SCALE
    return Params(_scale(2.0 ** np.ceil(np.log2(scale))) if power else scale, 0, 16)


def _scale(value: float) -> float:
    return float(np.float32(max(value, SMALLEST_SCALE)))


def fake(values: np.ndarray, params: Params) -> np.ndarray:
    """Return what is left of float values after quantising and dequantising, as float32."""
    with np.errstate(over="ignore"):
        codes = np.rint(values / np.float32(params.scale)) + params.zero_point
    kept = (np.clip(codes, params.qmin, params.qmax) - params.zero_point) * np.float32(params.scale)
    return np.asarray(kept, np.float32)
