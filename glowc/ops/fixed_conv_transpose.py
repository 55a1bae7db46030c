"""FixedConvTranspose: TensorFlow Lite's TRANSPOSE_CONV of codes, NHWC with weights O,kH,kW,I as the file has them.

Each output element sums (x - zx) * w over the channels and taps of the inputs whose window covers it, then the bias:
in int32 for int8, in int64 for int16; the end is that of a convolution (`FixedEnding`), one factor per output channel.
`out_size` is the size of the result, `pads` what lies before the image in rows and columns.
Source: tensorflow/lite/kernels/internal/reference/integer_ops/transpose_conv.h, restated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import IntList
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import Codes, Shape
from glowc.ops.base import CLAMP, LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.conv import FIXED, fixed_operands
from glowc.ops.conv_transpose import convolve
from glowc.ops.derived import derived
from glowc.ops.integer import ROUNDING, fixed, fold_weights
from glowc.ops.integer_layer import emit_integer
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class Transposed(Shape):
    """Sizes of images and window, steps of the window, and what lies before the result."""

    batch: int
    in_h: int
    in_w: int
    in_c: int
    out_h: int
    out_w: int
    out_c: int
    k_h: int
    k_w: int
    stride_h: int
    stride_w: int
    pad_top: int
    pad_left: int


@dataclass(frozen=True, slots=True)
class TransposedCodes(Params):
    """Of `conv_transpose_*q31`, `conv_transpose_*q15`."""

    shape: Transposed
    codes: Codes


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The named size, of the input's kind."""
    x, w = present(in_types[:2])
    size = node.ints("out_size")
    if x.rank != 4 or w.rank != 4 or x.shape[3] != w.shape[3] or len(size) != 2 or min(size) < 1:
        raise OpError(f"input {x}, weights {w}, size {list(size)}")
    if x.dtype not in (DType.S8, DType.S16) or w.dtype != DType.S8:
        raise OpError(f"input {x}, weights {w}: needs int8 or int16 codes and int8 weights")
    return (TensorType((x.shape[0], *size, w.shape[0]), x.dtype, None, "nhwc"),)


def shape_of(node: Node, x: TensorType, w: TensorType, y: TensorType) -> Transposed:
    """Return sizes and steps."""
    return Transposed(*x.shape, *y.shape[1:], *w.shape[1:3], *node.ints("strides", 2), *node.ints("pads", 2))


def sums(x: np.ndarray, w: np.ndarray, bias: np.ndarray, s: Transposed) -> np.ndarray:
    """Return the exact sums [N,H,W,O] of centred codes x[N,h,w,I] and weights w[O,kH,kW,I]."""
    planar, taps = x.transpose(0, 3, 1, 2), w.transpose(3, 0, 1, 2)
    y = convolve(planar.astype(np.int64), taps.astype(np.int64), bias.astype(np.int64), (s.out_h, s.out_w),
                 (s.stride_h, s.stride_w), (1, 1), (s.pad_top, s.pad_left), 1)  # fmt: skip
    return np.asarray(y.transpose(0, 2, 3, 1))


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `conv_transpose_*`."""
    x, w, y = (ctx.type(name) for name in (node.inputs[0], node.inputs[1], node.outputs[0]))
    folded = fold_weights(node, ctx, x, y)
    params = TransposedCodes(shape_of(node, x, w, y), folded.codes)
    macs = x.elements * w.elements // w.shape[3]
    emit_integer(node, ctx, f"conv_transpose_{x.dtype.value}", folded, folded.weights, params, None, macs)


def _interpret(a: Arrays, p: TransposedCodes) -> None:
    s, c = p.shape, p.codes
    x = a["in"].reshape(s.batch, s.in_h, s.in_w, s.in_c).astype(np.int64) - c.in_zp
    w = a["weights"].reshape(s.out_c, s.k_h, s.k_w, s.in_c).astype(np.int64) - c.w_zp
    y = fixed(a).codes(sums(x, w, a["bias"], s), c.out_zp, c.out_min, c.out_max)
    a["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = tuple(
    KernelDef(f"conv_transpose_{x}{end}", fixed_operands(bias), TransposedCodes, _interpret,
              template="conv_transpose_q31", kind=x,
              doc="transposed convolution that ends in TensorFlow Lite's multiplier and shift")
    for x, end, bias in FIXED
    if (x, end) != ("s16", "q31")
)  # fmt: skip

OP = OpDef(
    "FixedConvTranspose", infer, derived, lower,
    {"out_size": IntList(), "strides": IntList(each=1), "pads": IntList(each=0), **CLAMP, **ROUNDING},
    doc="transposed convolution of codes as TensorFlow Lite computes it (internal)",
)  # fmt: skip
