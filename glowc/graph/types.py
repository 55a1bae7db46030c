"""Element kinds, quantisation parameters and tensor types: what every value of the graph is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np


class DType(Enum):
    """Element kinds; the value is the spelling used in dumps, file names and C names.

    `bits` is what one element occupies in memory: sub-byte kinds are kept one per byte until packed. The kinds `e...`
    are floats of 8 and 4 bits (glowc/graph/few_bits.py), kept as codes that nothing computes with.
    """

    bits: int

    F16 = "f16"
    F32 = "f32"
    F64 = "f64"
    S2 = "s2"
    U2 = "u2"
    S4 = "s4"
    U4 = "u4"
    S8 = "s8"
    U8 = "u8"
    S16 = "s16"
    U16 = "u16"
    S32 = "s32"
    U32 = "u32"
    S64 = "s64"
    U64 = "u64"
    BOOL = "bool"
    E4M3FN = "e4m3fn"
    E4M3FNUZ = "e4m3fnuz"
    E5M2 = "e5m2"
    E5M2FNUZ = "e5m2fnuz"
    E8M0 = "e8m0"
    E2M1 = "e2m1"

    def __init__(self, text: str) -> None:
        self.bits = 8 if text in ("bool", "s2", "u2", "s4", "u4") or text[0] == "e" else int(text[1:])

    @property
    def bytes(self) -> int:
        """Bytes that one element occupies in memory."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        """True for f16, f32 and f64."""
        return bool(self.value.startswith("f"))

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers; bool is neither float nor integer."""
        return self.value[0] in "su"

    @property
    def is_signed(self) -> bool:
        """True for floats and signed integers."""
        return self.value[0] in "sf"

    @property
    def qmin(self) -> int:
        """Smallest value of an integer kind."""
        return -(1 << (int(self.value[1:]) - 1)) if self.value[0] == "s" else 0

    @property
    def qmax(self) -> int:
        """Largest value of an integer kind."""
        width = int(self.value[1:])
        return (1 << (width - 1)) - 1 if self.value[0] == "s" else (1 << width) - 1

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The numpy dtype that holds it (int8/uint8 for the 2- and 4-bit kinds)."""
        return np.dtype(_NUMPY[self])

    @property
    def ctype(self) -> str:
        """The C type that holds one element."""
        return _CTYPE[self]


LARGEST_TENSOR_BYTES = (1 << 31) - 1
"""Of one tensor: generated loops count elements and bytes in int32_t."""

DTYPES = tuple(kind.value for kind in DType)

NARROW = frozenset((DType.S2, DType.U2, DType.S4, DType.U4))
"""Integers of less than a byte, kept one per byte."""

CODED = frozenset(kind for kind in DType if kind.value[0] == "e")
"""Floats of 8 and 4 bits."""

_NUMPY: dict[DType, str] = {
    DType.S2: "int8", DType.U2: "uint8",
    DType.F16: "float16", DType.F32: "float32", DType.F64: "float64", DType.S4: "int8", DType.U4: "uint8",
    DType.S8: "int8", DType.U8: "uint8", DType.S16: "int16", DType.U16: "uint16", DType.S32: "int32",
    DType.U32: "uint32", DType.S64: "int64", DType.U64: "uint64", DType.BOOL: "bool",
    **dict.fromkeys(CODED, "uint8"),
}  # fmt: skip
_CTYPE: dict[DType, str] = {
    DType.S2: "int8_t", DType.U2: "uint8_t",
    DType.F16: "uint16_t", DType.F32: "float", DType.F64: "double", DType.S4: "int8_t", DType.U4: "uint8_t",
    DType.S8: "int8_t", DType.U8: "uint8_t", DType.S16: "int16_t", DType.U16: "uint16_t",
    DType.S32: "int32_t", DType.U32: "uint32_t", DType.S64: "int64_t", DType.U64: "uint64_t",
    DType.BOOL: "uint8_t", **dict.fromkeys(CODED, "uint8_t"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class QuantParams:
    """real = scale * (q - zero_point); one entry, or one per index of `axis`. Scales are float32 values.

    `bits` of a constant: of how few its codes are, where those are fewer than its kind has; 0: all. They are places in
    a `palette` of ascending codes where there is one (glowc/graph/few_codes.py).
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None
    bits: int = 0
    palette: tuple[int, ...] = ()

    @property
    def per_axis(self) -> bool:
        """True when there is one scale per index of `axis`."""
        return self.axis is not None

    @property
    def scalar(self) -> tuple[np.float32, int]:
        """(scale, zero point) of a per-tensor quantisation; ValueError when it is per axis."""
        if self.axis is not None:
            raise ValueError("per-axis quantization has no single scale")
        return np.float32(self.scale[0]), self.zero_point[0]


def quant(scale: float | np.floating[np.typing.NBitBase], zero_point: int) -> QuantParams:
    """Return per-tensor parameters; the scale is rounded to float32."""
    return QuantParams((float(np.float32(scale)),), (int(zero_point),))


@dataclass(frozen=True, slots=True)
class TensorType:
    """Static shape, element kind, quantisation and the meaning of the axes ("" = none, "nchw", "nhwc")."""

    shape: tuple[int, ...]
    dtype: DType
    quant: QuantParams | None = None
    layout: str = ""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of the dense tensor."""
        return self.elements * self.dtype.bytes

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def quantized(self) -> bool:
        """True when the integers stand for real numbers."""
        return self.quant is not None

    def with_shape(self, shape: Sequence[int]) -> TensorType:
        """Return the same type with another shape and no layout."""
        return replace(self, shape=tuple(int(d) for d in shape), layout="")

    def __str__(self) -> str:
        text = f"{self.dtype.value}[{','.join(map(str, self.shape))}]"
        return text + (f"@{self.layout}" if self.layout else "")


def dtype_of(array: np.ndarray) -> DType:
    """Return the element kind of a numpy array; KeyError for kinds glowc does not have."""
    kind = _FROM_NUMPY.get(array.dtype)
    return _FROM_NUMPY[array.dtype.newbyteorder("=")] if kind is None else kind


_FROM_NUMPY = {np.dtype(name): kind for kind, name in reversed(_NUMPY.items()) if kind not in NARROW | CODED}


def type_of(array: np.ndarray, params: QuantParams | None = None) -> TensorType:
    """Return the tensor type of a numpy array."""
    return TensorType(tuple(array.shape), dtype_of(array), params)
