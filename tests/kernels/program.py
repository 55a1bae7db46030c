"""Cases -> jobs -> C sources and the file of records the harness reads."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from glowc.codegen.headers import RUNTIME_FILES
from glowc.codegen.kernels import (
    environment,
)
from glowc.graph.types import DType, TensorType
from glowc.kernels.base import UNFIT, KernelVariant, Prepared, prepare, prepared_instr, spending
from glowc.kernels.choice import columns_of, variant_of
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.registry import variants_of
from glowc.program.ir import Access, Instr, Operand
from glowc.program.kernel import get_kernel
from tests.kernels.case import Case, filled
from tests.kernels.functions import Job, Tiles, called_of, function_of, printed_with, quoted
from tests.kernels.machines import LEVELS, POOL_BYTES, Machine

SCRATCH_ALIGN = PACKED_ALIGN = 16
FUNCTIONS_PER_FILE = 450  # functions of headers are compiled once per file
LITERAL_JOBS = 60
NEAR_BYTES = 512  # of weights that a cache of the flash keeps
KEPT_BEFORE = 96  # bytes before weights that are kept: the most that any variant has
_END = 0xFFFFFFFF
_ACCESS = {Access.IN: 0, Access.OUT: 1, Access.INOUT: 2}
_SCRATCH = 3
_BAND_BYTES = header_number("glow_guard.h", "GLOW_GUARD_BAND_BYTES")


def make_jobs(cases: Iterable[Case], machine: Machine) -> list[Job]:
    """Return every call that `machine` makes: each accepted variant, in place too, and a literal sample."""
    jobs = []
    accepted: Counter[tuple[str, str, int]] = Counter()
    divided: set[object] = set()
    for case in cases:
        for variant in variants_of(case.instr.kernel):
            instr = replace(case.instr, variant=variant.name)
            if machine.runs(variant) and variant.accepts(instr):
                step = machine.step(variant, case.folder)
                accepted[case.instr.kernel, variant.name, step] += 1
                if accepted[case.instr.kernel, variant.name, step] % step != 1 % step:
                    continue
                made = _jobs_of(case, instr, variant)
                jobs += made
                for job in made:
                    if not job.in_place and (machine.divides or _way(job) not in divided):
                        divided.add(_way(job))
                        jobs += [*_cut(job), *_shared(job)]
    return jobs + _literal_sample(jobs, machine.literals)


_made: dict[tuple[int, str], tuple[Case, list[Job]]] = {}  # machines share what a variant packed; holds the case


def _jobs_of(case: Case, instr: Instr, variant: KernelVariant) -> list[Job]:
    """Return the calls of one variant: plain, with weights kept, in place."""
    if (id(case), variant.name) not in _made:
        prepared = prepare(variant, case.arrays, instr)
        if prepared == UNFIT:
            _made[id(case), variant.name] = case, []
            return []
        job = Job(case, *_for_variant(case, instr, variant, prepared))
        in_place = [replace(job, in_place=True)] if variant.in_place and _fits_in_place(job) else []
        _made[id(case), variant.name] = case, [job, *_keeping(job, variant), *_spending(job, variant), *in_place]
    return _made[id(case), variant.name][1]


def _way(job: Job) -> object:
    """Return what calls have in common of which a machine does one in parts: the path, and the parts that it has."""
    instr, variant = job.instr, variant_of(job.instr)
    whole = instr.rows is None or instr.rows == (0, instr.params.get("out_h"))
    some = variant.channels(instr)
    blocks = some > 0 and instr.int_("out_c") > some
    return instr.kernel, instr.variant, instr.plan.path, whole, blocks, _step(instr) > 0


def _step(instr: Instr) -> int:
    """Return the pixels of parts of a row, 0 where no call computes some."""
    columns, width = columns_of(instr), int(instr.params.get("out_w", 0))
    if columns is None or width <= columns.step:
        return 0
    left = width % columns.step
    return columns.step if left == 0 or left >= columns.least(instr) else 0


def _cut(job: Job) -> Iterator[Job]:
    """Yield jobs that several calls do, where the function for that is another one."""
    instr, variant = job.instr, variant_of(job.instr)
    cut = replace(job, instr=replace(instr, cut=True))
    if instr.rows is None:
        if variant.units(instr) or get_kernel(instr.kernel).outer_of(instr.params) is not None:
            yield cut
    elif instr.rows == (0, instr.params.get("out_h")):
        if function_of(cut).text != function_of(job).text:
            yield cut
        yield from _in_columns(cut, variant)


def _shared(job: Job) -> Iterator[Job]:
    """Yield jobs that cores share: parts that hold in any order, the last of which is done first."""
    instr = replace(job.instr, cut=True, shares=2)
    loop = get_kernel(instr.kernel).outer_of(instr.params)
    if instr.rows is None and loop is not None:
        yield replace(job, instr=instr)
    elif instr.rows is not None and instr.rows == (0, instr.params.get("out_h")) and not instr.params.get("descending"):
        yield replace(job, instr=instr)
        yield from _in_columns(replace(job, instr=instr), variant_of(instr))
        some = variant_of(instr).channels(instr)
        if 0 < some < instr.int_("out_c") and instr.int_("out_c") % some != 1:
            yield replace(job, instr=replace(instr, channels=some))


def _in_columns(job: Job, variant: KernelVariant) -> Iterator[Job]:
    """Yield the job in parts of rows, and of channels of these, where a variant computes such."""
    if columns_of(job.instr) is None:
        return
    width, step = job.instr.int_("out_w"), _step(job.instr)
    some = variant.channels(job.instr)
    if step:
        yield replace(job, instr=replace(job.instr, columns=step))
    if 0 < some < job.instr.int_("out_c") and job.instr.int_("out_c") % some != 1:
        yield replace(job, instr=replace(job.instr, columns=step or width, channels=some))


def _for_variant(
    case: Case, instr: Instr, variant: KernelVariant, prepared: Prepared
) -> tuple[Instr, Mapping[str, np.ndarray]]:
    return _with_scratch(prepared_instr(instr, prepared), {**case.arrays, **prepared.constants}, variant)


def _keeping(job: Job, variant: KernelVariant) -> list[Job]:
    """Return the job with all weights kept in its scratch, with part of them, where the variant keeps any, and with
    more inputs in it, for parts of the weights that a cache of the flash keeps.
    """
    if variant.keeps is None:
        return []
    found = []
    least, weights = variant.scratch_bytes(job.instr), job.arrays["weights"].nbytes
    wanted = variant.wanted_bytes(job.instr)
    sizes = [least + weights + KEPT_BEFORE, least + weights // 2 + KEPT_BEFORE, *wanted]
    sizes += [wanted[0] + wanted[1], wanted[0] + 3 * wanted[1]] if wanted else []
    for size, near in (*((size, 0) for size in sizes), (3 * least, NEAR_BYTES)):
        prepared = variant.keeps(job.arrays, job.instr, size, near)
        if prepared is not None and not any(prepared.plan == other.instr.plan for other in found):
            assert variant.scratch_bytes(prepared_instr(job.instr, prepared)) <= size
            instr = prepared_instr(job.instr, prepared)
            plain = replace(instr, operands=tuple(o for o in instr.operands if o.role != "scratch"))
            found.append(Job(job.case, *_with_scratch(plain, {**job.arrays, **prepared.constants}, variant)))
    return found


def _spending(job: Job, variant: KernelVariant) -> Iterator[Job]:
    """Yield the job with more scratch, and with as much as it ever spends, where the variant spends any."""
    if variant.spends is None:
        return
    least, done = variant.scratch_bytes(job.instr), [job.instr.plan]
    for size in (least + KEPT_BEFORE, 2 * least, 1 << 24):
        instr = spending(job.instr, variant, size)
        if instr.plan not in done:
            assert variant.scratch_bytes(instr) <= size
            done.append(instr.plan)
            plain = replace(instr, operands=tuple(o for o in instr.operands if o.role != "scratch"))
            yield Job(job.case, *_with_scratch(plain, job.arrays, variant))


def _with_scratch(
    instr: Instr, given: Mapping[str, np.ndarray], variant: KernelVariant
) -> tuple[Instr, Mapping[str, np.ndarray]]:  # fmt: skip
    arrays, operands = dict(given), []
    for operand in instr.operands:
        if operand.role.startswith("scratch"):
            kind = operand.type.dtype
            shape = (-(-variant.scratch_bytes(instr) // kind.bytes),)
            arrays[operand.role] = filled(shape, kind)
            operand = replace(operand, type=TensorType(shape, kind))
        operands.append(operand)
    size = variant.scratch_bytes(instr)
    if size and not any(o.role.startswith("scratch") for o in operands):
        arrays["scratch"] = filled((size,), DType.U8)
        operands.append(Operand("scratch", "scratch", Access.OUT, TensorType((size,), DType.U8)))
    return replace(instr, operands=tuple(operands)), arrays


def _fits_in_place(job: Job) -> bool:
    if not get_kernel(job.instr.kernel).in_place:
        return False
    out, source = job.aliased
    return job.arrays[source].nbytes >= job.arrays[out].nbytes


def _literal_sample(jobs: Sequence[Job], least: int) -> list[Job]:
    """Return about LITERAL_JOBS jobs, but `least` of each kernel variant, as literal functions."""
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.instr.kernel, job.instr.variant), []).append(job)
    share = max(least, LITERAL_JOBS // max(1, len(groups)))
    chosen = []
    for group in groups.values():
        step = max(1, len(group) // share)
        chosen += [replace(job, literal=True) for job in group[step // 2 :: step][:share]]
    return chosen


@dataclass(frozen=True)
class Program:
    """Sources of one harness program, its jobs in order, and of each job the entry number and the row of its tiles."""

    sources: tuple[Path, ...]
    jobs: tuple[Job, ...]
    entries: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]

    def records(self, first: int) -> bytes:
        """Return the contents of cases.bin for the jobs from `first` on."""
        parts = [_record(self.jobs[i], self.entries[i], i, self.rows[i]) for i in range(first, len(self.jobs))]
        return b"".join(parts) + struct.pack("<6I", _END, 0, 0, 0, 0, 0)


def dealt(jobs: Sequence[Job], programs: int) -> list[list[Job]]:
    """Deal jobs out to programs of about one length, so that functions of one kernel meet what they call in one."""
    functions = {function.name: function for function in map(function_of, jobs)}
    if not functions:
        return []
    ordered = sorted(functions.values(), key=lambda f: f.title)
    ends = list(accumulate(len(f.definition) for f in ordered))
    numbers = {f.name: (end - 1) * programs // ends[-1] for f, end in zip(ordered, ends, strict=True)}
    parts: list[list[Job]] = [[] for _ in range(programs)]
    for job in jobs:
        parts[numbers[function_of(job).name]].append(job)
    return [part for part in parts if part]


def write_program(jobs: Sequence[Job], folder: Path) -> Program:
    """Print every function that `jobs` call into C files in `folder`."""
    called = [called_of(job) for job in jobs]
    tiles: dict[str, dict[Tiles, int]] = {}  # of each function, with their rows
    for function, wanted in called:
        of_function = tiles.setdefault(function.name, {})
        of_function.setdefault(wanted, len(of_function))
    different = {function.name: function for function, _ in called}.values()
    functions = [printed_with(f, tuple(tiles[f.name])) for f in sorted(different, key=lambda f: f.title)]
    numbers = {function.name: number for number, function in enumerate(functions)}
    entries = tuple(numbers[function.name] for function, _ in called)
    rows = tuple((tiles[f.name][wanted],) if len(tiles[f.name]) > 1 else () for f, wanted in called)
    sources = []
    files = len(LEVELS) * -(-len(functions) // (len(LEVELS) * FUNCTIONS_PER_FILE))
    for index in range(files):
        part = functions[index::files]  # some of each kernel in each file
        needed = sorted({header for f in part for header in f.headers}, key=lambda h: (h[0] == '"', h))
        headers = ["<stddef.h>", "<stdint.h>", "<string.h>", *quoted(RUNTIME_FILES), *needed]
        path = folder / f"functions_{index}.c"
        helpers = {name: text for f in part for name, text in f.helpers.items()}
        sources.append(_render("functions.c.j2", path, functions=part, helpers=helpers, headers=headers))
    sources.append(_render("table.c.j2", folder / "table.c", functions=functions))
    return Program(tuple(sources), tuple(jobs), entries, rows)


def _render(template: str, path: Path, **values: object) -> Path:
    path.write_text(environment().get_template(f"harness/{template}").render(**values), encoding="utf-8")
    return path


def _record(job: Job, entry: int, number: int, row: tuple[int, ...]) -> bytes:
    kernel, instr = get_kernel(job.instr.kernel), job.instr
    params = [struct.pack("<i", instr.params[key]) for key in kernel.params]
    params += [struct.pack("<f", instr.params[key]) for key in kernel.float_params]
    params += [struct.pack("<i", int(getattr(instr.plan, key))) for key in instr.plan.numbers]
    params += [struct.pack("<i", tile) for tile in row]
    begin, end = instr.rows or (0, 0)
    header = struct.pack("<4I2i", entry, number, len(params), len(instr.operands), begin, end)
    roles = [o.role for o in instr.operands]
    out, source = job.aliased if job.in_place else ("", "")
    described = [
        _describe(job, operand, roles.index(source) + 1 if operand.role == out else 0) for operand in instr.operands
    ]
    data = [job.arrays[role].tobytes() for role in roles if role != out]
    return b"".join((header, *params, *described, *data))


def _describe(job: Job, operand: Operand, alias: int) -> bytes:
    scratch = operand.role.startswith("scratch")
    access = _SCRATCH if scratch else _ACCESS[operand.access]
    size = job.arrays[operand.role].nbytes
    return struct.pack("<4I", access, size, _align(job, operand), alias)


def _align(job: Job, operand: Operand) -> int:
    if operand.role.startswith("scratch"):
        return SCRATCH_ALIGN
    variant = variant_of(job.instr)
    packed = operand.role == "weights" and operand.role in variant.packs
    return PACKED_ALIGN if packed else operand.type.dtype.bytes


def too_large(job: Job) -> str | None:
    """Say why a job cannot run on bare metal, or return None."""
    need = sum(array.nbytes + 2 * _BAND_BYTES + SCRATCH_ALIGN for array in job.arrays.values())
    return f"{job.title}: operands take {need} bytes, the pool has {POOL_BYTES}" if need > POOL_BYTES else None


def result_types(job: Job) -> list[tuple[str, tuple[int, ...], DType]]:
    """Return (role, shape, kind) of the operands whose bytes the harness reports, in its order."""
    reported = []
    for operand in job.instr.operands:
        written = operand.access is not Access.IN and not operand.role.startswith("scratch")
        if written and not (job.in_place and operand.role == job.aliased[1]):
            array = job.arrays[operand.role]
            reported.append((operand.role, array.shape, operand.type.dtype))
    return reported
