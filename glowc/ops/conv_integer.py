"""ConvInteger: s32 convolution of 8-bit codes whose zero points come as inputs; attr layout as of Conv.

y = sum (x - zx) * (w - zw[o]); padding counts as zx. zx is one number, zw one or one per output channel.
Source: ONNX ConvInteger-10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int, IntList
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LAYOUT, LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.conv import convolve
from glowc.ops.conv import infer as infer_conv
from glowc.ops.derived import derived
from glowc.ops.matmul_integer import BYTES, LONGEST_SUM
from glowc.ops.spatial import WINDOW
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(frozen=True, slots=True)
class Taps(Params):
    """Steps and padding of the windows, and groups."""

    stride_h: int
    stride_w: int
    dil_h: int
    dil_w: int
    pad_top: int
    pad_left: int
    groups: int


@dataclass(frozen=True, slots=True)
class ConvIntegerParams(Params):
    """Of `conv_integer`; `w_zp_step` 0: one zero point for all output channels."""

    batch: int
    in_c: int
    in_h: int
    in_w: int
    out_c: int
    out_h: int
    out_w: int
    k_h: int
    k_w: int
    window: Taps
    w_zp_step: int
    nhwc: Printed


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """As Conv, with an s32 result."""
    x, w = present(in_types[:2])
    if x.dtype not in BYTES or w.dtype not in BYTES:
        raise OpError(f"convolution of {x} with {w}: needs int8 or uint8")
    (y,) = infer_conv(node, (x, w))
    for what, point, of, count in (("x", 2, x, 1), ("w", 3, w, w.shape[0])):
        given = in_types[point] if point < len(in_types) else None
        if given is not None and (given.dtype != of.dtype or given.elements not in (1, count)):
            raise OpError(f"zero point {given} of {what}, {of}")
    if w.elements // w.shape[0] > LONGEST_SUM:
        raise OpError(f"sums of {w.elements // w.shape[0]} products may leave int32")
    return (TensorType(y.shape, DType.S32, None, y.layout),)


def _sum(x: np.ndarray, w: np.ndarray, out_hw: tuple[int, int], p: Taps) -> np.ndarray:
    """Return the sums of centred x[N,H,W,C] and w[O,kH,kW,I] as s32 [N,H,W,O]."""
    y = convolve(
        x, w, out_hw=out_hw, group=p.groups,
        stride=(p.stride_h, p.stride_w), dilation=(p.dil_h, p.dil_w), pad=(p.pad_top, p.pad_left),
    )  # fmt: skip
    return np.asarray(y.astype(np.int32))


def _is_nhwc(node: Node) -> bool:
    return node.is_nhwc


def _geometry(node: Node) -> Taps:
    pads, strides, dilations = node.ints("pads", 4), node.ints("strides", 2), node.ints("dilations", 2)
    return Taps(
        stride_h=strides[0], stride_w=strides[1], dil_h=dilations[0], dil_w=dilations[1],
        pad_top=pads[0], pad_left=pads[1], groups=node.int_("group"),
    )  # fmt: skip


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `conv_integer`."""
    x, w, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    points = [_point(node, ctx, i, ref) for i, ref in ((2, x), (3, w))]
    (in_h, in_w, in_c), (out_h, out_w, out_c), (k_h, k_w, _) = (
        t.shape[1:] if _is_nhwc(node) else (*t.shape[2:], t.shape[1]) for t in (x.type, y.type, w.type)
    )
    params = ConvIntegerParams(
        batch=x.type.shape[0], in_c=in_c, in_h=in_h, in_w=in_w, out_c=out_c, out_h=out_h,
        out_w=out_w, k_h=k_h, k_w=k_w, window=_geometry(node), w_zp_step=int(points[1].type.elements > 1),
        nhwc=int(_is_nhwc(node)),
    )  # fmt: skip
    operands = {"in": x, "weights": w, "in_zp": points[0], "w_zp": points[1], "out": y}
    ctx.emit("conv_integer", operands, params, macs=y.type.elements * (w.type.elements // w.type.shape[0]))


def _point(node: Node, ctx: LowerCtx, index: int, of: Ref) -> Ref:
    name = node.inputs[index] if index < len(node.inputs) else ""
    return ctx.read(name) if name else ctx.const(np.zeros(1, of.type.dtype.numpy), f"{node.name}_zero")


def _interpret(a: Arrays, p: ConvIntegerParams) -> None:
    zw, per_group, out_hw = a["w_zp"].astype(np.int64), p.in_c // p.window.groups, (p.out_h, p.out_w)
    image = (p.in_h, p.in_w, p.in_c) if p.nhwc else (p.in_c, p.in_h, p.in_w)
    filters = (p.k_h, p.k_w, per_group) if p.nhwc else (per_group, p.k_h, p.k_w)
    x = a["in"].reshape(p.batch, *image).astype(np.int64) - int(a["in_zp"].reshape(-1)[0])
    w = a["weights"].reshape(p.out_c, *filters).astype(np.int64) - zw.reshape(-1, 1, 1, 1)
    x, w = (x, w) if p.nhwc else (x.transpose(TO_NHWC), w.transpose(TO_NHWC))
    y = _sum(x, w, out_hw, p.window)
    a["out"].reshape(-1)[:] = (y if p.nhwc else y.transpose(TO_NCHW)).reshape(-1)


KERNELS = (
    KernelDef("conv_integer", ("in in", "in weights", "in in_zp", "in w_zp", "out out:s32"),
              ConvIntegerParams, _interpret, kind="s8|u8",
              doc="s32 convolution of codes with zero points given at run time"),
)  # fmt: skip

OP = OpDef(
    "ConvInteger", infer, derived, lower, max_version=10, doc="s32 convolution of 8-bit codes",
    attrs={**WINDOW, "kernel_shape": IntList(()), "group": Int(1), "layout": LAYOUT},
)  # fmt: skip
