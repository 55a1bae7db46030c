"""Measures the kernel variants of every layer of a model on a board: behind `glowc tune`.

The layers are counted in the model itself: one program has for every layer its first variant, the next one the second,
and so on. Only layers that the file does not know, or knows from another compiler, are measured.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from glowc.driver import Compiled, CompileOptions, compile_model, write_bundle
from glowc.errors import BoardError
from glowc.execute import count_layers, load_bundle, random_inputs
from glowc.instr.lifetimes import strip_markers
from glowc.layers import Layer, Order
from glowc.target import Board, require_tool
from glowc.tuned import Entry, layer_key, load_entries, save_entries


@dataclass(frozen=True, slots=True)
class Choice:
    """One layer as tuned: the variant that will be used, instructions of all variants; `measured` says if just now."""

    layer: str
    kernel: str
    chosen: str
    insns: dict[str, int]
    measured: bool


def tune_model(
    model: Path, board: Board, options: CompileOptions, path: Path, progress: Callable[[str], None]
) -> list[Choice]:
    """Measure the layers of a model that have a choice, add them to the file `path`, and return what is chosen.

    Raises BoardError when the board cannot run and count, and whatever compiling and running raises.
    """
    if not board.counts_insns:
        raise BoardError(
            f'board "{board.name}" cannot count instructions',
            hint="tune on a QEMU board with the same CPU: `glowc boards`",
        )
    entries = load_entries(path) if path.exists() else {}
    compiler = _version(board)
    progress("compiling")
    start = compile_model(model, board, replace(options, tuned=None))
    names = {i.name for i in start.program.instrs}
    layers = [x for x in start.selection.layers if x.name in names and len(x.forms) > 1]
    keys = {x.name: layer_key(x, board.cpu, options.opt) for x in layers}
    todo: dict[str, Layer] = {}
    for layer in layers:
        if keys[layer.name] not in entries or entries[keys[layer.name]].compiler != compiler:
            todo.setdefault(keys[layer.name], layer)
    found = _measure(model, board, options, start, list(todo.values()), progress)
    for key, layer in todo.items():
        title = _title(start, layer.name)
        entries[key] = Entry(title, layer.forms[0].kernel, board.cpu.name, compiler, found[layer.name])
    save_entries(path, entries)
    done = compile_model(model, board, replace(options, tuned=path))
    chosen = {i.name: i.isa for i in done.program.instrs}
    return [
        Choice(_title(start, x.name), x.forms[0].kernel, chosen[x.name], dict(entries[keys[x.name]].insns),
               keys[x.name] in todo)
        for x in layers if x.name in chosen
    ]  # fmt: skip


def _measure(
    model: Path, board: Board, options: CompileOptions, start: Compiled, todo: Sequence[Layer],
    progress: Callable[[str], None],
) -> dict[str, dict[str, int]]:  # fmt: skip
    """Return the instructions of the layers, by name and variant; a variant that does not fit the board is left out."""
    found: dict[str, dict[str, int]] = {x.name: {} for x in todo}
    rounds = max((len(x.forms) for x in todo), default=0)
    for number in range(rounds):
        progress(f"measuring, program {number + 1} of {rounds}")
        wanted = {x.name: x.forms[number].isa for x in todo if number < len(x.forms)}

        def order(_: Sequence[Layer], wanted: dict[str, str] = wanted) -> Order:
            orders = dict(start.selection.order)
            return orders | {n: tuple(dict.fromkeys((isa, *orders[n]))) for n, isa in wanted.items()}

        compiled = compile_model(model, board, replace(options, tuned=None), order=order)
        for name, isa, insns in _count(compiled, board):
            if wanted.get(name) == isa:
                found[name][isa] = insns
    return found


def _count(compiled: Compiled, board: Board) -> list[tuple[str, str, int]]:
    """Return (name, variant, instructions) of every layer of a compiled model."""
    with tempfile.TemporaryDirectory(prefix="glowc-tune-") as folder:
        write_bundle(compiled, Path(folder))
        info = load_bundle(Path(folder))
        counts = count_layers(info, board, random_inputs(info))
    instrs = strip_markers(compiled.program).instrs
    return [(i.name, i.isa, n) for i, n in zip(instrs, counts, strict=True)]


def _title(compiled: Compiled, name: str) -> str:
    instr = next(i for i in compiled.program.instrs if i.name == name)
    return instr.origin[0] if instr.origin else name


def _version(board: Board) -> str:
    """Return the compiler's name and version."""
    argv = [str(require_tool(board.cpu.cc)), "-dumpfullversion"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return f"{board.cpu.cc} {done.stdout.strip()}"
