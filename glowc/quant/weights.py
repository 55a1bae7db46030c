"""Weights -> int8 codes with a scale per output channel: the nearest codes, or those with which a layer's results on
sample data come closest to float.

The second is AdaRound's idea (Nagel et al., "Up or Down? Adaptive Rounding for Post-Training Quantization", 2020):
a weight need not go to its nearest code when errors of other weights balance it. Here the mean square error of the
sums, a quadratic form of the weights' errors, is descended coordinate by coordinate, all channels at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from onnx import NodeProto

from glowc.board.checked import Checked, Within
from glowc.quant.net import int_of, ints_of, text_of
from glowc.quant.palette import better_palette, first_palette
from glowc.quant.scheme import LARGEST_CODE
from glowc.quant.weight_types import BYTES, CRUMB, NIBBLE, Array, Grid, WeightType

_SWEEPS = 4
_SCALES = np.linspace(1.0, 0.7, 13)  # fractions of the largest weight that the search for a scale tries
LARGEST_INPUT16 = 32768
_ROOM16 = 0.97 * 2.0**31
_NARROW_SCALES = {NIBBLE: np.linspace(1.1, 0.4, 29), CRUMB: np.linspace(1.0, 0.1, 37)}
_NARROW_RIDGE = 0.1
_PALETTE_SCALES = np.linspace(1.3, 0.7, 25)
_PALETTES = 3  # that are tried for a layer: each is made of the codes by the one before
_ROWS = 8192  # most rows of sample data that one layer's statistics are made of


@dataclass(frozen=True, slots=True)
class Weights:
    """Codes of the weights of a layer, which are those of a grid; `scales` has one entry per index of `axis`."""

    codes: Array
    scales: Array
    axis: int
    grid: Grid = BYTES

    def values(self) -> Array:
        """Return the float weights that the codes stand for."""
        shape = [1] * self.codes.ndim
        shape[self.axis] = -1
        return np.asarray(self.codes * self.scales.reshape(shape), np.float32)


def channel_axis(node: NodeProto, weights: Array) -> int:
    """Return the axis of a layer's weights that counts output channels, those of a group for a ConvTranspose."""
    if node.op_type == "MatMul":
        return weights.ndim - 1
    if node.op_type == "Gemm":
        return 0 if int_of(node, "transB", 0) else 1
    return 1 if node.op_type == "ConvTranspose" else 0


def least_scales(bias: Array | None, in_scale: float, count: int) -> Array:
    """Return the least scale per channel with which the bias, in units of in_scale * scale, fits half of int32."""
    if bias is None:
        return np.full(count, 1e-12)
    return np.asarray(np.maximum(_largest_biases(bias, count) / (in_scale * 2.0**30), 1e-12))


def _largest_biases(bias: Array, count: int) -> Array:
    """Return the largest bias of each scale: groups of a ConvTranspose share their scales."""
    lines = np.resize(np.abs(bias.astype(np.float64)), (max(1, bias.size // count), count))
    return np.asarray(lines.max(axis=0))


def least_scales16(weights: Array, axis: int, bias: Array | None, in_scale: float) -> Array:
    """Return the least scale per channel with which no sum of products with int16 codes leaves int32.

    Rounding makes each code larger by half a step at most; the room that is left is for fitted codes and biases.
    """
    lines = np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1).astype(np.float64)
    room = _ROOM16 - LARGEST_INPUT16 * lines.shape[1] / 2
    if room <= 0:
        return np.zeros(len(lines))  # the compiler proves what it can
    fixed = 0.0 if bias is None else _largest_biases(bias, len(lines)) / in_scale
    return np.asarray((LARGEST_INPUT16 * np.abs(lines).sum(axis=1) + fixed) / room)


def nearest(
    weights: Array, axis: int, least: Array, power2: bool = False, kind: WeightType = WeightType.INT8
) -> Weights:  # fmt: skip
    """Return the nearest codes, the largest weight of a channel on code 127; of fewer bits by the least error."""
    lines = np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)
    grid = Grid(kind)
    if kind is WeightType.INT8:
        scales = np.maximum(np.abs(lines).max(axis=1) / LARGEST_CODE, least)
    else:
        grid, found = _grid_and_scales(lines[None].astype(np.float64), None, least[None], kind)
        scales = found[0]
    return coded(weights, axis, _rounded_up(scales) if power2 else scales, grid)


def _rounded_up(scales: Array) -> Array:
    return np.asarray(np.exp2(np.ceil(np.log2(scales))))


def coded(weights: Array, axis: int, scales: Array, grid: Grid = BYTES) -> Weights:
    """Return the nearest codes for given scales."""
    shape = [1] * weights.ndim
    shape[axis] = -1
    scales = scales.astype(np.float32)
    codes = grid.nearest(weights / scales.reshape(shape))
    return Weights(codes.astype(np.int8), scales, axis, grid)


@dataclass(frozen=True, slots=True)
class Rows:
    """What a layer multiplies with its weights, on sample data: `inputs`[group][row][weight], and its float sums.

    `samples` is how many independent inferences the rows come from.
    """

    inputs: Array
    sums: Array  # [group][row][channel], without bias
    samples: int


def rows_of(node: NodeProto, weights: Array, values: Array, sums: Array) -> Rows | None:
    """Return the rows of a layer; None for a kind of layer that is left at its nearest codes."""
    if node.op_type in ("Gemm", "MatMul"):
        if weights.ndim != 2:
            return None
        x, y = values.reshape(1, -1, values.shape[-1]), sums.reshape(1, -1, sums.shape[-1])
        return _thinned(x, y, len(values))
    if node.op_type != "Conv":
        return None
    patches, groups = _patches(node, weights, values), int_of(node, "group", 1)
    y = np.moveaxis(sums.reshape(-1, *sums.shape[2:]), 1, -1).reshape(len(patches), groups, -1)
    x = patches.reshape(len(patches), groups, -1)
    return _thinned(np.moveaxis(x, 1, 0), np.moveaxis(y, 1, 0), len(values))


def joined_rows(rows: list[Rows]) -> Rows:
    """Return the rows of layers with the same weights, shifted so that no bias tells them apart."""
    if len(rows) == 1:
        return rows[0]
    centred = [
        (r.inputs - r.inputs.mean(axis=1, keepdims=True), r.sums - r.sums.mean(axis=1, keepdims=True)) for r in rows
    ]
    inputs, sums = (np.concatenate(parts, axis=1) for parts in zip(*centred, strict=True))
    return Rows(inputs, sums, rows[0].samples * len(rows))


def _thinned(x: Array, y: Array, samples: int) -> Rows:
    step = max(1, -(-x.shape[1] // _ROWS))
    return Rows(x[:, ::step].astype(np.float64), y[:, ::step].astype(np.float64), samples)


def _patches(node: NodeProto, weights: Array, values: Array) -> Array:
    """Return the windows of a convolution: [sample and place][channel][place in the window]."""
    rank = weights.ndim - 2
    strides, dilations = (ints_of(node, n) or [1] * rank for n in ("strides", "dilations"))
    x = values.reshape(-1, *values.shape[2:])
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, weights.shape[2:], strict=True)]
    pads = _pads(node, x.shape[2:], strides, spans)
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, axis=tuple(range(2, 2 + rank)))
    places = tuple(slice(None, None, s) for s in strides)
    inside = tuple(slice(None, None, d) for d in dilations)
    windows = windows[(slice(None), slice(None), *places, *inside)]
    lines = np.moveaxis(windows, 1, 1 + rank)
    return np.asarray(lines.reshape(-1, x.shape[1], int(np.prod(weights.shape[2:]))))


def _pads(node: NodeProto, sizes: tuple[int, ...], strides: list[int], spans: list[int]) -> list[tuple[int, int]]:
    """Return the padding before and after each spatial axis."""
    mode = text_of(node, "auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        totals = [
            max(0, (-(-n // s) - 1) * s + span - n) for n, s, span in zip(sizes, strides, spans, strict=True)
        ]  # fmt: skip
        early = [t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in totals]
        return [(e, t - e) for e, t in zip(early, totals, strict=True)]
    pads = ints_of(node, "pads") or [0] * 2 * len(sizes)
    return list(zip(pads[: len(sizes)], pads[len(sizes) :], strict=True))


@dataclass(frozen=True, slots=True, repr=False)
class Fit(Checked):
    """How far sample data may move weights: `ridge` of their own size in the statistics, pull of what comes before."""

    ridge: Annotated[float, Within(0)] = 1.0
    follow: Annotated[float, Within(0, 1)] = 0.5

    def of(self, kind: WeightType) -> Fit:
        """Return it for weights of a type: of few bits what they lose counts more than what a few samples mislead."""
        return self if kind is WeightType.INT8 else Fit(min(self.ridge, _NARROW_RIDGE), 1.0)


def fitted(
    node: NodeProto, weights: Array, rows: Rows, least: Array, fit: Fit, kind: WeightType = WeightType.INT8
) -> Weights:  # fmt: skip
    """Return the codes of a Conv, Gemm or MatMul with the least error of its sums on sample data."""
    axis = channel_axis(node, weights)
    lines = np.moveaxis(weights, axis, 0).reshape(rows.inputs.shape[0], -1, rows.inputs.shape[2]).astype(np.float64)
    form, pull = _statistics(rows, lines, fit)
    grid, scales, codes = _descent(lines + pull, form, least.reshape(lines.shape[:2]), kind)
    shape = [weights.shape[axis], *np.delete(weights.shape, axis)]
    codes = np.moveaxis(codes.reshape(shape), 0, axis).astype(np.int8)
    return Weights(codes, scales.reshape(-1).astype(np.float32), axis, grid)


def _descent(target: Array, form: Array, least: Array, kind: WeightType) -> tuple[Grid, Array, Array]:
    """Return codes with the least error, their scales and their grid: the best of several palettes."""
    grid, scales = _grid_and_scales(target, form, least, kind)
    codes = _descended(target, scales, form, grid)
    best, error = (grid, scales, codes), _error(codes * scales[..., None] - target, form).sum()
    for _ in range(_PALETTES if kind.indexed else 0):
        grid, scales = better_palette(target, form, least, grid, scales, codes)
        codes = _descended(target, scales, form, grid)
        found = _error(codes * scales[..., None] - target, form).sum()
        if found < error:
            best, error = (grid, scales, codes), found
    return best


def _grid_and_scales(target: Array, form: Array | None, least: Array, kind: WeightType) -> tuple[Grid, Array]:
    """Return the codes that weights [group][channel][weight] may have, and the scales of the channels."""
    if not kind.indexed:
        grid = Grid(kind)
        full = np.maximum(np.abs(target).max(axis=2) / grid.limits[1], least)
        return grid, _best_scales(target, form, least, grid, full, _NARROW_SCALES.get(kind.bits, _SCALES))
    grid, scales = first_palette(target, form, least, kind)
    return grid, _best_scales(target, form, least, grid, scales, _PALETTE_SCALES)


def _statistics(rows: Rows, lines: Array, fit: Fit) -> tuple[Array, Array]:
    """Return the quadratic form of the sums' error, and how the weights should move to make up for their inputs."""
    x = rows.inputs - rows.inputs.mean(axis=1, keepdims=True)
    y = rows.sums - rows.sums.mean(axis=1, keepdims=True)
    count = x.shape[1]
    form = np.matmul(x.transpose(0, 2, 1), x) / count
    size = np.trace(form, axis1=1, axis2=2)[:, None, None] / x.shape[2] + 1e-20
    left = y - np.matmul(x, lines.transpose(0, 2, 1))
    unit = np.eye(x.shape[2])[None]
    few = x.shape[2] / min(count, 64 * rows.samples)  # with fewer rows than weights, the data says little of each
    correlated = np.matmul(x.transpose(0, 2, 1), left) / count
    pull = np.linalg.solve(form + size * unit * fit.ridge * (1 + 50 * few), correlated).transpose(0, 2, 1)
    return form + size * unit * fit.ridge * (1 + few), pull * fit.follow


def _error(difference: Array, form: Array | None) -> Array:
    """Return the error of each channel by a quadratic form; without one, every weight's error counts alike."""
    if form is None:
        return np.asarray(np.square(difference).sum(axis=2))
    return np.asarray(np.einsum("goc,goc->go", np.matmul(difference, form), difference))


def _best_scales(
    target: Array, form: Array | None, least: Array, grid: Grid, start: Array, fractions: Array
) -> Array:  # fmt: skip
    """Return the scale per channel, a fraction of what is at the start, whose nearest codes err least."""
    best, error = start, np.full(start.shape, np.inf)
    for fraction in fractions:
        scales = np.maximum(start * fraction, least).astype(np.float32).astype(np.float64)
        codes = grid.nearest(target / scales[..., None])
        found = _error(codes * scales[..., None] - target, form)
        best, error = np.where(found < error, scales, best), np.minimum(found, error)
    return np.asarray(best)


def _descended(target: Array, scales: Array, form: Array, grid: Grid) -> Array:
    """Return codes from which no step of one weight makes the error smaller, starting at the nearest."""
    steps = scales[..., None]
    codes = grid.nearest(target / steps)
    slope = np.matmul(codes * steps - target, form)
    for _ in range(_SWEEPS):
        before = codes.copy()
        for i in range(codes.shape[2]):
            wanted = codes[..., i] - slope[..., i] / (form[:, None, i, i] * scales)
            new = grid.nearest(wanted)
            change = (new - codes[..., i]) * scales
            codes[..., i] = new
            slope += change[..., None] * form[:, None, i, :]
        if np.array_equal(before, codes):
            break
    return np.asarray(codes)
