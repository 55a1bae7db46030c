"""A bundle on a chip: cycles of each layer and the whole, what they wait for, and what is read from where."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from glowc.board import Board, Cache, Chip, machine_of
from glowc.codegen.names import c_ident
from glowc.compiler.report import BenchReport, CyclesReport, EnergyReport
from glowc.errors import BoardError, ToolError
from glowc.machine.cycles.pipeline import TRUST, UNCHECKED, Pipeline, missing_tool, read_pipeline
from glowc.machine.cycles.rules import Cycles
from glowc.machine.cycles.trace import Segment, joined, read_trace
from glowc.machine.elf import symbols
from glowc.machine.execute import BundleInfo, build_bundle, data_names, random_inputs, write_samples
from glowc.machine.qemu import trace_elf

ENERGY_NOT_KNOWN = "not known: no measurement of this chip's energy is published"
_WEIGHTS, _ARENA = 0, 1  # the first areas
_BEFORE = 1  # segment of main_run.c between its first two marks: what a mark takes
INFERENCE, _FIRST_LAYER = 2, 3  # after that one: the call, and in a program that marks layers the first of them


@dataclass(frozen=True, slots=True)
class Count:
    """What a layer or an inference takes: cycles by what they are spent on, and the events behind them."""

    insns: int
    pipeline: Cycles
    fetch: float  # cycles that wait for instructions
    data: float  # cycles that wait for constants, and for tensors where they lie in slow memory
    fetch_misses: int
    data_misses: int
    memory_misses: int
    weights_read_bytes: int
    arena_read_bytes: int
    arena_written_bytes: int

    @property
    def cycles(self) -> float:
        """All cycles."""
        return self.pipeline.total + self.fetch + self.data

    def stalls(self) -> dict[str, int]:
        """Return the cycles by cause: `issue` is one for each instruction, or what llvm-mca says of the pipeline."""
        parts = {f.name: getattr(self.pipeline, f.name) for f in fields(Cycles)}
        return {name: round(value) for name, value in (parts | {"fetch": self.fetch, "data": self.data}).items()}

    def minus(self, other: Count) -> Count:
        """Return this count without what `other` counts; its misses stay, for what was fetched once is there."""
        return Count(
            self.insns - other.insns, self.pipeline + other.pipeline.times(-1), self.fetch, self.data,
            self.fetch_misses, self.data_misses, self.memory_misses, self.weights_read_bytes, self.arena_read_bytes,
            self.arena_written_bytes,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """The cycles of one inference, and of each layer in a program that marks where layers begin and end.

    `longest` is the step of a sliced inference that takes the most, without what the calls of its parts take; `cores`
    what cores that share layers take, that which takes the most of each stage, with what starts them.
    """

    whole: Count
    layers: tuple[Count, ...]
    longest: Count | None = None
    cores: float | None = None


Waits = Callable[[int], bool]


def _always(_: int) -> bool:
    return True


def measure_cycles(info: BundleInfo, chip: Chip, inputs: Mapping[str, np.ndarray]) -> Measured:
    """Return the cycles of a bundle on a chip, for the first sample of `inputs`.

    Raises ToolError when a compiler, QEMU or llvm-mca is missing or fails, BoardError for a core without rules.
    """
    whole = _counts(info, chip, inputs, profile=False)[INFERENCE]
    calls = _measure_calls(info, chip, inputs)
    if chip.memory is not None:  # what comes ahead comes while its own layer computes
        whole = replace(whole, data=sum(count.data for count in calls))
    return Measured(whole, _layers(info, calls), _longest(info, calls), _of_cores(info, whole, calls))


def measure_layers(
    info: BundleInfo, chip: Chip, inputs: Mapping[str, np.ndarray], keep: Path | None = None
) -> tuple[Count, ...]:
    """Return what each layer takes on a chip; what was built stays in the folder `keep`. Raises as `measure_cycles`."""
    return _layers(info, _measure_calls(info, chip, inputs, keep))


def _measure_calls(
    info: BundleInfo, chip: Chip, inputs: Mapping[str, np.ndarray], keep: Path | None = None
) -> list[Count]:
    """Return what each call of a layer takes, in the order of the calls."""
    counts = _counts(info, chip, inputs, profile=True, keep=keep)
    return counts[_FIRST_LAYER : _FIRST_LAYER + 2 * len(_order(info))][::2]


def _order(info: BundleInfo) -> Sequence[int]:
    return info.report.get("profile_order") or range(len(info.report["layers"]))


def _layers(info: BundleInfo, calls: Sequence[Count]) -> tuple[Count, ...]:
    parts: list[list[Count]] = [[] for _ in info.report["layers"]]
    for index, count in zip(_order(info), calls, strict=True):
        parts[index].append(count)
    return tuple(map(_sum, parts))


def _longest(info: BundleInfo, calls: Sequence[Count]) -> Count | None:
    slices = info.report.get("slices")
    if slices is None:
        return None
    ends = list(accumulate(slices["step_parts"], initial=0))
    return max((_sum(calls[a:b]) for a, b in pairwise(ends)), key=lambda count: count.cycles, default=None)


def _of_cores(info: BundleInfo, whole: Count, calls: Sequence[Count]) -> float | None:
    cores = info.report.get("cores")
    if cores is None:
        return None
    ends = list(accumulate(cores["stage_parts"], initial=0))
    stages = [[count.cycles for count in calls[a:b]] for a, b in pairwise(ends)]
    saved = sum(sum(stage) - max(stage) for stage in stages)
    return whole.cycles - saved + cores["fork_cycles"] * sum(len(stage) > 1 for stage in stages)


def _sum(counts: Sequence[Count]) -> Count:
    total = Count(0, Cycles(), *[0] * (len(fields(Count)) - 2))
    for count in counts:
        values = {f.name: getattr(total, f.name) + getattr(count, f.name) for f in fields(Count)}
        total = Count(**values)
    return total


def _counts(
    info: BundleInfo, chip: Chip, inputs: Mapping[str, np.ndarray], *, profile: bool, keep: Path | None = None
) -> list[Count]:
    """Return a count of each segment of a run, what a call of glow_mark takes subtracted."""
    board = machine_of(chip)
    with tempfile.TemporaryDirectory(prefix="glowc-cycles-") as folder:
        work = keep or Path(folder)
        elf = build_bundle(info, board, work, profile=profile, in_order=True).path
        write_samples(work / "in.bin", info, inputs, 1)
        return count_program(elf, board, chip, work, _names(info, elf))


def count_program(
    elf: Path, board: Board, chip: Chip, work: Path, names: tuple[Sequence[str], Sequence[str]]
) -> list[Count]:
    """Return a count of each segment of a run in `work`, what a call of glow_mark takes subtracted.

    The first segment is that between the first two calls. `names` are symbols: of the constants, and of the arena.
    """
    slow = chip.memory is not None
    text = trace_elf(elf, board, cwd=work, caches=(*cache_arguments(chip), *_areas(names, board, elf, slow=slow)))
    segments = [replace(segment, blocks=joined(segment.blocks)) for segment in read_trace(text)]
    pipeline = read_pipeline(elf, board, chip.core, (block for s in segments[_BEFORE:] for block in s.blocks))
    ram = [region for region in board.memory.values() if region.kind == "ram"]

    def waits(address: int) -> bool:
        return not any(region.origin <= address < region.end for region in ram)

    counts = [count_segment(segment, pipeline, chip, waits) for segment in segments[_BEFORE:]]
    return [count.minus(counts[0]) for count in counts]


def cache_arguments(chip: Chip) -> Iterator[str]:
    """Yield the arguments of the plugin glow_trace for a chip's caches."""
    flash = chip.flash
    for name, cache in (("icache", flash.instruction_cache), ("dcache", flash.data_cache)):
        if cache is not None:
            yield f"{name}={_cache(cache)}"
    if chip.memory is not None:
        yield f"memory={_cache(chip.memory.cache)}"
    if flash.unified:
        yield "unified=1"


def _cache(cache: Cache) -> str:
    return f"{cache.line_bytes}:{cache.ways}:{cache.sets}"


def _names(info: BundleInfo, elf: Path) -> tuple[Sequence[str], Sequence[str]]:
    """Return the symbols of a bundle's constants, and of its arena."""
    prefixes, found = [c_ident(name).lower() for name in data_names(info)], symbols(elf)

    def of(ends: Sequence[str], whole: str) -> list[str]:
        starts, wholes = tuple(prefix + end for prefix in prefixes for end in ends), {p + whole for p in prefixes}
        return [n for n in found if n.lower().startswith(starts) or n.lower() in wholes]

    return of(("_w_", "_blob"), "_weights"), of(("_arena",), "_arena")


def _areas(names: tuple[Sequence[str], Sequence[str]], board: Board, elf: Path, *, slow: bool) -> Iterator[str]:
    """Yield the areas of a trace: the model's constants, its arena, then the board's memories; RAM may be `slow`."""
    ram, found = "c" if slow else "t", symbols(elf)
    for area, kind in zip(names, ("f", ram), strict=True):
        spans = [(found[n].address, found[n].address + found[n].size) for n in area]
        begin, end = min((a for a, _ in spans), default=0), max((b for _, b in spans), default=0)
        yield f"area={begin:#x}:{end - begin:#x}:{kind}"
    for region in board.memory.values():
        yield f"area={region.origin:#x}:{region.size_bytes:#x}:{'f' if region.kind == 'flash' else ram}"


def count_segment(segment: Segment, pipeline: Pipeline, chip: Chip, waits: Waits = _always) -> Count:
    """Return the cycles of a segment whose first two areas are the constants and the arena.

    `waits` says of an address whether code there waits for the flash.
    """
    cycles, insns, flash = Cycles(load=pipeline.unaligned * segment.unaligned), 0, chip.flash
    for block in segment.blocks:
        place = (block.begin, block.end)
        cycles += pipeline.blocks[place].times(block.runs) + Cycles(branch=pipeline.taken * block.taken)
        insns += pipeline.insns[place] * block.runs
    slow = [block for block in segment.blocks if waits(block.begin)]
    misses, sequential = (sum(getattr(b, what) for b in slow) for what in ("misses", "sequential"))
    data_misses, ahead, far, far_ahead = (
        sum(getattr(area, what) for area in segment.areas) for what in ("misses", "ahead", "far", "far_ahead")
    )
    data = float((data_misses - ahead - far - far_ahead) * flash.data_miss_cycles)
    if chip.memory is not None:
        data += far * chip.memory.miss_cycles + max(0, far_ahead * chip.memory.sequential_cycles - cycles.total)
    weights, arena = segment.areas[_WEIGHTS], segment.areas[_ARENA]
    return Count(
        insns,
        cycles,
        fetch=misses * flash.fetch_miss_cycles + sequential * flash.fetch_sequential_cycles,
        data=data,
        fetch_misses=misses + sequential,
        data_misses=data_misses,
        memory_misses=far + far_ahead,
        weights_read_bytes=weights.read_bytes,
        arena_read_bytes=arena.read_bytes,
        arena_written_bytes=arena.written_bytes,
    )


def add_cycles(
    report: BenchReport, info: BundleInfo, board: Board, chip: Chip | None,
    inputs: Mapping[str, np.ndarray] | None, *, required: bool,
) -> str:  # fmt: skip
    """Add the cycles on a chip to the report of a bundle that runs on `board`; returns why there are none.

    Where they are `required`, raises BoardError when the chip has another CPU than the bundle was made for, and
    ToolError when what they need is missing.
    """
    if chip is None:
        return ""
    made_for = info.report.get("cpu", board.cpu.name)
    if chip.cpu != made_for and not required:
        return ""
    if chip.cpu != made_for:
        raise BoardError(
            f'chip "{chip.name}" runs code for {chip.cpu}, the bundle is made for {made_for}',
            hint="`glowc chips` lists the chips and their CPUs",
        )
    missing = missing_tool(chip.core)
    if missing and not required:
        return missing
    try:
        measured = measure_cycles(info, chip, inputs or random_inputs(info))
    except ToolError as error:
        if required or board.runs:
            raise
        return f"no cycles of {chip.name}: {error.message}"
    report_cycles(report, measured, chip)
    return ""


def report_cycles(report: BenchReport, measured: Measured, chip: Chip) -> None:
    """Add what was measured on a chip to the report of a bundle; OUTPUT.md lists the keys."""
    trust = TRUST.get(chip.core, UNCHECKED)
    report["chip"] = {
        "name": chip.name, "core": chip.core, "clock_mhz": chip.clock_mhz, "error_percent": trust.percent,
        "checked": trust.checked, "assumed": chip.assumed or None, "energy": _energy_of(chip),
    }  # fmt: skip
    if chip.measured:
        report["chip"]["measured"] = chip.measured
    _add(report, measured.whole, chip, report["weights_bytes"])
    sizes_bytes = {constant["name"]: constant["size_bytes"] for constant in report.get("constants", ())}
    for layer, count in zip(report["layers"], measured.layers, strict=True):
        _add(layer, count, chip, sum(sizes_bytes.get(name, 0) for name in layer.get("constants", ())))
    if measured.longest is not None and (slices := report["slices"]) is not None:
        cycles = measured.longest.cycles
        slices["longest_cycles"], slices["longest_ms"] = round(cycles), round(chip.milliseconds(cycles), 4)
    if measured.cores is not None and (cores := report["cores"]) is not None:
        cores["longest_cycles"] = round(measured.cores)
        cores["longest_ms"] = round(chip.milliseconds(measured.cores), 4)


def _energy_of(chip: Chip) -> EnergyReport:
    if chip.energy is None:
        return {"pj_per_cycle": None, "error_percent": None, "source": ENERGY_NOT_KNOWN}
    return {
        "pj_per_cycle": chip.energy.pj_per_cycle, "error_percent": chip.energy.error_percent,
        "source": chip.energy.source,
    }  # fmt: skip


def _add(entry: CyclesReport, count: Count, chip: Chip, constant_bytes: int) -> None:
    entry["cycles"], entry["ms"] = round(count.cycles), round(chip.milliseconds(count.cycles), 4)
    if chip.energy is not None:
        entry["uj"] = round(chip.energy.microjoules(count.cycles, constant_bytes), 3)
    entry["cycles_by_cause"] = count.stalls()
    entry["fetch_misses"], entry["data_misses"] = count.fetch_misses, count.data_misses
    if chip.memory is not None:
        entry["memory_misses"] = count.memory_misses
    entry["weights_read_bytes"] = count.weights_read_bytes
    entry["arena_read_bytes"], entry["arena_written_bytes"] = count.arena_read_bytes, count.arena_written_bytes
