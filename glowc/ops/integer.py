"""What the integer Conv, FullyConnected and MatMul share: constants folded at compile time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.graph import Node
from glowc.graph.numerics import act_range, requant_scale
from glowc.graph.types import QuantParams, TensorType
from glowc.kernels.shapes import Codes
from glowc.ops.base import LowerCtx, OpError, Ref, clamp_of
from glowc.program.kernel import Arrays
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class Folded:
    """Constants of an integer layer: weights (zero points inside when they vary or fit), bias, scale, parameters."""

    weights: np.ndarray
    bias: np.ndarray
    scale: np.ndarray
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
        raise OpError(f"quantised and float tensors mixed: {x}, {w_type} -> {y}")
    points = np.asarray(w_type.quant.zero_point, np.int64)
    w_zp = int(points[0])
    if points.any():
        centred = subtract_zero_points(weights, points, w_type.quant)
        if np.array_equal(centred, centred.astype(np.int8)):  # the kernels without a zero point serve
            weights, w_zp = centred.astype(np.int8), 0
        elif not (points == w_zp).all():
            weights, w_zp = centred, 0
    scale = requant_scale(x.quant, w_type.quant, y.quant)
    low, high = act_range(*clamp_of(node), y.quant, y.dtype)
    codes = Codes(
        in_zp=x.quant.zero_point[0], w_zp=w_zp, out_zp=y.quant.zero_point[0], out_min=low, out_max=high,
        scale_step=int(scale.size > 1),
    )  # fmt: skip
    return Folded(weights, bias.astype(np.int32), scale.reshape(-1), codes)


def subtract_zero_points(weights: np.ndarray, points: np.ndarray, quant: QuantParams) -> np.ndarray:
    """Return weights - zero point as int16."""
    shape = [1] * weights.ndim
    shape[quant.axis or 0] = points.size
    return np.asarray(weights.astype(np.int64) - points.reshape(shape)).astype(np.int16)


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
