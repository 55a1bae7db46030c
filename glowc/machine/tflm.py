"""A model in glowc and in TensorFlow Lite Micro: outputs, instructions, RAM and flash next to each other."""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from glowc.board import Board, Chip, default_chip, run_tool
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import InputError, MissingToolError, ToolError
from glowc.frontend import tflite_bytes
from glowc.frontend.tflite.reader import read_tflite
from glowc.graph.scope import scoped
from glowc.machine.cycles.measure import measure_cycles
from glowc.machine.cycles.pipeline import missing_tool
from glowc.machine.execute import BundleInfo, execute, load_bundle, random_inputs, read_inputs
from glowc.machine.qemu import PLUGINS
from glowc.machine.tflm_tree import TreeProgram, run_tree, tree_program
from glowc.machine.validate import OutputComparison, compare

_DRAWN = 8  # samples without a file of inputs
_ARENA = re.compile(r"Arena allocation total (\d+) bytes")


class Engine(TypedDict):
    """One of the two, on the board or on this machine: figures that are not known are null.

    `outputs` compare those of glowc with those of this engine; `flash_bytes` are those of a whole program.
    """

    name: str
    on: str
    insns: int | None
    ms: float | None
    arena_bytes: int | None
    flash_bytes: int | None
    outputs: list[OutputComparison]


class EngineComparison(TypedDict):
    """All that `glowc compare --json` prints; `ok`: all outputs of glowc are those of TFLM."""

    model: str
    board: str
    cpu: str
    chip: str | None
    samples: int
    operators: dict[str, int]
    engines: list[Engine]
    ok: bool


@scoped
def compare_engines(
    model: Path, board: Board, options: CompileOptions, input_path: Path | None = None, tree: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> EngineComparison:  # fmt: skip
    """Run a .tflite model in glowc on a board, in the runtime of package `tflite-micro`, and in TFLM built from `tree`.

    The samples are those of `input_path` (.npz), else drawn. Raises InputError for another format, MissingToolError
    without the package, ToolError where a program fails.
    """
    data = tflite_bytes(model)
    if data is None:
        raise InputError(f"{model} is no TensorFlow Lite file", hint="`glowc validate` compares ONNX with onnxruntime")
    read = read_tflite(data, model.name)
    codes = [op.code for graph in read.subgraphs for op in graph.operators]
    options = replace(options, io_type="model", io_layout="exported")  # as TFLM has them
    program, chip = tree_program(tree, data, codes) if tree is not None else None, default_chip(board)
    if chip is not None and missing_tool(chip.core):
        chip = None
    with tempfile.TemporaryDirectory(prefix="glowc-compare-") as folder:
        write_bundle(compile_model(model, board, options, progress), Path(folder))
        info = load_bundle(Path(folder))
        if len(info.inputs) != len(read.subgraphs[0].inputs):
            raise InputError("TensorFlow Lite Micro takes all inputs of the file", hint="compare without --state")
        inputs = read_inputs(info, input_path) if input_path is not None else random_inputs(info, _DRAWN)
        progress(f"running glowc's C on {board.name}")
        ours, outputs = _glowc(info, board, chip, inputs)
        progress("running the runtime of package tflite-micro")
        engines = [ours, _runtime(model, info, inputs, outputs)]
        if program is not None:
            progress(f"building TensorFlow Lite Micro for {board.name} (minutes, once)")
            engines.append(_tree(program, info, board, chip, inputs, outputs))
    return {
        "model": model.name, "board": board.name, "cpu": board.cpu.name,
        "chip": chip.name if chip is not None else None,
        "samples": len(next(iter(outputs.values()))),
        "operators": dict(Counter(codes)), "engines": engines,
        "ok": all(row["ok"] for engine in engines for row in engine["outputs"]),
    }  # fmt: skip


def _glowc(
    info: BundleInfo, board: Board, chip: Chip | None, inputs: Mapping[str, np.ndarray]
) -> tuple[Engine, dict[str, np.ndarray]]:
    """Return glowc's figures, and its outputs as the model was exported."""
    counts = board.counts_insns and PLUGINS
    done = execute(info, board, inputs, marks=counts)
    cycles = measure_cycles(info, chip, inputs).whole.cycles if chip is not None and counts else None
    insns = done.marks[3] - done.marks[2] - (done.marks[1] - done.marks[0]) if counts else None
    arena_bytes, flash_bytes = info.report["arena_bytes"], done.elf.flash or None
    engine = _engine("glowc", board.name, insns, _ms(chip, cycles), arena_bytes, flash_bytes)
    return engine, {port.name: port.to_exported(done.outputs[port.name]) for port in info.outputs}


def _engine(
    name: str, on: str, insns: int | None, ms: float | None, arena_bytes: int | None, flash_bytes: int | None
) -> Engine:
    return {"name": name, "on": on, "insns": insns, "ms": ms, "arena_bytes": arena_bytes, "flash_bytes": flash_bytes,
            "outputs": []}  # fmt: skip


def _ms(chip: Chip | None, cycles: float | None) -> float | None:
    return None if chip is None or cycles is None else round(chip.milliseconds(cycles), 4)


def _runtime(model: Path, info: BundleInfo, inputs: Mapping[str, np.ndarray], ours: Mapping[str, np.ndarray]) -> Engine:
    """Return what TFLM on this machine says: the outputs and its arena, with pointers of this machine."""
    if importlib.util.find_spec("tflite_micro") is None:
        raise MissingToolError("glowc compare needs TensorFlow Lite Micro's runtime, package tflite-micro",
                               hint="pip install tflite-micro")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="glowc-tflm-") as folder:
        given, found = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, *(port.to_exported(inputs[port.name]) for port in info.inputs))
        done = run_tool([sys.executable, "-m", "glowc.machine.tflm_child", *map(str, (model, given, found)),
                         str(len(info.outputs))])  # fmt: skip
        if done.returncode:
            raise ToolError(f"TensorFlow Lite Micro does not run {model.name}", details=done.stderr.splitlines()[-5:],
                            hint="`glowc validate` compares with glowc's interpreter")  # fmt: skip
        with np.load(found) as arrays:
            theirs = {port.name: arrays[f"arr_{i}"] for i, port in enumerate(info.outputs)}
    arena = _ARENA.search(done.stderr)
    engine = _engine("TFLM", "this machine", None, None, int(arena[1]) if arena else None, None)
    return {**engine, "outputs": _compared(info, ours, theirs)}


def _tree(
    program: TreeProgram, info: BundleInfo, board: Board, chip: Chip | None, inputs: Mapping[str, np.ndarray],
    ours: Mapping[str, np.ndarray],
) -> Engine:  # fmt: skip
    """Return the figures of TFLM built from its sources, on the same board."""
    done = run_tree(program, info, board, chip, inputs)
    engine = _engine("TFLM + CMSIS-NN", board.name, done.insns, _ms(chip, done.cycles), done.arena_bytes,
                     done.flash_bytes)  # fmt: skip
    theirs = {port.name: port.to_exported(done.outputs[port.name]) for port in info.outputs}
    return {**engine, "outputs": _compared(info, ours, theirs)}


def _compared(
    info: BundleInfo, ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]
) -> list[OutputComparison]:
    relative = float(info.report.get("float_tolerance", 0.0))
    return [compare(port.name, ours[port.name], theirs[port.name], relative) for port in info.outputs]
