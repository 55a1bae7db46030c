"""Cases -> jobs (one call of one printed function) -> C sources and the file of records the harness reads."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

import numpy as np

from glowc.codegen import kernels
from glowc.codegen.headers import RUNTIME_FILES
from glowc.codegen.kernels import (
    TILE,
    ArgsStruct,
    Helpers,
    args_struct,
    environment,
    identity,
    render_function,
    tiles_of,
    with_tiles,
)
from glowc.codegen.printed import tidy
from glowc.codegen.view import headers_of
from glowc.graph.types import DType, TensorType
from glowc.kernels.base import UNFIT, KernelVariant, Prepared, prepare, prepared_instr, spending
from glowc.kernels.choice import variant_of
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.registry import instruction_sets, variants_of
from glowc.paths import data_dir, runtime_header
from glowc.program.ir import WHOLE, Access, Instr, Operand
from glowc.program.kernel import KernelDef, get_kernel
from tests.kernels.case import Case, filled
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
_INTRINSICS = {"mve": "<arm_mve.h>", "neon": "<arm_neon.h>", "dot": "<arm_neon.h>", "i8mm": "<arm_neon.h>"}


@dataclass(frozen=True)
class Job:
    """One call: the case, the instruction with its variant, the arrays as that variant wants them."""

    case: Case
    instr: Instr
    arrays: Mapping[str, np.ndarray]
    literal: bool = False
    in_place: bool = False

    @property
    def title(self) -> str:
        """Kernel, variant and mode, as the harness prints them."""
        return f"{self.function} in place" if self.in_place else self.function

    @property
    def function(self) -> str:
        """Kernel, variant and how parameters are printed."""
        return f"{self.instr.kernel}__{self.instr.variant} {'literal' if self.literal else 'struct'}"

    @property
    def aliased(self) -> tuple[str, str]:
        """(output, input) that share an address when the job runs in place."""
        return in_place_roles(self.instr)


def in_place_roles(instr: Instr) -> tuple[str, str]:
    """Return (written role, read role) that an in-place variant lets share an address."""
    out = next(o.role for o in instr.operands if o.access is Access.OUT and not o.role.startswith("scratch"))
    return out, get_kernel(instr.kernel).in_place[0]


def make_jobs(cases: Iterable[Case], machine: Machine) -> list[Job]:
    """Return every call that `machine` makes: each accepted variant, in place too, and a literal sample."""
    jobs = []
    accepted: Counter[tuple[str, str]] = Counter()
    divided: set[object] = set()
    for case in cases:
        for variant in variants_of(case.instr.kernel):
            instr = replace(case.instr, variant=variant.name)
            if machine.runs(variant) and variant.accepts(instr):
                accepted[case.instr.kernel, variant.name] += 1
                if accepted[case.instr.kernel, variant.name] % machine.step(variant) != 1 % machine.step(variant):
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
    some, step = variant.channels(instr), variant.columns.step if variant.columns is not None else 0
    blocks, columns = some > 0 and instr.int_("out_c") > some, step > 0 and instr.int_("out_w") > step
    return instr.kernel, instr.variant, instr.plan.path, whole, blocks, columns


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
    columns, width = variant.columns, job.instr.int_("out_w")
    if columns is None:
        return
    left = width % columns.step
    step = columns.step if width > columns.step and (left == 0 or left >= columns.least(job.instr)) else 0
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
class Function:
    """One C function as it was rendered, and how to call it; `helpers` are the functions that it calls, by name.

    Functions that differ in their tiles alone are one, as in a bundle whose layers share them.
    """

    name: str
    title: str
    definition: str
    helpers: Mapping[str, str]
    struct: ArgsStruct | None
    operands: int
    rows: bool
    headers: tuple[str, ...]
    parts: str = ""  # what its range counts, where several calls do a job
    backwards: bool = False  # the last of these first, in any order or as rows go

    @property
    def text(self) -> str:
        """The definition without the name."""
        return self.definition.replace(self.name, "@")

    @property
    def without_name(self) -> tuple[object, ...]:
        """What two functions have in common that differ in their names alone."""
        fields = self.struct.fields if self.struct is not None else ()
        return self.text, fields, self.operands, self.rows, self.headers, self.parts, self.backwards

    @property
    def arguments(self) -> str:
        """What the calling convention of the harness is turned into before the call."""
        params = "  (void)param;\n"
        if self.struct is not None:
            name = self.struct.name
            size = f"  GLOW_SIZE({name}, {4 * len(self.struct.fields)});\n"
            params = f"{size}  {name} args;\n  memcpy(&args, param, sizeof args);\n"
        used = {"": self.rows, "rows": True}.get(self.parts, False)
        return params + ("" if used else "  (void)y_begin;\n  (void)y_end;\n")

    @property
    def calls(self) -> str:
        """The call of the function; three for parts, in the order in which one call does them, or backwards."""
        struct = ("&args",) if self.struct is not None else ()
        values = [*(f"op[{i}]" for i in range(self.operands)), *struct]
        if not self.parts:
            return f"  {self.name}({', '.join([*values, *(('y_begin', 'y_end') if self.rows else ())])});"
        has_direction = self.struct is not None and "descending" in dict(self.struct.fields)
        part = "args.descending != 0 ? 2 - i : i" if self.parts == "rows" and has_direction else "i"
        part = "2 - i" if self.backwards else part
        first, last = ("y_begin", "y_end") if self.parts == "rows" else ("0", self.parts)
        return f"""  for (int32_t i = 0; i < 3; i++) {{
    const int32_t part = {part};
    const int32_t begin = {first} + ({last} - {first}) * part / 3;
    const int32_t end = {first} + ({last} - {first}) * (part + 1) / 3;
    if (begin < end) {{
      {self.name}({", ".join([*values, "begin", "end"])});
    }}
  }}"""


def _parts_of(instr: Instr, *, literal: bool) -> str:
    """Return what the range of a call of a part counts: rows, or where the last part ends, as an expression."""
    if not instr.cut:
        return ""
    loop = get_kernel(instr.kernel).outer_of(instr.params)
    if variant_of(instr).units(instr) and not instr.columns and instr.shares == 1:
        return str(WHOLE)
    if instr.rows is None:
        assert loop is not None
        count = str(instr.params[loop.count]) if literal else f"args.{loop.count}"
        return f"({count} / {loop.grain})" if loop.grain > 1 else count
    channels = str(instr.params.get("out_c")) if literal else "args.out_c"
    blocks = f"(({channels} + {instr.channels - 1}) / {instr.channels})" if instr.channels else "1"
    if not instr.columns:
        return blocks if instr.channels else "rows"
    height, width = (str(instr.params[k]) if literal else f"args.{k}" for k in ("out_h", "out_w"))
    parts = f"({height} * (({width} + {instr.columns - 1}) / {instr.columns}))"
    return f"({parts} * {blocks})" if instr.channels else parts


Tiles = tuple[str, ...]


def printed_function(job: Job, number: int) -> Function:
    """Return the C function of a job, named after its `number`."""
    function, tiles = _rendered(job, number)
    return _printed_with(function, (tiles,))


def _rendered(job: Job, number: int | str) -> tuple[Function, Tiles]:
    """Return the function of a job, and its tiles."""
    kernel = get_kernel(job.instr.kernel)
    name = f"fn{number}_{job.instr.kernel}__{job.instr.variant}"
    fields = None if job.literal else args_struct(job.instr, f"{name}_args_t")
    shown = fields if fields is not None and fields.fields else None
    stem = f"helper_{job.instr.kernel}__{job.instr.variant}"
    text = render_function(job.instr, name, _named, stem, fields, open_tiles=shown is not None)
    definition, tiles = tiles_of(text)
    named = _named.take()
    _helpers.update({helper: tidy(text) for helper, text in named.items() if helper not in _helpers})
    helpers = {helper: _helpers[helper] for helper in re.findall(r"\bhelper_\w+", definition)}
    headers = (*_headers(kernel, variant_of(job.instr)), *_quoted(headers_of([job.instr])))
    parts = _parts_of(job.instr, literal=job.literal)
    upwards = parts == "rows" and job.literal and job.instr.params.get("descending") == 1  # as its text has it
    function = Function(
        name, job.function, definition, helpers, shown, len(job.instr.operands), kernel.rows, headers, parts,
        upwards or job.instr.shares > 1,
    )  # fmt: skip
    return function, tiles


def _printed_with(function: Function, rows: tuple[Tiles, ...]) -> Function:
    """Return a function as it is printed for calls with these tiles, once; several are chosen by a field."""
    key = function.definition, function.struct, rows
    if key not in _finished:
        struct = function.struct
        if struct is not None and len(rows) > 1:
            struct = replace(struct, fields=(*struct.fields, (TILE, "int32_t")))
        text = with_tiles(function.definition, rows)
        lacking = _lacking("\n".join([text, *function.helpers.values()]), function.headers)
        assert not lacking, f"{function.title}: no header of its bundle has {', '.join(lacking)}"
        _finished[key] = replace(function, definition=tidy(text, struct), struct=struct)
    return _finished[key]


_NAME = re.compile(r"\b(?:glow|GLOW)_\w+")
# What macros of headers put other names together of: before ##, and the first argument of one on a line of its own.
_STEM = re.compile(r"\b(glow_\w*)##|^ *GLOW_\w+\((glow_\w+),", re.MULTILINE)


@cache
def _named_in(headers: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return what headers name, with those of every bundle, and how names begin that their macros put together."""
    own = [header.strip('"') for header in headers if header[0] == '"']
    text = "\n".join(runtime_header(name).read_text(encoding="utf-8") for name in (*RUNTIME_FILES, *own))
    return frozenset(_NAME.findall(text)), tuple(before or f"{whole}_" for before, whole in _STEM.findall(text))


def _lacking(text: str, headers: tuple[str, ...]) -> list[str]:
    """Return what a text names of runtime_c that headers lack, which compile alone (tests/kernels/test_headers.py)."""
    named, stems = _named_in(headers)
    return sorted(name for name in set(_NAME.findall(text)) - named if not name.startswith(stems))


def _headers(kernel: KernelDef, variant: KernelVariant) -> tuple[str, ...]:
    intrinsics = sorted({_INTRINSICS[need] for need in variant.needs if need in _INTRINSICS})
    return (*(("<math.h>",) if kernel.needs_math else ()), *intrinsics)


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


class NamedByText(Helpers):
    """Helpers that are named by what they are, not by what was printed before."""

    def name(self, stem: str, text: str) -> str:
        """Return the name of the helper with this text."""
        return super().name(f"helper_{_digest(text)}", text)


def _digest(what: object) -> str:
    return sha256(repr(what).encode()).hexdigest()[: len(_NO_DIGEST)]


_NO_DIGEST = "0" * 10
_printed: dict[object, tuple[Function, Tiles]] = {}  # by template and identity: machines share what was printed
_named, _helpers = NamedByText(), dict[str, str]()  # shared, too
_texts: dict[object, Function] = {}  # by all but the name: what is compiled once serves every plan that prints it
_finished: dict[object, Function] = {}


def function_of(job: Job) -> Function:
    """Return the C function that a job calls, rendered once; instructions of the same text share one."""
    return _called(job)[0]


def _called(job: Job) -> tuple[Function, Tiles]:
    """Return the function that a job calls, and the tiles that it wants."""
    template = kernels.kernel_template(get_kernel(job.instr.kernel), variant_of(job.instr))
    key = template, identity(job.instr, literal=job.literal)
    if key not in _printed:
        function, tiles = _rendered(job, _NO_DIGEST)
        same = function.without_name
        if same not in _texts:
            _texts[same] = _renamed(function, function.name.replace(_NO_DIGEST, _digest(same), 1))
        _printed[key] = _texts[same], tiles
    return _printed[key]


def _renamed(function: Function, name: str) -> Function:
    """Return a function under a name that is the same in each run, whichever machine was first to print it."""
    struct = function.struct and replace(function.struct, name=function.struct.name.replace(function.name, name))
    return replace(function, name=name, definition=function.definition.replace(function.name, name), struct=struct)


def write_program(jobs: Sequence[Job], folder: Path) -> Program:
    """Print every function that `jobs` call into C files in `folder`."""
    called = [_called(job) for job in jobs]
    tiles: dict[str, dict[Tiles, int]] = {}  # of each function, with their rows
    for function, wanted in called:
        of_function = tiles.setdefault(function.name, {})
        of_function.setdefault(wanted, len(of_function))
    different = {function.name: function for function, _ in called}.values()
    functions = [_printed_with(f, tuple(tiles[f.name])) for f in sorted(different, key=lambda f: f.title)]
    numbers = {function.name: number for number, function in enumerate(functions)}
    entries = tuple(numbers[function.name] for function, _ in called)
    rows = tuple((tiles[f.name][wanted],) if len(tiles[f.name]) > 1 else () for f, wanted in called)
    sources = []
    files = len(LEVELS) * -(-len(functions) // (len(LEVELS) * FUNCTIONS_PER_FILE))
    for index in range(files):
        part = functions[index::files]  # some of each kernel in each file
        needed = sorted({header for f in part for header in f.headers}, key=lambda h: (h[0] == '"', h))
        headers = ["<stddef.h>", "<stdint.h>", "<string.h>", *_quoted(RUNTIME_FILES), *needed]
        path = folder / f"functions_{index}.c"
        helpers = {name: text for f in part for name, text in f.helpers.items()}
        sources.append(_render("functions.c.j2", path, functions=part, helpers=helpers, headers=headers))
    sources.append(_render("table.c.j2", folder / "table.c", functions=functions))
    return Program(tuple(sources), tuple(jobs), entries, rows)


def runtime_headers() -> list[str]:
    """Return the headers of runtime_c as a source includes them."""
    folders = (data_dir("runtime_c"), *(data_dir("runtime_c") / isa for isa in instruction_sets()))
    return _quoted(sorted(path.name for folder in folders for path in folder.glob("*.h")))


def _quoted(headers: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in headers]


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
