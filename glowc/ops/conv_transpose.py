"""ConvTranspose: x[N, C, spatial...], w[C, M / group, kernel...], bias[M] -> y[N, M, spatial...]; 1 to 3 spatial axes.

Each output element sums, over the channels of its group and the taps in index order, the inputs whose window covers it,
then adds the bias; in the element type, as planar plain loops. Other orders of the sum differ in the last places.
With attr layout "nhwc": x[N, H, W, C], w[C, kH, kW, M / group] -> y[N, H, W, M]. Attributes after import: kernel_shape,
strides, dilations, pads, output_padding, group. Source: ONNX ConvTranspose-22.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.attrs import Int, IntList
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LAYOUT, LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Spatial
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)
Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConvTransposeParams(Params):
    """Of `conv_transpose`: sizes, windows and what lies before the image, along three axes."""

    batch: int
    group: int
    per_in: int
    per_out: int
    in_: Spatial
    out: Spatial
    k: Spatial
    stride: Spatial
    dil: Spatial
    pad: Spatial
    nhwc: Printed


def geometry(node: Node, rank: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return strides, dilations, pads and output_padding."""
    found = (
        node.ints("strides", rank), node.ints("dilations", rank), node.ints("pads", 2 * rank),
        node.ints("output_padding", rank),
    )  # fmt: skip
    if [len(f) for f in found] != [rank, rank, 2 * rank, rank]:
        raise OpError(f"strides, dilations, pads, output_padding {found} for {rank} spatial axes")
    return found


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """ONNX's output size."""
    x, w = (_planar(t, node) for t in present(in_types[:2]))
    rank, group = x.rank - 2, node.int_("group")
    kernel = w.shape[2:]
    fits = rank in (1, 2, 3) and w.rank == x.rank and w.shape[0] == x.shape[1] and x.shape[1] % group == 0
    if not fits or x.dtype not in (DType.F32, DType.F64) or w.dtype != x.dtype:
        raise OpError(f"input {x}, weights {w}, group {group}")
    bias = in_types[2] if len(in_types) > 2 else None
    if bias is not None and (bias.shape != (w.shape[1] * group,) or bias.dtype != x.dtype):
        raise OpError(f"bias {bias} of {w.shape[1] * group} channels")
    strides, dilations, pads, extra = geometry(node, rank)
    size = [
        strides[i] * (x.shape[2 + i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[rank + i]
        for i in range(rank)
    ]
    if min(size) < 1:
        raise OpError(f"pads {list(pads)} leave nothing of {x}")
    channels = w.shape[1] * group
    if _is_nhwc(node):
        return (TensorType((x.shape[0], *size, channels), x.dtype, None, "nhwc"),)
    return (TensorType((x.shape[0], channels, *size), x.dtype),)


def _is_nhwc(node: Node) -> bool:
    return node.is_nhwc


def _planar(type_: TensorType, node: Node) -> TensorType:
    """Return the type in the order of the planar layout."""
    if not _is_nhwc(node) or type_.rank != len(TO_NCHW):
        return type_
    return replace(type_, shape=tuple(type_.shape[axis] for axis in TO_NCHW), layout="")


def convolve(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray, out: Ints, strides: Ints, dilations: Ints, pads: Ints, group: int
) -> np.ndarray:
    """Return y[N, M, out...] of x and w with the same number of spatial axes."""
    rank = len(out)
    per_in, per_out = x.shape[1] // group, w.shape[1]
    y = np.zeros((x.shape[0], per_out * group, *out), x.dtype)
    for number, tap in enumerate(itertools.product(*(range(k) for k in w.shape[2:]))):
        source, target = [], []
        for i in range(rank):
            place = np.arange(x.shape[2 + i]) * strides[i] + tap[i] * dilations[i] - pads[i]
            inside = (place >= 0) & (place < out[i])
            source.append(np.flatnonzero(inside))
            target.append(place[inside])
        for g in range(group):
            chosen = np.arange(g * per_in, (g + 1) * per_in)
            part = x[np.ix_(np.arange(x.shape[0]), chosen, *source)]
            factors = w[g * per_in : (g + 1) * per_in].reshape(per_in, per_out, -1)[..., number]
            add = np.moveaxis(np.tensordot(part, factors, (1, 0)), -1, 1)
            channels = np.arange(g * per_out, (g + 1) * per_out)
            y[np.ix_(np.arange(x.shape[0]), channels, *target)] += add.astype(x.dtype)
    return np.asarray(y + bias.reshape(-1, *[1] * rank))


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `conv_transpose`; missing axes have length 1."""
    x, w, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    x_type, w_type, y_type = (_planar(ref.type, node) for ref in (x, w, y))
    rank, group = x_type.rank - 2, node.int_("group")
    fill = (1,) * (3 - rank)
    strides, dilations, pads, _ = geometry(node, rank)
    bias = (
        ctx.read(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2]
        else ctx.const(np.zeros(y_type.shape[1], x.type.dtype.numpy), f"{node.name}_bias")
    )  # fmt: skip
    params = ConvTransposeParams(
        batch=x.type.shape[0], group=group, per_in=x_type.shape[1] // group, per_out=w_type.shape[1],
        in_=(*fill, *x_type.shape[2:]), out=(*fill, *y_type.shape[2:]), k=(*fill, *w_type.shape[2:]),
        stride=(*fill, *strides), dil=(*fill, *dilations), pad=(*(0,) * (3 - rank), *pads[:rank]),
        nhwc=int(_is_nhwc(node)),
    )  # fmt: skip
    macs = x.type.elements * w.type.elements // w.type.shape[0]
    ctx.emit("conv_transpose", {"in": x, "factors": w, "bias": bias, "out": y}, params, macs=macs)


def _interpret(arrays: Arrays, p: ConvTransposeParams) -> None:
    channels = p.group * p.per_in
    x = arrays["in"].reshape((p.batch, *p.in_, channels) if p.nhwc else (p.batch, channels, *p.in_))
    w = arrays["factors"].reshape((channels, *p.k, p.per_out) if p.nhwc else (channels, p.per_out, *p.k))
    x, w = (np.moveaxis(x, -1, 1), np.moveaxis(w, -1, 1)) if p.nhwc else (x, w)
    y = convolve(x, w, arrays["bias"].reshape(-1), p.out, p.stride, p.dil, p.pad, p.group)
    y = np.moveaxis(y, 1, -1) if p.nhwc else y
    arrays["out"].reshape(-1)[: math.prod(y.shape)] = y.reshape(-1)


KERNELS = (
    KernelDef("conv_transpose", ("in in", "in factors", "in bias", "out out"),
              ConvTransposeParams, _interpret, kind="f32|f64", doc="transposed convolution"),
)  # fmt: skip

OP = OpDef(
    "ConvTranspose", infer, derived, lower, max_version=22,
    attrs={"kernel_shape": IntList(()), "strides": IntList(each=1), "dilations": IntList(each=1),
           "pads": IntList(each=0), "output_padding": IntList(each=0), "group": Int(1), "layout": LAYOUT},
    doc="transposed convolution, 1 to 3 spatial axes",
)  # fmt: skip
