"""Integer layers as instructions: weights, bias and the constants of how sums become codes.

TensorFlow Lite's layers whose factors need a shift to the left end by float32 scales where these give the same codes
(glowc.ops.same_scale). Otherwise such outputs come apart (glowc.ops.steep).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.graph import Node
from glowc.graph.types import DType
from glowc.kernels.shapes import Conv, FullyConnected
from glowc.ops.base import LowerCtx, OpError, Ref
from glowc.ops.integer import FixedEnding, Folded, ScaleEnding, narrow_weights, without_outputs
from glowc.ops.requant_shift import ShiftCodes, shift_end, shift_of, shift_operands
from glowc.ops.same_scale import same_scale, sums_between
from glowc.ops.steep import Steep, gathered, put_in_place, small_shape, small_type, steep_outputs
from glowc.program.params import Params


def emit_integer(
    node: Node,
    ctx: LowerCtx,
    kernel: str,
    folded: Folded,
    weights: np.ndarray,
    params: Params,
    rows: tuple[int, int] | None,
    macs: int,
) -> None:
    """Emit an integer kernel with weights, bias and the constants of the output's requantisation.

    Outputs of a TensorFlow Lite layer whose factor is 1/2 or more are computed apart where no float32 scales serve for
    all, or the others are where there are fewer of them (glowc.ops.steep).
    """
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    layer = _Layer(node.name, kernel, folded, params, rows, macs).scaled(weights)
    apart = layer.apart(weights)
    if apart is None:
        layer.emit(ctx, narrow_weights(ctx, node, weights), x, y)
        return
    own = layer.weights_of(weights, apart)
    part, source = layer.only(apart).scaled(own), x
    if layer.depthwise and isinstance(layer.shape, Conv):
        source = gathered(ctx, x, layer.shape, apart, f"{part.name}_in")
    small = ctx.temp(small_type(y.type, apart), f"{part.name}_out")
    part.emit(ctx, ctx.const(own, f"{part.name}_weights"), source, small)
    others, rest = layer.without(weights, apart)
    others.emit(ctx, narrow_weights(ctx, node, rest), x, y)
    put_in_place(ctx, small, y, apart)


@dataclass(frozen=True, slots=True)
class _Layer:
    """An integer layer but for its weights and tensors."""

    name: str
    kernel: str
    folded: Folded
    params: Params
    rows: tuple[int, int] | None
    macs: int

    @property
    def depthwise(self) -> bool:
        return self.kernel.startswith("dw")

    @property
    def shape(self) -> Conv | FullyConnected | None:
        """Its shape where outputs can be computed apart."""
        shape = getattr(self.params, "shape", None)
        one_group = isinstance(shape, Conv) and (self.depthwise or shape.groups == 1)
        return shape if one_group or isinstance(shape, FullyConnected) else None

    def scaled(self, weights: np.ndarray) -> _Layer:
        """Return the layer with float32 scales where an output needs a shift to the left, if these serve for all."""
        ending, codes = self.folded.ending, self.folded.codes
        if not isinstance(ending, FixedEnding) or not self._may_be_steep(ending):
            return self
        low, high = sums_between(weights, self.folded.bias, codes, weights.ndim - 1 if self.depthwise else 0)
        scale = same_scale(ending, low, high, codes)
        return self if scale is None else replace(self, folded=replace(self.folded, ending=scale))

    def _may_be_steep(self, ending: FixedEnding) -> bool:
        return not ending.wide and self.kernel.endswith("_s8") and bool((ending.shift >= 0).any())

    def apart(self, weights: np.ndarray) -> Steep | None:
        """Return the outputs that are computed apart: the steep ones, or the others where these are fewer."""
        ending = self.folded.ending
        if not isinstance(ending, FixedEnding) or not self._may_be_steep(ending) or self.shape is None:
            return None
        if ending.shift.size != self.shape.outputs:
            return None
        steep = steep_outputs(ending.shift)
        if steep.is_minor:
            return steep
        others = steep.others
        rest, _ = self.without(weights, others)
        return others if others.at.size and isinstance(rest.folded.ending, ScaleEnding) else None

    def weights_of(self, weights: np.ndarray, steep: Steep) -> np.ndarray:
        """Return the weights of some outputs."""
        return np.ascontiguousarray(weights[..., steep.at] if self.depthwise else weights[steep.at])

    def only(self, steep: Steep) -> _Layer:
        """Return the small layer of some outputs."""
        folded, ending, shape = self.folded, self.folded.ending, self.shape
        assert isinstance(ending, FixedEnding) and shape is not None  # noqa: PT018
        few = replace(ending, mul=ending.mul[steep.at], shift=ending.shift[steep.at])
        folded = replace(folded, bias=folded.bias[steep.at], ending=few)
        params = replace(self.params, shape=small_shape(shape, steep, depthwise=self.depthwise))  # type: ignore[call-arg]
        return replace(
            self, name=f"{self.name}_apart", folded=folded, params=params, macs=steep.share(self.macs)
        )  # fmt: skip

    def without(self, weights: np.ndarray, steep: Steep) -> tuple[_Layer, np.ndarray]:
        """Return the layer and its weights when some outputs always give the zero point."""
        ending, axis = self.folded.ending, weights.ndim - 1 if self.depthwise else 0
        assert isinstance(ending, FixedEnding)
        rest, bias, usual = without_outputs(
            weights, self.folded.bias, ending, steep.mask, self.folded.codes.w_zp, axis
        )  # fmt: skip
        return replace(self, folded=replace(self.folded, bias=bias, ending=usual)).scaled(rest), rest

    def emit(self, ctx: LowerCtx, weights: Ref, x: Ref, y: Ref) -> None:
        """Emit it with these weights and tensors."""
        ending = self.folded.ending
        operands = {
            "in": x,
            "weights": weights,
            "bias": ctx.const(self.folded.bias, f"{self.name}_bias"),
            **{role: ctx.const(array, f"{self.name}_{role}") for role, array in ending.constants.items()},
            "out": y,
        }
        suffix = "w16" if weights.type.dtype is DType.S16 else ""
        ctx.emit(self.kernel + ending.suffix + suffix, operands, self.params, rows=self.rows, macs=self.macs)


def emit_shift(
    node: Node,
    ctx: LowerCtx,
    kernel: str,
    weights: np.ndarray | None,
    params: Callable[[ShiftCodes], Params],
    rows: tuple[int, int] | None,
    macs: int,
) -> None:
    """Emit an integer kernel that ends in a multiplication and a shift (RequantShift)."""
    x, y, shift = ctx.read(node.inputs[0]), ctx.write(node.outputs[0]), shift_of(node)
    bias = ctx.const_value(node.inputs[2])
    if weights is None or bias is None or shift is None or x.type.quant is None or y.type.quant is None:
        raise OpError("weights and bias must be constants, and all tensors integers")
    operands = {"in": x, "weights": ctx.const(weights, f"{node.name}_weights"), "out": y}
    operands |= shift_operands(ctx, node, shift, bias)
    of_weights = ctx.type(node.inputs[1]).quant
    zero = 0 if of_weights is None else of_weights.zero_point[0]
    codes = ShiftCodes(zero, x.type.quant.zero_point[0], shift_end(shift, y.type.quant))
    ctx.emit(kernel, operands, params(codes), rows=rows, macs=macs)
