#!/usr/bin/env python3
"""Fit the energy of a cycle to published measurements (scripts/energy.toml) and predict each from the others.

    scripts/energy.py

The energy of an inference is `pj_per_cycle` of the chip times its cycles and `CYCLES_OF_A_CONSTANT_BYTE` for each byte
of constants. The first is fitted for each chip, the second for all chips together, both to relative errors (least
squares of logarithms). Prints what boards/_chips and glowc/board/chips.py have to hold, and the error of each
measurement when it is predicted without it; exit status 1 when one is more
than 10 % off or a chip's file has other numbers.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, exp, log
from pathlib import Path
from statistics import fmean

from glowc.board import load_chip
from glowc.board.chips import CYCLES_OF_A_CONSTANT_BYTE

DATA = Path(__file__).with_suffix(".toml")
ALLOWED = 0.10
_STEPS = 1000  # of the search for the shared number, a thousandth each


@dataclass(frozen=True)
class Point:
    """A measurement of a model on a chip."""

    chip: str
    model: str
    cycles: float
    constant_bytes: int
    pj: float


def read_points() -> list[Point]:
    """Return the published measurements."""
    data = tomllib.loads(DATA.read_text())
    sizes = data.pop("constant_bytes")
    return [
        Point(chip, model, row["ms"] * 1e3 * load_chip(chip).clock_mhz, sizes[model], row["uj"] * 1e6)
        for chip, rows in data.items()
        for model, row in rows.items()
    ]


def per_cycle(points: Sequence[Point], per_byte: float) -> dict[str, float]:
    """Return the picojoules of a cycle of each chip, where a byte of constants counts as `per_byte` cycles."""
    chips = dict.fromkeys(point.chip for point in points)
    return {chip: exp(fmean(log(_ratio(p, per_byte)) for p in points if p.chip == chip)) for chip in chips}


def _ratio(point: Point, per_byte: float) -> float:
    return point.pj / (point.cycles + per_byte * point.constant_bytes)


def fit(points: Sequence[Point]) -> tuple[float, dict[str, float]]:
    """Return the cycles that a byte of constants counts as, and the picojoules of a cycle of each chip."""

    def off(per_byte: float) -> float:
        fitted = per_cycle(points, per_byte)
        return sum(log(_ratio(p, per_byte) / fitted[p.chip]) ** 2 for p in points)

    best = min((step / _STEPS for step in range(_STEPS)), key=off)
    return best, per_cycle(points, best)


def left_out(points: Sequence[Point]) -> Iterator[tuple[Point, float]]:
    """Yield each measurement, and the relative error of what all others predict of it."""
    for point in points:
        per_byte, fitted = fit([other for other in points if other is not point])
        yield point, fitted[point.chip] / _ratio(point, per_byte) - 1


def main() -> int:
    points = read_points()
    per_byte, fitted = fit(points)
    errors = list(left_out(points))
    wrong = [f"CYCLES_OF_A_CONSTANT_BYTE = {per_byte:g}"] if per_byte != CYCLES_OF_A_CONSTANT_BYTE else []
    print(f"a byte of constants: {per_byte:g} cycles")
    for chip, pj in fitted.items():
        here = {point.model: error for point, error in errors if point.chip == chip}
        worst = ceil(100 * max(map(abs, here.values())))
        print(f"{chip}: {pj:.4g} pJ a cycle; left out:", ", ".join(f"{m} {100 * e:+.1f} %" for m, e in here.items()))
        known = load_chip(chip).energy
        if known is None or (known.pj_per_cycle, known.error_percent) != (float(f"{pj:.3g}"), worst):
            wrong.append(f"{chip}: pj_per_cycle = {pj:.3g}, error_percent = {worst}")
    worst_of_all = max(abs(error) for _, error in errors)
    print(f"worst of {len(errors)}: {100 * worst_of_all:.1f} %")
    print(*(f"wrong: {text}" for text in wrong), sep="\n", end="\n" if wrong else "")
    return 1 if wrong or worst_of_all > ALLOWED else 0


if __name__ == "__main__":
    sys.exit(main())
