"""QuantizeLinear and DequantizeLinear: scales and zero points move from inputs into types.

Integers that are not quantised in their type yet get the type first: a constant by a second name, anything else by
an AssignQuant. What may be folded away is for the passes to decide.

Those that no type can carry become plain arithmetic: scales that are computed at run time, scales per block of a
computed tensor, and codes of 2 or 4 bits that are no weights: rne(x / s) + z, clamped, as a code; (q - z) * s as a
real number, in the scale's element type. Codes that are floats of 8 or 4 bits have no zero point but 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.fold import ONNX_TYPES, evaluate, onnx_element_type
from glowc.frontend.normalize_shape import axis_of, emit_reshape
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.frontend.symbols import ELEMENT_TYPES
from glowc.graph.numerics import quantize
from glowc.graph.types import CODED, DType, QuantParams, TensorType

NARROW = {DType.S4: DType.S8, DType.U4: DType.U8, DType.S2: DType.S8, DType.U2: DType.U8}
CHAINED = CODED | NARROW.keys()


def needs_chain(node: OnnxNode, b: Builder) -> bool:
    """True when scale or zero point are computed, are per block, or the codes are of 2 or 4 bits."""
    computed = [name for name in node.inputs[1:3] if name and b.value(name) is None]
    if computed or node.int_("block_size", 0) > 0:
        return True
    if node.op == "DequantizeLinear":
        return node.inputs[0] in b.types and b.types[node.inputs[0]].dtype in CHAINED
    return code_type(node, b) in CHAINED


def code_type(node: OnnxNode, b: Builder) -> DType | None:
    """Element kind of the codes of a QuantizeLinear, None for one that glowc lacks."""
    if node.input(2):
        return b.types[node.inputs[2]].dtype if node.inputs[2] in b.types else None
    number = node.int_("output_dtype", 0)
    return ELEMENT_TYPES.get(number) if number else DType.U8


def quantize_chain(node: OnnxNode, b: Builder) -> None:
    """x -> Cast(Clip(Round(x / scale) + zero))."""
    dtype, x = code_type(node, b), b.type(node.inputs[0])
    if dtype is None or not (dtype.is_integer or dtype in CODED) or dtype.bits > 16 or not x.dtype.is_float:
        raise NodeError(f"codes of type {dtype.value if dtype else 'unknown'} of {x} are not supported")
    if b.type(node.inputs[1]).dtype != x.dtype or node.int_("precision", 0):
        raise NodeError(f"scale {b.type(node.inputs[1])} for {x}, precision {node.int_('precision', 0)}")
    _check_known_scale(node, b)
    scale = _spread(node, b, node.inputs[1], x)
    y = b.emit("Div", (node.inputs[0], scale))
    if dtype in CODED:
        _check_no_zero(node, b)
        b.emit("Cast", (y,), {"to": onnx_element_type(dtype), "saturate": node.int_("saturate", 1)}, node.outputs)
        return
    y = b.emit("Round", (y,))
    if node.input(2):
        real = b.emit("Cast", (node.inputs[2],), {"to": onnx_element_type(x.dtype)})
        y = b.emit("Add", (y, _spread(node, b, real, x)))
    y = b.emit("Clip", (y,), {"min": float(dtype.qmin), "max": float(dtype.qmax)})
    b.emit("Cast", (y,), {"to": onnx_element_type(dtype)}, node.outputs)


def dequantize_chain(node: OnnxNode, b: Builder) -> None:
    """q -> (Cast(q) - zero) * scale."""
    codes, scale = b.type(node.inputs[0]), b.type(node.inputs[1])
    number = node.int_("output_dtype", 0)
    coded = codes.dtype in CODED
    if (
        not (codes.dtype.is_integer or coded)
        or not scale.dtype.is_float
        or number not in (0, onnx_element_type(scale.dtype))
    ):
        raise NodeError(f"codes {codes}, scale {scale}, output_dtype {number}")
    _check_known_scale(node, b)
    kind = {"to": onnx_element_type(scale.dtype)}
    y = b.emit("Cast", (node.inputs[0],), kind)
    if coded:
        _check_no_zero(node, b)
    elif node.input(2):
        y = b.emit("Sub", (y, _spread(node, b, b.emit("Cast", (node.inputs[2],), kind), codes)))
    b.emit("Mul", (y, _spread(node, b, node.inputs[1], codes)), {}, node.outputs)


def _check_no_zero(node: OnnxNode, b: Builder) -> None:
    zero = b.need_value(node.input(2), "the zero point").astype(np.float32) if node.input(2) else np.zeros(1)
    if zero.any():
        raise NodeError(f"zero point {zero.reshape(-1)[0]}: codes that are floats have none but 0")


def _check_known_scale(node: OnnxNode, b: Builder) -> None:
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


BLOCK_KINDS = ("int4", "uint4", "int8", "uint8")
# Codes of 4 or 2 bits travel in whole bytes; all kinds fit s8, zero points too.
_WIDER = {DType.S4: DType.S8, DType.U4: DType.S8, DType.S2: DType.S8, DType.U2: DType.S8}
_BITS = {DType.S4: 4, DType.U4: 4, DType.S2: 2, DType.U2: 2}


def quantize_linear(node: OnnxNode, b: Builder) -> None:
    """x -> QuantizeLinear(x), whose output type carries the quantisation; a constant x is quantised here."""
    if needs_chain(node, b):
        quantize_chain(node, b)
        return
    x, out = b.type(node.inputs[0]), node.outputs[0]
    dtype = _code_type(node, b)
    if node.int_("block_size", 0) > 0:
        raise NodeError("quantization by blocks of a computed tensor is not supported")
    params = quant_params(node, b, x, dtype)
    type_ = TensorType(x.shape, dtype, params)
    if node.inputs[0] in b.consts:
        b.consts[out] = quantize(b.consts[node.inputs[0]], params, dtype)
        b.types[out] = type_
        return
    source = node.inputs[0]
    if not x.dtype.is_float:
        source = b.emit("Cast", (source,), {"to": 1})
    b.emit("QuantizeLinear", (source,), {"dtype": dtype.value}, (out,), (type_,))


def _code_type(node: OnnxNode, b: Builder) -> DType:
    """Element kind of the codes: the zero point's, or attribute output_dtype, or uint8."""
    if node.input(2):
        b.need_value(node.input(2), "the zero point")
        dtype = b.type(node.input(2)).dtype
    else:
        number = node.int_("output_dtype", 0)
        dtype = ELEMENT_TYPES.get(number, DType.F64) if number else DType.U8
    if not dtype.is_integer or dtype.bits > 16 or dtype in _WIDER:
        raise NodeError(f"codes of type {dtype.value} are not supported (int8, uint8, int16, uint16 are)")
    return dtype


def dequantize_linear(node: OnnxNode, b: Builder) -> None:
    """q -> DequantizeLinear(q) of a value whose type carries the quantisation."""
    source, out = node.inputs[0], node.outputs[0]
    array = b.value(source)
    if array is not None and _is_blocked(node, array):
        _emit_blocks(node, b, array)
        return
    if array is not None and _must_fold(node, array):
        b.set_const(out, _fold(node, b, array))
        return
    if array is None and needs_chain(node, b):
        dequantize_chain(node, b)
        return
    raw = b.type(source)
    if not raw.dtype.is_integer:
        raise NodeError(f'"{source}" is {raw}, not an integer tensor')
    params = quant_params(node, b, raw, raw.dtype)
    if array is not None:
        dtype = _WIDER.get(raw.dtype, raw.dtype)
        codes = array.astype(dtype.numpy, copy=False)
        params = replace(params, bits=_BITS.get(raw.dtype, 0))
        typed = b.typed_const(source, codes, TensorType(raw.shape, dtype, params))
        if b.types[source] == b.types[typed]:
            typed = source
    else:
        typed = b.assign_quant(source, params)
    b.emit("DequantizeLinear", (typed,), {}, (out,), (replace(raw, dtype=DType.F32, quant=None),))


def _is_blocked(node: OnnxNode, array: np.ndarray) -> bool:
    return node.int_("block_size", 0) > 0 and array.ndim == 2 and array.dtype.name in BLOCK_KINDS


def _emit_blocks(node: OnnxNode, b: Builder, array: np.ndarray) -> None:
    """Constant codes with a scale per block stay codes: unsigned, with the zero point moved as well."""
    kind = b.types[node.inputs[0]].dtype if node.inputs[0] in b.types else ONNX_TYPES[array.dtype.name]
    bits = 4 if kind in _WIDER else 8
    scale = b.need_value(node.inputs[1], "the scale").astype(np.float32)
    zero = b.need_value(node.input(2), "the zero point") if node.input(2) else np.zeros(scale.shape, array.dtype)
    _check_finite(scale)
    axis, block, half = _axis(node, 2), node.int_("block_size", 0), (1 << (bits - 1)) if kind.is_signed else 0
    wanted = tuple(-(-d // block) if i == axis else d for i, d in enumerate(array.shape))
    if scale.shape != wanted or zero.shape != wanted:
        blocks = f"blocks of {block} along axis {axis} of {list(array.shape)}"
        raise NodeError(f"scale of shape {list(scale.shape)}, zero point of shape {list(zero.shape)} for {blocks}")
    moved = (
        b.add_const(f"{node.inputs[0]}.codes", (array.astype(np.int64) + half).astype(np.uint8)),
        b.add_const(f"{node.inputs[1]}.scales", scale),
        b.add_const(f"{node.inputs[0]}.zeros", (zero.astype(np.int64) + half).astype(np.uint8)),
    )
    b.emit("DequantizeBlocks", moved, {"axis": axis, "block_size": block, "bits": bits}, node.outputs)


def _must_fold(node: OnnxNode, array: np.ndarray) -> bool:
    """Blocked scales and codes that are no integers of ours have no type: such a constant becomes float."""
    return node.int_("block_size", 0) > 0 or array.dtype.name not in ONNX_TYPES


def _fold(node: OnnxNode, b: Builder, array: np.ndarray) -> np.ndarray:
    scale = b.need_value(node.inputs[1], "the scale").astype(np.float32)
    zero = b.need_value(node.input(2), "the zero point") if node.input(2) else None
    _check_finite(scale)
    block = node.int_("block_size", 0)
    if not block:
        return evaluate(node, [array, scale, zero])[0].astype(np.float32)
    axis = _axis(node, array.ndim)
    if scale.ndim != array.ndim or scale.shape[axis] != -(-array.shape[axis] // block):
        blocks = f"blocks of {block} along axis {axis} of {list(array.shape)}"
        raise NodeError(f"scale of shape {list(scale.shape)} for {blocks}")
    points = np.zeros(scale.shape, np.float32) if zero is None else zero.astype(np.float32)
    index = np.arange(array.shape[axis]) // block
    return np.asarray((array.astype(np.float32) - points.take(index, axis)) * scale.take(index, axis), np.float32)


def quant_params(node: OnnxNode, b: Builder, x: TensorType, dtype: DType) -> QuantParams:
    """Return the checked parameters of a (De)QuantizeLinear node whose tensor has the type `x`."""
    scale = b.need_value(node.inputs[1], "the scale")
    if scale.dtype.kind not in "fV" and scale.dtype.name != "bfloat16":
        raise NodeError(f"the scale has the element type {scale.dtype}, not float")
    zero = b.need_value(node.input(2), "the zero point") if node.input(2) else None
    return make_params(scale, zero, x, dtype, _axis(node, x.rank))


def make_params(scale: np.ndarray, zero: np.ndarray | None, x: TensorType, dtype: DType, axis: int) -> QuantParams:
    """Return checked quantisation parameters for codes `dtype` of a tensor shaped like `x`."""
    scales = np.asarray(scale, np.float32).reshape(-1)
    _check_scale(scales)
    points = np.zeros(scales.shape, np.int64) if zero is None else zero.astype(np.int64).reshape(-1)
    if points.size == 1:
        points = np.broadcast_to(points, scales.shape)
    if points.size != scales.size:
        raise NodeError(f"{scales.size} scales but {points.size} zero points")
    _check_points(points, zero, dtype)
    if scales.size == 1:
        return QuantParams((float(scales[0]),), (int(points[0]),))
    if not 0 <= axis < x.rank or x.shape[axis] != scales.size:
        raise NodeError(f"{scales.size} scales along axis {axis} of {x}")
    return QuantParams(tuple(map(float, scales)), tuple(map(int, points)), axis)


def _check_finite(scale: np.ndarray) -> None:
    """Scales that only multiply constants may be 0 (of a block of zeros) or negative: onnxruntime's symmetric 4-bit
    quantiser gives the sign to blocks whose largest weight is positive, because there are more negative codes.
    """
    bad = scale[~np.isfinite(scale)].reshape(-1)
    if bad.size:
        raise NodeError(f"scale {bad[0]} must be a number ({bad.size} of {scale.size} scales)")


def _check_scale(scale: np.ndarray) -> None:
    bad = scale[~(np.isfinite(scale) & (scale > 0))].reshape(-1)
    if bad.size:
        where = f" ({bad.size} of {scale.size} scales)" if scale.size > 1 else ""
        hint = "quantize the model again; calibration data of zeros give such scales"
        if np.isinf(bad[0]):
            hint = "every number has the same code then, in onnxruntime too: the calibration met infinite values,"
            hint += " such as a mask of -inf. Use a finite mask (-10000), or leave the node out (nodes_to_exclude),"
            hint += " and quantize the model again"
        elif bad[0] < 0:
            hint = "only weights by blocks have scales of either sign; quantize the model again"
        raise NodeError(f"scale {bad[0]} must be a positive number{where}", hint)


def _check_points(points: np.ndarray, zero: np.ndarray | None, dtype: DType) -> None:
    if zero is not None and ONNX_TYPES.get(zero.dtype.name, dtype) != dtype:
        given = ONNX_TYPES[zero.dtype.name].value
        narrow = dtype in _WIDER and given in ("s8", "u8")
        if not narrow:
            raise NodeError(f"the zero point has the element type {given}, the codes {dtype.value}")
    low, high = (0, 0) if dtype == DType.S32 else (dtype.qmin, dtype.qmax)
    outside = points[(points < low) | (points > high)]
    if outside.size:
        raise NodeError(f"zero point {outside[0]} of {dtype.value} codes is out of range [{low}, {high}]")


def _axis(node: OnnxNode, rank: int) -> int:
    """The axis of per-axis parameters; a 1-D tensor has only one, whatever the attribute says."""
    axis = node.int_("axis", 1)
    if rank == 1:
        return 0
    return axis + rank if axis < 0 else axis
