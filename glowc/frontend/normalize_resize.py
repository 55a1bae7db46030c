"""Resize and Upsample of every opset -> Resize with final sizes, scales and all modes as attributes."""

from __future__ import annotations

import math

from glowc.frontend.builder import Builder
from glowc.frontend.normalize_shape import axis_of
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.graph.attrs import AttrValue
from glowc.graph.types import DType, TensorType

_MODES = {"bilinear": "linear", "trilinear": "linear"}


def upsample(node: OnnxNode, b: Builder) -> None:
    """Upsample (opset 7 to 9) and Resize-10: asymmetric coordinates, rounded down."""
    x = b.type(node.inputs[0])
    scales = _floats(b, node.input(1)) or tuple(float(s) for s in node.attrs.get("scales", ()))
    attrs = _attrs(node, "asymmetric", "floor")
    _emit(node, b, x, _full_scales(scales, None, x), None, attrs)


def resize(node: OnnxNode, b: Builder) -> None:
    """Resize of opset 11 and up."""
    if node.version < 11:
        upsample(node, b)
        return
    x = b.type(node.inputs[0])
    axes = node.ints("axes")
    sizes, scales = _floats(b, node.input(3)), _floats(b, node.input(2))
    attrs = _attrs(node, "half_pixel", "round_prefer_floor")
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
        attrs |= _roi(_floats(b, node.input(1)), x.rank, axes)
        attrs["extrapolation_value"] = node.float_("extrapolation_value", 0.0)
    if sizes:
        full, scale = _sizes(node, x, [round(s) for s in sizes], axes)
        _emit(node, b, x, scale, full, attrs)
        return
    _emit(node, b, x, _full_scales(scales, axes, x), None, attrs)


def _attrs(node: OnnxNode, transformation: str, nearest: str) -> dict[str, AttrValue]:
    mode = node.str_("mode", "nearest")
    return {
        "mode": _MODES.get(mode, mode),
        "coordinate_transformation_mode": node.str_("coordinate_transformation_mode", transformation),
        "nearest_mode": node.str_("nearest_mode", nearest),
        "cubic_coeff_a": node.float_("cubic_coeff_a", -0.75),
        "exclude_outside": node.int_("exclude_outside", 0),
        "antialias": node.int_("antialias", 0),
    }


def _roi(roi: tuple[float, ...], rank: int, axes: tuple[int, ...] | None) -> dict[str, AttrValue]:
    """The region of interest as begins and ends of every axis."""
    wanted = list(range(rank)) if axes is None else [axis_of(a, rank) for a in axes]
    if len(roi) != 2 * len(wanted):
        raise NodeError(f"roi {list(roi)} for {len(wanted)} axes")
    begin, end = [0.0] * rank, [1.0] * rank
    for i, axis in enumerate(wanted):
        begin[axis], end[axis] = roi[i], roi[i + len(wanted)]
    return {"roi_begin": tuple(begin), "roi_end": tuple(end)}


def _floats(b: Builder, name: str) -> tuple[float, ...]:
    """Return the values of a constant input; () where there is none."""
    return tuple(float(v) for v in b.need_value(name, "sizes or scales").reshape(-1)) if name else ()


def _full_scales(scales: tuple[float, ...], axes: tuple[int, ...] | None, x: TensorType) -> list[float]:
    wanted = range(x.rank) if axes is None else [axis_of(a, x.rank) for a in axes]
    if len(scales) != len(wanted):
        raise NodeError(f"scales {list(scales)} for {x}")
    if not all(0 < s < math.inf for s in scales):
        raise NodeError(f"scales {list(scales)} must be positive numbers")
    full = [1.0] * x.rank
    for axis, scale in zip(wanted, scales, strict=True):
        full[axis] = scale
    return full


def _sizes(
    node: OnnxNode, x: TensorType, sizes: list[int], axes: tuple[int, ...] | None
) -> tuple[list[int], list[float]]:
    """Return the size and the scale of every axis; axes that keep their ratio have one scale, before rounding."""
    wanted = list(range(x.rank)) if axes is None else [axis_of(a, x.rank) for a in axes]
    if len(sizes) != len(wanted):
        raise NodeError(f"sizes {sizes} for {x}")
    policy = node.str_("keep_aspect_ratio_policy", "stretch")
    ratios = [n / x.shape[a] for n, a in zip(sizes, wanted, strict=True)]
    if policy != "stretch" and ratios:
        ratios = [min(ratios) if policy == "not_larger" else max(ratios)] * len(ratios)
        sizes = [math.floor(ratio * x.shape[a] + 0.5) for ratio, a in zip(ratios, wanted, strict=True)]
    full, scales = list(x.shape), [1.0] * x.rank
    for axis, size, ratio in zip(wanted, sizes, ratios, strict=True):
        full[axis], scales[axis] = size, ratio
    return full, scales


def _emit(
    node: OnnxNode,
    b: Builder,
    x: TensorType,
    scales: list[float],
    sizes: list[int] | None,
    attrs: dict[str, AttrValue],
) -> None:
    final = sizes or [math.floor(d * s) for d, s in zip(x.shape, scales, strict=True)]
    crop = attrs["coordinate_transformation_mode"] == "tf_crop_and_resize"
    # onnxruntime and PyTorch copy what keeps its shape, also where a scale is not 1.
    if tuple(final) == x.shape and (not crop or all(s == 1.0 for s in scales)):
        b.emit("Identity", node.inputs[:1], {}, node.outputs)
        return
    if attrs["mode"] == "linear" and x.dtype in (DType.S8, DType.U8):
        attrs = {**attrs, "truncate": 1}  # of the codes, as onnxruntime does; in float where a Q follows
    b.emit("Resize", node.inputs[:1], {**attrs, "sizes": tuple(final), "scales": tuple(scales)}, node.outputs)
