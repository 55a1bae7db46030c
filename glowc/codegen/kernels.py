"""Prints one C function for an instruction: the signature from the kernel's operands, the body by template.

A parameter prints either as a literal (one function per distinct layer shape) or as a field of a constant
argument struct (one function shared by all layers of that kernel); the templates do not know which.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import jinja2
import numpy as np
from jinja2.bccache import Bucket

from glowc.codegen.loops import HELPERS
from glowc.codegen.names import wrapped
from glowc.errors import InternalError
from glowc.graph.scope import Table
from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.choice import variant_of
from glowc.kernels.common.reals import SamePlan, with_same_functions
from glowc.kernels.isas import is_foreign
from glowc.ops.registry import kernel_folder
from glowc.paths import data_dir, load_cached, store_cached
from glowc.program.ir import WHOLE, Access, Instr, ParamValue, Program
from glowc.program.kernel import AnyKernel, get_kernel

Identity = tuple[object, ...]


def c_float(value: float) -> str:
    """Return a C float literal that reads back as the same float32."""
    single = np.float32(value)
    if math.isnan(single):
        return "NAN"
    if math.isinf(single):
        return "INFINITY" if single > 0 else "(-INFINITY)"
    text = np.format_float_scientific(single, unique=True, trim="0")
    plain = np.format_float_positional(single, unique=True, trim="0")
    best = plain if len(plain) <= len(text) else text
    return f"({best}f)" if best.startswith("-") else f"{best}f"


def c_int(value: int) -> str:
    """Return a C expression for an int32."""
    if value == -(2**31):
        return "INT32_MIN"
    return f"({value})" if value < 0 else str(value)


class _TemplateCache(jinja2.BytecodeCache):
    """Compiled templates in the user's cache."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket when the cache has its template."""
        code = load_cached(f"template-{bucket.key}")
        if code is not None:
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template; a cache that takes nothing more is no error."""
        with suppress(OSError):
            store_cached(f"template-{bucket.key}", bucket.bytecode_to_string())


@cache
def environment() -> jinja2.Environment:
    """The Jinja2 environment of templates/, with compiled templates cached in the user's cache folder."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_dir("templates")),
        bytecode_cache=_TemplateCache(),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    env.filters["cfloat"] = c_float
    env.filters["cint"] = c_int
    env.filters["wrapped"] = wrapped
    env.globals.update(HELPERS)
    return env


@cache
def _templates() -> frozenset[str]:
    root = data_dir("templates")
    return frozenset(path.relative_to(root).as_posix() for path in (root / "kernels").rglob("*.c.j2"))


_FILES: Table[Path] = Table()
"""Templates and headers of plugins by name."""


def add_files(folder: Path, headers: Iterable[Path]) -> None:
    """Let kernels of plugins have their templates in `folder`, and variants these headers."""
    templates = sorted(folder.rglob("*.c.j2"), reverse=True)
    _FILES.add({path.name: path for path in (*templates, *_FILES.all().values(), *headers)})


def foreign_headers(names: Iterable[str]) -> dict[str, str]:
    """Return those of the headers that plugins brought, with their texts."""
    known = _FILES.all()
    return {n: known[n].read_text(encoding="utf-8") for n in names if n in known}


_ENDING = re.compile("(?:rs|q15|q31)$")


def template_of(kernel: AnyKernel, variant: KernelVariant) -> str | None:
    """Return the template that glowc has for a variant of a kernel, below templates/; None: it has none.

    What ends in a multiplier and a shift is printed as what ends in a float32 scale, unless it has its own template.
    """
    pattern = variant.template if "/" in variant.template else f"{variant.folder}/{variant.template}"
    patterns = pattern, f"{variant.folder}/{{}}"
    own, scaled = (kernel.name, kernel.template), (_ENDING.sub("", kernel.name),)
    paths = [f"kernels/{text.format(n)}.c.j2" for names in (own, scaled) for text in patterns for n in names]
    return next((path for path in paths if path in _templates()), None)


def plugin_template(kernel: AnyKernel, variant: KernelVariant) -> str:
    """Return the name of the template of a plugin's variant, in the plugin's folder."""
    return f"{variant.template.format(kernel.template or kernel.name)}__{variant.name}.c.j2"


def kernel_template(kernel: AnyKernel, variant: KernelVariant) -> jinja2.Template:
    """Return the template of a kernel variant; InternalError when the file is missing."""
    name = plugin_template(kernel, variant)
    of_plugin = kernel_folder(kernel.name) is not None or is_foreign(variant.isa)
    if of_plugin and (file := _FILES.all().get(name)) is not None:
        return environment().from_string(file.read_text(encoding="utf-8"))
    path = template_of(kernel, variant)
    if path is None:
        raise InternalError(
            f"kernel {kernel.name} for {variant.name}: no template in templates/kernels/{variant.folder}"
        )
    return environment().get_template(path)


def identity(instr: Instr, *, literal: bool) -> Identity:
    """Return what makes two instructions the same C function."""
    kernel = get_kernel(instr.kernel)
    keys = kernel.print_params if not literal else tuple(sorted(instr.params))
    types = tuple((o.role, o.type.dtype.value) for o in instr.operands)
    plan = instr.plan if literal else instr.plan.without_numbers
    return (
        instr.kernel,
        instr.variant,
        types,
        tuple((k, instr.params[k]) for k in keys),
        plan,
        literal,
        instr.cut,
        instr.columns,
        instr.channels,
        instr.shares > 1,
        _has_units(instr),
    )


_OF_PLAN = "plan_"
"""What begins the names of fields that are numbers of a plan."""


def argument_values(instr: Instr) -> dict[str, ParamValue]:
    """Return the values of the fields that an argument struct may have: parameters, and numbers of the plan."""
    return {**instr.params, **{_OF_PLAN + key: int(getattr(instr.plan, key)) for key in instr.plan.numbers}}


@dataclass(frozen=True, slots=True)
class ArgsStruct:
    """The argument struct of a shared function: C type name and (field, C type) pairs."""

    name: str
    fields: tuple[tuple[str, str], ...]

    def definition(self) -> str:
        """Return the C typedef."""
        body = "".join(f"  {ctype} {name};\n" for name, ctype in self.fields)
        return f"typedef struct {{\n{body}}} {self.name};\n"

    def initializer(self, params: Mapping[str, ParamValue], tile: int = 0) -> str:
        """Return the C initialiser for one instruction's `argument_values`."""
        parts = [f".{name} = {_print(params[name], ctype == 'float')}" for name, ctype in self.fields]
        parts += [f".{TILE} = {tile}"] if tile else []
        return "{" + ", ".join(parts) + "}"


def args_struct(instr: Instr, name: str) -> ArgsStruct:
    """Return the argument struct of the shared function for this instruction's kernel."""
    kernel = get_kernel(instr.kernel)
    fields = [(p, "int32_t") for p in kernel.params] + [(p, "float") for p in kernel.float_params]
    fields += [(_OF_PLAN + key, "int32_t") for key in instr.plan.numbers]
    return ArgsStruct(name, tuple(fields))


def _print(value: ParamValue, is_float: bool) -> str:
    if is_float:
        return c_float(float(value))
    return value if isinstance(value, str) else c_int(int(value))


def signature(instr: Instr, fn: str, struct: ArgsStruct | None) -> str:
    """Return `GLOW_KERNEL void fn(...)`: operands in order, argument struct, output rows.

    A kernel that may be inlined begins with `GLOW_HOT static` instead. Operands that may overlap, in
    place or row by row, or begin at one address are not `restrict`.
    """
    kernel, variant = get_kernel(instr.kernel), variant_of(instr)
    overlaps = variant.in_place or kernel.row_window is not None or kernel.one_buffer
    shared = {*kernel.in_place, "in"} if overlaps else set()
    shared |= {r for r, a in kernel.roles if a is not Access.IN} if shared else set()
    args = []
    for operand in instr.operands:
        const = "const " if operand.access is Access.IN else ""
        restrict = "" if operand.role in shared else "restrict "
        args.append(f"{const}{operand.type.dtype.ctype} *{restrict}{operand.role}")
    if struct is not None and struct.fields:
        args.append(f"const {struct.name} *restrict p")
    if kernel.rows or instr.cut:
        args += ["int32_t y_begin", "int32_t y_end"]
    kind = "GLOW_HOT static" if kernel.inlined else "GLOW_KERNEL"
    return f"{kind} void {fn}({', '.join(args)})"


OWN = "@own@"
"""What stands for the name of a helper in its own text."""


_OF_RUNTIME = "glow_"
"""What names of functions of the runtime begin with."""


class Helpers:
    """The functions that templates print beside those of kernels: equal ones once, each with a name of its own."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._named: dict[str, str] = {}

    def name(self, stem: str, text: str) -> str:
        """Return the name of the helper with this text: unless it has one, `stem` and a number where that is taken."""
        if text not in self._names:
            names = (f"{stem}_{number}" if number > 1 else stem for number in itertools.count(1))
            self._names[text] = next(name for name in names if name not in self._names.values())
        name = self._names[text]
        self._named[name] = text.strip("\n").replace(OWN, name) + "\n"
        return name

    def runtime(self, name: str, text: str) -> str:
        """Return the name of a function that is one of the runtime, of which there is none but with this text."""
        self._named[name] = text.strip("\n") + "\n"
        return name

    def take(self) -> dict[str, str]:
        """Return the definitions of the helpers that were named since the last call, by name."""
        named, self._named = self._named, {}
        return named

    def take_apart(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the same, and those of the runtime by themselves."""
        named = self.take()
        runtime = {name: text for name, text in named.items() if name.startswith(_OF_RUNTIME)}
        return {name: text for name, text in named.items() if name not in runtime}, runtime


def render_kernel(instr: Instr, fn: str, struct: ArgsStruct | None = None) -> str:
    """Return the C definition of the function for `instr` behind those of its helpers."""
    helpers = Helpers()
    function = render_function(instr, fn, helpers, fn, struct)
    return "\n".join([*helpers.take().values(), function])


def render_function(
    instr: Instr, fn: str, helpers: Helpers, stem: str, struct: ArgsStruct | None = None, *, open_tiles: bool = False
) -> str:  # fmt: skip
    """Return the C definition of the function for `instr` alone; with `struct`, parameters are its fields.

    Names of new helpers begin with `stem`. With `open_tiles`, those of its tiles are marked (`tiles_of`).
    """
    kernel = get_kernel(instr.kernel)
    params: dict[str, object] = {}
    for key in kernel.print_params:
        params[key] = instr.params[key]
    for key in (*kernel.params, *kernel.float_params):
        is_float = key in kernel.float_params
        params[key] = f"p->{key}" if struct is not None else _print(instr.params[key], is_float)
    if kernel.extern:
        numbers = [str(params[key]) for key in (*kernel.params, *kernel.float_params)]
        rows = ["y_begin", "y_end"] if kernel.rows else []
        args = ", ".join([*(o.role for o in instr.operands), *numbers, *rows])
        return f"{signature(instr, fn, struct)} {{\n  {kernel.extern}({args});\n}}\n"
    given = argument_values(instr)
    numbers_of_plan = {
        key: f"p->{_OF_PLAN}{key}" if struct is not None else _print(given[_OF_PLAN + key], is_float=False)
        for key in instr.plan.numbers
    }
    types = {o.role: o.type.dtype.ctype for o in instr.operands}
    kinds = {o.role: o.type.dtype for o in instr.operands}

    def helper(what: str, text: str) -> str:
        return helpers.name(f"{stem}_{what}", text)

    if "out_c" in params:
        params["out_pitch"] = params["out_c"]
    params |= {loop.pitch: params[loop.count] for loop in get_kernel(instr.kernel).outer if loop.pitch}
    form = _form(instr, fn, struct, params)
    text = kernel_template(kernel, variant_of(instr)).render(
        fn=fn, signature=form.head, p=form.params, T=types, dtype=kinds, DType=DType,
        v=instr.plan, n=numbers_of_plan, has_scratch="scratch" in types, own=OWN, helper=helper,
        runtime=helpers.runtime, tile=_TILE.__add__,
        first_part=_first_part(instr, params), units_end=WHOLE if _has_units(instr) else 0,
        columns=instr.columns, channels=instr.channels,
    )  # fmt: skip
    text = _with_unused(text, form.head, (*types, *form.more)) + form.after
    text = with_same_functions(text) if isinstance(instr.plan, SamePlan) else text
    text = text.strip("\n") + "\n"
    return text if open_tiles else text.replace(_TILE, "")


@dataclass(frozen=True, slots=True)
class _Form:
    """The head of a function and the parameters that it prints; `after` it one that calls it, with `more` arguments."""

    head: str
    params: Mapping[str, object]
    more: tuple[str, ...] = ()
    after: str = ""


def _form(instr: Instr, fn: str, struct: ArgsStruct | None, params: Mapping[str, object]) -> _Form:
    """Return the form of a function: those that compute columns, or turns of a loop, are called for each part."""
    head, by_struct = signature(instr, fn, struct), ["p"] if struct is not None and struct.fields else []
    loop = get_kernel(instr.kernel).outer_of(instr.params)
    if instr.columns or instr.channels:
        more, shown, source, place = list[str](), dict[str, object](), "in", "out"
        if instr.columns:
            more += ["x_first", "x_count"]
            shown |= {"out_w": "x_count"}
            if variant_of(instr).columns is None:
                source += f" + x * {params['in_col']}"
            else:
                shown |= {"pad_left": f"({params['pad_left']} - x_first * {params['stride_w']})"}
            place += f" + x * {params['out_c']}"
        if instr.channels:
            more += ["c_first", "c_count"]
            shown |= {"out_c": "c_count"}
            place += " + c"
        part = f"{fn}_columns" if instr.columns else f"{fn}_channels"
        own = ", ".join([signature(instr, part, struct)[:-1], *(f"int32_t {name}" for name in more)]) + ")"
        moved = {"in": source, "out": place}
        given = [*(moved.get(o.role, o.role) for o in instr.operands), *by_struct]
        after = (_by_columns if instr.columns else _by_channels)(part, given, instr, params)
        return _Form(own, {**params, **shown}, tuple(more), f"\n{head} {{\n{after}}}\n")
    if instr.cut and instr.rows is None and loop is not None and not _has_units(instr):
        own = signature(replace(instr, cut=False), f"{fn}_part", struct)[:-1] + ", int32_t y_count)"
        begin, count, after = "y_begin", "y_end - y_begin", ""
        if loop.grain > 1:
            begin, count, all_ = "begin", "end - begin", params[loop.count]
            after = f"  const int32_t begin = y_begin * {loop.grain};\n"
            after += f"  const int32_t end = y_end == {all_} / {loop.grain} ? {all_} : y_end * {loop.grain};\n"
        given = [
            " * ".join([f"{o.role} + {begin}", *(str(params[step]) for step in loop.steps[o.role])])
            if o.role in loop.steps else o.role
            for o in instr.operands
        ]  # fmt: skip
        after += f"  {fn}_part({', '.join([*given, *by_struct])}, {count});\n"
        return _Form(own, {**params, loop.count: "y_count"}, ("y_count",), f"\n{head} {{\n{after}}}\n")
    return _Form(head, params)


def _by_columns(fn: str, given: Sequence[str], instr: Instr, p: Mapping[str, object]) -> str:
    """Return statements that call a function for parts of rows, in order: columns, and channels of them."""
    step, some = instr.columns, instr.channels
    parts, at, blocks, more = "", "i", "", ""
    if some:
        blocks = f"  const int32_t blocks = ({p['out_c']} + {some - 1}) / {some};\n"
        at = "i / blocks"
        parts = f"""\
    const int32_t c = i % blocks * {some};
    const int32_t channels = {p["out_c"]} - c < {some} ? {p["out_c"]} - c : {some};
"""
        more = ", c, channels"
    return f"""\
  const int32_t parts = ({p["out_w"]} + {step - 1}) / {step};
{blocks}  for (int32_t i = y_begin; i < y_end; i++) {{
    const int32_t y = {p["descending"]} != 0 ? {p["out_h"]} - 1 - {at} / parts : {at} / parts;
    const int32_t x = {at} % parts * {step};
    const int32_t count = {p["out_w"]} - x < {step} ? {p["out_w"]} - x : {step};
{parts}    {fn}({", ".join(given)}, y, y + 1, x, count{more});
  }}
"""


def _by_channels(fn: str, given: Sequence[str], instr: Instr, p: Mapping[str, object]) -> str:
    """Return statements that call a function for some channels of all pixels, in order."""
    some = instr.channels
    return f"""\
  for (int32_t i = y_begin; i < y_end; i++) {{
    const int32_t c = i * {some};
    const int32_t channels = {p["out_c"]} - c < {some} ? {p["out_c"]} - c : {some};
    {fn}({", ".join(given)}, 0, {p["out_h"]}, c, channels);
  }}
"""


def _has_units(instr: Instr) -> bool:
    """Say whether the range of a call counts units of the variant's own, which one core computes in order."""
    return instr.cut and instr.shares == 1 and not instr.columns and variant_of(instr).units(instr) > 0


def _first_part(instr: Instr, params: Mapping[str, object]) -> str:
    """Return the condition that a call computes the first pixels of an instruction, nothing where each does.

    Where parts are of some channels, several parts compute them.
    """
    if not instr.cut or instr.rows is None or instr.shares > 1:
        return ""
    first = "y_begin == 0"
    if "descending" in params:
        first = f"({params['descending']} != 0 ? y_end == {params['out_h']} : y_begin == 0)"
    return f"({first} && x_first == 0)" if instr.columns else first


_TILE = "glowc_tile_"
"""What stands before the name of a tile, a function of the runtime whose place another one of its type can take."""


def tiles_of(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text in which the tiles have numbers, and their names."""
    names = tuple(dict.fromkeys(re.findall(rf"\b{_TILE}(\w+)", text)))
    for number, name in enumerate(names):
        text = re.sub(rf"\b{_TILE}{name}\b", f"{_TILE}{number}", text)
    return text, names


def with_tiles(text: str, rows: Sequence[tuple[str, ...]]) -> str:
    """Return the text of `tiles_of` with the names that its calls give: where they differ, those of row p->TILE."""
    for number, column in enumerate(zip(*rows, strict=True)):
        chosen = column[-1]
        for row in range(len(column) - 2, -1, -1) if len(set(column)) > 1 else ():
            chosen = f"p->{TILE} == {row} ? {column[row]} : {chosen}"
        text = re.sub(rf"\b{_TILE}{number}\b", chosen if chosen == column[-1] else f"({chosen})", text)
    return text


TILE = "tile"
"""The field of an argument struct that says which tiles a function calls."""


# What names an operand without reading it: comments, strings, operands of assembly, members.
_NO_USE = re.compile(r'/\*.*?\*/|(?:\[\w+\]\s*)?"(?:\\.|[^"\\])*"|(?:\.|->)\w+', re.DOTALL)


def _with_unused(text: str, signature: str, roles: Iterable[str]) -> str:
    """Return a function with `(void)role;` for the operands that its body does not read."""
    head, opening, body = text.partition(f"{signature} {{")
    named = set(re.findall(r"\w+", _NO_USE.sub("", body)))
    return head + opening + "".join(f"\n  (void){role};" for role in roles if role not in named) + body


def extern_files(program: Program) -> tuple[dict[str, str], dict[str, str]]:
    """Return (headers, sources) of the C functions that a program's kernels name, text by file name."""
    headers: dict[str, str] = {}
    sources: dict[str, str] = {}
    for name in sorted({instr.kernel for instr in program.instrs}):
        folder = kernel_folder(name)
        kernel = get_kernel(name) if folder is not None else None
        if folder is None or kernel is None or not kernel.extern:
            continue
        if kernel.extern_header:
            headers[Path(kernel.extern_header).name] = (folder / kernel.extern_header).read_text(encoding="utf-8")
        for source in kernel.extern_sources:
            sources[Path(source).name] = (folder / source).read_text(encoding="utf-8")
    return headers, sources
