"""Find orders of instructions for a core: `make schedules` writes boards/_schedules/<core>.json.

Steps of loops: OR-tools' CP-SAT finds times that begin a step every so many cycles, as few as the core's units allow,
with the registers that the loop leaves. Straight runs: simulated annealing of their order by the core's table
(`glowc.asm.cores`), or the best of many tries of the list scheduler (`glowc.asm.schedule`) for a Cortex-M55. All are
deterministic; llvm-mca counts what was found (--judge), and is no part of finding it.

    python scripts/schedules.py [--seeds 3] [--judge]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ortools.sat.python import cp_model

from glowc.asm import schedule
from glowc.asm.allocate import PLACES, allocate, free_places
from glowc.asm.cores import CORES
from glowc.asm.insn import CORE, VECTOR, Insn, Listing, Loop, Register, instructions, read_first
from glowc.asm.isa import ISA, Kind
from glowc.asm.order import Orders, Steps, dependences, is_order, ordered, orders_of, pressure
from glowc.asm.write import text
from glowc.kernels.dsp import pixel_tile, planar_tile, row_tile, winograd_tile
from glowc.kernels.mve import dot_tile, pair_tile, window_tile
from glowc.machine.cycles.mca import MODELS, block_cycles

FOLDER = Path(__file__).parent.parent / "boards" / "_schedules"
WIDTH, HORIZON, SECONDS = 2, 3, 60
ITERATIONS, NEAR = 40_000, 12
TRIES = 400
LONG = 18  # instructions of a loop without steps
_SLOTS = {Kind.MULTIPLY: (1, 1), Kind.LOAD: (0, 1)}  # what begins second of two, or first or second; all else first


def listings() -> Iterator[tuple[Listing, tuple[Register, ...]]]:
    """Yield a function with each run and step that there is."""
    for fixed, least in ((False, "u8"), (True, "r8")):
        for end in (least, "v8", "n8", "s8"):
            listing, argument = pixel_tile.tile(pixel_tile.PixelTile("dual", end, fixed, steps=8))
            yield listing, (argument,)
    for by, end in (("short", "n8"), ("exact", "n8"), ("scale", "n8"), ("multiplier", "r8"), ("multiplier", "n8")):
        listing, argument = row_tile.tile(row_tile.RowTile("dual", by, end, steps=8))
        yield listing, (argument,)
    yield winograd_tile.turned()
    yield winograd_tile.input_rows(sums=True)
    yield winograd_tile.input_rows(sums=False)
    for fixed, ends in ((False, ("n8", "s8")), (True, ("r8", "v8", "n8", "s8"))):
        for end in ends:
            yield winograd_tile.blocks(8, end, single=False, fixed=fixed, lines=False)
    for by, limited, stride, outputs in itertools.product(
        ("line", "scale", "multiplier"), (False, True), (1, 2), (4, 2)
    ):
        window = planar_tile.Window(k_h=3, k_w=3, stride=stride, outputs=outputs)
        yield planar_tile.rows(window, by, limited=limited)
    yield planar_tile.pairs()


@dataclass(frozen=True, slots=True)
class Run:
    """A run of instructions, and the registers of the core that are needed after it."""

    insns: Sequence[Insn]
    needed: frozenset[Register]


def runs(listing: Listing, needed: frozenset[Register] = frozenset()) -> Iterator[Run]:
    """Yield the runs that are worth an order: behind a loop of steps, which end products, and whole long loops."""
    for at, item in enumerate(listing):
        if isinstance(item, Loop):
            carried = frozenset(r for r in read_first(list(instructions(item.body))) if r.bank == CORE)
            straight = [i for i in item.body if isinstance(i, Insn)]
            if not item.step and LONG <= len(straight) == len(item.body):
                yield Run(straight, needed | carried)
            yield from runs(item.body, needed | carried)
        elif at and isinstance(before := listing[at - 1], Loop) and before.step:
            yield Run([i for i in listing[at:] if isinstance(i, Insn)], needed)


def loops(listing: Listing) -> Iterator[Loop]:
    """Yield the loops that have steps."""
    for item in listing:
        if isinstance(item, Loop):
            yield from loops(item.body)
            if item.step:
                yield item


def runs_of(core: str) -> Iterator[Run]:
    """Yield the runs that functions for a core have."""
    if core == window_tile.CORTEX_M55:
        for taps in range(2, window_tile.MOST + 1):
            yield Run(window_tile.row(taps, 16), frozenset())
        for end in window_tile.ENDS:
            yield Run(window_tile.nine(end, clamped=False, some=False)[0], frozenset())
        yield from pixel_runs()
        return
    for listing, _ in listings():
        yield from runs(listing)


def pixel_runs() -> Iterator[Run]:
    """Yield what is repeated of products of few inputs, of one segment of three or four pieces, too."""
    sizes, ends = (16, 32, 48), ("scaled", "fixed", "rectified")
    for inputs, end, clamped in itertools.product(sizes, ends, (False, True)):
        _, *ways = pair_tile.Run(inputs=inputs, end=end, clamped=clamped).runs
        yield from (Run(way, frozenset()) for way in ways[::2])
    for run, clamped in itertools.product((40, 48, 64), (False, True)):
        yield from (Run(way, frozenset()) for way in pair_tile.Unrolled(run=run, clamped=clamped).runs[1:3])


def segments() -> Iterator[tuple[Insn, ...]]:
    """Yield what is repeated of products of segments of inputs."""
    for count, run, clamped in itertools.product(range(1, 7), range(16, 129, 8), (False, True)):
        if (5 if count == 1 else 2) <= count * -(-run // 16) <= (12 if run % 16 else 8 if count == 1 else 6):
            yield from pair_tile.Unrolled(segments=count, run=run, clamped=clamped).runs[1:3]


def dots() -> Iterator[tuple[Insn, ...]]:
    """Yield what steps of matrix products do."""
    for pixels, end in itertools.product((2, 1), ("scaled", "fixed", "rectified", "shared")):
        yield from dot_tile.Dot(pixels, end).runs


def tries(known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the best tries of the list scheduler, of those groups that have none yet."""
    found = dict[str, int]()
    for run, kept in itertools.chain(((run, ()) for run in segments()), ((run, dot_tile.KEPT) for run in dots())):
        if (group := run[0].group) not in found:
            found[group] = known[group] if group in known else schedule.tried(run, range(TRIES), kept)[0]
    return found


def times(loop: Loop, every: int) -> tuple[int, ...] | None:
    """Return the places of a step's instructions where one begins every so many cycles, None where none were found."""
    carried = read_first([i for i in loop.body if isinstance(i, Insn)])
    step, span = loop.step, WIDTH * every
    most = HORIZON * span
    model = cp_model.CpModel()
    place = [model.new_int_var(0, most - 1, "") for _ in step]
    cycle = [model.new_int_var(0, HORIZON * every - 1, "") for _ in step]
    phase = [model.new_int_var(0, span - 1, "") for _ in step]
    phase_cycle = [model.new_int_var(0, every - 1, "") for _ in step]
    for k, insn in enumerate(step):
        model.add_modulo_equality(phase[k], place[k], span)
        model.add_modulo_equality(phase_cycle[k], cycle[k], every)
        model.add(place[k] == WIDTH * cycle[k] + model.new_int_var(*_SLOTS.get(ISA[insn.op].kind, (0, 0)), ""))
    model.add_all_different(phase)
    for kind in (Kind.MULTIPLY, Kind.PARALLEL):
        model.add_all_different([phase_cycle[k] for k, insn in enumerate(step) if ISA[insn.op].kind is kind])
    for changed in carried:
        turns = [cycle[k] for k, insn in enumerate(step) if changed in insn.writes]
        for one, other in itertools.pairwise((*turns, *(first + every for first in turns[:1]))):
            model.add(other > one)
    alive = []
    for maker, insn in enumerate(step):
        for value in set(insn.writes) - carried:
            users = [k for k, other in enumerate(step) if value in other.reads]
            end, length = model.new_int_var(0, most, ""), model.new_int_var(1, 2 * span, "")
            for user in users:
                model.add(cycle[user] > cycle[maker] + _is_early(step[user], value))
            model.add_max_equality(end, [place[user] for user in users])
            model.add(length == end - place[maker])
            alive += [
                model.new_interval_var(place[maker] + turn * span, length, end + turn * span, "")
                for turn in range(-HORIZON, HORIZON + 1)
            ]
    model.add_cumulative(alive, [1] * len(alive), len(PLACES[CORE]) - sum(r.bank == CORE for r in carried))
    longest = model.new_int_var(0, most, "")
    model.add_max_equality(longest, place)
    model.minimize(longest)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers, solver.parameters.random_seed = SECONDS, 1, 0
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return tuple(solver.value(p) for p in place)


def _is_early(insn: Insn, value: Register) -> bool:
    """True for an instruction that needs a value a cycle sooner."""
    return any(insn.reads[number] == value for number in ISA[insn.op].early)


def steps(loop: Loop) -> Steps:
    """Return the times of the shortest distance of steps that was found."""
    least = sum(ISA[insn.op].kind is Kind.MULTIPLY for insn in loop.step)
    found = ((every, times(loop, every)) for every in range(least, 2 * len(loop.step)))
    every, places = next((e, p) for e, p in found if p is not None)
    return Steps(WIDTH, WIDTH * every, places)


def cycles(insns: Sequence[Insn], core: str) -> int:
    """Return the cycles of a run: up to its last result, or on a Cortex-M55 those of one that is repeated."""
    if core == window_tile.CORTEX_M55:
        return schedule.cycles(insns)
    pipeline = CORES[core]()
    for insn in insns:
        pipeline.issue(insn)
    return pipeline.ends


def annealed(run: Run, core: str, seed: int) -> tuple[int, ...]:
    """Return a short order of a run."""
    rng, insns = random.Random(seed), run.insns
    bank = VECTOR if core == window_tile.CORTEX_M55 else CORE
    before, places = dependences(insns), len(free_places(insns, bank))
    after = [{a for a, those in enumerate(before) if b in those} for b in range(len(insns))]
    order = best = list(range(len(insns)))
    now = least = cycles(insns, core)
    for turn in range(ITERATIONS):
        at = rng.randrange(len(order))
        number = order[at]
        low = max((order.index(b) for b in before[number]), default=-1) + 1
        high = min((order.index(a) for a in after[number]), default=len(order)) - 1
        to = rng.randint(max(low, at - NEAR), min(high, at + NEAR))
        trial = [n for n in order if n != number]
        trial.insert(to, number)
        took = cycles([insns[n] for n in trial], core)
        heat = 1.2 * (1 - turn / ITERATIONS) + 0.02
        if to == at or (took > now and rng.random() >= math.exp((now - took) / heat)):
            continue
        if pressure(insns, trial, run.needed, bank) > places:
            continue
        order, now = trial, took
        if took < least:
            best, least = order, took
    return tuple(best)


def written(found: Orders) -> str:
    """Return the text of a file."""
    rows = [f"    {json.dumps(group)}: {json.dumps(order)}" for group, order in sorted(found.runs.items())]
    times_of = {g: {"width": s.width, "every": s.every, "places": s.places} for g, s in sorted(found.steps.items())}
    lines = [f"    {json.dumps(group)}: {json.dumps(row)}" for group, row in times_of.items()]
    tried_ones = [f"    {json.dumps(group)}: {number}" for group, number in sorted(found.tries.items())]
    parts = (("runs", rows), ("steps", lines), ("tries", tried_ones))
    return "{\n" + ",\n".join(f'  "{name}": {{\n' + ",\n".join(some) + "\n  }" for name, some in parts) + "\n}\n"


def judge(core: str, orders: Orders) -> Mapping[str, float]:
    """Return the cycles of each run and each round of a loop in its order, by llvm-mca."""
    blocks: list[tuple[str, list[str]]] = []
    if core == window_tile.CORTEX_M55:
        blocks = [
            (run.insns[0].group, [text(i) for i in instructions(allocate(ordered(tuple(run.insns), orders), {}))])
            for run in runs_of(core)
        ]
    for listing, arguments in listings() if core == pixel_tile.CORTEX_M7 else ():
        placed = allocate(ordered(listing, orders), {r: n for n, r in enumerate(arguments)})
        parts = [(f"{loop.steps} steps, {loop.step[0].group}", loop.body) for loop in loops(placed)]
        for group, part in (*parts, *((run.insns[0].group, run.insns) for run in runs(placed))):
            lines = [text(i).replace("bne.w 0b", "bne #-4") for i in part if isinstance(i, Insn)]
            blocks.append((group, lines))
    found = block_cycles(dict(enumerate(lines for _, lines in blocks)), MODELS[core])
    return {group: found[at] for at, (group, _) in enumerate(blocks)}


def completed(core: str, known: Orders, seeds: int) -> Orders:
    """Return the orders of what functions for a core have: those that are known, and new ones."""
    found_runs, found_steps = dict[str, tuple[int, ...]](), dict[str, Steps]()
    for listing, _ in listings() if core == pixel_tile.CORTEX_M7 else ():
        for loop in loops(listing):
            if (group := loop.step[0].group) not in found_steps:
                found_steps[group] = known.steps.get(group) or steps(loop)
    for run in runs_of(core):
        if (group := run.insns[0].group) in known.runs and is_order(run.insns, known.runs[group]):
            found_runs[group] = known.runs[group]
            continue
        times_of = {
            order: cycles([run.insns[n] for n in order], core)
            for order in (annealed(run, core, seed) for seed in range(seeds))
        }
        found_runs[group] = min(times_of, key=times_of.__getitem__)
        print(group, [*times_of.values()], flush=True)
    return Orders(found_runs, found_steps, tries(known.tries) if core == window_tile.CORTEX_M55 else {})


def main() -> None:
    """Find the orders that a file does not have yet, or print what those that it has take."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="tries of each run")
    parser.add_argument("--judge", action="store_true", help="print the cycles by llvm-mca instead")
    args = parser.parse_args()
    for core in CORES:
        known = orders_of(core)
        if args.judge:
            for group, took in judge(core, known).items():
                print(f"{took:8.2f}  {core}, {group}")
        else:
            (FOLDER / f"{core}.json").write_text(written(completed(core, known, args.seeds)), encoding="utf-8")


if __name__ == "__main__":
    main()
