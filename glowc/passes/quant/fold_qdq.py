"""fold-qdq: DequantizeLinear -> operator -> QuantizeLinear becomes the operator on quantised types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from glowc.graph.attrs import AttrValue
from glowc.graph.graph import GraphEditor, Node
from glowc.graph.numerics import act_range
from glowc.graph.types import DType, TensorType
from glowc.ops.base import clamp_of
from glowc.ops.binary_codes import product_half
from glowc.ops.integer import largest_sum, reach
from glowc.ops.registry import find_op
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import dequantized_from, find_const

WEIGHTED = ("Conv", "ConvTranspose", "FullyConnected")
_WEIGHT_AXIS = {"Conv": 0, "FullyConnected": 0, "ConvTranspose": 1}
_CODES = (DType.S8, DType.U8, DType.S16, DType.U16)
SCALE_TOLERANCE = 1e-3
_ROUNDED_AS_CODES = ("Add", "Mul")  # of 8 bits: by onnxruntime's kernels not as in float
# Operators that multiply by quotients of scales; sums times a larger quotient than this could leave float32.
_PRODUCTS = ("Conv", "ConvTranspose", "FullyConnected", "MatMul", "Mul")
_SUMS = ("Add", "Sub", "AveragePool", "ReduceMean", "ReduceSum", "Resize")
LARGEST_QUOTIENT = 2.0**90


class FoldQdq(RewritePass):
    """The operator keeps its name; its types say integer. It must have integer kernels (`PassCtx.int8_ops`).

    A DequantizeLinear may have other readers. The result must have only the QuantizeLinear. A bias becomes
    int32 in units of the accumulator, x_scale * w_scale: int32 codes as they are when their scale is that
    (within `SCALE_TOLERANCE`, as onnxruntime ignores the scale), anything else rounded half to even, so at
    most half an accumulator unit off.
    """

    name: ClassVar[str] = "fold-qdq"
    ops: ClassVar[tuple[str, ...]] = ("QuantizeLinear",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Fold the operator in front of the QuantizeLinear `node`."""
        value, out = node.inputs[0], node.outputs[0]
        op = editor.producer(value)
        if op is None or op.op not in ctx.int8_ops or editor.sole_user(value) is None:
            return False
        if op.outputs[0] != value or any(op.outputs[1:]) or not _per_tensor(editor.types[out]):
            return False
        inputs = _weighted(op, editor, ctx) if op.op in WEIGHTED else _plain(op, editor)
        if inputs is None or editor.types[inputs[0]].dtype.bits != editor.types[out].dtype.bits:
            return False
        if op.op in _ROUNDED_AS_CODES and _keeps_clamp(op, editor.types[out]):
            op = replace(op, attrs={**op.attrs, "mixed": 1})
        if not all(fits(op, inputs, out, editor) for fits in (_accepted, _has_integer_form, _quotients_fit)):
            return False
        if not _sums_fit(op, inputs, editor):
            ctx.warn(f"{op.label}: its sums may leave int32; it stays float")
            return False
        editor.remove(node)
        counted = op.op == "AveragePool" and editor.types[out].dtype.bits == 8
        attrs = _counted_overhang(op, editor) if counted else op.attrs
        editor.update(op, inputs=_ordered(op, inputs, editor), outputs=(out,), attrs=attrs)
        return True


def _keeps_clamp(op: Node, out: TensorType) -> bool:
    """Say whether a Relu or Clip cuts codes off: onnxruntime then computes in float up to the QuantizeLinear."""
    quant, dtype = out.quant, out.dtype
    whole = dtype.qmin, dtype.qmax
    return dtype.bits == 8 and quant is not None and act_range(*clamp_of(op), quant, dtype) != whole


def _per_tensor(type_: TensorType) -> bool:
    return type_.quant is not None and type_.quant.axis is None and type_.dtype in _CODES


def _plain(op: Node, editor: GraphEditor) -> tuple[str, ...] | None:
    """Return the quantised inputs of `op`; integers such as indices stay; None when one is float."""
    inputs: list[str] = []
    for name in op.inputs:
        codes = dequantized_from(editor, name)
        if codes is not None and not _per_tensor(editor.types[codes]):
            return None
        if codes is None and name and not editor.types[name].dtype.is_integer:
            return None
        inputs.append(codes if codes is not None else name)
    kinds = {editor.types[name].dtype.bits for name in inputs if name and editor.types[name].quantized}
    return tuple(inputs) if len(kinds) == 1 else None


def _weighted(op: Node, editor: GraphEditor, ctx: PassCtx) -> tuple[str, ...] | None:
    x, w = (dequantized_from(editor, name) for name in op.inputs[:2])
    if x is None or w is None or w not in editor.consts or not _per_tensor(editor.types[x]):
        return None
    quant = editor.types[w].quant
    if quant is None or quant.axis not in (None, _WEIGHT_AXIS[op.op]):
        return None
    if len(op.inputs) < 3 or not op.inputs[2]:
        return (x, w)
    bias = _bias(op, editor, x, w, ctx)
    return None if bias is None else (x, w, bias)


def _bias(op: Node, editor: GraphEditor, x: str, w: str, ctx: PassCtx) -> str | None:
    """Return an int32 constant in accumulator units; None when the bias is computed or does not fit."""
    operand = find_const(editor, op.inputs[2])
    x_quant, w_quant = editor.types[x].quant, editor.types[w].quant
    if operand is None or x_quant is None or w_quant is None:
        return None
    unit = np.float64(x_quant.scale[0]) * np.asarray(w_quant.scale, np.float64)
    quant = operand.type.quant
    if not np.any(operand.real()):
        codes = np.zeros(operand.type.shape)
    elif operand.type.dtype == DType.S32 and quant is not None and not any(quant.zero_point):
        codes = operand.array.astype(np.float64)
        scale = np.asarray(quant.scale, np.float64)
        if np.any(np.abs(scale - unit) > SCALE_TOLERANCE * np.abs(unit)):
            ctx.warn(f"{op.label}: the bias has another scale than x_scale * w_scale; it is rounded to that")
            codes = np.rint(codes * scale / unit)
    elif quant is None:  # in float32, as onnxruntime does before it folds
        factor = np.float32(x_quant.scale[0]) * np.asarray(w_quant.scale, np.float32)
        with np.errstate(divide="ignore", invalid="ignore"):
            codes = np.rint(operand.real() / factor).astype(np.float64)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            codes = np.rint(operand.real().astype(np.float64) / unit)
    if not np.all(np.abs(codes) <= DType.S32.qmax):
        return None
    return editor.add_const(f"{op.outputs[0]}.bias", codes.astype(np.int32))


def _ordered(op: Node, inputs: tuple[str, ...], editor: GraphEditor) -> tuple[str, ...]:
    """Return the operands of a sum in onnxruntime's order: one that repeats along the last axis comes second.

    The order decides a tie (`glowc.ops.binary_codes`).
    """
    if op.op != "Add" or len(inputs) != 2:
        return inputs
    left, right = (editor.types[name].shape or (1,) for name in inputs)
    pairs = [pair for pair in zip(reversed(left), reversed(right), strict=False) if max(pair) > 1]
    a, b = pairs[0] if pairs else (0, 1)  # elements one by one: the first operand's counts as one that repeats
    return inputs[::-1] if a < b else inputs


def _counted_overhang(op: Node, editor: GraphEditor) -> Mapping[str, AttrValue]:
    """Return the attributes with what ceil_mode adds after the padding as padding.

    With count_include_pad, onnxruntime's QLinearAveragePool divides by the whole window there; its float one, which
    16-bit codes take, does not.
    """
    sizes, out = (editor.types[name].shape[2:] for name in (op.inputs[0], op.outputs[0]))
    rank = len(sizes)
    if not (op.int_("ceil_mode") and op.int_("count_include_pad")) or op.is_nhwc:
        return op.attrs
    pads = op.ints("pads", 2 * rank)
    geometry = zip(op.ints("kernel_shape"), op.ints("strides", rank), op.ints("dilations", rank), strict=True)
    needed = [(o - 1) * s + (k - 1) * d + 1 for o, (k, s, d) in zip(out, geometry, strict=True)]
    ends = (max(pads[rank + i], needed[i] - sizes[i] - pads[i]) for i in range(rank))
    return {**op.attrs, "pads": (*pads[:rank], *ends), "ceil_mode": 0}


def _sums_fit(op: Node, inputs: tuple[str, ...], editor: GraphEditor) -> bool:
    """Say whether int32 accumulators hold every sum: always for the lengths that 8-bit codes meet in practice."""
    types = [editor.types[name] for name in inputs[:2]]
    if op.op in WEIGHTED:
        bias = editor.consts[inputs[2]] if len(inputs) > 2 else np.zeros(1, np.int32)
        return largest_sum(editor.consts[inputs[1]], types[1], types[0], bias, _WEIGHT_AXIS[op.op]) <= DType.S32.qmax
    if op.op == "MatMul" and types[0].dtype.bits < 16:  # sums of two int16 tensors have 64 bits
        length = types[0].shape[-1]
        return length * reach(types[0]) * reach(types[1]) <= DType.S32.qmax
    return True


def _has_integer_form(op: Node, inputs: tuple[str, ...], out: str, editor: GraphEditor) -> bool:
    """Say whether a product or average of operands that were not of one type is one of int8 codes."""
    if op.op == "AveragePool":
        return not op.int_("mixed")  # as a float its zero point is added after the rounding; no kernel of codes does so
    if op.op != "Mul" or not op.int_("mixed"):
        return True
    qa, qb, qy = (editor.types[name].quant for name in (*inputs[:2], out))
    return qa is None or qb is None or qy is None or product_half(op, qa, qb, qy) is not None


def _quotients_fit(op: Node, inputs: tuple[str, ...], out: str, editor: GraphEditor) -> bool:
    """Say whether quotients of scales are finite in float32; calibration of huge values may give others."""
    scales = [max(q.scale) for name in inputs[:2] if name and (q := editor.types[name].quant) is not None]
    quant = editor.types[out].quant
    if quant is None or op.op not in (*_PRODUCTS, *_SUMS):
        return True
    largest = math.prod(scales) if op.op in _PRODUCTS else max(scales, default=0.0)
    return largest / min(quant.scale) < LARGEST_QUOTIENT


def _accepted(op: Node, inputs: tuple[str, ...], out: str, editor: GraphEditor) -> bool:
    """Ask the operator's type rule."""
    known = find_op(op.op)
    if known is None:
        return True
    types = tuple(editor.types[name] if name else None for name in inputs)
    try:
        expected = known.infer(replace(op, inputs=inputs), types)
    except ValueError:
        return False
    return expected[0].dtype == editor.types[out].dtype
