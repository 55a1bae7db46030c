"""Builds the harness program of a machine, runs it past crashes, and compares what it wrote with numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from glowc.graph.types import DType
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from glowc.paths import data_dir
from tests.conftest import RUNTIME_DIRS
from tests.kernels.case import Case, interpret
from tests.kernels.functions import Job
from tests.kernels.machines import POOL_BYTES, WARNINGS, Machine
from tests.kernels.program import Program, dealt, make_jobs, result_types, too_large, write_program

CRASHES = 8  # after so many crashed cases a machine gives up
FAILURES = 25  # shown per machine
_STDERR_LINES = 12
_CODES = {DType.BOOL: np.dtype(np.uint8)}  # a bool of another byte than 0 and 1 is wrong


@dataclass(frozen=True)
class Failure:
    """One call that went wrong, and how."""

    machine: str
    job: Job
    what: str

    def __str__(self) -> str:
        return f"{self.machine}: {self.job.title}: {self.what}\n    {self.job.case.label}"


def check(cases: Sequence[Case], machine: Machine, folder: Path) -> list[Failure]:
    """Run every call of `cases` on `machine` with its files in `folder`; return what went wrong.

    Raises ToolError when a program does not compile.
    """
    jobs = make_jobs(cases, machine)
    if machine.guard in ("pool", "mpu"):
        large = [why for why in map(too_large, jobs) if why]
        assert not large, "cases too large for bare metal:\n" + "\n".join(large)
    failures, ran, outputs = [], [], []
    for index, part in enumerate(dealt(jobs, machine.programs)):
        place = folder / str(index)
        place.mkdir()
        program = write_program(part, place)
        answers = list(_run_all(build(program.sources, machine, place), machine, program, place))
        for number, answer in answers:
            found = [answer] if isinstance(answer, str) else _judge(part[number], answer)
            failures += [Failure(machine.name, part[number], what) for what in found]
        complete = [(part[number], answer) for number, answer in answers if isinstance(answer, bytes)]
        ran += [job for job, _ in complete]
        outputs += [answer for _, answer in complete]
    return failures + _modes_differ(machine, ran, outputs)


def build(sources: Sequence[Path], machine: Machine, folder: Path) -> Path:
    """Return the harness program for `machine`, with all warnings as errors."""
    own = data_dir("runtime_c") / "harness"
    compiled = partial(
        build_elf,
        board=machine.board,
        include_dirs=[own, *RUNTIME_DIRS],
        defines=[*machine.all_defines, f"GLOW_POOL_BYTES={POOL_BYTES}"],
        extra_flags=[*WARNINGS, *machine.flags],
    )
    objects = []
    for index, level in enumerate(machine.levels):
        part = sources[index :: len(machine.levels)]
        out = compiled(part, out_elf=folder / f"level{index}", opt=level, link=False)
        objects += sorted(out.path.glob("*.o"))
    rest = [own / "glow_harness.c", own / f"glow_guard_{machine.guard}.c"]
    return compiled([*objects, *rest], out_elf=folder / "harness").path


def _run_all(elf: Path, machine: Machine, program: Program, folder: Path) -> Iterator[tuple[int, bytes | str]]:
    """Yield (job number, answer bytes or what stopped it); a crash goes on with the next job."""
    first = 0
    for _ in range(CRASHES):
        (folder / "cases.bin").write_bytes(program.records(first))
        (folder / "results.bin").unlink(missing_ok=True)
        result = run_elf(elf, machine.board, cwd=folder, timeout_s=300, check=False)
        path = folder / "results.bin"
        answers = list(_split(program.jobs[first:], path.read_bytes() if path.exists() else b""))
        yield from enumerate(answers, first)
        first += len(answers)
        if result.exit_status == 0 and first == len(program.jobs):
            return
        text = "\n".join([*result.stdout.splitlines()[-2:], *result.stderr.splitlines()[:_STDERR_LINES]])
        if first == len(program.jobs) or result.exit_status == 2:
            raise AssertionError(f"{machine.name}: harness ended with status {result.exit_status}\n{text}")
        yield first, f"crashed with exit status {result.exit_status}\n{text}"
        first += 1
        if first == len(program.jobs):
            return


def _split(jobs: Iterable[Job], data: bytes) -> Iterator[bytes]:
    """Cut results.bin into one complete answer per job."""
    at = 0
    for job in jobs:
        size = 4 + sum(job.arrays[role].nbytes for role, _, _ in result_types(job))
        if at + size > len(data):
            return
        yield data[at : at + size]
        at += size


def _judge(job: Job, answer: bytes) -> Iterator[str]:
    mask = int.from_bytes(answer[:4], "little")
    roles = [o.role for o in job.instr.operands]
    for i, role in enumerate(roles):
        if mask >> i & 1:
            yield f"wrote outside of operand {role}"
        if mask >> (16 + i) & 1:
            yield f"wrote to its input {role}"
    at = 4
    for role, shape, kind in result_types(job):
        size = job.arrays[role].nbytes
        got = np.frombuffer(answer[at : at + size], kind.numpy).reshape(shape)
        at += size
        want = expected(job.case)[role].reshape(shape)
        yield from _difference(job.case, role, got, want, kind)


_expected: dict[int, tuple[Case, dict[str, np.ndarray]]] = {}  # holds the case, so that its id stays its own


def expected(case: Case) -> dict[str, np.ndarray]:
    """Return `interpret(case)`, computed once."""
    if id(case) not in _expected:
        _expected[id(case)] = (case, interpret(case))
    return _expected[id(case)][1]


def _difference(case: Case, role: str, got: np.ndarray, want: np.ndarray, kind: DType) -> Iterator[str]:
    if kind.is_float:
        with np.errstate(invalid="ignore", over="ignore"):
            wrong = ~np.isclose(got, want, rtol=case.rtol, atol=case.atol, equal_nan=True)
    else:
        wrong = got.view(_CODES.get(kind, got.dtype)) != want.view(_CODES.get(kind, want.dtype))
    if not wrong.any():
        return
    where = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0])
    one, other = np.atleast_1d(got)[where], np.atleast_1d(want)[where]
    count = f"{int(wrong.sum())} of {wrong.size} elements differ"
    yield f"{role}{list(where)} is {one}, not {other} ({count})"


def _modes_differ(machine: Machine, jobs: Sequence[Job], outputs: Sequence[bytes]) -> list[Failure]:
    """Compare each literal function's answer with the shared function's, bit for bit (floats too)."""
    answers = [
        (job, (id(job.case), job.instr.variant, job.in_place), output)
        for job, output in zip(jobs, outputs, strict=True)
    ]
    shared = {key: output for job, key, output in answers if not job.literal}
    return [
        Failure(machine.name, job, "other bytes than the function with an argument struct")
        for job, key, output in answers
        if job.literal and shared.get(key, output) != output
    ]


def report(failures: Sequence[Failure]) -> str:
    """Return the failures as text: a count per kernel variant, then the first ones in full."""
    counts: dict[str, int] = {}
    for failure in failures:
        counts[failure.job.title] = counts.get(failure.job.title, 0) + 1
    lines = [f"{len(failures)} calls went wrong:", *(f"  {title}: {n}" for title, n in counts.items())]
    return "\n".join([*lines, *(str(failure) for failure in failures[:FAILURES])])
