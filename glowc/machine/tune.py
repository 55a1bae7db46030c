"""Measures the kernel variants of every layer of a model on a board: the work of `glowc tune`.

The layers are counted in the model itself: one program has for every layer its first variant, the next one the second,
and so on. Cycles are those of the board's default chip; a board without one has instructions only. Only layers that the
file does not know, or knows from another compiler or chip, are measured.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from glowc.board import Board, Chip, default_chip, emulated, require_tool, run_tool
from glowc.compiler.files import check_output, write_file
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.errors import BoardError
from glowc.graph.scope import know_only, scoped
from glowc.machine.cycles.measure import measure_layers
from glowc.machine.cycles.pipeline import missing_tool
from glowc.machine.execute import count_layers, load_bundle, random_inputs
from glowc.paths import full_version
from glowc.program.lifetimes import strip_markers
from glowc.select.candidates import Layer, Order
from glowc.select.measured import VERSION, Entry, layer_key, load_entries


@dataclass(frozen=True, slots=True)
class Choice:
    """One layer as tuned: the variant that will be used, what all variants take; `measured` says if just now.

    `cycles` is empty where the board has no chip.
    """

    layer: str
    kernel: str
    chosen: str
    insns: dict[str, int]
    cycles: dict[str, int]
    measured: bool


@dataclass(frozen=True, slots=True)
class Counter:
    """What is measured with: a board, its chip if its cycles can be counted, and the compiler with its version.

    Code for `board` is counted on `machine`: itself, or an emulated board of the same core.
    """

    board: Board
    machine: Board
    chip: Chip | None
    compiler: str

    def knows(self, entry: Entry | None) -> bool:
        """Say whether an entry was measured this way."""
        chip = "" if self.chip is None else self.chip.name
        return entry is not None and (entry.compiler, entry.chip) == (self.compiler, chip)


def counter_of(board: Board, progress: Callable[[str], None]) -> Counter:
    """Return what the layers of models for a board are measured with."""
    chip = default_chip(board)
    missing = "" if chip is None else missing_tool(chip.core)
    if missing:
        progress(f"instructions only: {missing}")
    return Counter(board, emulated(board) or board, None if missing else chip, _version(board))


Measured = dict[str, dict[str, tuple[int, int | None]]]
"""Instructions and cycles by key of a layer and variant."""


@scoped
def tune_model(
    model: Path, board: Board, options: CompileOptions, path: Path, progress: Callable[[str], None]
) -> list[Choice]:
    """Measure the layers of a model that have a choice, add them to the file `path`, and return what is chosen.

    The file is written after each program that was counted: what was measured before an interruption stays.

    Raises BoardError when the board cannot run and count, and whatever compiling and running raises.
    """
    machine = emulated(board)
    if machine is None or not machine.counts_insns:
        raise BoardError(
            f'board "{board.name}" cannot count instructions',
            hint="tune on a QEMU board with the same CPU: `glowc boards`",
        )
    entries = load_entries(path) if path.exists() else {}
    counter = counter_of(board, progress)
    progress("compiling")
    start = compile_model(model, board, replace(options, tuned=None))
    know_only(start.known)
    names = {i.name for i in start.program.instrs}
    layers = [x for x in start.selection.layers if x.name in names and len(x.forms) > 1]
    keys = {x.name: layer_key(x, board.cpu, options.opt) for x in layers}
    todo = _unknown(layers, keys, entries, counter)
    found = {key: _started(entries.get(key), counter) for key in todo}
    for complete, counts in _measure(model, counter, options, start, todo, found, progress):
        for key, taken in counts.items():
            layer = todo[key]
            found[key] |= taken
            entries[key] = _entry(_title(start, layer.name), layer, counter, found[key], complete)
        save_entries(path, {key: entry for key, entry in entries.items() if entry.insns})
    save_entries(path, entries)
    done = compile_model(model, board, replace(options, tuned=path))
    chosen = {i.name: i.variant for i in done.program.instrs}
    return [
        Choice(_title(start, x.name), x.forms[0].kernel, chosen[x.name], dict(entries[keys[x.name]].insns),
               dict(entries[keys[x.name]].cycles), keys[x.name] in todo)
        for x in layers if x.name in chosen
    ]  # fmt: skip


def _unknown(
    layers: Sequence[Layer], keys: Mapping[str, str], entries: Mapping[str, Entry], counter: Counter
) -> dict[str, Layer]:
    """Return a layer of each key that is not measured yet, or was in another way, or not to the end."""
    todo: dict[str, Layer] = {}
    for layer in layers:
        entry = entries.get(keys[layer.name])
        if entry is None or not counter.knows(entry) or not entry.complete:
            todo.setdefault(keys[layer.name], layer)
    return todo


def _started(entry: Entry | None, counter: Counter) -> dict[str, tuple[int, int | None]]:
    """Return the variants of an entry that was interrupted: they need no second measurement."""
    if entry is None or not counter.knows(entry) or entry.complete:
        return {}
    return {variant: (insns, entry.cycles.get(variant)) for variant, insns in entry.insns.items()}


def _entry(
    title: str, layer: Layer, counter: Counter, taken: Mapping[str, tuple[int, int | None]], complete: bool
) -> Entry:  # fmt: skip
    insns = {variant: n for variant, (n, _) in taken.items()}
    cycles = {variant: n for variant, (_, n) in taken.items() if n is not None}
    chip = "" if counter.chip is None else counter.chip.name
    kernel, cpu = layer.forms[0].kernel, counter.board.cpu.name
    return Entry(title, kernel, cpu, counter.compiler, insns, cycles, chip, complete)


def _measure(
    model: Path, counter: Counter, options: CompileOptions, start: Compiled, todo: Mapping[str, Layer],
    known: Mapping[str, Mapping[str, object]], progress: Callable[[str], None],
) -> Iterator[tuple[bool, Measured]]:  # fmt: skip
    """Yield per program what the layers take, by key and variant, and whether it was the last.

    A variant that does not fit the board is left out; those that are `known` are not measured again.
    """
    missing = {key: [f.variant for f in layer.forms if f.variant not in known[key]] for key, layer in todo.items()}
    keys = {layer.name: key for key, layer in todo.items()}
    rounds = max((len(names) for names in missing.values()), default=0)
    if todo and not rounds:
        yield True, {key: {} for key in todo}
    for number in range(rounds):
        progress(f"measuring, program {number + 1} of {rounds}")
        wanted = {layer.name: missing[key][number] for key, layer in todo.items() if number < len(missing[key])}

        def order(_: Sequence[Layer], wanted: dict[str, str] = wanted) -> Order:
            orders = dict(start.selection.order)
            return orders | {n: tuple(dict.fromkeys((variant, *orders[n]))) for n, variant in wanted.items()}

        compiled = compile_model(model, counter.board, replace(options, tuned=None), order=order)
        counts: Measured = {key: {} for key in todo}
        for name, variant, insns, cycles in _count(compiled, counter):
            if wanted.get(name) == variant:
                counts[keys[name]][variant] = insns, cycles
        yield number == rounds - 1, counts


def _count(compiled: Compiled, counter: Counter) -> list[tuple[str, str, int, int | None]]:
    """Return (name, variant, instructions, cycles) of every layer of a compiled model."""
    with tempfile.TemporaryDirectory(prefix="glowc-tune-") as folder:
        write_bundle(compiled, Path(folder))
        info = load_bundle(Path(folder))
        counts: list[tuple[int, int | None]]
        if counter.chip is None:
            counts = [(n, None) for n in count_layers(info, counter.machine, random_inputs(info))]
        else:
            counts = [(c.insns, round(c.cycles)) for c in measure_layers(info, counter.chip, random_inputs(info))]
    instrs = strip_markers(compiled.program).instrs
    return [(i.name, i.variant, *taken) for i, taken in zip(instrs, counts, strict=True)]


def _title(compiled: Compiled, name: str) -> str:
    instr = next(i for i in compiled.program.instrs if i.name == name)
    return instr.origin[0] if instr.origin else name


def _version(board: Board) -> str:
    """Return the compiler's name and version."""
    argv = [str(require_tool(board.cpu.cc)), "-dumpfullversion"]
    done = run_tool(argv)
    return f"{board.cpu.cc} {done.stdout.strip()}"


def save_entries(path: Path, entries: Mapping[str, Entry]) -> None:
    """Write the measured layers, sorted by key."""
    layers = {key: asdict(entries[key]) for key in sorted(entries)}
    text = json.dumps({"glowc_tune": VERSION, "glowc": full_version(), "layers": layers}, indent=1) + "\n"
    check_output(path, makes_folders=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, lambda file: file.write(text.encode()))
