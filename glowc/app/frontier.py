"""`glowc quantize --flash-limit` and `--pareto`: the search, a table of choices, a small plot in the terminal."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    import onnx

    from glowc.quant.frontier import Found, Point, Search

_WIDTH, _HEIGHT = 48, 8
_FEW, _LETTERS = 4, 28  # names in a line, letters of a name


@dataclass(frozen=True, slots=True)
class Flash:
    """What --flash-limit, --pareto and --board say; no limit with --pareto alone."""

    limit_bytes: int | None
    pareto: bool
    board: str


def searched(search: Search, room: Flash) -> Found:
    """Return the best choice of layers in fewer bits whose constants fit, or of all choices."""
    from glowc.quant.frontier import whole_frontier, within

    whole = whole_frontier(search) if room.pareto else None
    return whole if whole is not None and room.limit_bytes is None else within(search, room.limit_bytes or 0)


def constants_on(board_name: str) -> Callable[[onnx.ModelProto], int]:
    """Return what compiles a model for a board and counts its constants."""
    from glowc.board import load_board
    from glowc.compiler.pipeline import compile_model

    board = load_board(board_name)

    def constants_of(quantised: onnx.ModelProto) -> int:
        with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(quantised.SerializeToString())
            return compile_model(path, board).report["weights_bytes"]

    return constants_of


def frontier_lines(found: Found, *, plot: bool) -> list[str]:
    """Return a line for each choice, the chosen one marked, and with `plot` bytes against loss."""
    points = found.frontier() if plot else found.points
    lines = [f"  {'constants':>12} {_label(points[0]):>9}  layers in fewer bits than 8"]
    for point in points:
        mark = "*" if point.weights == found.point.weights else " "
        lines.append(f"{mark} {point.constants_bytes:>12,} {_value(point):>9}  {_layers(point)}")
    return [*lines, *(_plot(points) if plot and len(points) > 1 else [])]


def _layers(point: Point) -> str:
    """Return the layers by type of weights, or how many there are."""
    kinds: dict[str, list[str]] = {}
    for name, kind in point.weights.items():
        kinds.setdefault(kind, []).append(name)
    shown = {
        kind: ", ".join(map(_short, names)) if len(names) <= _FEW else f"{len(names)} layers"
        for kind, names in kinds.items()
    }
    return "; ".join(f"{kind}: {text}" for kind, text in sorted(shown.items(), reverse=True)) or "-"


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 3]}..."


class PointData(TypedDict):
    """A choice: types of weights by layer, bytes, error over the largest, score, whether no other beats it."""

    weights: dict[str, str]
    constants_bytes: int
    error: float
    score: float | None
    on_frontier: bool


class FrontierData(TypedDict):
    """What --json says of a search: the choice, and all that were measured."""

    chosen: PointData
    points: list[PointData]


def frontier_data(found: Found) -> FrontierData:
    """Return what --json says."""
    best = found.frontier()

    def data(point: Point) -> PointData:
        return {
            "weights": {name: str(kind) for name, kind in point.weights.items()},
            "constants_bytes": point.constants_bytes, "error": point.error, "score": point.score,
            "on_frontier": point in best,
        }  # fmt: skip

    return {"chosen": data(found.point), "points": [data(point) for point in found.points]}


def _label(point: Point) -> str:
    return "error" if point.score is None else "score"


def _value(point: Point) -> str:
    return f"{100 * (point.error if point.score is None else point.score):.2f} %"


def _plot(points: Sequence[Point]) -> list[str]:
    """Draw bytes to the right and the error, or the score, upwards."""
    values = [p.error if p.score is None else p.score for p in points]
    sizes = [p.constants_bytes for p in points]
    grid = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    for size, value in zip(sizes, values, strict=True):
        column, row = _place(size, sizes, _WIDTH), _place(value, values, _HEIGHT)
        grid[_HEIGHT - 1 - row][column] = "o"
    names = [f"{100 * max(values):.2f} %", *[""] * (_HEIGHT - 2), f"{100 * min(values):.2f} %"]
    rows = [f"  {name:>9} |{''.join(row).rstrip()}" for name, row in zip(names, grid, strict=True)]
    ends = f"{min(sizes):,}", f"{max(sizes):,} bytes"
    return [*rows, f"  {'':>9} +{'-' * _WIDTH}", f"  {'':>9}  {ends[0]}{ends[1]:>{_WIDTH - len(ends[0])}}"]


def _place(value: float, values: Sequence[float], cells: int) -> int:
    span = max(values) - min(values)
    return round((value - min(values)) / span * (cells - 1)) if span else 0
