"""Floats of 8 and 4 bits: what their codes mean, and the code of a number. Sources: ONNX, "Float stored in 8 bits" and
"Float stored in 4 bits"; E8M0 as `onnx.numpy_helper.to_float8e8m0` computes it.

A code is sign, exponent, mantissa. Nothing computes with codes: they are stored, moved, and cast from and to float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.types import DType

ROUND_MODES = ("up", "down", "nearest")


@dataclass(frozen=True, slots=True)
class FewBits:
    """One kind: bit of the sign, bits of the mantissa, exponent of the smallest normal number, largest finite code.

    `over` is the code of what is too large where that is not `most`, `nan` that of NaN; `lone_zero`: zero has no sign.
    """

    sign: int
    places: int
    lowest: int
    most: int
    over: int
    nan: int
    lone_zero: bool = False

    def values(self) -> np.ndarray:
        """The numbers of all codes, float32."""
        codes = np.arange(2 * self.sign)
        size = codes & (self.sign - 1)
        field, rest = size >> self.places, size & ((1 << self.places) - 1)
        whole = np.where(field > 0, rest + (1 << self.places), rest)
        x = np.ldexp(whole.astype(np.float64), np.maximum(field, 1) - 1 + self.lowest - self.places)
        infinite = self.over > self.most and self.over != self.nan
        x = np.where(size > self.most, np.nan, x)
        x = np.where((size == self.over) & infinite, np.inf, x)
        x = np.where(codes & self.sign, -x, x)
        return np.where((codes == self.sign) & self.lone_zero, np.nan, x).astype(np.float32)


FEW_BITS = {
    DType.E4M3FN: FewBits(0x80, 3, -6, 0x7E, 0x7F, 0x7F),
    DType.E4M3FNUZ: FewBits(0x80, 3, -7, 0x7F, 0x80, 0x80, lone_zero=True),
    DType.E5M2: FewBits(0x80, 2, -14, 0x7B, 0x7C, 0x7E),
    DType.E5M2FNUZ: FewBits(0x80, 2, -15, 0x7F, 0x80, 0x80, lone_zero=True),
    DType.E2M1: FewBits(0x08, 1, 0, 0x07, 0x07, 0x08),
}
"""The kinds with a sign; E8M0 has none, its codes are exponents."""


def decode(codes: np.ndarray, kind: DType) -> np.ndarray:
    """Return the numbers of codes (uint8), float32."""
    if kind == DType.E8M0:
        powers = np.ldexp(np.ones(256, np.float64), np.arange(256) - 127)
        powers[255] = np.nan
        return np.asarray(powers.astype(np.float32)[codes])
    table = FEW_BITS[kind].values()
    return np.asarray(table[codes & np.uint8(table.size - 1)])


def encode(x: np.ndarray, kind: DType, *, saturate: bool = True, mode: str = "up") -> np.ndarray:
    """Return the codes (uint8) of float32 numbers: nearest, half to even; `mode` is how E8M0 rounds."""
    if kind == DType.E8M0:
        return _powers(x, saturate, mode)
    few = FEW_BITS[kind]
    size = np.minimum(np.abs(np.nan_to_num(x, nan=0.0, posinf=1e30, neginf=-1e30)).astype(np.float64), 1e30)
    exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, few.lowest), few.lowest).astype(np.int64)
    code = ((exponent - few.lowest) << few.places) + np.rint(np.ldexp(size, few.places - exponent)).astype(np.int64)
    code = np.where(code > few.most, few.most if saturate else few.over, code)
    signed = np.signbit(x) & ~((code == 0) & few.lone_zero)
    code = np.where(signed, code | few.sign, code)
    return np.asarray(np.where(np.isnan(x), few.nan, code).astype(np.uint8))


def _powers(x: np.ndarray, saturate: bool, mode: str) -> np.ndarray:
    """Return exponents: of the next power of two up or down, or of the nearer one (half up)."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).reshape(x.shape)
    exponent, rest = (bits >> 23 & 0xFF).astype(np.int64), bits & 0x7FFFFF
    half = (rest > 0x400000) | ((rest == 0x400000) & (exponent > 0))
    up = {"up": rest > 0, "down": rest < 0, "nearest": half}[mode]
    top = 0xFE if saturate else 0xFF
    return np.asarray(np.where(exponent == 0xFF, 0xFF, np.minimum(exponent + up, top)).astype(np.uint8))


def round_half(x: np.ndarray) -> np.ndarray:
    """Return float32 numbers rounded to float16, as float32."""
    with np.errstate(over="ignore"):
        return np.asarray(x).astype(np.float16).astype(np.float32)


def round_bfloat16(x: np.ndarray) -> np.ndarray:
    """Return float32 numbers rounded to bfloat16 (half to even), as float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).reshape(np.shape(x))
    near = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), x, near.view(np.float32)).astype(np.float32)
