"""Resize: every coordinate transformation, rounding and filter, by tables made at compile time.

Attributes after import: `sizes` and `scales` of every axis, mode, coordinate_transformation_mode, nearest_mode.
Coordinates of nearest neighbours are computed in float32 (half_pixel_symmetric in float64 and rounded once), and a part
within `TIE` of a half counts as one: onnxruntime 1.31 gives the same indices for all lengths 1..23 to 1..31 and for
longer ones of up to 1001, in every mode. The index is clamped to the axis. Attribute layout only names the axes: sizes
and scales are per axis.
A resize of the rows and columns of [N, H, W, C] is one `remap2d_b<N>`:
out[n, y, x, :] = in[n, rows[y], cols[x], :], which works on row ranges and rings; other axes are copies or gathers.
Linear interpolation of rows and columns of float32 and int8 is one `bilinear_*` (`glowc.ops.bilinear`; with attribute
`truncate`, of codes that the model resizes as they are). Elsewhere modes linear and cubic are one `interpolate` per
axis on floats; quantised tensors are dequantised for that, then quantised. With tf_crop_and_resize, what lies outside
of the input gets extrapolation_value.
Codes stay as they are. Source: ONNX Resize-19.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowc.graph.attrs import Float, FloatList, Int, IntList, Str
from glowc.graph.graph import Node
from glowc.graph.numerics import F32
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import Rows
from glowc.ops import bilinear
from glowc.ops.base import LAYOUT, LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types
from glowc.ops.derived import derived
from glowc.ops.gather import GatherParams
from glowc.ops.interpolate import FLOATS, Filter, Taps, emit_chain, taps_of
from glowc.ops.params import around
from glowc.ops.quantize import LinearParams
from glowc.ops.resize_coordinates import Axis, coordinates, rounded_coordinates
from glowc.ops.select import emit_where
from glowc.ops.spatial import row_params, rows_of, store_rows
from glowc.ops.strided import check_table_axes, emit_copy, emit_indexed, present, whole
from glowc.program.kernel import Arrays, KernelDef

TIE = 1e-6  # as onnxruntime's rounding of nearest neighbours has it


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Attr `sizes` is the output shape."""
    (x,) = present(in_types[:1])
    sizes = node.ints("sizes")
    if 0 in x.shape and 0 not in sizes:
        raise OpError(f"{x} has no element to take a value from")
    if len(sizes) != x.rank or len(_scales(node, x.shape, sizes)) != x.rank:
        raise OpError(f"sizes {list(sizes)} scales {list(node.floats('scales'))} for {x}")
    if _computes(node) and x.quant is None and x.dtype not in FLOATS:
        raise OpError(f"mode {node.str_('mode')!r} of {x}, which is not quantized")
    check_table_axes(sizes)
    return (TensorType(sizes, x.dtype, None, "nhwc" if node.is_nhwc else x.layout),)


def _scales(node: Node, shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[float, ...]:
    return node.floats("scales") or tuple(n / d if d else 1.0 for n, d in zip(sizes, shape, strict=False))


def nearest(mode: str, x: np.ndarray) -> np.ndarray:
    """Return the integer coordinates."""
    low = np.floor(x)
    part = np.asarray(x - low, np.float64)
    above = {"round_prefer_floor": part > 0.5 + TIE, "round_prefer_ceil": part > 0.5 - TIE}.get(mode)
    rounded = {"floor": np.floor(x), "ceil": np.ceil(x)}.get(mode) if above is None else low + above
    if rounded is None:
        raise OpError(f"nearest_mode {mode!r} is not supported")
    return np.asarray(rounded.astype(np.int64))


def tables(node: Node, shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Return the source index of every output index of every axis."""
    if node.str_("mode") != "nearest":
        raise OpError(f"mode {node.str_('mode')!r} is not supported (nearest is)")
    transform = node.str_("coordinate_transformation_mode")
    rounding = node.str_("nearest_mode")
    result = []
    for length, out, scale in zip(shape, sizes, _scales(node, shape, sizes), strict=True):
        same = length == out and scale == 1.0
        index = np.arange(out) if same else nearest(rounding, rounded_coordinates(transform, Axis(length, out, scale)))
        result.append(np.clip(index, 0, length - 1))
    return result


def axes_of(node: Node, shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[Axis]:
    """Return lengths, scale and region of interest of every axis."""
    begin, end = node.floats("roi_begin", len(shape)), node.floats("roi_end", len(shape))
    scales = _scales(node, shape, sizes)
    return [Axis(n, out, s, (b, e)) for n, out, s, b, e in zip(shape, sizes, scales, begin, end, strict=True)]


def _filters(node: Node, x: TensorType, sizes: tuple[int, ...]) -> dict[int, Taps]:
    """Return the tables of every axis that changes, for the modes that compute."""
    chosen = Filter(
        node.str_("mode"), node.str_("coordinate_transformation_mode"),
        node.float_("cubic_coeff_a"), node.int_("exclude_outside") == 1, node.int_("antialias") == 1,
        x.dtype is DType.F64,
    )  # fmt: skip
    result = {}
    for i, axis in enumerate(axes_of(node, x.shape, sizes)):
        taps = _nearest_taps(node, axis) if chosen.mode == "nearest" else taps_of(chosen, axis)
        same = taps.index.shape == (axis.length, 1) and np.array_equal(taps.index[:, 0], np.arange(axis.length))
        if not same or not (taps.weights == 1).all():
            result[i] = taps
    return result


def _nearest_taps(node: Node, axis: Axis) -> Taps:
    where = coordinates if axis.scale == 1.0 else rounded_coordinates  # onnxruntime leaves axes of scale 1 as they are
    x = where("tf_crop_and_resize", axis)
    index = nearest(node.str_("nearest_mode"), x)
    index = np.clip(index, 0, axis.length - 1)[:, None]
    return Taps(index, np.ones(index.shape), (x < 0) | (x > axis.length - 1))


def _computes(node: Node) -> bool:
    crop = node.str_("coordinate_transformation_mode") == "tf_crop_and_resize"
    return node.str_("mode") != "nearest" or crop


def _bilinear(node: Node, x: TensorType, y: TensorType) -> tuple[bilinear.Pairs, bilinear.Pairs] | None:
    """Return the tables of rows and columns where one `bilinear_*` does it all."""
    kinds = (DType.S8,) if x.quant is not None else (DType.F32,)
    transform = node.str_("coordinate_transformation_mode")
    plain = node.str_("mode") == "linear" and not node.int_("antialias") and not node.int_("exclude_outside")
    if not plain or transform == "tf_crop_and_resize" or x.rank != 4 or x.dtype not in kinds or y.dtype is not x.dtype:
        return None
    scales, first = _scales(node, x.shape, y.shape), 1 if node.is_nhwc else 2
    others = {0, 1, 2, 3} - {first, first + 1}
    if any(x.shape[i] != y.shape[i] or scales[i] != 1.0 for i in others):
        return None
    fixed = x.quant is not None and node.int_("truncate") == 1
    table = bilinear.fixed_pairs_of if fixed else bilinear.pairs_of
    rows, cols = (
        table(
            np.arange(y.shape[i], dtype=F32) if scales[i] == 1.0
            else rounded_coordinates(transform, Axis(x.shape[i], y.shape[i], scales[i])), x.shape[i],
        ) for i in (first, first + 1)
    )  # fmt: skip
    return rows, cols


def _lower_bilinear(node: Node, ctx: LowerCtx, x: Ref, y: Ref, tables: tuple[bilinear.Pairs, bilinear.Pairs]) -> None:
    """Planar images are many images of one channel."""
    flat = [t if node.is_nhwc else t.with_shape((t.shape[0] * t.shape[1], *t.shape[2:], 1)) for t in (x.type, y.type)]
    operands = {"in": x, "out": y}
    for key, table in zip(("rows", "cols"), tables, strict=True):
        operands[key] = ctx.const(table.index, f"{node.name}_{key}")
        operands[f"{key}_weights"] = ctx.const(table.weights, f"{node.name}_{key}_weights")
    shape, rows = row_params(flat[0], flat[1]), (0, flat[1].shape[1])
    qx, qy = x.type.quant, y.type.quant
    if node.int_("truncate") and qx is not None:
        plain = bilinear.BilinearPlainCodes(shape, 128 * node.int_("unsigned"))
        ctx.emit("bilinear_codes_s8", operands, plain, rows=rows)
    elif qx is not None and qy is not None:
        (sx, zx), (sy, zy) = qx.scalar, qy.scalar
        ctx.emit("bilinear_s8", operands, bilinear.BilinearCodes(shape, zx, zy, float(sx), float(sy)), rows=rows)
    else:
        ctx.emit("bilinear_f32", operands, shape, rows=rows)


def _outside(filters: Mapping[int, Taps], shape: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(shape, np.bool_)
    for axis, taps in filters.items():
        mask |= taps.outside.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return mask


def lower(node: Node, ctx: LowerCtx) -> None:
    """`remap2d_b<N>` for rows and columns, copies for other axes where they are few, else gathers."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    blended = _bilinear(node, x.type, y.type)
    if blended is not None:
        _lower_bilinear(node, ctx, x, y, blended)
        return
    if _computes(node):
        _lower_interpolation(node, ctx, x, y)
        return
    index = tables(node, x.type.shape, y.type.shape)
    changed = {i for i, t in enumerate(index) if not np.array_equal(t, np.arange(x.type.shape[i]))}
    if x.type.rank == 4 and changed <= {1, 2}:
        _remap(node, ctx, x, y, index[1], index[2])
    elif not emit_indexed(ctx, x, y, [t.tolist() for t in index], limit=16):
        _gather_axes(node, ctx, x, y, index, sorted(changed))


def _lower_interpolation(node: Node, ctx: LowerCtx, x: Ref, y: Ref) -> None:
    filters = _filters(node, x.type, y.type.shape)
    if x.type.quant is not None and y.type.quant is not None:
        real = ctx.temp(TensorType(x.type.shape, DType.F32), f"{node.name}_real")
        (scale, zp), (out_scale, out_zp) = x.type.quant.scalar, y.type.quant.scalar
        ctx.emit("dequantize", {"in": x, "out": real}, LinearParams(x.type.elements, zp, float(scale)))
        done = ctx.temp(TensorType(y.type.shape, DType.F32), f"{node.name}_resized")
        _emit_filled(node, ctx, real, done, filters)
        ctx.emit("quantize", {"in": done, "out": y}, LinearParams(y.type.elements, out_zp, float(out_scale)))
    elif x.type.dtype in FLOATS:
        _emit_filled(node, ctx, x, y, filters)
    else:
        raise OpError(f"mode {node.str_('mode')} of {x.type}, which is not quantized")


def _emit_filled(node: Node, ctx: LowerCtx, x: Ref, y: Ref, filters: Mapping[int, Taps]) -> None:
    mask = _outside(filters, y.type.shape)
    inner = ctx.temp(y.type, f"{node.name}_inside") if mask.any() else y
    if filters:
        emit_chain(ctx, x, inner, filters, node.name)
    else:
        emit_copy(ctx, x, inner, whole(x.type.shape))
    if inner is y:
        return
    fill = ctx.const(np.asarray(node.float_("extrapolation_value"), y.type.dtype.numpy), f"{node.name}_fill")
    emit_where(ctx, ctx.const(mask, f"{node.name}_outside"), fill, inner, y)


def _remap(node: Node, ctx: LowerCtx, x: Ref, y: Ref, rows: np.ndarray, cols: np.ndarray) -> None:
    operands = {
        "in": x, "rows": ctx.const(rows.astype(np.int32), f"{node.name}_rows"),
        "cols": ctx.const(cols.astype(np.int32), f"{node.name}_cols"), "out": y,
    }  # fmt: skip
    ctx.emit(f"remap2d_b{x.type.dtype.bytes}", operands, row_params(x.type, y.type), rows=(0, y.type.shape[1]))


def _gather_axes(node: Node, ctx: LowerCtx, x: Ref, y: Ref, index: list[np.ndarray], axes: list[int]) -> None:
    for axis in axes:
        shape = list(x.type.shape)
        outer, n, inner = around(shape, axis)
        shape[axis] = index[axis].size
        to = y if axis == axes[-1] else ctx.temp(x.type.with_shape(shape), f"{node.name}_axis{axis}")
        table = ctx.const(index[axis].astype(np.int32), f"{node.name}_index{axis}")
        ctx.emit(
            f"gather_b{x.type.dtype.bytes}",
            {"in": x, "indices": table, "out": to},
            GatherParams(outer, n, index[axis].size, inner),
        )
        x = to


def _interpret(arrays: Arrays, p: Rows, rows: range) -> None:
    picked = arrays["rows"][rows.start : rows.stop]
    store_rows(arrays["out"], rows_of(arrays["in"], p)[:, picked][:, :, arrays["cols"]], p, rows)


KERNELS = tuple(
    KernelDef(f"remap2d_b{n}", ("in in", "in rows:s32", "in cols:s32", "out out"), Rows, interpret_rows=_interpret,
              template="remap2d", kind=f"b{n}", doc="rows and columns picked by tables")
    for n in (1, 2, 4, 8)
)  # fmt: skip

OP = OpDef(
    "Resize", infer, derived, lower, max_version=19, int8=True,
    attrs={"mode": Str("nearest"), "coordinate_transformation_mode": Str("half_pixel"),
           "nearest_mode": Str("round_prefer_floor"), "cubic_coeff_a": Float(-0.75), "exclude_outside": Int(0),
           "antialias": Int(0), "sizes": IntList(), "scales": FloatList(()), "layout": LAYOUT,
           "roi_begin": FloatList(each=0.0), "roi_end": FloatList(each=1.0), "extrapolation_value": Float(0.0),
           "truncate": Int(0), "unsigned": Int(0)},
    doc="resize: nearest, linear, cubic",
)  # fmt: skip
