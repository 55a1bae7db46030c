"""QuantizeLinear and DequantizeLinear that no type can carry, as plain arithmetic.

These are scales that are computed at run time, scales per block of a computed tensor, and codes of 2 or 4 bits that
are no weights: rne(x / s) + z, clamped, as a code; (q - z) * s as a real number, in the scale's element type.
"""

from __future__ import annotations

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.fold import onnx_element_type
from glowc.frontend.normalize_shape import axis_of, emit_reshape
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.frontend.symbols import ELEMENT_TYPES
from glowc.graph.types import DType, TensorType

NARROW = {DType.S4: DType.S8, DType.U4: DType.U8, DType.S2: DType.S8, DType.U2: DType.U8}


def needs_chain(node: OnnxNode, b: Builder) -> bool:
    """True when scale or zero point are computed, are per block, or the codes are of 2 or 4 bits."""
    computed = [name for name in node.inputs[1:3] if name and b.value(name) is None]
    if computed or node.int_("block_size", 0) > 0:
        return True
    if node.op == "DequantizeLinear":
        return node.inputs[0] in b.types and b.types[node.inputs[0]].dtype in NARROW
    return code_type(node, b) in NARROW


def code_type(node: OnnxNode, b: Builder) -> DType | None:
    """Element kind of the codes of a QuantizeLinear, None for one that glowc lacks."""
    if node.input(2):
        return None if node.inputs[2] in b.exotic else b.type(node.inputs[2]).dtype
    number = node.int_("output_dtype", 0)
    return ELEMENT_TYPES.get(number) if number else DType.U8


def quantize_chain(node: OnnxNode, b: Builder) -> None:
    """x -> Cast(Clip(Round(x / scale) + zero))."""
    dtype, x = code_type(node, b), b.type(node.inputs[0])
    if dtype is None or not dtype.is_integer or dtype.bits > 16 or not x.dtype.is_float:
        raise NodeError(f"codes of type {dtype.value if dtype else 'unknown'} of {x} are not supported")
    if b.type(node.inputs[1]).dtype != x.dtype or node.int_("precision", 0):
        raise NodeError(f"scale {b.type(node.inputs[1])} for {x}, precision {node.int_('precision', 0)}")
    _check_scale(node, b)
    scale = _spread(node, b, node.inputs[1], x)
    y = b.emit("Round", (b.emit("Div", (node.inputs[0], scale)),))
    if node.input(2):
        real = b.emit("Cast", (node.inputs[2],), {"to": onnx_element_type(x.dtype)})
        y = b.emit("Add", (y, _spread(node, b, real, x)))
    y = b.emit("Clip", (y,), {"min": float(dtype.qmin), "max": float(dtype.qmax)})
    b.emit("Cast", (y,), {"to": onnx_element_type(dtype)}, node.outputs)


def dequantize_chain(node: OnnxNode, b: Builder) -> None:
    """q -> (Cast(q) - zero) * scale."""
    codes, scale = b.type(node.inputs[0]), b.type(node.inputs[1])
    number = node.int_("output_dtype", 0)
    if not codes.dtype.is_integer or not scale.dtype.is_float or number not in (0, onnx_element_type(scale.dtype)):
        raise NodeError(f"codes {codes}, scale {scale}, output_dtype {number}")
    _check_scale(node, b)
    kind = {"to": onnx_element_type(scale.dtype)}
    y = b.emit("Cast", (node.inputs[0],), kind)
    if node.input(2):
        y = b.emit("Sub", (y, _spread(node, b, b.emit("Cast", (node.inputs[2],), kind), codes)))
    b.emit("Mul", (y, _spread(node, b, node.inputs[1], codes)), {}, node.outputs)


def _check_scale(node: OnnxNode, b: Builder) -> None:
    known = b.value(node.inputs[1])
    bad = known is not None and known[~(np.isfinite(known) & (known > 0))].reshape(-1)
    if bad is not False and bad.size:
        raise NodeError(f"scale {bad[0]} must be a positive number")


def _spread(node: OnnxNode, b: Builder, name: str, x: TensorType) -> str:
    """Return scales or zero points in a shape that broadcasts to x."""
    given, block = b.type(name), node.int_("block_size", 0)
    if given.elements == 1:
        return emit_reshape(b, name, ())
    axis = axis_of(node.int_("axis", 1), x.rank) if x.rank > 1 else 0
    if not block:
        if given.shape != (x.shape[axis],):
            raise NodeError(f"{given} along axis {axis} of {x}")
        return emit_reshape(b, name, tuple(d if i == axis else 1 for i, d in enumerate(x.shape)))
    blocks = tuple(-(-d // block) if i == axis else d for i, d in enumerate(x.shape))
    if given.shape != blocks:
        raise NodeError(f"{given} for blocks of {block} along axis {axis} of {x}")
    index = b.add_const(f"{name}.block", np.arange(x.shape[axis], dtype=np.int64) // block)
    return b.emit("Gather", (name, index), {"axis": axis})
