"""Features of kernels that compute tiles: how many there are, also where pixels or outputs do not fill the last one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from glowc.program.ir import Instr, Plan

TILE_FEATURES = (
    "spans", "span_blocks", "span_macs", "span_products", "torn_spans", "torn_taps", "torn_patch", "torn_blocks",
    "whole_runs", "runs", "cut_runs", "cut_patch", "plan_spans", "plan_tiles", "plan_steps", "plan_rests",
    "narrow_tiles", "narrow_steps", "shifted_tiles", "shifted_patch", "second", "twos", "two_blocks", "two_steps",
    "rest", "singles", "single_macs", "eights", "eight_rows", "eight_columns", "eight_taps", "side_rows",
    "side_columns", "printed_taps", "looped_rows", "looped_taps", "row_vectors", "row_vector_taps", "vector_taps",
    "plan_outputs", "single_ends", "matrix_blocks", "matrix_steps", "moved_singles",
)  # fmt: skip
"""spans: four pixels of a row, or rows of a matrix, the last of which may be fewer; span_blocks: those of four output
channels, span_macs their inputs, span_products fours of these. torn_spans: those with a window that is not whole, whose
pixels have torn_taps and torn_patch inputs; torn_blocks: their blocks. whole_runs: kernel rows of blocks of the other
ones. runs: kernel rows of all pixels that lie in the image, cut_runs those of them that leave it to the side, or whose
inputs are not adjacent; cut_patch: their inputs. plan_spans: groups of as many pixels as the plan of a kernel has,
plan_tiles: those of as many outputs, plan_steps: steps of as many inputs, plan_rests: tiles whose last step has fewer;
narrow_tiles: those of fewer outputs after whole ones, narrow_steps: their steps by output, of four at least;
shifted_tiles, shifted_patch: tiles, and inputs of the windows of all pixels, of weights whose zero point takes a sum of
the inputs. second: elements of the second operand. twos: two pixels that are multiplied together, of a row those whose
windows are whole, of the image the other ones; two_blocks: those of four output channels, two_steps: their steps of
sixteen inputs of a kernel row. rest: inputs of all outputs after the last whole sixteen. singles: outputs that are
computed one by one, single_macs their inputs. eights: groups of as many pixels of a row as the plan has, of eight
channels each; eight_rows: the rows of their windows that lie in the image, eight_columns and eight_taps: the columns
and taps of all pixels of these; side_rows, side_columns: those of groups that leave the image to the side.
printed_taps: the taps of eight channels of windows that are whole, where a plan has the taps of such; looped_rows,
looped_taps: the rows and taps of other ones that lie in the image. row_vectors: rows of 16 channels, row_vector_taps:
their taps, vector_taps: those of each pixel. plan_outputs: the outputs of all plan_steps. single_ends: sums that end
one by one. matrix_blocks: four rows by eight columns of a product of two operands, matrix_steps: their fours of inputs;
moved_singles: elements of both that come one by one, as they are no eight adjacent ones."""

TILE_WORK = frozenset(
    (
        "span_macs", "span_products", "plan_steps", "two_steps", "eight_taps", "looped_taps", "vector_taps",
        "plan_outputs", "matrix_steps",
    )
)  # fmt: skip
"""Those that count multiply-accumulates in groups."""

_SPAN, _BLOCK, _GRAIN, _EIGHT = 4, 4, 16, 8


def inside(p: Mapping[str, int], axis: str) -> np.ndarray:
    """Return how many taps of each output's window lie inside the input, along "h" or "w"."""
    pad = p.get("pad_top" if axis == "h" else "pad_left", 0)
    stride, dilation = p.get(f"stride_{axis}", 1), p.get(f"dil_{axis}", 1)
    return _inside(p[f"in_{axis}"], p[f"out_{axis}"], p[f"k_{axis}"], pad, stride, dilation)


@lru_cache(1 << 10)
def _inside(size: int, count: int, kernel: int, pad: int, stride: int, dilation: int) -> np.ndarray:
    """Return the same of an axis, which is read only; a layer asks for it for each of its variants."""
    start = np.arange(count, dtype=np.int64) * stride - pad  # of a window; taps are counted before and inside the input
    before, until = (np.clip(-((start - end) // dilation), 0, kernel) for end in (0, size))
    taps = np.asarray(until - before)
    taps.setflags(write=False)
    return taps


@dataclass(frozen=True, slots=True)
class _Nest:
    """Rows of tiles: `rows` rows of `width` pixels, `channels` outputs of each, sums of `depth` products."""

    rows: int
    width: int
    channels: int
    depth: float

    def spans(self, pixels: int) -> int:
        """Return the groups of so many pixels of a row."""
        return self.rows * math.ceil(self.width / pixels)


def tile_features(instr: Instr, p: Mapping[str, int], outputs: float) -> dict[str, float]:
    """Return the features of a kernel with multiply-accumulates, whose parameters are `p`."""
    nest = _nest(p, instr.macs / max(outputs, 1))
    if nest is None:
        return {}
    spans, blocks = nest.spans(_SPAN), math.ceil(nest.channels / _BLOCK)
    found = {"spans": spans, "span_blocks": spans * blocks, "span_macs": spans * blocks * nest.depth}
    found["span_products"] = spans * blocks * math.ceil(nest.depth / 4)
    found["rest"] = outputs * (nest.depth % 16)
    found |= _second(instr) | _planned(instr, p, nest) | _matrices(p)
    if "k_h" in p and "out_w" in p:
        found |= _windows(p, nest, blocks) | _eights(instr.plan, p, nest)
    return found | _twos(p, nest, blocks, merged=of_plan(instr.plan, "merged") != 0)


def _twos(p: Mapping[str, int], nest: _Nest, blocks: int, *, merged: bool) -> dict[str, float]:
    """Return the features of pairs of pixels; `merged`: rows are one."""
    k_h, pixels, rows, whole = p.get("k_h", 1), nest.rows * nest.width, nest.rows, nest.width
    if "k_h" in p and "out_w" in p:
        rows = p.get("batch", 1) * int((inside(p, "h") == k_h).sum())
        whole = int((inside(p, "w") == p["k_w"]).sum())
    twos = math.ceil(pixels / 2) if merged else rows * math.ceil(whole / 2) + math.ceil((pixels - rows * whole) / 2)
    steps = k_h * math.ceil(nest.depth / k_h / 16)
    return {"twos": twos, "two_blocks": twos * blocks, "two_steps": twos * blocks * steps}


def _nest(p: Mapping[str, int], depth: float) -> _Nest | None:
    if "out_w" in p and "out_c" in p:
        return _Nest(p.get("batch", 1) * p["out_h"], p["out_w"], p["out_c"], depth)
    if "out_n" in p:
        return _Nest(1, p.get("rows", 1), p["out_n"], depth)
    if "m" in p and "n" in p:
        return _Nest(p.get("batch_0", 1) * p.get("batch_1", 1), p["m"], p["n"], depth)
    return None


def _second(instr: Instr) -> dict[str, float]:
    return {"second": float(sum(o.type.elements for o in instr.operands if o.role == "b"))}


def _matrices(p: Mapping[str, int]) -> dict[str, float]:
    if not {"m", "n", "k", "a_col", "b_row"} <= p.keys():
        return {}
    m, n, k, count = p["m"], p["n"], p["k"], p.get("batch_0", 1) * p.get("batch_1", 1)
    blocks = count * math.ceil(m / _SPAN) * math.ceil(n / _EIGHT)
    left = m * (k % _EIGHT if p["a_col"] == 1 else k)
    right = n * (k % _EIGHT) if p["b_row"] == 1 else k * (n % _EIGHT if p.get("b_col", 1) == 1 else n)
    return {
        "matrix_blocks": blocks, "matrix_steps": blocks * math.ceil(k / _SPAN), "moved_singles": count * (left + right)
    }  # fmt: skip


def of_plan(plan: Plan, name: str, without: int = 0) -> int:
    """Return a whole number of a plan, `without` where it has none of that name."""
    value = getattr(plan, name, without)
    return value if isinstance(value, int) else without


def _planned(instr: Instr, p: Mapping[str, int], nest: _Nest) -> dict[str, float]:
    """Return the tiles of a plan that has `outputs`, and `pixels` where there are several."""
    plan = instr.plan
    outputs, pixels, singles = of_plan(plan, "outputs"), of_plan(plan, "pixels", 1), of_plan(plan, "singles")
    alone = {"singles": nest.width * singles, "single_macs": nest.width * singles * nest.depth}
    alone["single_ends"] = nest.rows * nest.width * nest.channels * of_plan(plan, "ends_alone")
    if not outputs or not pixels:
        return alone
    spans = math.ceil(nest.rows * nest.width / pixels) if of_plan(plan, "span") else nest.spans(pixels)
    channels = nest.channels - singles
    left = channels % outputs
    narrow = of_plan(plan, "narrow")
    few = math.ceil(left / narrow) if narrow and left <= max(narrow, _BLOCK) else 0
    tiles = channels // outputs if few else math.ceil(channels / outputs)
    steps, has_rest, is_shifted = _steps(plan, p, nest.depth), bool(of_plan(plan, "rest")), of_plan(plan, "shifted")
    return alone | {
        "plan_spans": spans, "plan_tiles": spans * tiles, "plan_steps": spans * tiles * steps,
        "plan_outputs": spans * tiles * steps * outputs,
        "plan_rests": spans * (tiles + few) * has_rest, "narrow_tiles": spans * few,
        "narrow_steps": spans * few * steps * max(narrow, _BLOCK), "shifted_tiles": spans * (tiles + few) * is_shifted,
        "shifted_patch": nest.rows * nest.width * nest.depth * is_shifted,
    }  # fmt: skip


def _steps(plan: Plan, p: Mapping[str, int], depth: float) -> int:
    """Return the steps of a tile: of each tap where a plan has planes of channels, else of all inputs together."""
    groups, grain = of_plan(plan, "groups"), max(of_plan(plan, "grain", _GRAIN), 1)
    if groups:
        return p.get("k_h", 1) * p.get("k_w", 1) * groups
    return math.ceil(depth / grain)


def _eights(plan: Plan, p: Mapping[str, int], nest: _Nest) -> dict[str, float]:
    """Return the features of kernels that compute eight or 16 channels, window by window."""
    down, along, batch, taps = inside(p, "h"), inside(p, "w"), p.get("batch", 1), p["k_h"] * p["k_w"]
    pixels = max(of_plan(plan, "pixels", 1), 1)
    begins, eights = np.arange(0, nest.width, pixels), batch * math.ceil(nest.channels / _EIGHT)
    sides = int(np.logical_or.reduceat(along < p["k_w"], begins).sum()) if nest.width else 0
    places = itertools.product(range(pixels), range(p["k_w"]))
    columns = len({pixel * p.get("stride_w", 1) + tap * p.get("dil_w", 1) for pixel, tap in places})
    rows, groups, vectors = int(down.sum()), len(begins), nest.rows * math.ceil(nest.channels / _GRAIN)
    whole = int((down == p["k_h"]).sum()) * int((along == p["k_w"]).sum()) if of_plan(plan, "k_h") else 0
    found = {
        "eights": nest.rows // max(batch, 1) * groups, "eight_rows": rows * groups,
        "eight_columns": rows * groups * columns, "eight_taps": rows * groups * p["k_w"], "side_rows": rows * sides,
        "side_columns": rows * sides * columns, "printed_taps": whole * taps,
        "looped_rows": rows * nest.width - whole * p["k_h"], "looped_taps": rows * int(along.sum()) - whole * taps,
    }  # fmt: skip
    by_rows = {"row_vectors": 1, "row_vector_taps": taps, "vector_taps": nest.width * taps}
    return {name: float(eights * n) for name, n in found.items()} | {
        name: float(vectors * n) for name, n in by_rows.items()
    }


def _windows(p: Mapping[str, int], nest: _Nest, blocks: int) -> dict[str, float]:
    """Return what of the windows of spans and pixels lies in the image."""
    down, along, batch = inside(p, "h"), inside(p, "w"), p.get("batch", 1)
    k_h, k_w, depth = p["k_h"], p["k_w"], nest.depth
    dense = p.get("in_ch", 1) == 1 and p.get("in_col", depth) == p.get("in_c", depth) and p.get("dil_w", 1) == 1
    whole_rows, whole = int((down == k_h).sum()), along == k_w
    spans = np.logical_and.reduceat(whole, np.arange(0, nest.width, _SPAN)) if nest.width else whole
    widths = np.add.reduceat(np.ones(nest.width), np.arange(0, nest.width, _SPAN)) if nest.width else whole
    kept = batch * whole_rows * int(spans.sum()) if dense else 0
    torn = nest.rows * nest.width - (batch * whole_rows * float(widths[spans].sum()) if dense else 0.0)
    runs, cut = batch * int(down.sum()) * nest.width, batch * int(down.sum()) * int((~whole).sum())
    cut = cut if dense else runs
    torn_spans = nest.spans(_SPAN) - kept
    return {
        "torn_spans": torn_spans, "torn_taps": torn * k_h * k_w, "torn_patch": torn * depth,
        "torn_blocks": torn_spans * blocks, "whole_runs": kept * blocks * k_h, "runs": runs, "cut_runs": cut,
        "cut_patch": cut * depth / max(k_h, 1),
    }  # fmt: skip
