"""What the integer Conv, FullyConnected and MatMul share: constants folded at compile time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from glowc.graph.attrs import Attr, Int, Str
from glowc.graph.few_codes import few_codes
from glowc.graph.fixed_point import multipliers, round_away, scaled, scaled_wide
from glowc.graph.graph import Node
from glowc.graph.numerics import F32, act_range, requant_scale, requantize
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.kernels.shapes import Codes
from glowc.ops.base import LowerCtx, MaybeTypes, OpError, Ref, Types, clamp_of
from glowc.ops.params import OutCodes
from glowc.ops.strided import present
from glowc.program.kernel import Arrays
from glowc.program.params import Params

# Of a layer whose float weights stay floats between integers: onnxruntime makes integers of ONNX's own operators only.
FLOAT_WEIGHTS: Mapping[str, Attr] = {"float_weights": Int(0)}
ROUNDING: Mapping[str, Attr] = {"rounding": Str("even", words=("even", "tflite", "tflite_wide", "tflite_single"))}
"""Attribute of an operator on codes: a float32 scale, half to even; or TensorFlow Lite's multiplier and shift, of sums
in int32 or, wide, in int64 with a multiplier of 16 bits; single, of a product of scales that is rounded to float32."""


def is_tflite(node: Node) -> bool:
    """True for an operator that computes as TensorFlow Lite does."""
    return node.attrs.get("rounding", "even") != "even"


class Ending(Protocol):
    """How exact sums become codes: its constants by role, the end of the kernel's name, and the formula."""

    @property
    def suffix(self) -> str:
        """End of the names of kernels that end so."""
        ...

    @property
    def constants(self) -> Mapping[str, np.ndarray]:
        """One entry, or one per channel, of each constant operand."""
        ...

    def codes(self, acc: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
        """Return the codes of sums [..., channels]."""
        ...


@dataclass(frozen=True, slots=True)
class ScaleEnding:
    """rne(float32(acc) * scale) + zero point."""

    scale: np.ndarray
    suffix: str = ""

    @property
    def constants(self) -> Mapping[str, np.ndarray]:
        """The scales, float32."""
        return {"scale": self.scale}

    def codes(self, acc: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
        """Return the codes of sums [..., channels]."""
        return requantize(acc, self.scale if self.scale.size > 1 else self.scale[0], zero_point, low, high)


@dataclass(frozen=True, slots=True)
class FixedEnding:
    """acc * mul * 2^(shift - 31) by `glowc.graph.fixed_point.scaled` or, wide, `scaled_wide`, + zero point."""

    mul: np.ndarray
    shift: np.ndarray
    wide: bool = False

    @property
    def suffix(self) -> str:
        """End of the names of kernels that end so."""
        return "q15" if self.wide else "q31"

    @property
    def constants(self) -> Mapping[str, np.ndarray]:
        """Multipliers (int32) and shifts (int8)."""
        return {"mul": self.mul, "shift": self.shift}

    def codes(self, acc: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
        """Return the codes of sums [..., channels]."""
        scale = scaled_wide if self.wide else scaled
        y = scale(np.rint(acc).astype(np.int64), self.mul, self.shift) + zero_point
        return np.asarray(np.clip(y, low, high))


def ending_of(node: Node, x: QuantParams, w: QuantParams, y: QuantParams) -> Ending:
    """Return how the sums of products of x and w become codes of y."""
    if not is_tflite(node):
        return ScaleEnding(requant_scale(x, w, y).reshape(-1))
    wide, single = (node.attrs["rounding"] == f"tflite_{word}" for word in ("wide", "single"))
    products = [float(F32(x.scale[0]) * F32(s)) if single else x.scale[0] * s for s in w.scale]
    return FixedEnding(*multipliers([product / y.scale[0] for product in products]), wide)


def code_bounds(node: Node, y: QuantParams, dtype: DType) -> tuple[int, int]:
    """Return the codes that a node clamps its result to."""
    return (fixed_bounds if is_tflite(node) else act_range)(*clamp_of(node), y, dtype)


def fixed_bounds(low: float, high: float, y: QuantParams, dtype: DType) -> tuple[int, int]:
    """Return the codes of bounds as TensorFlow Lite rounds them: half away from zero."""
    scale, zero = y.scalar
    codes = [
        limit if math.isinf(bound) else zero + int(round_away(np.asarray(F32(bound) / scale)))
        for bound, limit in ((low, dtype.qmin), (high, dtype.qmax))
    ]
    return max(codes[0], dtype.qmin), min(codes[1], dtype.qmax)


def codes_of(t: TensorType, *kinds: DType) -> QuantParams:
    """Return the quantisation of codes, of one of these kinds where some are named. OpError for anything else."""
    if t.quant is None or (kinds and t.dtype not in kinds):
        raise OpError(f"needs {' or '.join(k.value for k in kinds)} codes, not {t}".replace("  ", " "))
    return t.quant


def rule_of_codes(*kinds: DType, rank: int = 0) -> Callable[[Node, MaybeTypes], Types]:
    """Return the type rule of a function of codes of at least `rank` axes: attr `dtype`, the input's kind without."""

    def infer(node: Node, in_types: MaybeTypes) -> Types:
        (x,) = present(in_types[:1])
        codes_of(x, *kinds)
        if x.rank < rank:
            raise OpError(f"{node.op} of {x}: needs {rank} axes")
        return (TensorType(x.shape, DType(str(node.attrs.get("dtype") or x.dtype.value)), None, x.layout),)

    return infer


def result_codes(y: TensorType, low: float = -math.inf, high: float = math.inf) -> OutCodes:
    """Return the codes of a result that TensorFlow Lite clamps so."""
    return OutCodes(codes_of(y).zero_point[0], *fixed_bounds(low, high, codes_of(y), y.dtype))


@dataclass(frozen=True, slots=True)
class Folded:
    """Constants of an integer layer: weights (zero points inside when they vary or fit), bias, ending, parameters."""

    weights: np.ndarray
    bias: np.ndarray
    ending: Ending
    codes: Codes


@dataclass(frozen=True, slots=True)
class CodedWeights(Params):
    """Weights that stay codes in a float layer; `scale_step` 0: one scale for all channels."""

    w_zp: int
    scale_step: int


def fold_weights(node: Node, ctx: LowerCtx, x: TensorType, y: TensorType) -> Folded:
    """Return the constants of a layer with inputs (x, weights[O,...] const, bias[O] const s32)."""
    w_type, weights = ctx.type(node.inputs[1]), ctx.const_value(node.inputs[1])
    bias = ctx.const_value(node.inputs[2])
    if weights is None or bias is None:
        raise OpError("integer weights and bias must be constants")
    if x.quant is None or y.quant is None or w_type.quant is None:
        raise OpError(f"quantized and float tensors mixed: {x}, {w_type} -> {y}")
    points = np.asarray(w_type.quant.zero_point, np.int64)
    w_zp = int(points[0])
    if points.any():
        centred = subtract_zero_points(weights, points, w_type.quant)
        if np.array_equal(centred, centred.astype(np.int8)):  # the kernels without a zero point serve
            weights, w_zp = centred.astype(np.int8), 0
        elif not (points == w_zp).all():
            weights, w_zp = centred, 0
    ending = ending_of(node, x.quant, w_type.quant, y.quant)
    weights, bias, ending = _without_idle(weights, bias, ending, w_zp, w_type.quant.axis or 0)
    low, high = code_bounds(node, y.quant, y.dtype)
    codes = Codes(
        in_zp=x.quant.zero_point[0], w_zp=w_zp, out_zp=y.quant.zero_point[0], out_min=low, out_max=high,
        scale_step=int(len(w_type.quant.scale) > 1),
    )  # fmt: skip
    return Folded(weights, bias.astype(np.int64 if ending.suffix == "q15" else np.int32), ending, codes)


def without_zero_point(folded: Folded, x: TensorType) -> Folded:
    """Return a layer of int16 codes without padding whose inputs have zero point 0: the biases have what it takes off.

    Kernels of int16 are for codes around 0. As it is where sums of products of the codes might not fit 32 bits.
    """
    zero, weights = folded.codes.in_zp, folded.weights.reshape(len(folded.weights), -1).astype(np.int64)
    if x.dtype is not DType.S16 or zero == 0 or folded.bias.dtype != np.int32:
        return folded
    weights = weights - folded.codes.w_zp
    bias = folded.bias - zero * weights.sum(1)
    if (np.abs(bias) + (1 << 15) * np.abs(weights).sum(1)).max() >= 1 << 31:
        return folded
    return replace(folded, bias=bias.astype(np.int32), codes=replace(folded.codes, in_zp=0))


def _without_idle(
    weights: np.ndarray, bias: np.ndarray, ending: Ending, w_zp: int, axis: int
) -> tuple[np.ndarray, np.ndarray, Ending]:
    """Return a layer whose channels of factor 0 always give the zero point."""
    if not isinstance(ending, FixedEnding) or ending.mul.all():
        return weights, bias, ending
    return without_outputs(weights, bias, ending, ending.mul == 0, w_zp, axis)


def without_outputs(
    weights: np.ndarray, bias: np.ndarray, ending: FixedEnding, idle: np.ndarray, w_zp: int, axis: int
) -> tuple[np.ndarray, np.ndarray, FixedEnding]:
    """Return a layer whose `idle` channels have sums of 0 and a usual factor: always the zero point."""
    channels = np.broadcast_to(idle, weights.shape[axis])
    shape = [-1 if i == axis else 1 for i in range(weights.ndim)]
    used = replace(
        ending, mul=np.where(idle, 1 << 30, ending.mul).astype(np.int32),
        shift=np.where(idle, -1, ending.shift).astype(np.int8),
    )  # fmt: skip
    weights = np.where(channels.reshape(shape), w_zp, weights).astype(weights.dtype)
    return weights, np.where(channels, 0, bias).astype(bias.dtype), used


def subtract_zero_points(weights: np.ndarray, points: np.ndarray, quant: QuantParams) -> np.ndarray:
    """Return weights - zero point as int16."""
    shape = [1] * weights.ndim
    shape[quant.axis or 0] = points.size
    return np.asarray(weights.astype(np.int64) - points.reshape(shape)).astype(np.int16)


def narrow_weights(ctx: LowerCtx, node: Node, weights: np.ndarray) -> Ref:
    """Return the constant of a layer's weights, whose type says of how few bits they are where the graph's does."""
    ref, quant = ctx.const(weights, f"{node.name}_weights"), ctx.type(node.inputs[1]).quant
    few = few_codes(weights) if quant is not None and quant.bits else None
    if few is None:
        return ref
    return replace(ref, type=replace(ref.type, quant=QuantParams((1.0,), (0,), bits=few.bits, palette=few.palette)))


def weight_codes(node: Node, ctx: LowerCtx, quant: QuantParams) -> tuple[Ref, CodedWeights]:
    """Return the scales (constant) and zero point of a float layer whose weights stay int8 codes."""
    if len(set(quant.zero_point)) > 1:
        raise OpError("weights of a float layer need one zero point")
    scale = ctx.const(np.asarray(quant.scale, np.float32), f"{node.name}_scale")
    return scale, CodedWeights(quant.zero_point[0], int(len(quant.scale) > 1))


def scales(arrays: Arrays, scale_step: int) -> np.ndarray:
    """Return what a layer's sums are multiplied by: one number per channel, or the same for all."""
    scale = arrays["scale"]
    return scale if scale_step else np.asarray(scale[0])


def fixed(arrays: Arrays) -> FixedEnding:
    """Return the ending of a kernel that has multipliers and shifts; wide where its biases are of 64 bits."""
    wide = arrays["bias"].dtype == np.int64
    return FixedEnding(arrays["mul"].astype(np.int64), arrays["shift"].astype(np.int64), wide)


def reach(type_: TensorType) -> int:
    """Return the largest magnitude of a code minus its zero point."""
    points = type_.quant.zero_point if type_.quant is not None else (0,)
    return int(max(max(z - type_.dtype.qmin, type_.dtype.qmax - z) for z in points))


def largest_sum(weights: np.ndarray, w_type: TensorType, x_type: TensorType, bias: np.ndarray, axis: int) -> int:
    """Return a bound on the magnitude of an accumulator of weights with outputs along `axis`."""
    terms = int(weights.size // weights.shape[axis])
    quick: int = terms * reach(w_type) * reach(x_type) + int(np.abs(bias.astype(np.int64)).max(initial=0))
    if quick < 2**31 or w_type.quant is None:
        return quick
    points = np.asarray(w_type.quant.zero_point, np.int64)
    shape = [points.size if i == axis and points.size > 1 else 1 for i in range(weights.ndim)]
    centred = np.abs(weights.astype(np.int64) - (points if points.size > 1 else points[:1]).reshape(shape))
    sums = centred.sum(axis=tuple(i for i in range(weights.ndim) if i != axis)) * reach(x_type)
    return int(sums.max(initial=0)) + int(np.abs(bias.astype(np.int64)).max(initial=0))
