#!/usr/bin/env python3
"""Measure the stack of the sample models and fit what kernels take of it: boards/_costs. Runs as `make stack-costs`.

    scripts/fit_stack.py
    scripts/fit_stack.py --targets mps2-an386 linux-armhf/cortex-a7 --jobs 2

A program takes the stack of the layer that takes the most, so no kernel takes more than any program which has it: a
kernel's bytes are the least of those programs. On Cortex-M they are the bound that is computed of the linked code, on
others the painted mark of one inference. Prints how many programs are predicted within 25 % or 64 bytes, and how many
are when all other models alone were fitted. What was measured is kept in build/stack by a hash of the program.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from fit_costs import write

from glowc.board import Board, find_tool, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.machine.execute import (
    BundleInfo,
    build_bundle,
    entry_points,
    execute,
    load_bundle,
    random_inputs,
    stack_report,
)
from glowc.select.cost import MODES, cost_file, key_of
from glowc.select.pricing import modes_of
from glowc.select.stack import typical

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
TARGETS = (
    "mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547", "linux-aarch64", "linux-aarch64/cortex-a76",
    "linux-aarch64/armv8.6-i8mm", "linux-armhf/cortex-a7",
)  # fmt: skip
OPTS = {"cortex-m": ("size", "balanced")}  # of a family; with speed the compiler puts more into one function
OTHER_OPTS = ("balanced",)
NEAR, NEAR_BYTES = 0.25, 64
Kernel = tuple[str, str]
"""`key_of` and way of printing."""


@dataclass(frozen=True)
class Taken:
    """One program: its model, its kernels, and the bytes of stack of an inference."""

    model: str
    kernels: frozenset[Kernel]
    bytes: int


def target_of(text: str) -> Board:
    """Return the board of `board` or `board/cpu`."""
    board, _, cpu = text.partition("/")
    return load_board(board, cpu or None)


def models() -> list[Path]:
    """Return the sample models."""
    found = [*(SHARED / "models").glob("*/model.onnx"), *(SHARED / "tflite").glob("*/model.tflite")]
    return [ROOT / "examples" / "digits" / "digits.onnx", *sorted(found)]


def measured(target: str, opt: str, path: Path) -> Taken | None:
    """Return what a model's program takes, or took when it was built before; None when the board cannot hold it."""
    board = target_of(target)
    try:
        compiled = compile_model(path, board, CompileOptions(opt=opt))
        kernels = frozenset((key_of(i), mode) for i, mode in modes_of(compiled.program, opt))
        with tempfile.TemporaryDirectory(prefix="glowc-stack-") as folder:
            write_bundle(compiled, Path(folder) / "bundle")
            taken = known_bytes(load_bundle(Path(folder) / "bundle"), board, opt, Path(folder))
    except GlowcError as error:
        print(f"  {path.parent.name} on {target}, {opt}: {error.message.splitlines()[0]}", file=sys.stderr)
        return None
    return Taken(path.parent.name, kernels, taken)


def known_bytes(info: BundleInfo, board: Board, opt: str, folder: Path) -> int:
    """Return the bytes of stack of a bundle, from build/stack where the same program was built before."""
    compiler = subprocess.run([str(find_tool(board.cpu.cc)), "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256(repr((board.name, board.cpu, opt)).encode() + compiler)
    for path in sorted(info.include_dir.glob("*.[ch]")):
        digest.update(path.name.encode() + path.read_bytes())
    file = ROOT / "build" / "stack" / digest.hexdigest()[:32]
    if not file.is_file():
        taken = bytes_of(info, board, folder)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(taken), encoding="utf-8")
    return int(file.read_text(encoding="utf-8"))


def bytes_of(info: BundleInfo, board: Board, folder: Path) -> int:
    """Build a bundle and return the bytes of stack of an inference, by the worst entry point."""
    if board.cpu.family != "cortex-m":
        return execute(info, board, random_inputs(info)).stack_bytes
    kept = [f"-Wl,-u,{name}" for name in entry_points(info)]
    bound = stack_report(info, board, build_bundle(info, board, folder, extra_flags=kept))["stack_bound_bytes"]
    if bound is None:
        raise GlowcError("no bound of the stack can be computed")
    return bound


def fit(programs: Sequence[Taken]) -> dict[str, dict[str, int]]:
    """Return the bytes of each kernel and way of printing."""
    found: dict[str, dict[str, int]] = {}
    for program in programs:
        for key, mode in program.kernels:
            modes = found.setdefault(key, {})
            modes[mode] = min(program.bytes, modes.get(mode, program.bytes))
    return {key: {mode: found[key][mode] for mode in MODES if mode in found[key]} for key in sorted(found)}


def off(programs: Sequence[Taken], stacks: dict[str, dict[str, int]]) -> Iterator[tuple[str, int, int]]:
    """Yield (model, predicted, measured) of programs that are not predicted well enough."""
    for program in programs:
        predicted = max((typical(stacks, key, mode) for key, mode in program.kernels), default=0)
        if abs(predicted - program.bytes) > max(NEAR * program.bytes, NEAR_BYTES):
            yield program.model, predicted, program.bytes


def left_out(programs: Sequence[Taken]) -> list[tuple[str, int, int]]:
    """Return what `off` yields of each model by a fit of all the others."""
    found = []
    for name in sorted({program.model for program in programs}):
        own = [program for program in programs if program.model == name]
        found += off(own, fit([program for program in programs if program.model != name]))
    return found


def fit_target(target: str, pool: ProcessPoolExecutor) -> None:
    """Measure and fit one target, write its figures and print how good they are."""
    board, paths = target_of(target), models()
    calls = [(target, opt, path) for opt in OPTS.get(board.cpu.family, OTHER_OPTS) for path in paths]
    programs = [taken for taken in pool.map(measured, *zip(*calls, strict=True)) if taken is not None]
    stacks, file = fit(programs), cost_file(board.cpu.name)
    known = json.loads(file.read_text(encoding="utf-8"))
    kernels = known.pop("kernels")
    write({**known, "stack": stacks, "kernels": kernels}, file)
    wrong, alone = list(off(programs, stacks)), left_out(programs)
    above = sum(predicted > taken for _, predicted, taken in alone)
    print(f"{board.cpu.name}: {len(programs)} programs, {len(stacks)} kernels; {len(wrong)} off by more than 25 %, "
          f"left out {len(alone)}, {above} of them too high", *wrong, sep="\n  ", flush=True)  # fmt: skip


def main() -> int:
    """Measure, fit and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--targets", nargs="+", default=TARGETS, metavar="BOARD[/CPU]")
    parser.add_argument("--jobs", type=int, default=2, help="models that are measured at once")
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs) as pool:
        for target in args.targets:
            fit_target(target, pool)
    return 0


if __name__ == "__main__":
    sys.exit(main())
