"""Operators that read or write at computed places: Compress, TensorScatter, TfIdfVectorizer, DeformConv, RoiAlign.

Sources: ONNX Compress-11, TensorScatter-24, TfIdfVectorizer-9, DeformConv-22, RoiAlign-22.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.chain import Chain, Rewrites
from glowc.frontend.normalize_shape import axis_of
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.graph.types import TensorType


def compress(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """The elements along an axis (without one: of the flat tensor) at which a constant condition is true."""
    parts, x = Chain(node, b), node.inputs[0]
    kept = np.flatnonzero(b.need_value(node.inputs[1], "the condition"))
    flat = "axis" not in node.attrs
    axis = 0 if flat else axis_of(node.int_("axis", 0), b.type(x).rank)
    if kept.size and kept[-1] >= (b.type(x).elements if flat else b.type(x).shape[axis]):
        raise NodeError(f"the condition is true at {kept[-1]}, which {b.type(x)} lacks")
    data = parts.shaped(x, (-1,)) if flat else x
    parts.add("Gather", data, parts.ints(*kept), out=parts.out, axis=axis)
    return parts.nodes


def tensor_scatter(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """A cache with the update written along an axis from the place on that is given for each batch."""
    parts, cache, update = Chain(node, b, 18), *node.inputs[:2]
    t, new = b.type(cache), b.type(update)
    axis, mode = axis_of(node.int_("axis", -2), t.rank), node.str_("mode", "linear")
    if new.rank != t.rank or mode not in ("linear", "circular") or axis == 0:
        raise NodeError(f"{new} into {t} along axis {axis}, mode {mode!r}")
    steps = np.arange(new.shape[axis]).reshape([-1 if i == axis else 1 for i in range(t.rank)])
    at = parts.const(steps)
    if node.input(2):
        at = parts.add("Add", parts.shaped(node.inputs[2], (-1, *[1] * (t.rank - 1))), at)
    if mode == "circular":
        at = parts.add("Mod", at, parts.const(np.asarray(t.shape[axis], np.int64)))
    where = parts.add("Expand", at, parts.ints(*new.shape))
    parts.add("ScatterElements", cache, where, update, out=parts.out, axis=axis)
    return parts.nodes


def tf_idf_vectorizer(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """How often each n-gram of the pool occurs, with up to `max_skip_count` elements left out between two of it.

    Rows are cut into windows of n elements; those equal to an n-gram are counted, and a matrix product puts the count,
    times its weight, where `ngram_indexes` says.
    """
    parts, x = Chain(node, b), node.inputs[0]
    t, pool, where = b.type(x), node.ints("pool_int64s"), node.ints("ngram_indexes") or ()
    if pool is None or not t.dtype.is_integer or t.rank not in (1, 2):
        raise NodeError(f"{t} with a pool of {'strings' if pool is None else 'integers'}", "give the model numbers")
    starts, mode = [*(node.ints("ngram_counts") or ()), len(pool)], node.str_("mode", "TF")
    sizes = range(node.int_("min_gram_length", 1), node.int_("max_gram_length", 1) + 1)
    weights = node.attrs.get("weights")
    rows = parts.shaped(x, (1, -1)) if t.rank == 1 else x
    total, first = "", 0
    for n, (start, end) in enumerate(pairwise(starts), 1):
        grams = np.asarray(pool[start:end], t.dtype.numpy).reshape(-1, n)
        places = np.zeros((len(grams), max(where) + 1), np.float32)
        places[np.arange(len(grams)), where[first : first + len(grams)]] = 1
        first += len(grams)
        found = [
            _count(parts, rows, t.shape[-1], grams, skip) for skip in _skips(node, n, t) if n in sizes and grams.size
        ]
        for count in found:
            here = parts.add("MatMul", count, parts.floats(places))
            total = parts.add("Add", total, here) if total else here
    if not total:
        raise NodeError("no n-gram of the pool fits into the input")
    if mode == "IDF":
        total = parts.add("Min", total, parts.floats(1.0))
    if mode != "TF" and weights is not None:
        ordered = np.zeros(max(where) + 1, np.float32)
        ordered[list(where)] = weights
        total = parts.add("Mul", total, parts.floats(ordered))
    parts.shaped(total, (-1,) if t.rank == 1 else (0, -1), parts.out)
    return parts.nodes


def _skips(node: OnnxNode, n: int, t: TensorType) -> range:
    """Distances between the elements of an n-gram that fit into a row."""
    most = 1 if n == 1 else node.int_("max_skip_count", 0) + 1
    return range(1, min(most, (t.shape[-1] - 1) // max(n - 1, 1)) + 1) if t.shape[-1] >= n else range(0)


def _count(parts: Chain, rows: str, length: int, grams: np.ndarray, skip: int) -> str:
    """Return [rows, n-grams]: how many windows of elements `skip` apart are equal to each."""
    n = grams.shape[1]
    at = np.arange(length - skip * (n - 1))[:, None] + skip * np.arange(n)
    windows = parts.add("Unsqueeze", parts.add("Gather", rows, parts.const(at), axis=1), parts.ints(2))
    equal = parts.add("Cast", parts.add("Equal", windows, parts.const(grams)), to=1)
    return parts.add("ReduceSum", parts.add("ReduceMin", equal, axes=(3,), keepdims=0), parts.ints(1), keepdims=0)


def _sampled(parts: Chain, image: str, rows: str, columns: str, size: tuple[int, int], padding: str) -> str:
    """Return an image read between its elements at rows and columns, both [N, h, w]."""
    axes = []
    for at, n in ((columns, size[1]), (rows, size[0])):
        scaled = parts.add("Mul", at, parts.floats(2.0 / n))
        axes.append(parts.add("Unsqueeze", parts.add("Add", scaled, parts.floats(1.0 / n - 1)), parts.ints(3)))
    grid = parts.add("Concat", *axes, axis=3)
    return parts.add("GridSample", image, grid, version=22, mode="linear", padding_mode=padding, align_corners=0)


def deform_conv(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """For each group of offsets the image read at all its places, times the mask; then the product with the weights."""
    parts = Chain(node, b)
    x, w, offset = (b.type(name) for name in node.inputs[:3])
    if x.rank != 4 or w.rank != 4 or offset.rank != 4:
        raise NodeError(f"{x}, weights {w}: one image of two axes is supported")
    group, parted = node.int_("group", 1), node.int_("offset_group", 1)
    (n, channels, *size), (k_h, k_w), (h, out_w) = x.shape, w.shape[2:], offset.shape[2:]
    taps, fits = k_h * k_w, channels % parted == 0 and w.shape[1] * group == channels and w.shape[0] % group == 0
    if not fits or offset.shape[1] != parted * taps * 2:
        raise NodeError(f"{x}, weights {w}, offsets {offset}, {group} groups, {parted} groups of offsets")
    pads, steps = node.ints("pads") or (0,) * 4, node.ints("strides") or (1, 1)
    wide = node.ints("dilations") or (1, 1)
    moved = parts.shaped(node.inputs[2], (n, parted, taps, 2, h, out_w))
    at_row = np.arange(k_h).repeat(k_w)[:, None, None] * wide[0] + np.arange(h)[:, None] * steps[0] - pads[0]
    at_col = np.tile(np.arange(k_w), k_h)[:, None, None] * wide[1] + np.arange(out_w) * steps[1] - pads[1]
    read = []
    for g in range(parted):
        places = []
        for axis, at in enumerate((at_row, at_col)):
            one = parts.add("Gather", parts.add("Gather", moved, parts.const(np.asarray(g, np.int64)), axis=1),
                            parts.const(np.asarray(axis, np.int64)), axis=2)  # fmt: skip
            places.append(parts.shaped(parts.add("Add", one, parts.floats(at)), (n, taps * h, out_w)))
        part = channels // parted
        image = parts.add("Slice", node.inputs[0], parts.ints(g * part), parts.ints((g + 1) * part), parts.ints(1))
        sampled = _sampled(parts, image, places[0], places[1], (size[0], size[1]), "zeros")
        read.append(parts.shaped(sampled, (n, 1, part, taps, h * out_w)))
    columns = parts.add("Concat", *read, axis=1) if parted > 1 else read[0]
    if node.input(4):
        columns = parts.add("Mul", columns, parts.shaped(node.inputs[4], (n, parted, 1, taps, h * out_w)))
    columns = parts.shaped(columns, (n, group, channels // group * taps, h * out_w))
    weights = parts.shaped(node.inputs[1], (1, group, w.shape[0] // group, channels // group * taps))
    y = parts.shaped(
        parts.add("MatMul", weights, columns), (n, w.shape[0], h, out_w), "" if node.input(3) else parts.out
    )
    if node.input(3):
        parts.add("Add", y, parts.shaped(node.inputs[3], (1, -1, 1, 1)), out=parts.out)
    return parts.nodes


def roi_align(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """The mean of `sampling_ratio` squared samples of each bin of each region; those beyond the image's frame are 0."""
    parts = Chain(node, b)
    x, rois = b.type(node.inputs[0]), b.type(node.inputs[1])
    samples, bins = node.int_("sampling_ratio", 0), (node.int_("output_height", 1), node.int_("output_width", 1))
    half = node.str_("coordinate_transformation_mode", "half_pixel" if node.version >= 16 else "") == "half_pixel"
    if samples < 1 or node.str_("mode", "avg") != "avg" or x.rank != 4:
        raise NodeError(f"mode {node.str_('mode', 'avg')}, sampling_ratio {samples}: mean and 1 or more are supported")
    scaled = parts.add("Mul", node.inputs[1], parts.floats(node.float_("spatial_scale", 1.0)))
    corner = parts.add("Sub", scaled, parts.floats(0.5)) if half else scaled
    (n, _), places, inside = rois.shape, [], []
    for axis, size, count in ((1, x.shape[2], bins[0]), (0, x.shape[3], bins[1])):
        low, high = (
            parts.add("Slice", corner, parts.ints(i), parts.ints(i + 1), parts.ints(1)) for i in (axis, axis + 2)
        )
        extent = parts.add("Sub", high, low)
        extent = extent if half else parts.add("Max", extent, parts.floats(1.0))
        steps = (np.arange(count * samples) + 0.5) / (count * samples)
        at = parts.add("Add", low, parts.add("Mul", extent, parts.floats(steps[None, :])))
        shape = (n, -1, 1) if axis else (n, 1, -1)
        far = parts.add("Abs", parts.add("Sub", at, parts.floats((size - 1) / 2)))
        kept = parts.add("Cast", parts.add("LessOrEqual", far, parts.floats((size + 1) / 2), version=16), to=1)
        inside.append(parts.shaped(kept, shape))
        places.append(parts.add("Expand", parts.shaped(at, shape), parts.ints(n, bins[0] * samples, bins[1] * samples)))
    image = parts.add("Gather", node.inputs[0], node.inputs[2], axis=0)
    read = _sampled(parts, image, places[0], places[1], (x.shape[2], x.shape[3]), "border")
    kept = parts.add("Unsqueeze", parts.add("Mul", *inside), parts.ints(1))
    pool = parts.add("AveragePool", parts.add("Mul", read, kept), out=parts.out, version=11,
                     kernel_shape=(samples, samples), strides=(samples, samples))  # fmt: skip
    assert pool == parts.out
    return parts.nodes


MOST_ROWS = 4


def det(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """The determinant of matrices of up to 4 rows, by the permutations of their columns."""
    parts, t = Chain(node, b), b.type(node.inputs[0])
    if t.rank < 2 or t.shape[-1] != t.shape[-2] or t.shape[-1] > MOST_ROWS:
        raise NodeError(f"{t}: square matrices of at most {MOST_ROWS} rows are supported")
    n = t.shape[-1]
    flat = parts.shaped(node.inputs[0], (*t.shape[:-2], n * n))
    orders = [np.asarray(p) for p in _permutations(n)]
    factors = [parts.add("Gather", flat, parts.ints(*(i * n + p[i] for p in orders)), axis=-1) for i in range(n)]
    product = factors[0]
    for factor in factors[1:]:
        product = parts.add("Mul", product, factor)
    signs = parts.const(np.asarray([_sign(p) for p in orders], t.dtype.numpy))
    parts.add("ReduceSum", parts.add("Mul", product, signs), parts.ints(-1), out=parts.out, keepdims=0)
    return parts.nodes


def _permutations(n: int) -> list[tuple[int, ...]]:
    return [()] if n == 0 else [(*p[:i], n - 1, *p[i:]) for p in _permutations(n - 1) for i in range(n)]


def _sign(order: np.ndarray) -> float:
    return math.prod(1.0 if order[i] < order[j] else -1.0 for j in range(len(order)) for i in range(j))


REWRITES: Rewrites = {
    ("", "Compress"): compress,
    ("", "TensorScatter"): tensor_scatter,
    ("", "TfIdfVectorizer"): tf_idf_vectorizer,
    ("", "DeformConv"): deform_conv,
    ("", "RoiAlign"): roi_align,
    ("", "Det"): det,
}
