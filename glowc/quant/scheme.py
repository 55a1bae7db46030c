"""A range of real values -> scale and zero point, by one of four schemas.

real = scale * (q - zero_point), q in int8. The schemas have Glow's names; `symmetric_with_uint8` shifts values that are
never negative to the whole range of codes (as int8 codes: zero point -128), others are symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

QMIN, QMAX = -128, 127
LARGEST_CODE = 127  # of symmetric values: -127 to 127
_SMALLEST_SCALE = 1e-30  # far from subnormal float32


class Schema(StrEnum):
    """How a range becomes a scale and a zero point."""

    ASYMMETRIC = "asymmetric"
    SYMMETRIC = "symmetric"
    SYMMETRIC_WITH_UINT8 = "symmetric_with_uint8"
    SYMMETRIC_WITH_POWER2_SCALE = "symmetric_with_power2_scale"


@dataclass(frozen=True, slots=True)
class Params:
    """The quantisation of one tensor, in int8 codes."""

    scale: float
    zero_point: int

    @property
    def low(self) -> float:
        """The lowest value that a code stands for."""
        return (QMIN - self.zero_point) * self.scale

    @property
    def high(self) -> float:
        """The highest value that a code stands for."""
        return (QMAX - self.zero_point) * self.scale


def params_of(low: float, high: float, schema: Schema = Schema.ASYMMETRIC) -> Params:
    """Return the quantisation of values from `low` to `high`; 0 always has a code."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return Params(float(np.float32(1 / 128)), 0)  # nothing but zeros: any scale holds them
    if schema is Schema.SYMMETRIC_WITH_UINT8 and low == 0:
        return Params(_scale(high / (QMAX - QMIN)), QMIN)
    if schema is not Schema.ASYMMETRIC:
        scale = max(-low, high) / LARGEST_CODE
        power = schema is Schema.SYMMETRIC_WITH_POWER2_SCALE
        return Params(_scale(2.0 ** np.ceil(np.log2(max(scale, _SMALLEST_SCALE))) if power else scale), 0)
    scale = _scale((high - low) / (QMAX - QMIN))
    return Params(scale, int(np.clip(round(QMIN - low / scale), QMIN, QMAX)))


def _scale(value: float) -> float:
    return float(np.float32(max(value, _SMALLEST_SCALE)))


def fake(values: np.ndarray, params: Params) -> np.ndarray:
    """Return what is left of float values after quantising and dequantising, as float32."""
    codes = np.rint(values / np.float32(params.scale)) + params.zero_point
    kept = (np.clip(codes, QMIN, QMAX) - params.zero_point) * np.float32(params.scale)
    return np.asarray(kept, np.float32)
