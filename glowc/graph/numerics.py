"""The integer arithmetic that every kernel must meet, in numpy: float32 scaling, half to even, saturation.

Rules (docs/ARITHMETIC.md): the int32 accumulator becomes float32 (round to nearest even), is multiplied by
one float32 scale, rounded half to even, offset by the zero point and saturated.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from glowc.graph.types import DType, QuantParams

F32 = np.float32


def requant_scale(x: QuantParams, w: QuantParams, y: QuantParams) -> np.ndarray:
    """Return (sx * sw[c]) / sy, computed in float32 in that order; one entry per weight scale."""
    sx, sy = F32(x.scale[0]), F32(y.scale[0])
    return np.asarray((sx * np.asarray(w.scale, F32)) / sy, F32)


def round_clamp(value: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """Return clamp(rne(value) + zero_point, low, high) as int64; `value` is float32."""
    bounded = np.clip(value.astype(F32), F32(low - zero_point), F32(high - zero_point))
    return np.rint(bounded).astype(np.int64) + zero_point


def requantize(acc: np.ndarray, scale: np.ndarray | F32, zero_point: int, low: int, high: int) -> np.ndarray:
    """Return clamp(rne(float32(acc) * scale) + zero_point, low, high); `acc` is int32-valued."""
    return round_clamp(acc.astype(F32) * np.asarray(scale, F32), zero_point, low, high)


def quantize(x: np.ndarray, q: QuantParams, dtype: DType) -> np.ndarray:
    """Return saturate(rne(x / scale) + zero_point), computed in float32 (ONNX QuantizeLinear).

    NaN (0 / 0, the root of a negative number) gives the lowest code, as in onnxruntime.
    """
    scale, zero = broadcast_quant(q, x.ndim)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        ratio = np.rint(np.nan_to_num(x.astype(F32) / scale, nan=-3e38, posinf=3e38, neginf=-3e38))
        shifted = ratio.astype(np.float64) + zero
    return np.asarray(np.clip(shifted, dtype.qmin, dtype.qmax).astype(dtype.numpy))


def dequantize(x: np.ndarray, q: QuantParams) -> np.ndarray:
    """Return (x - zero_point) * scale in float32 (ONNX DequantizeLinear)."""
    scale, zero = broadcast_quant(q, x.ndim)
    return np.asarray((x.astype(np.int64) - zero).astype(F32) * scale, F32)


def broadcast_quant(q: QuantParams, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scale (float32) and zero point (int64) shaped to broadcast against a tensor of `rank` axes."""
    shape = [1] * rank
    if q.axis is not None:
        shape[q.axis] = len(q.scale)
    scale = np.asarray(q.scale, F32).reshape(shape if q.axis is not None else [])
    zero = np.asarray(q.zero_point, np.int64).reshape(shape if q.axis is not None else [])
    return scale, zero


def exact_f32(function: Callable[[float], float], values: np.ndarray) -> np.ndarray:
    """Apply `function` in float64 to each value and round to float32: the same bits on every machine."""
    flat = [function(float(v)) for v in values.reshape(-1)]
    return np.asarray(flat, np.float64).astype(F32).reshape(values.shape)


def lut_s8(function: Callable[[float], float], x: QuantParams, y: QuantParams) -> np.ndarray:
    """Return the 256 int8 results of a unary function for q = -128..127; quantisation steps are float32."""
    codes = np.arange(-128, 128, dtype=np.int8)
    return quantize(exact_f32(function, dequantize(codes, x)), y, DType.S8)


def act_range(attrs_min: float, attrs_max: float, y: QuantParams, dtype: DType) -> tuple[int, int]:
    """Return the integer bounds of an activation clamp to [attrs_min, attrs_max] in output codes."""
    low = dtype.qmin if attrs_min == -math.inf else int(quantize(np.asarray([attrs_min], F32), y, dtype)[0])
    high = dtype.qmax if attrs_max == math.inf else int(quantize(np.asarray([attrs_max], F32), y, dtype)[0])
    return low, high


def softmax_exponentials(scale: float, n: int) -> list[float]:
    """Return the exponentials, times one factor, for the differences d = 0..255 to the largest of n codes.

    The factor is onnxruntime's, so that every entry rounds to float32 as it does there (then 2^-64, which is exact,
    lest products overflow): exp(log(largest float32 / n) - 5), with the logarithm in float32.
    """
    step = float(F32(scale))
    most = float(F32(np.finfo(F32).max) / F32(n))
    shift = max(0.0, float(F32(math.log(most))) - 5.0) / step
    return [math.exp((shift - d) * step) * 2.0**-64 for d in range(256)]


def softmax_exp_table(scale: float, n: int) -> np.ndarray:
    """Return `softmax_exponentials` as float32."""
    return np.asarray(softmax_exponentials(scale, n), np.float64).astype(F32)


def softmax_steps(scale: float) -> np.float32:
    """Return by how many steps of the output a probability of 1 is above 0: a whole number, as in onnxruntime."""
    steps = F32(1) / F32(scale)
    return F32(np.floor(steps) if steps >= 1 else steps)


def fma(x: np.ndarray, factor: float | F32, term: np.ndarray | float | F32) -> np.ndarray:
    """Return float32(x * factor + term), rounded once; x are codes, factor and term float32 numbers.

    The product is exact in float64. The sum is rounded to odd there: then float32 rounds it as it would the exact one.
    """
    product = np.asarray(x, np.float64) * np.float64(factor)
    other = np.asarray(term, np.float64)
    total = np.asarray(product + other)
    part = total - product
    rest = (product - (total - part)) + (other - part)
    even = (rest != 0) & (total.view(np.int64) & 1 == 0)
    total = np.where(even, np.nextafter(total, np.where(rest > 0, np.inf, -np.inf)), total)
    return np.asarray(total.astype(F32))
