"""`glowc quantize --flash-limit`, `--ram-limit`, `--max-insns`, `--pareto`: the search, a table of choices, a plot."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from glowc.errors import LimitError
from glowc.quant.limits import Limits, Size

if TYPE_CHECKING:
    import onnx

    from glowc.quant.frontier import Found, Point, Search

_WIDTH, _HEIGHT = 48, 8
_FEW, _LETTERS = 4, 28  # names in a line, letters of a name
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 640, 50, 350  # of the picture's axes
_COLORS = ("#1f77b4", "#d62728")


@dataclass(frozen=True, slots=True)
class Room:
    """What --flash-limit, --ram-limit, --max-insns, --pareto and --board say; no limits with --pareto alone."""

    limits: Limits
    pareto: bool
    board: str


def searched(searches: Sequence[Search], room: Room) -> Found:
    """Return the best choice of layers in fewer bits within the limits, or of all choices: the best of all searches.

    Of several, the first one is on int8: where that is the best, it has layers on int16 as far as limits allow.

    Raises InputError where no choice is within them.
    """
    from glowc.quant.frontier import check_limits, whole_frontier, within
    from glowc.quant.wider import with_finer

    limited = room.limits != Limits()
    found = []
    for search in searches:
        whole = whole_frontier(search) if room.pareto else None
        found.append(whole if whole is not None and not limited else within(search, room.limits))
    best = reduce(lambda a, b: a.better(b, room.limits), found)
    if len(searches) > 1:
        best = with_finer(searches[0], best, room.limits)
    check_limits(best, room.limits)
    return best


def size_on(board_name: str, limits: Limits) -> Callable[[onnx.ModelProto], Size]:
    """Return what compiles a model for a board, within limits of RAM and flash if it fits there, and tells its size."""
    from glowc.board import load_board
    from glowc.compiler.options import CompileOptions
    from glowc.compiler.pipeline import compile_model

    board = load_board(board_name)

    def size_of(quantised: onnx.ModelProto) -> Size:
        with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(quantised.SerializeToString())
            options, least = CompileOptions(ram_limit=limits.arena_bytes, flash_limit=limits.flash_bytes), None
            try:
                compiled = compile_model(path, board, options)
            except LimitError as error:
                anywhere = replace(board, linker_script=None)  # as under an operating system: nothing is too much
                compiled, least = compile_model(path, anywhere), error.need_bytes
        report, flash = compiled.report, least or compiled.printed.flash_bytes or compiled.printed.predicted()
        code = flash - report["weights_bytes"]
        return Size(report["weights_bytes"], report["arena_bytes"], report["insns_estimate"], code)

    return size_of


def frontier_lines(found: Found, *, plot: bool) -> list[str]:
    """Return a line for each choice, the chosen one marked, and with `plot` bytes against loss."""
    points = found.frontier() if plot else found.points
    columns = f"  {'constants':>12} {'arena':>9} {'instructions':>13} {_label(points[0]):>9}"
    lines = [f"{columns}  layers in fewer bits than 8"]
    for point in points:
        mark, size = "*" if point == found.point else " ", point.size
        sizes = f"{size.constants_bytes:>12,} {size.arena_bytes:>9,} {size.insns:>13,}"
        lines.append(f"{mark} {sizes} {_value(point):>9}  {_described(found, point)}")
    return [*lines, *(_plot(points) if plot and len(points) > 1 else [])]


def _described(found: Found, point: Point) -> str:
    """Return the layers in fewer bits, and the activations where choices differ in them."""
    several = len({p.activations for p in found.points}) > 1
    finer = f", {_named(point.wide)} int16" if point.wide else ""
    return f"activations {point.activations}{finer}; {_layers(point)}" if several else _layers(point)


def _layers(point: Point) -> str:
    """Return the layers by type of weights, or how many there are."""
    kinds: dict[str, list[str]] = {}
    for name, kind in point.weights.items():
        kinds.setdefault(kind, []).append(name)
    shown = {kind: _named(names) for kind, names in kinds.items()}
    return "; ".join(f"{kind}: {text}" for kind, text in sorted(shown.items(), reverse=True)) or "-"


def _named(names: Sequence[str]) -> str:
    return ", ".join(map(_short, names)) if len(names) <= _FEW else f"{len(names)} layers"


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 3]}..."


class PointData(TypedDict):
    """A choice: weights by layer, activations, layers on int16 where others are not, size, error over the largest,
    score, whether no other beats it."""

    weights: dict[str, str]
    activations: str
    int16: list[str]
    constants_bytes: int
    flash_bytes: int
    arena_bytes: int
    insns_estimate: int
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
            "activations": str(point.activations), "int16": list(point.wide),
            "constants_bytes": point.size.constants_bytes, "flash_bytes": point.size.flash_bytes,
            "arena_bytes": point.size.arena_bytes, "insns_estimate": point.size.insns, "error": point.error,
            "score": point.score,
            "on_frontier": point in best,
        }  # fmt: skip

    return {"chosen": data(found.point), "points": [data(point) for point in found.points]}


def _label(point: Point) -> str:
    return "error" if point.score is None else "score"


def _value(point: Point) -> str:
    return f"{100 * _shown(point):.2f} %"


def _plot(points: Sequence[Point]) -> list[str]:
    """Draw bytes to the right and the error, or the score, upwards."""
    values = [_shown(p) for p in points]
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
    return round(_scaled(value, values, 0, cells - 1))


def pareto_svg(found: Found, title: str) -> str:
    """Return the choices as an SVG file: bytes of constants to the right, error or score upwards, frontiers joined."""
    points, best = found.points, found.frontier()
    xs, ys = [p.constants_bytes for p in points], [_shown(p) for p in points]

    def at(point: Point) -> tuple[float, float]:
        return _scaled(point.constants_bytes, xs, _LEFT, _RIGHT), _scaled(_shown(point), ys, _BOTTOM, _TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_RIGHT + 40}" height="{_BOTTOM + 50}" font-size="12" '
        'font-family="sans-serif">',
        f'<text x="{_LEFT}" y="24" font-size="14">{escape(title)}: {_label(points[0])} by bytes of constants</text>',
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="#555"/>',
        *_svg_axes(xs, ys),
    ]
    for number, kind in enumerate(sorted({p.activations for p in points})):
        color = _COLORS[number % len(_COLORS)]
        line = " ".join("{:.1f},{:.1f}".format(*at(p)) for p in best if p.activations == kind)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}"/>')
        for point in (p for p in points if p.activations == kind):
            (x, y), size = at(point), 5 if point == found.point else 3
            about = f"{kind}, {point.constants_bytes:,} bytes, {_value(point)}: {_layers(point)}"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{color}"><title>{escape(about)}</title>'
                         "</circle>")  # fmt: skip
    return "\n".join([*parts, "</svg>", ""])


def _svg_axes(xs: Sequence[int], ys: Sequence[float]) -> list[str]:
    """Return the ends of both axes in words."""
    return [
        f'<text x="{_LEFT}" y="{_BOTTOM + 20}">{min(xs):,} bytes</text>',
        f'<text x="{_RIGHT}" y="{_BOTTOM + 20}" text-anchor="end">{max(xs):,} bytes</text>',
        f'<text x="{_LEFT - 6}" y="{_BOTTOM}" text-anchor="end">{100 * min(ys):.2f} %</text>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end">{100 * max(ys):.2f} %</text>',
    ]


def _shown(point: Point) -> float:
    """Return what is drawn of a choice: the score, or the error."""
    return point.error if point.score is None else point.score


def _scaled(value: float, values: Sequence[float], low: float, high: float) -> float:
    span = max(values) - min(values)
    return low + (value - min(values)) / span * (high - low) if span else low
