#!/usr/bin/env python3
"""Look for layers that take far more than others of their kind, or than their price. Runs as `make cliffs`.

    scripts/cliffs.py --seed 7 --count 60
    scripts/cliffs.py --chips stm32l4r5 rpi-zero2 --only depthwise dense

Layers of random kind, shape, stride, dilation, padding, layout, zero points, widths, factors and rounding (ONNX's or
TensorFlow Lite's) are compiled one by one for a chip of each core, and their cycles are counted there. Printed are
those that take more than 1.3 times what the report says, and those that take more than 3 times what the best layers
of the kind take on that core (scripts/cliffs.toml, as `--record` writes it) and have no reason there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import repeat
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from drawn_layers import Drawn, draw, model_bytes  # noqa: E402

from glowc.board import load_chip, machine_of  # noqa: E402
from glowc.compiler.options import CompileOptions  # noqa: E402
from glowc.compiler.pipeline import compile_model, write_bundle  # noqa: E402
from glowc.errors import GlowcError  # noqa: E402
from glowc.machine.cycles.measure import measure_layers  # noqa: E402
from glowc.machine.execute import load_bundle, random_inputs  # noqa: E402

TABLE = ROOT / "scripts" / "cliffs.toml"
CHIPS = ("rp2040", "stm32l4r5", "stm32h7a3", "stm32u575", "alif-e7", "rpi-zero2", "rpi5")
OVER_PRICE, OVER_BEST = 1.3, 3.0
CALL = 2000  # cycles that a layer may take besides
LONG = 8  # multiply-accumulates of a result


@dataclass(frozen=True)
class Found:
    """A layer as counted on a chip; `kernels` are what ran, with a share of the cycles each."""

    layer: Drawn
    chip: str
    cycles: float
    price: float
    kernels: str

    def times(self, best: Mapping[str, Sequence[float]]) -> float:
        """How much more than the best of its kind it takes, by multiply-accumulates and results."""
        mac, result = best.get(self.layer.family, (np.inf, np.inf))
        return self.cycles / (CALL + mac * self.layer.macs + result * self.layer.results)

    def line(self, best: Mapping[str, Sequence[float]]) -> str:
        """Return the layer as it is printed."""
        each, dear = self.cycles / max(self.layer.macs, 1), self.cycles / self.price
        numbers = f"{self.times(best):5.1f} x best, {dear:5.2f} x price, {each:6.2f} a MAC, {self.cycles:>10,.0f}"
        return f"{self.chip:10} {numbers}  {self.layer}  {self.kernels}"


def count(layer: Drawn, chip_name: str) -> Found | str:
    """Compile a layer for a chip and count its cycles, or say why not."""
    chip = load_chip(chip_name)
    with tempfile.TemporaryDirectory(prefix="glowc-cliffs-") as name:
        folder = Path(name)
        path = folder / f"layer.{layer.form}"
        path.write_bytes(model_bytes(layer))
        try:
            write_bundle(compile_model(path, machine_of(chip), CompileOptions(name="layer")), folder / "out")
            info = load_bundle(folder / "out")
            counts = measure_layers(info, chip, random_inputs(info))
        except GlowcError as error:
            return f"{chip_name}: {layer}: {error}"
    cycles = [c.cycles for c in counts]
    entries = info.report["layers"]
    price = sum(entry["cycles_estimate"] or np.nan for entry in entries)
    ran = [f"{e['kernel']} {c / sum(cycles):.0%}" for e, c in zip(entries, cycles, strict=True) if c > sum(cycles) / 20]
    return Found(layer, chip_name, sum(cycles), price, ", ".join(ran))


def best_of(found: Sequence[Found]) -> dict[str, tuple[float, float]]:
    """Return cycles a multiply-accumulate of the best tenth of the layers of each kind, and what results take."""
    kinds = defaultdict(list)
    for entry in found:
        kinds[entry.layer.family].append(entry)
    return {kind: _best(entries) for kind, entries in sorted(kinds.items())}


def _best(entries: Sequence[Found]) -> tuple[float, float]:
    long = [(x.cycles - CALL) / x.layer.macs for x in entries if x.layer.macs > LONG * x.layer.results]
    mac = max(0.0, float(np.quantile(long, 0.1))) if long else 0.0
    rest = [(x.cycles - CALL - mac * x.layer.macs) / x.layer.results for x in entries]
    return round(mac, 2), round(max(0.0, float(np.quantile(rest, 0.25))), 1)


def tables() -> tuple[dict[str, dict[str, Sequence[float]]], list[Mapping[str, str]]]:
    """Return what the best layers take, by chip and kind, and the reasons for others."""
    data = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return data.get("best", {}), data.get("reason", [])


def reason_for(found: Found, reasons: Sequence[Mapping[str, str]]) -> str:
    """Return why a layer may take more than others, or nothing."""
    for entry in reasons:
        if fnmatch(found.chip, entry["chips"]) and fnmatch(f"{found.layer} {found.kernels}", entry["layers"]):
            return entry["why"]
    return ""


def recorded(found: Sequence[Found]) -> Iterator[str]:
    """Yield the lines of a table of what the best layers take."""
    for chip in dict.fromkeys(x.chip for x in found):
        yield f"[best.{chip}]"
        for kind, (mac, result) in best_of([x for x in found if x.chip == chip]).items():
            yield f"{kind} = [{mac}, {result}]"
        yield ""


def main() -> int:
    """Draw, count and print; the exit status is 1 when a layer is over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40, help="layers")
    parser.add_argument("--chips", nargs="+", default=CHIPS)
    parser.add_argument("--only", nargs="+", default=(), help="these kinds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="print all layers")
    parser.add_argument("--record", action="store_true", help="print the table of the best")
    args = parser.parse_args()
    layers = draw(np.random.default_rng(args.seed), args.count, args.only)
    best, reasons = tables()
    bad = 0
    everything: list[Found] = []
    with ProcessPoolExecutor(args.jobs) as pool:
        for chip in args.chips:
            found = list(pool.map(count, layers, repeat(chip)))
            for refusal in (x for x in found if isinstance(x, str)):
                print(refusal)
            counted = [x for x in found if isinstance(x, Found)]
            everything += counted
            known = best.get(chip, {})
            over = [x for x in counted if x.times(known) > OVER_BEST and not reason_for(x, reasons)]
            dear = [x for x in counted if x.cycles > OVER_PRICE * x.price]
            bad += len({id(x) for x in (*over, *dear)})
            for x in sorted(counted if args.all else {id(x): x for x in (*over, *dear)}.values(),
                            key=lambda x: -x.times(known)):  # fmt: skip
                print(x.line(known))
            print(f"{chip}: {len(counted)} layers, {len(over)} above {OVER_BEST} times the best of their kind, "
                  f"{len(dear)} above {OVER_PRICE} times their price", flush=True)  # fmt: skip
    if args.record:
        print("\n".join(recorded(everything)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
