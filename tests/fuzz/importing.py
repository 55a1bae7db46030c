"""Mutated models through the compiler: each ends in a bundle whose C compiles or in a message for its user.

Every mutant runs in a process of its own with bounds on time and memory; a bundle's C is checked by a compiler after.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import onnx

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import GlowcError, InternalError
from tests.conftest import SHARED_MODELS
from tests.fuzz.build import model_of
from tests.fuzz.mutate import mutated
from tests.fuzz.strategy import seeded
from tests.onnx_backend.cases import all_tests

BUNDLE, MESSAGE = "bundle", "message"
INTERNAL, SLOW, LARGE, CRASHED, C_ERROR = "internal error", "over 10 s", "over 1 GB", "crash", "C error"
GOOD = frozenset({BUNDLE, MESSAGE})
SECONDS, PEAK_BYTES = 10, 1 << 30
BOARDS = ("host", "mps2-an386", "mps3-an547", "linux-aarch64", "mps2-an385", "microbit")
LARGEST_FILE_BYTES = 120_000
_HERE = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Mutant:
    """One try: where it came from, what was done to it, and what became of it."""

    seed: int
    origin: str
    changes: tuple[str, ...]
    board: str
    outcome: str
    text: str = ""


@cache
def originals(node_tests: bool) -> list[tuple[str, onnx.ModelProto]]:
    """Return what is mutated: random networks, small real ones if there, and with `node_tests` ONNX's own."""
    real = [p for p in sorted(SHARED_MODELS.glob("*/model.onnx")) if p.stat().st_size < LARGEST_FILE_BYTES]
    found = [(f"random network {seed}", model_of(seeded(seed)[0])) for seed in range(200)]
    found += [(path.parent.name, onnx.load(path)) for path in real for _ in range(4)]
    return found + [(test.name, test.model) for test in (all_tests() if node_tests else ())]


def run_mutants(seeds: Sequence[int], work: Path, *, node_tests: bool = True) -> Iterator[Mutant]:
    """Yield what became of the mutant of each seed."""
    yield from checked([_run(seed, work / f"m{seed}", originals(node_tests)) for seed in seeds], work)


def checked(made: Sequence[Mutant], work: Path) -> Iterator[Mutant]:
    """Yield mutants, those whose C a compiler does not take as such."""
    broken = _compile_all([m for m in made if m.outcome == BUNDLE], work)
    for mutant in made:
        yield broken.get(mutant.seed, mutant)


def _run(seed: int, folder: Path, models: list[tuple[str, onnx.ModelProto]]) -> Mutant:
    name, model = models[(seed * 7919) % len(models)]
    board = BOARDS[seed % len(BOARDS)]
    changed, changes = mutated(model, seed)
    data = changed if isinstance(changed, bytes) else changed.SerializeToString()
    return tried(Mutant(seed, name, tuple(changes), board, ""), data, folder / f"m{seed}.onnx")


def tried(mutant: Mutant, data: bytes, path: Path) -> Mutant:
    """Return what becomes of a file with these bytes, in a process of its own."""
    mine, theirs = _HERE.Pipe(duplex=False)
    child = _HERE.Process(target=_child, args=(data, mutant.board, path, theirs))
    child.start()
    theirs.close()
    try:
        outcome, text = mine.recv()
    except EOFError:
        child.join()
        outcome = SLOW if child.exitcode == -24 else CRASHED
        text = f"status {child.exitcode}"
    child.join()
    return replace(mutant, outcome=outcome, text=text)


def _child(data: bytes, board: str, path: Path, pipe: object) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (6 * PEAK_BYTES, 6 * PEAK_BYTES))
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (the process ends with it)
    before = _peak_bytes()
    outcome, text = _attempt(data, board, path)
    grown = _peak_bytes() - before
    if grown > PEAK_BYTES:
        outcome, text = LARGE, f"{grown:,} bytes; {outcome}: {text}"
    pipe.send((outcome, text[-3000:]))  # type: ignore[attr-defined]
    os._exit(0)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _attempt(data: bytes, board: str, path: Path) -> tuple[str, str]:
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            write_bundle(compile_model(path, load_board(board), CompileOptions(name=path.stem)), path.parent / "out")
    except InternalError as error:
        return INTERNAL, str(error)
    except GlowcError as error:
        return MESSAGE, str(error)
    except BaseException:
        return INTERNAL, traceback.format_exc()
    return BUNDLE, ""


def _compile_all(mutants: Sequence[Mutant], work: Path) -> dict[int, Mutant]:
    """Return the mutants whose C does not compile."""
    found = {}
    for board in sorted({m.board for m in mutants}):
        mine = [m for m in mutants if m.board == board]
        if _compile(mine, board, work):
            found.update((m.seed, m) for m in (_with_error(m, work) for m in mine) if m.outcome == C_ERROR)
    return found


def _with_error(mutant: Mutant, work: Path) -> Mutant:
    text = _compile([mutant], mutant.board, work)
    outcome = C_ERROR if text else mutant.outcome
    return Mutant(mutant.seed, mutant.origin, mutant.changes, mutant.board, outcome, text)


def _compile(mutants: Sequence[Mutant], board: str, work: Path) -> str:
    """Return what the compiler says to the C of bundles; "" when it takes them."""
    cpu = load_board(board).cpu
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *cpu.cflags]
    sources = [str(p) for m in mutants for p in sorted((work / f"m{m.seed}" / "out").glob("*.c"))]
    folders = [f"-I{work / f'm{m.seed}' / 'out'}" for m in mutants]
    return subprocess.run([cpu.cc, *flags, *folders, *sources], capture_output=True, text=True, check=False).stderr
