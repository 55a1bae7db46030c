"""GridSample: x[N, C, (D,) H, W] read at the coordinates of grid[N, (oD,) oH, oW, 2 or 3], which run from -1 to 1.

Every axis gives 1 (nearest), 2 (linear) or 4 (cubic, a = -0.75) neighbours and weights; the result is their product
sum, the last axis innermost. Padding: zeros, border, or reflection. Nearest rounds half to even. Coordinates beyond
+-1e6 elements and NaN count as that far outside, so that the C never reads outside of x.
All in the element type; libm's floor and rint are exact, the sums differ from others' in the last places.
Source: ONNX GridSample-22.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int, Str
from glowc.graph.graph import Node
from glowc.graph.types import DType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Spatial
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

MODES = {"nearest": "nearest", "linear": "linear", "cubic": "cubic", "bilinear": "linear", "bicubic": "cubic"}
TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
PADDINGS = ("zeros", "border", "reflection")
FAR = 1e6


@dataclass(frozen=True, slots=True)
class GridSampleParams(Params):
    """Of `grid_sample`: the image, the points, and the words of the operator."""

    batch: int
    channels: int
    in_: Spatial
    points: int
    dims: Printed
    mode: str
    padding: str
    align: Printed


def words_of(node: Node) -> tuple[str, str, int]:
    """Return mode, padding and align_corners; OpError for values that ONNX does not define."""
    mode, padding = MODES.get(node.str_("mode")), node.str_("padding_mode")
    if mode is None or padding not in PADDINGS:
        raise OpError(f"mode {node.str_('mode')!r}, padding_mode {padding!r}")
    return mode, padding, int(node.int_("align_corners") != 0)


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """[N, C] of the input, the spatial axes of the grid."""
    x, grid = present(in_types[:2])
    dims = x.rank - 2
    fits = grid.rank == x.rank and dims in (2, 3) and grid.shape[-1] == dims and grid.shape[0] == x.shape[0]
    if not fits or x.dtype not in (DType.F32, DType.F64) or grid.dtype != x.dtype:
        raise OpError(f"samples of {x} at {grid}")
    if words_of(node)[0] == "cubic" and dims != 2:
        raise OpError(f"mode cubic of {x}")
    return (x.with_shape([*x.shape[:2], *grid.shape[1:-1]]),)


def _reflect(v: np.ndarray, low: float, high: float) -> np.ndarray:
    kind = v.dtype.type
    span = kind(high - low)
    if span <= 0:
        return np.zeros_like(v)
    below, above = kind(low) - v, v - kind(high)
    distance = np.maximum(np.maximum(below, above), 0)
    n = np.trunc(distance / span)
    rest, even = distance - n * span, n % 2 == 0
    down = np.where(even, kind(low) + rest, kind(high) - rest)
    up = np.where(even, kind(high) - rest, kind(low) + rest)
    return np.asarray(np.where(below > 0, down, np.where(above > 0, up, v)))


def _cubic(t: np.ndarray) -> np.ndarray:
    a, k = t.dtype.type(-0.75), t.dtype.type
    return np.stack([
        ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a, ((a + 2) * t - (a + 3)) * t * t + 1,
        ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1,
        ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a,
    ], -1).astype(k)  # fmt: skip


def neighbours(g: np.ndarray, n: int, mode: str, padding: str, align: int) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and weights [..., taps] of the coordinates `g` along an axis of length n."""
    kind = g.dtype.type
    low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
    v = (g + 1) / kind(2) * kind(n - 1) if align else ((g + 1) * kind(n) - 1) / kind(2)
    v = np.where((v > -FAR) & (v < FAR), v, kind(-FAR)).astype(g.dtype)
    v = np.rint(v) if mode == "nearest" else v
    outside = (v < low) | (v > high)
    if padding == "border":
        v = np.where(outside, np.clip(v, 0, kind(n - 1)), v)
    elif padding == "reflection":
        v = np.where(outside, _reflect(v, low, high), v)
    first = np.trunc(v) if mode == "nearest" else np.floor(v)
    t = (v - first).astype(g.dtype)
    weights = {
        "nearest": np.ones((*v.shape, 1), g.dtype), "linear": np.stack([1 - t, t], -1), "cubic": _cubic(t),
    }[mode]  # fmt: skip
    index = first[..., None] + np.arange(TAPS[mode]) - (1 if mode == "cubic" else 0)
    if padding == "zeros":
        weights = np.where((index >= 0) & (index < n), weights, 0)
    elif padding == "reflection":
        index = np.trunc(_reflect(index.astype(g.dtype), low, high))
    return np.clip(index, 0, n - 1).astype(np.int64), weights.astype(g.dtype)


def sample(x: np.ndarray, grid: np.ndarray, mode: str, padding: str, align: int) -> np.ndarray:
    """Return the samples of x[N, C, D, H, W] (D may be missing)."""
    dims = grid.shape[-1]
    taps = [neighbours(grid[..., dims - 1 - i], x.shape[2 + i], mode, padding, align) for i in range(dims)]
    result = []
    for n in range(x.shape[0]):
        result.append(np.moveaxis(_sum(x[n], [(i[n], w[n]) for i, w in taps], ()), -1, 0))
    return np.stack(result)


def _sum(x: np.ndarray, taps: list[tuple[np.ndarray, np.ndarray]], chosen: tuple[np.ndarray, ...]) -> np.ndarray:
    if len(chosen) == len(taps):
        return np.asarray(np.moveaxis(x, 0, -1)[chosen])
    index, weights = taps[len(chosen)]
    total = np.zeros((*index.shape[:-1], x.shape[0]), x.dtype)
    for k in range(index.shape[-1]):
        total = total + weights[..., k, None] * _sum(x, taps, (*chosen, index[..., k]))
    return total


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `grid_sample`."""
    x, grid, y = ctx.read(node.inputs[0]), ctx.read(node.inputs[1]), ctx.write(node.outputs[0])
    mode, padding, align = words_of(node)
    size = (1,) * (5 - x.type.rank) + x.type.shape[2:]
    params = GridSampleParams(
        batch=x.type.shape[0], channels=x.type.shape[1], in_=size, points=math.prod(y.type.shape[2:]),
        dims=x.type.rank - 2, mode=mode, padding=padding, align=align,
    )  # fmt: skip
    ctx.emit("grid_sample", {"in": x, "grid": grid, "out": y}, params)


def _interpret(arrays: Arrays, p: GridSampleParams) -> None:
    x = arrays["in"].reshape(p.batch, p.channels, *p.in_[3 - p.dims :])
    grid = arrays["grid"].reshape(p.batch, p.points, p.dims)
    y = sample(x, grid, p.mode, p.padding, p.align)
    arrays["out"].reshape(-1)[: y.size] = y.reshape(-1)


KERNELS = (
    KernelDef("grid_sample", ("in in", "in grid", "out out"), GridSampleParams, _interpret, needs_math=True,
              kind="f32|f64", doc="interpolation at given coordinates"),
)  # fmt: skip

OP = OpDef(
    "GridSample", infer, derived, lower, max_version=22,
    attrs={"mode": Str("linear", words=tuple(MODES)), "padding_mode": Str("zeros", words=tuple(PADDINGS)),
           "align_corners": Int(0)},
    doc="interpolation at given coordinates",
)  # fmt: skip
