"""Cores that share the layers of a model: modeled cycles of the core that computes most, and of one core alone.

With --clock the threads of this machine instead: the median time of 20 inferences, which are run in turn. With --slice
the steps of one core: how many, the longest, and an inference whole and in steps. MODEL is a file, or a name of
scripts/known_nets.py. `make bench-cores` and `make bench-slices` take the sample models and known networks.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import timeit
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from known_nets import model_of

import glowc
from glowc.board import default_chip, load_board, load_chip
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.cycles.measure import measure_cycles
from glowc.machine.execute import load_bundle, random_inputs

_ROUNDS = 20


def cycles_of(model: Path, board: str, chip: str | None, cores: int, work: Path) -> tuple[float, int]:
    """Return the cycles of the core that computes most, and the bytes of the arena."""
    target = load_board(board)
    write_bundle(compile_model(model, target, CompileOptions(name="net", cores=cores)), work)
    info, known = load_bundle(work), load_chip(chip) if chip else default_chip(target)
    assert known is not None
    measured = measure_cycles(info, known, random_inputs(info))
    return measured.cores or measured.whole.cycles, info.report["arena_bytes"]


def steps_of(model: Path, board: str, chip: str, time: str, work: Path) -> str:
    """Return a line about the steps of an inference, and its time without."""
    done = []
    for part in (None, time):
        options = CompileOptions(name="net", slice=part, chip=chip if part else None)
        write_bundle(compile_model(model, load_board(board), options), work / str(part))
        info, known = load_bundle(work / str(part)), load_chip(chip)
        done.append((info, measure_cycles(info, known, random_inputs(info))))
    (plain, whole), (info, steps) = done
    slices = info.report["slices"]
    assert steps.longest is not None
    assert slices is not None
    longest, before, after = (known.milliseconds(c.cycles) for c in (steps.longest, whole.whole, steps.whole))
    more = info.report["arena_bytes"] - plain.report["arena_bytes"]
    return (
        f"{chip:10} {len(slices['step_parts']):6,} steps, the longest {longest:.3f} ms, "
        f"{steps.longest.cycles / slices['limit_cycles']:.3f} of {time}   {before:,.1f} ms whole, {after:,.1f} in "
        f"steps ({after / before:.3f})   arena {more:+,} bytes"
    )


def seconds_of(model: Path, cores: Sequence[int], work: Path) -> list[float]:
    """Return the median time of an inference on this machine, for each number of threads."""
    loaded = [
        glowc.load(glowc.compile(model, work / f"on_{n}", options=CompileOptions(cores=n, name="net"))) for n in cores
    ]
    arrays = [np.zeros(port.shape, port.dtype.numpy) for port in loaded[0].inputs]
    times = [[timeit.timeit(lambda net=net: net(*arrays), number=1) for net in loaded] for _ in range(_ROUNDS)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--board", default="virt-a53")
    parser.add_argument("--chip")
    parser.add_argument("--clock", action="store_true")
    parser.add_argument("--slice")
    parser.add_argument("--cores", type=int, nargs="+", default=[2, 4])
    args = parser.parse_args()
    for name in args.models:
        with tempfile.TemporaryDirectory(prefix="glowc-cores-") as folder:
            work = Path(folder)
            model, title = model_of(name, work)
            if args.slice:
                print(f"{title:24} {steps_of(model, args.board, args.chip, args.slice, work)}", flush=True)
                continue
            if args.clock:
                one, *others = seconds_of(model, [1, *args.cores], work)
                times = ", ".join(f"{n} threads: {one / s:.2f}" for n, s in zip(args.cores, others, strict=True))
                print(f"{title:24} {1e3 * one:8.2f} ms   times as fast with {times}", flush=True)
                continue
            one, arena = cycles_of(model, args.board, args.chip, 1, work / "1")
            line = f"{title:24} {args.board:12} {one / 1e6:8.2f} M cycles, {arena / 1024:6.0f} KB"
            for cores in args.cores:
                cycles, more = cycles_of(model, args.board, args.chip, cores, work / str(cores))
                line += f"   {cores} cores: {one / cycles:.2f} times as fast, {more / 1024:.0f} KB"
            print(line, flush=True)


if __name__ == "__main__":
    main()
