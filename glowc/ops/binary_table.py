"""The functions of two operands: each as a C expression over x and y, and as numpy.

Integers wrap; division truncates (`floor_div` rounds down) and gives 0 for a divisor 0, so that C has no undefined
case; remainders of 0 and -1 are 0. A comparison gives bool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.types import DType
from glowc.ops.base import OpError

Function = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    safe = np.where(b == 0, np.ones_like(b), b)
    up = (a % safe != 0) & ((a < 0) ^ (safe < 0))
    quotient = a // safe + up.astype(a.dtype)
    return np.asarray(np.where(b == 0, np.zeros_like(a), np.where(safe == -1, -a, quotient)).astype(a.dtype))


def _mod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.asarray(np.mod(a, b))
    return np.asarray(np.where(b == 0, np.zeros_like(a), np.mod(a, np.where(b == 0, np.ones_like(b), b))))


def _fmod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.asarray(np.fmod(a, b))
    return np.asarray(np.where(b == 0, np.zeros_like(a), np.fmod(a, np.where(b == 0, np.ones_like(b), b))))


def _floor_div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.asarray(np.floor(a / b))
    safe = np.where(b == 0, np.ones_like(b), b)
    return np.asarray(np.where(b == 0, np.zeros_like(a), np.where(safe == -1, -a, a // safe)).astype(a.dtype))


_FLOAT_MOD = "fmodF(x, y) == 0 ? copysignF(0, y) : (((fmodF(x, y) < 0) != (y < 0)) ? fmodF(x, y) + y : fmodF(x, y))"


def _shift_left(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
    return np.asarray(np.where(inside, np.left_shift(a, np.where(inside, b, 0)), 0).astype(a.dtype))


def _shift_right(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
    beyond = np.where(a < 0, ~np.zeros_like(a), np.zeros_like(a))
    return np.asarray(np.where(inside, np.right_shift(a, np.where(inside, b, 0)), beyond).astype(a.dtype))


_FLOOR_DIV = "y == 0 ? (U)0 : (NEG(y) ? (U)((U)0 - (U)x) : (U)(x / y - ((x % y != 0 && SIGNS) ? 1 : 0)))"


@dataclass(frozen=True, slots=True)
class Binary:
    """C over x, y, T, U and F (suffix of libm's functions) for floats and integers, and its numpy function."""

    function: Function
    c_float: str
    c_int: str = ""
    boolean: bool = False


TABLE: Mapping[str, Binary] = {
    "add": Binary(lambda a, b: a + b, "x + y", "(T)((U)x + (U)y)"),
    "sub": Binary(lambda a, b: a - b, "x - y", "(T)((U)x - (U)y)"),
    "mul": Binary(lambda a, b: a * b, "x * y", "(T)(1u * (U)x * (U)y)"),
    "div": Binary(_div, "x / y", "(T)(y == 0 ? (U)0 : (NEG(y) ? (U)((U)0 - (U)x) : (U)(x / y)))"),
    "floor_div": Binary(_floor_div, "floorF(x / y)", f"(T)({_FLOOR_DIV})"),
    "min": Binary(np.minimum, "(x < y || x != x) ? x : y", "x < y ? x : y"),
    "max": Binary(np.maximum, "(x > y || x != x) ? x : y", "x > y ? x : y"),
    "pow": Binary(np.power, "powF(x, (T)y)", "(T)pow((double)x, (double)y)"),
    "fmod": Binary(_fmod, "fmodF(x, y)", "(T)((y == 0 || NEG(y)) ? 0 : x % y)"),
    "mod": Binary(_mod, _FLOAT_MOD, "(T)((y == 0 || NEG(y)) ? 0 : ((x % y != 0 && SIGNS) ? x % y + y : x % y))"),
    "prelu": Binary(lambda a, b: np.where(a < 0, a * b, a), "x < 0 ? x * y : x"),
    "equal": Binary(np.equal, "(uint8_t)(x == y)", "(uint8_t)(x == y)", True),
    "less": Binary(np.less, "(uint8_t)(x < y)", "(uint8_t)(x < y)", True),
    "less_equal": Binary(np.less_equal, "(uint8_t)(x <= y)", "(uint8_t)(x <= y)", True),
    "and": Binary(np.logical_and, "", "(uint8_t)(x & y)", True),
    "or": Binary(np.logical_or, "", "(uint8_t)(x | y)", True),
    "xor": Binary(np.logical_xor, "", "(uint8_t)(x ^ y)", True),
    "bit_and": Binary(np.bitwise_and, "", "(T)(x & y)"),
    "bit_or": Binary(np.bitwise_or, "", "(T)(x | y)"),
    "bit_xor": Binary(np.bitwise_xor, "", "(T)(x ^ y)"),
    "shift_left": Binary(_shift_left, "", "(T)((uint64_t)y < BITS ? (U)((U)x << y) : (U)0)"),
    "shift_right": Binary(
        _shift_right,
        "",
        "(T)((uint64_t)y < BITS ? (NEGATIVE ? (U)~((U)~x >> y) : (U)((U)x >> y)) : (NEGATIVE ? (U)~0 : (U)0))",
    ),
}
"""The expressions by the name that `op` carries; greater is less with the inputs exchanged."""


def expression(name: str, dtype: DType) -> str:
    """Return the C expression of an entry for one element kind."""
    entry = TABLE[name]
    text = entry.c_float if dtype.is_float else entry.c_int
    if not text:
        raise OpError(f"{name} of {dtype.value}")
    if dtype.is_float:
        return text.replace("F(", "f(" if dtype == DType.F32 else "(").replace("(T)", f"({dtype.ctype})")
    signed, unsigned = dtype.ctype, f"uint{dtype.bits}_t"
    text = text.replace("BITS", str(dtype.bits)).replace("NEGATIVE", "x < 0" if dtype.is_signed else "0")
    text = text.replace("NEG(y)", "y == -1" if dtype.is_signed else "0").replace(
        "SIGNS", "(x < 0) != (y < 0)" if dtype.is_signed else "0")  # fmt: skip
    return text.replace("(T)", f"({signed})").replace("(U)", f"({unsigned})")
