"""One batch of tests: model -> C in this process, one gcc for all of them, then a child process that runs them.

A crash of generated code ends the child only; the test it was at is recorded, and a new child goes on after it.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import subprocess
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import onnx

from glowc.board import Board, load_board
from glowc.codegen.view import prefix_of
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.errors import GlowcError, InternalError
from tests.onnx_backend.cases import HALVES, LEVELS, OTHER_ANSWERS, STEPWISE, NodeTest, is_coded, plain_array

FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror", "-fPIC", "-shared")
SECONDS = 60  # before a test counts as a crash
PASS, REFUSED, WRONG, CC_ERROR, CRASH = "pass", "refused", "wrong", "C error", "crash"
OTHER = "other answer"  # right, but not by the test's own arrays: OTHER_ANSWERS, STEPWISE


@dataclass(frozen=True)
class Result:
    """What became of a test; `level` is the index in LEVELS at which it was decided."""

    name: str
    op: str
    group: str
    outcome: str
    level: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Built:
    """A test whose C was written, at the level that glowc accepted."""

    test: NodeTest
    level: int
    compiled: Compiled
    folder: Path


def compile_test(test: NodeTest, work: Path, board: Board) -> Built | Result:
    """Write the C of a test at the first level that is accepted."""
    first = None
    for level in range(len(LEVELS)):
        bound = test if level == 0 else test.bound(level)
        if bound is None:
            continue
        result = _compile(bound, level, work, board)
        if not (isinstance(result, Result) and result.outcome == REFUSED):
            return result
        first = result
    assert first is not None
    return first


def _compile(test: NodeTest, level: int, work: Path, board: Board) -> Built | Result:
    path = work / f"{test.name}.onnx"
    onnx.save(test.model, path)
    try:
        with np.errstate(all="ignore"):
            compiled = compile_model(path, board, CompileOptions(name=test.name))
        folder = work / test.name
        write_bundle(compiled, folder)
        return Built(test, level, compiled, folder)
    except InternalError as error:
        return Result(test.name, test.op, test.group, CRASH, level, f"internal error: {error}")
    except GlowcError as error:
        return Result(test.name, test.op, test.group, REFUSED, level, str(error))
    except Exception:
        return Result(test.name, test.op, test.group, CRASH, level, traceback.format_exc())
    finally:
        path.unlink()


def run_batch(tests: Sequence[NodeTest], work: Path, flags: Sequence[str] = ("-Og",)) -> list[Result]:
    """Return the result of each test, in order; `flags` go to gcc beside the warnings."""
    work.mkdir(parents=True, exist_ok=True)
    board = load_board("host")
    made = [compile_test(test, work, board) for test in tests]
    built = [m for m in made if isinstance(m, Built)]
    libraries, failed = _link(built, work, board, flags)
    results = {m.name: m for m in made if isinstance(m, Result)}
    for entry, text in failed:
        results[entry.test.name] = _result(entry, CC_ERROR, text)
    for library, entries in libraries:
        results |= {r.name: r for r in _run(library, entries)}
    return [results[test.name] for test in tests]


def _result(entry: Built, outcome: str, reason: str = "") -> Result:
    return Result(entry.test.name, entry.test.op, entry.test.group, outcome, entry.level, reason)


Libraries = list[tuple[Path, list[Built]]]


def _link(
    built: list[Built], work: Path, board: Board, flags: Sequence[str]
) -> tuple[Libraries, list[tuple[Built, str]]]:
    """Compile all of them as one unit; when that fails, halve it until the culprits stand alone."""
    if not built:
        return [], []
    main = work / f"batch_{built[0].test.name}_{len(built)}.c"
    parts = [f'#include "{b.test.name}/{b.test.name}{end}.c"\n' for b in built for end in ("", "_weights")]
    main.write_text("".join(parts))
    library = main.with_suffix(".so")
    folders = [f"-I{b.folder}" for b in built]
    argv = ["gcc", *FLAGS, *flags, *board.cpu.cflags, *folders, str(main), "-o", str(library), "-lm"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return [(library, built)], []
    if len(built) == 1:
        return [], [(built[0], done.stderr)]
    half = len(built) // 2
    left, right = (_link(part, work, board, flags) for part in (built[:half], built[half:]))
    return left[0] + right[0], left[1] + right[1]


def _run(library: Path, entries: list[Built]) -> list[Result]:
    results: list[Result] = []
    fork = multiprocessing.get_context("fork")
    while len(results) < len(entries):
        mine, theirs = fork.Pipe(duplex=False)
        rest = entries[len(results) :]
        child = fork.Process(target=_child, args=(library, rest, theirs))
        child.start()
        theirs.close()
        for entry in rest:
            try:
                if not mine.poll(SECONDS):
                    child.kill()
                outcome, reason = mine.recv()
            except EOFError:
                child.join()
                results.append(_result(entry, CRASH, f"the generated code ended with status {child.exitcode}"))
                break
            results.append(_result(entry, outcome, reason))
        child.join()
    return results


def _child(library: Path, entries: list[Built], pipe: Connection) -> None:
    code = ctypes.CDLL(str(library))
    for entry in entries:
        try:
            problem = _evaluate(code, entry)
            right = OTHER if entry.test.name in (*OTHER_ANSWERS, *STEPWISE) else PASS
            pipe.send((WRONG if problem else right, problem))
        except Exception:
            pipe.send((CRASH, traceback.format_exc()))
    pipe.close()


def _evaluate(code: ctypes.CDLL, entry: Built) -> str:
    for inputs, outputs in entry.test.data:
        problem = differences(entry.test, call(code, entry.compiled, inputs), outputs)
        if problem:
            return problem
    return ""


def call(code: ctypes.CDLL, compiled: Compiled, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run `NAME_invoke` on arrays in the order of the model's inputs; ValueError when one does not fit."""
    views = compiled.bundle.inputs
    given = [np.ascontiguousarray(plain_array(a)) for a in inputs if np.asarray(a).size]
    for array, view in zip(given, views, strict=True):
        if array.size != view.type.elements or array.dtype != view.type.dtype.numpy:
            raise ValueError(f"{view.name}: {array.dtype}{list(array.shape)} for {view.type}")
    outs = [np.full(v.type.shape, 0x55, v.type.dtype.numpy) for v in compiled.bundle.outputs]
    invoke = getattr(code, f"{prefix_of(compiled.program.name)}_invoke")
    status = invoke(*(ctypes.c_void_p(a.ctypes.data) for a in (*given, *outs)))
    if status != 0:
        raise ValueError(f"status {status}")
    return outs


def differences(test: NodeTest, got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> str:
    """Return what is wrong, as the runner of the onnx package sees it; "" when nothing is.

    Arrays without elements take no part, as in the generated C.
    """
    want = [w for w in want if np.asarray(w).size]
    if len(got) != len(want):
        return f"{len(got)} outputs, {len(want)} wanted"
    for i, (g, raw) in enumerate(zip(got, want, strict=True)):
        w = plain_array(raw)
        kind = np.asarray(raw).dtype
        if kind.name in HALVES and g.dtype == np.float32:
            with np.errstate(over="ignore"):
                g = plain_array(g.astype(kind))
        elif is_coded(kind) and g.dtype == w.dtype and g.shape == w.shape:
            g, w = (a.view(kind).astype(np.float32) for a in (g, w))
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"output {i} is {g.dtype}{list(g.shape)}, not {w.dtype}{list(w.shape)}"
        try:
            np.testing.assert_allclose(g, w, rtol=test.rtol if w.dtype.kind == "f" else 0, atol=test.atol)
        except AssertionError as error:
            return f"output {i}: {error}"
    return ""
