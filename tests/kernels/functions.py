"""Jobs -> C functions: one call of one printed function each, and how it is printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256

import numpy as np

from glowc.codegen import kernels
from glowc.codegen.headers import RUNTIME_FILES
from glowc.codegen.kernels import (
    TILE,
    ArgsStruct,
    Helpers,
    args_struct,
    identity,
    render_function,
    tiles_of,
    with_tiles,
)
from glowc.codegen.printed import tidy
from glowc.codegen.view import headers_of
from glowc.kernels.base import KernelVariant
from glowc.kernels.choice import variant_of
from glowc.kernels.registry import instruction_sets
from glowc.paths import data_dir, runtime_header
from glowc.program.ir import WHOLE, Access, Instr
from glowc.program.kernel import KernelDef, get_kernel
from tests.kernels.case import Case

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
    return printed_with(function, (tiles,))


def _rendered(job: Job, number: int | str) -> tuple[Function, Tiles]:
    """Return the function of a job, and its tiles."""
    kernel = get_kernel(job.instr.kernel)
    name = f"fn{number}_{job.instr.kernel}"
    fields = None if job.literal else args_struct(job.instr, f"{name}_args_t")
    shown = fields if fields is not None and fields.fields else None
    stem = f"helper_{job.instr.kernel}__{job.instr.variant}"
    text = render_function(job.instr, name, _named, stem, fields, open_tiles=shown is not None)
    definition, tiles = tiles_of(text)
    named = _named.take()
    _helpers.update({helper: tidy(text) for helper, text in named.items() if helper not in _helpers})
    helpers = {helper: _helpers[helper] for helper in named if helper not in tiles}
    headers = (*_headers(kernel, variant_of(job.instr)), *quoted(headers_of([job.instr])))
    parts = _parts_of(job.instr, literal=job.literal)
    upwards = parts == "rows" and job.literal and job.instr.params.get("descending") == 1  # as its text has it
    function = Function(
        name, job.function, definition, helpers, shown, len(job.instr.operands), kernel.rows, headers, parts,
        upwards or job.instr.shares > 1,
    )  # fmt: skip
    return function, tiles


def printed_with(function: Function, rows: tuple[Tiles, ...]) -> Function:
    """Return a function as it is printed for calls with these tiles, once; several are chosen by a field."""
    key = function.definition, function.struct, rows
    if key not in _finished:
        struct = function.struct
        if struct is not None and len(rows) > 1:
            struct = replace(struct, fields=(*struct.fields, (TILE, "int32_t")))
        text = with_tiles(function.definition, rows)
        tiles = {tile: _helpers[tile] for row in rows for tile in row if tile in _helpers}
        helpers = {**function.helpers, **tiles}
        lacking = set(_lacking("\n".join([text, *helpers.values()]), function.headers)) - helpers.keys()
        assert not lacking, f"{function.title}: no header of its bundle has {', '.join(sorted(lacking))}"
        _finished[key] = replace(function, definition=tidy(text, struct), helpers=helpers, struct=struct)
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
    return called_of(job)[0]


def called_of(job: Job) -> tuple[Function, Tiles]:
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


def runtime_headers() -> list[str]:
    """Return the headers of runtime_c as a source includes them."""
    folders = (data_dir("runtime_c"), *(data_dir("runtime_c") / isa for isa in instruction_sets()))
    return quoted(sorted(path.name for folder in folders for path in folder.glob("*.h")))


def quoted(headers: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in headers]
