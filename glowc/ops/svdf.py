"""Svdf: TensorFlow Lite's SVDF, a recurrent layer of rank-one filters with a memory of its last inputs.

x[B, I], feature weights[F, I], time weights[F, M], bias[U] -> y[B, U] with F = rank * U filters. The state [B, F, M]
moves down by one; its last column becomes the products of x with the feature weights; each filter's sum over its memory
times the time weights is added to its unit, on top of the bias.
Of codes: state code = clamp(sum (x - zx) * w * k1 + zs) in the kind of the time weights, k1 = float32(sx sw / ss); the
unit's sum of (state - zs) * t ends in k2 = float32(ss st / sy), zero point and the whole range of int8. Factors are
multipliers of 31 bits and shifts. `state_scale`, `state_zp`: of the state, which begins with its zero point.
Evidence: the 7 layers of TFLM's keyword model and seeded cases (tests/tflite), 0 differ.
Source: tensorflow/lite/micro/kernels/svdf_common.cc, restated. The state is kept between calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Float, Int
from glowc.graph.fixed_point import multiplier, scaled
from glowc.graph.graph import Node
from glowc.graph.numerics import F32
from glowc.graph.types import TensorType
from glowc.kernels.shapes import Shape
from glowc.ops.base import CLAMP, LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types, clamp_of
from glowc.ops.derived import derived
from glowc.ops.integer import codes_of
from glowc.ops.params import Clamp
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class SvdfShape(Shape):
    """Batches, inputs, units, filters of each, and how many calls they remember."""

    batch: int
    in_k: int
    units: int
    svdf_rank: int
    memory: int

    @property
    def filters(self) -> int:
        """Filters of all units."""
        return self.units * self.svdf_rank


@dataclass(frozen=True, slots=True)
class SvdfCodes(Params):
    """Of `svdf_*q31`: zero points and both factors."""

    shape: SvdfShape
    in_zp: int
    state_zp: int
    state_mul: int
    state_shift: int
    out_zp: int
    out_mul: int
    out_shift: int


@dataclass(frozen=True, slots=True)
class SvdfFloat(Params):
    """Of `svdf_f32`."""

    shape: SvdfShape
    clamp: Clamp


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """One row of units for each of the input."""
    x, feature, time, bias = present(in_types[:4])
    rank = node.int_("svdf_rank")
    if x.rank != 2 or feature.rank != 2 or time.rank != 2 or rank < 1 or feature.shape[0] % rank:
        raise OpError(f"input {x}, weights {feature} and {time}, rank {rank}")
    units = feature.shape[0] // rank
    if feature.shape[1] != x.shape[1] or time.shape[0] != feature.shape[0] or bias.shape != (units,):
        raise OpError(f"input {x}, weights {feature} and {time}, bias {bias}, rank {rank}")
    return (TensorType((x.shape[0], units), x.dtype),)


def shape_of(node: Node, types: MaybeTypes) -> SvdfShape:
    """Return the sizes."""
    x, feature, time = present(types[:3])
    rank = node.int_("svdf_rank")
    return SvdfShape(x.shape[0], x.shape[1], feature.shape[0] // rank, rank, time.shape[1])


def step_codes(
    p: SvdfCodes, x: np.ndarray, feature: np.ndarray, time: np.ndarray, bias: np.ndarray, state: np.ndarray
) -> np.ndarray:
    """Return the int8 codes of one call, having advanced the state [B, F, M] in place."""
    kind = np.iinfo(state.dtype)
    news = scaled((x.astype(np.int64) - p.in_zp) @ feature.astype(np.int64).T, p.state_mul, p.state_shift)
    state[..., :-1] = state[..., 1:].copy()
    state[..., -1] = np.clip(news + p.state_zp, kind.min, kind.max)
    part = ((state.astype(np.int64) - p.state_zp) * time.astype(np.int64)).sum(-1)
    acc = part.reshape(p.shape.batch, p.shape.units, p.shape.svdf_rank).sum(-1) + bias
    return np.asarray(np.clip(scaled(acc, p.out_mul, p.out_shift) + p.out_zp, -128, 127))


def step_float(
    p: SvdfFloat, x: np.ndarray, feature: np.ndarray, time: np.ndarray, bias: np.ndarray, state: np.ndarray
) -> np.ndarray:
    """Return the floats of one call, having advanced the state [B, F, M] in place."""
    state[..., :-1] = state[..., 1:].copy()
    state[..., -1] = x @ feature.T
    part = (state * time).sum(-1).reshape(p.shape.batch, p.shape.units, p.shape.svdf_rank).sum(-1)
    return np.asarray(np.clip(part + bias, p.clamp.act_min, p.clamp.act_max))


def code_params(node: Node, types: MaybeTypes, y: TensorType) -> SvdfCodes:
    """Return the factors; their quotients are of float32."""
    x, feature, time = (codes_of(t) for t in present(types[:3]))
    out, state = codes_of(y), F32(node.float_("state_scale"))
    into = F32(F32(x.scalar[0] * feature.scalar[0]) / state)
    end = F32(F32(state * time.scalar[0]) / out.scalar[0])
    return SvdfCodes(shape_of(node, types), x.zero_point[0], node.int_("state_zp"), *multiplier(float(into)),
                     out.zero_point[0], *multiplier(float(end)))  # fmt: skip


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `svdf_*` on a kept state."""
    types = tuple(ctx.type(name) for name in node.inputs)
    shape, kind = shape_of(node, types), present(types[:3])[2].dtype
    start = np.full((shape.batch, shape.filters, shape.memory), node.int_("state_zp"), kind.numpy)
    state = ctx.state(f"{node.name}_state", TensorType(start.shape, kind), start)
    y = ctx.write(node.outputs[0])
    operands: Mapping[str, Ref] = {
        **{role: ctx.read(name) for role, name in zip(("in", "feature", "time", "bias"), node.inputs, strict=True)},
        "state": state, "out": y,
    }  # fmt: skip
    macs = shape.batch * shape.filters * (shape.in_k + shape.memory)
    if y.type.quant is not None:
        ctx.emit("svdf_s8q31", operands, code_params(node, types, y.type), macs=macs)
    else:
        ctx.emit("svdf_f32", operands, SvdfFloat(shape, Clamp(*clamp_of(node))), macs=macs)


def _views(a: Arrays, s: SvdfShape) -> tuple[np.ndarray, ...]:
    return (
        a["in"].reshape(s.batch, s.in_k), a["feature"].reshape(s.filters, s.in_k),
        a["time"].reshape(s.filters, s.memory), a["bias"], a["state"].reshape(s.batch, s.filters, s.memory),
    )  # fmt: skip


def _interpret_codes(a: Arrays, p: SvdfCodes) -> None:
    a["out"].reshape(-1)[:] = step_codes(p, *_views(a, p.shape)).reshape(-1)


def _interpret_float(a: Arrays, p: SvdfFloat) -> None:
    a["out"].reshape(-1)[:] = step_float(p, *_views(a, p.shape)).reshape(-1)


KERNELS = (
    KernelDef("svdf_s8q31",
              ("in in", "in feature", "in time:s8|s16", "in bias:s32", "inout state:s8|s16", "out out"),
              SvdfCodes, _interpret_codes, kind="s8", doc="SVDF in TensorFlow Lite's fixed point"),
    KernelDef("svdf_f32", ("in in", "in feature", "in time", "in bias", "inout state", "out out"),
              SvdfFloat, _interpret_float, kind="f32", needs_math=True, doc="SVDF"),
)  # fmt: skip

OP = OpDef("Svdf", infer, derived, lower,
           {"svdf_rank": Int(), "state_scale": Float(0.0), "state_zp": Int(0), **CLAMP},
           doc="SVDF of floats, or of codes as TensorFlow Lite computes it (internal)")  # fmt: skip
