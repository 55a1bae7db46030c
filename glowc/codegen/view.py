"""Program and plan -> what the templates print: tensors, constants, functions, layers. No C text but names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from glowc.codegen.comments import User, commented, function_comment
from glowc.codegen.headers import with_included
from glowc.codegen.kernels import (
    TILE,
    ArgsStruct,
    Helpers,
    Identity,
    args_struct,
    argument_values,
    identity,
    render_function,
    tiles_of,
    with_tiles,
)
from glowc.codegen.names import LONGEST, c_ident, c_lines, in_comment, prints_math, unique_idents
from glowc.codegen.places import Places
from glowc.codegen.printed import tidy
from glowc.graph.types import NARROW, DType, TensorType
from glowc.kernels.choice import variant_of
from glowc.kernels.common.reals import SAME_HEADER, SamePlan
from glowc.program.ir import Access, BufferKind, Instr, Operand, Program
from glowc.program.kernel import get_kernel


@dataclass(frozen=True, slots=True)
class TensorView:
    """A model input or output as firmware sees it."""

    name: str
    ident: str
    macro: str
    type: TensorType
    offset_bytes: int
    exported_shape: tuple[int, ...]
    layout: str
    region: str = ""

    @property
    def ctype(self) -> str:
        """C type of one element."""
        return self.type.dtype.ctype

    @property
    def scale(self) -> float | None:
        """Scale of a quantised tensor."""
        return self.type.quant.scale[0] if self.type.quant else None

    @property
    def zero_point(self) -> int | None:
        """Zero point of a quantised tensor."""
        return self.type.quant.zero_point[0] if self.type.quant else None


@dataclass(frozen=True, slots=True)
class StateView:
    """Bytes of the arena that keep their value between inferences.

    A reset writes constant `initial`, which has `initial_bytes`, as often as it fits; without one, bytes `fill`.
    """

    name: str
    title: str
    offset_bytes: int
    size_bytes: int
    initial: str
    region: str = ""
    initial_bytes: int = 0
    fill: int = 0


@dataclass(frozen=True, slots=True)
class ConstView:
    """One constant array; `needs_math`: its text has macros of math.h."""

    ident: str
    ctype: str
    count: int
    align_bytes: int
    size_bytes: int
    array: np.ndarray = field(repr=False, compare=False)
    comment: str
    needs_math: bool = False

    @property
    def text(self) -> str:
        """The elements as lines of C, made anew each time: of large arrays it takes many times their bytes."""
        return c_lines(self.array)


@dataclass(frozen=True, slots=True)
class FunctionView:
    """One C function, when it is shared between shapes its argument struct, and the row of its tiles for a call."""

    name: str
    struct: ArgsStruct | None
    tile: int = 0


@dataclass(frozen=True, slots=True)
class _Printed:
    """The text of a function with numbers for its tiles, the tiles of its calls, and its helpers by name."""

    view: FunctionView
    text: str
    tiles: list[tuple[str, ...]]
    helpers: dict[str, str]

    @property
    def has_field(self) -> bool:
        """Whether its calls say which tiles they want."""
        return len(self.tiles) > 1


@dataclass(frozen=True, slots=True)
class LayerView:
    """One call in the generated inference function; `pointers` to arenas are among its arguments."""

    index: int
    name: str
    op: str
    kernel: str
    call: str
    args: tuple[str, str, str] | None
    comment: str
    macs: int
    pointers: frozenset[str] = frozenset()


def tensor_views(
    operands: tuple[Operand, ...], program: Program, places: Places, kind: str,
    exported: Mapping[str, tuple[tuple[int, ...], str]],
) -> tuple[TensorView, ...]:  # fmt: skip
    """Return the views of all inputs (kind "input") or outputs ("output")."""
    idents = unique_idents(o.role for o in operands)
    for name, ident in idents.items():
        if ident.upper().endswith("OFFSET"):  # X_OFFSET_BYTES is the offset of X already
            idents[name] = f"{ident}_"
    views = []
    for operand in operands:
        ident = kind if len(operands) == 1 else f"{kind}_{idents[operand.role]}"
        root, offset = program.root(operand.buffer)
        shape, layout = exported.get(operand.role, (operand.type.shape, ""))
        views.append(
            TensorView(
                operand.role, ident, ident.upper(), operand.type, places.offsets.get(root, 0) + offset, shape, layout,
                places.region(root),
            )
        )  # fmt: skip
    return tuple(views)


def state_starts(program: Program) -> dict[str, np.ndarray]:
    """Return what resets write, as constants by name: the part that repeats, and none where all bytes are equal."""
    starts = {}
    for name, array in program.states.items():
        flat = np.ascontiguousarray(array).reshape(-1)
        raw = flat.view(np.uint8)
        if (raw != raw[0]).any():
            period = next(n for n in range(1, flat.size + 1) if flat.size % n == 0 and _repeats(flat, n))
            starts[f"{name}_initial"] = flat[:period]
    return starts


def _repeats(flat: np.ndarray, period: int) -> bool:
    raw = flat.view(np.uint8).reshape(flat.size // period, -1)
    return bool((raw == raw[0]).all())


def state_views(program: Program, consts: Mapping[str, ConstView], places: Places) -> tuple[StateView, ...]:
    """Return the views of all states; constant `<state>_initial` is there for those of `state_starts`."""
    views = []
    for name, array in program.states.items():
        start = consts.get(f"{name}_initial")
        title = name.replace("*/", "* /").replace("/*", "/ *")
        initial = start.ident if start else ""
        size, fill = start.size_bytes if start else 0, 0 if start else int(array.view(np.uint8).flat[0])
        views.append(
            StateView(name, title, places.offsets[name], array.nbytes, initial, places.region(name), size, fill)
        )
    return tuple(views)


def const_views(program: Program, prefix: str, align_bytes: int) -> dict[str, ConstView]:
    """Return the view of each constant, by buffer name; `_w_` keeps them apart from the functions of the model."""
    names = unique_idents(program.consts)
    views = {}
    for name, array in program.consts.items():
        kind = _kind(array)
        align = max(array.dtype.itemsize, align_bytes if array.nbytes >= 16 else 1)
        shape = "x".join(map(str, array.shape)) or "scalar"
        views[name] = ConstView(
            f"{prefix}_w_{names[name]}", kind.ctype, max(array.size, 1), align, array.nbytes, array,
            _described(f"{kind.value} {shape}", name), prints_math(array),
        )  # fmt: skip
    return views


def _described(kind: str, name: str) -> str:
    """Return the comment of a constant; one whose identifier is cut off is named whole."""
    return in_comment(f"{kind}: {name}") if len(c_ident(name)) > LONGEST else kind


def _kind(array: np.ndarray) -> DType:
    return next(d for d in DType if d not in NARROW and d.numpy == array.dtype)


Family = tuple[str, str, str]


def family(instr: Instr) -> Family:
    """Return what instructions share code by: kernel, variant, and the path that the variant takes."""
    return instr.kernel, instr.variant, instr.plan.path


def literal_kernels(program: Program, opt: str) -> frozenset[Family]:
    """Return the families of a program that are printed with literal dimensions, one function per distinct shape."""
    shapes: dict[Family, set[Identity]] = {}
    for instr in program.instrs:
        if not instr.is_marker:
            shapes.setdefault(family(instr), set()).add(identity(instr, literal=True))
    return literal_families(shapes, opt)


def literal_families(shapes: Mapping[Family, Collection[Identity]], opt: str) -> frozenset[Family]:
    """Return the families to print with literal dimensions, from their distinct shapes.

    speed: all; size: those with one shape; balanced: those with at most two, where a shared function would
    save little code.
    """
    limit = {"speed": 1 << 30, "balanced": 2, "size": 1}[opt]
    return frozenset(key for key, seen in shapes.items() if len(seen) <= limit)


_NAME = "@name@"
"""What stands for the name of a function in the text that equal ones are found by."""


class FunctionTable:
    """The functions of one bundle: equal ones are printed once."""

    def __init__(self, prefix: str, literal: frozenset[Family]) -> None:
        self._prefix, self._literal = prefix, literal
        self._model, self._before = "", 0  # of several models: the one whose layers are next, layers of those before
        self._functions: dict[Identity, FunctionView] = {}
        self._structs: dict[str, ArgsStruct] = {}
        self._texts: dict[str, _Printed] = {}  # by the text with `_NAME` in it, and numbers for its tiles
        self._calls: Counter[tuple[str, tuple[str, ...]]] = Counter()  # layers by that text and their tiles
        self._helpers = Helpers()
        self._users: dict[str, list[User]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The functions in the order of first use, each once."""
        return tuple(printed.view.name for printed in self._texts.values())

    @property
    def definitions(self) -> list[str]:
        """The functions as they are printed, each under a comment that names the layers got so far."""
        known = {struct.name: struct for struct in self.structs}
        found, printed = list[str](), set[str]()
        for function in self._texts.values():
            view = function.view
            struct = known[view.struct.name] if view.struct is not None else None
            comment = function_comment(self._users[view.name], struct)
            helpers = [text for name, text in function.helpers.items() if name not in printed]
            printed.update(function.helpers)
            text = "\n".join([*helpers, with_tiles(function.text, function.tiles)])
            found.append(commented(tidy(text, struct), view.name, comment))
        return found

    @property
    def structs(self) -> tuple[ArgsStruct, ...]:
        """Argument structs in the order of first use."""
        choosing = {p.view.struct.name for p in self._texts.values() if p.view.struct is not None and p.has_field}
        field = ((TILE, "int32_t"),)
        return tuple(replace(s, fields=s.fields + field * (s.name in choosing)) for s in self._structs.values())

    def get(self, instr: Instr) -> FunctionView:
        """Return the function that executes `instr`, the next layer."""
        literal = family(instr) in self._literal
        key = identity(instr, literal=literal)
        if key not in self._functions:
            self._functions[key] = self._make(instr, literal)
        function = self._functions[key]
        layer = self._layers - self._before
        self._users.setdefault(function.name, []).append(User(layer, instr, self._model))
        return function

    def begin_model(self, name: str, literal: frozenset[Family]) -> None:
        """Let the layers of another model come next, which has literal families of its own."""
        self._model, self._literal, self._before = f"{name} ", literal, self._layers

    def count(self, instrs: Iterable[Instr]) -> None:
        """Count the layers that come next: tiles that one layer wants alone stay in a function of its own.

        Compilers make the parameters of such a function literals.
        """
        layers: dict[Identity, list[Instr]] = {}
        for instr in instrs:
            if not instr.is_marker and family(instr) not in self._literal:
                layers.setdefault(identity(instr, literal=False), []).append(instr)
        for same in layers.values():
            text = render_function(same[0], _NAME, Helpers(), "", self._struct(same[0]), open_tiles=True)
            self._calls[tiles_of(text)] += len(same)

    def _struct(self, instr: Instr) -> ArgsStruct | None:
        struct = args_struct(instr, f"{self._prefix}_{instr.kernel}_args_t")
        return struct if struct.fields else None

    @property
    def _layers(self) -> int:
        return sum(map(len, self._users.values()))

    def _make(self, instr: Instr, literal: bool) -> FunctionView:
        struct = None if literal else self._struct(instr)
        if struct is not None:
            known = self._structs.setdefault(struct.name, struct)
            self._structs[struct.name] = replace(known, fields=tuple(dict.fromkeys((*known.fields, *struct.fields))))
        count = sum(name.startswith(f"{self._prefix}_{instr.kernel}_") for name in self.names)
        base = f"{self._prefix}_{instr.kernel}" + (f"_{count + 1}" if count else "")
        name = f"{base}__{instr.variant}"
        text = render_function(instr, _NAME, self._helpers, name, struct, open_tiles=struct is not None)
        text, tiles = tiles_of(text)
        if self._calls[text, tiles] < 2:
            text, tiles = with_tiles(text, [tiles]), ()
        if text not in self._texts:
            self._texts[text] = _Printed(FunctionView(name, struct), text.replace(_NAME, name), [], {})
        printed = self._texts[text]
        printed.helpers.update(self._helpers.take())
        if tiles not in printed.tiles:
            printed.tiles.append(tiles)
        return replace(printed.view, tile=printed.tiles.index(tiles))


def layer_views(
    program: Program,
    table: FunctionTable,
    consts: Mapping[str, ConstView],
    places: Places,
    prefix: str,
    callers: Mapping[str, str],
) -> tuple[LayerView, ...]:
    """Return one layer per instruction, with the C call that executes it; in a segment it computes row `y`.

    `callers` are the C names of the roots that are buffers of the caller.
    """
    layers: list[LayerView] = []
    table.count(program.instrs)
    moves = {s.begin + i: a for s in program.segments for i, a in enumerate(s.advances)}
    walks = program.slices.walks if program.slices is not None else {}
    moves |= walks
    for instr in (i for i in program.instrs if not i.is_marker):
        index = len(layers)
        function = table.get(instr)
        at = {a.role: f" + (y % {a.ring}) * {a.row_bytes}" for a in moves.get(index, ())}
        if instr.shares > 1:
            at |= {o.role: _of_share(program, instr, o) for o in instr.operands if o.role == "scratch"}
        arguments = [_address(program, o, consts, places, callers, at.get(o.role, "")) for o in instr.operands]
        args = None
        if function.struct is not None:
            name = f"{prefix}_args_{index}"
            args = (function.struct.name, name, function.struct.initializer(argument_values(instr), function.tile))
            arguments.append(f"&{name}")
        if instr.cut:
            arguments += ["y", "y_end"]
        elif instr.rows is not None:
            arguments += ["y", "y + 1"] if index in moves else [str(row) for row in instr.rows]
        call = f"{function.name}({', '.join(arguments)});"
        if index in walks:
            call = f"for (; y < y_end; y++) {{ {call} }}"
        comment = in_comment(f"{index}: {instr.op} {', '.join(instr.origin)}")
        name = instr.origin[0] if instr.origin else instr.name
        layers.append(
            LayerView(index, name, instr.op, f"{instr.kernel}__{instr.variant}",
                      call, args, comment, instr.macs,
                      _pointers(program, instr, places, callers))
        )  # fmt: skip
    return tuple(layers)


def _of_share(program: Program, instr: Instr, scratch: Operand) -> str:
    """Return by how much the scratch of a share is behind that of the first."""
    return f" + share * {program.buffers[scratch.buffer].size_bytes // instr.shares}u"


def _pointers(program: Program, instr: Instr, places: Places, callers: Mapping[str, str]) -> frozenset[str]:
    """Return the pointers to arenas by which an instruction reaches its operands."""
    roots = {program.root(o.buffer)[0] for o in instr.operands}
    return frozenset(places.pointer(root) for root in roots if root in places.offsets and root not in callers)


def _address(
    program: Program,
    o: Operand,
    consts: Mapping[str, ConstView],
    places: Places,
    callers: Mapping[str, str],
    row: str,
) -> str:
    root, offset = program.root(o.buffer)
    if program.buffers[root].kind is BufferKind.CONST:
        ident = consts[root].ident
        return ident if offset == 0 else f"{ident} + {offset // o.type.dtype.bytes}"
    const = "const " if o.access is Access.IN else ""
    place = f"{places.pointer(root)} + {places.offsets[root] + offset}{row}" if root in places.offsets else ""
    if root in callers:
        place = f"({const}uint8_t *){callers[root]} + {offset}{row}"
    through = "(void *)" if o.type.dtype.bytes > 1 and not const else "(const void *)" if o.type.dtype.bytes > 1 else ""
    return f"({const}{o.type.dtype.ctype} *){through}({place})"


def kernel_headers(program: Program) -> list[str]:
    """Return the runtime headers that the chosen kernel variants need, and those that they include."""
    return headers_of([i for i in program.instrs if not i.is_marker])


def headers_of(instrs: Sequence[Instr]) -> list[str]:
    """Return the runtime headers that the variants of instructions need, and those that they include."""
    same = {SAME_HEADER for i in instrs if isinstance(i.plan, SamePlan)}
    return with_included({variant_of(i).header for i in instrs} - {""} | same)


# What is true, to a compiler, where a core lacks a feature (ACLE, section 5).
_LACKING = {
    "a32": "!defined(__arm__)", "a64": "!defined(__aarch64__)", "neon": "!defined(__ARM_NEON)",
    "dot": "!defined(__ARM_FEATURE_DOTPROD)", "i8mm": "!defined(__ARM_FEATURE_MATMUL_INT8)",
    "mve": "!defined(__ARM_FEATURE_MVE)",
}  # fmt: skip
# The same of features whose kernels have twins in portable C. For "vcvtn" gcc 12 has no macro on Cortex-M.
_LACKING_TWINNED = {
    "dsp": "!defined(__ARM_FEATURE_DSP)", "fpu": "!defined(__ARM_FP)", "thumb": "!defined(__thumb__)",
    "thumb1": "defined(__thumb2__)", "thumb2": "!defined(__thumb2__)",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Guard:
    """What keeps a bundle from a core that it is not made for: conditions of the preprocessor, any of which is wrong.

    Without `twins` the C cannot be compiled there; with them it can, and computes the same bytes slower.
    """

    lacking: tuple[str, ...] = ()
    twins: bool = False


def core_guard(program: Program, features: frozenset[str]) -> Guard:
    """Return the guard of the chosen variants, for a CPU with these features; empty where all of them are plain C."""
    needs = {need for i in program.instrs if not i.is_marker for need in variant_of(i).needs}
    hard = sorted(_LACKING[need] for need in needs & set(_LACKING))
    if hard:
        return Guard(tuple(hard))
    if "thumb" not in features:  # an FPU elsewhere is that of plain C
        needs -= {"fpu"}
    if "dsp" in needs:  # the assembly of these kernels scales sums by the FPU
        needs |= {"fpu"} & features
    if {"thumb1", "thumb2"} & needs:
        needs |= {"thumb"}
    return Guard(tuple(sorted(_LACKING_TWINNED[need] for need in needs & set(_LACKING_TWINNED))), twins=True)


def caller_names(program: Program, *views: Sequence[TensorView]) -> dict[str, str]:
    """Return the C names of the roots that are buffers of the caller; of one that is several, the first."""
    operands = (*program.inputs, *program.outputs)
    roots = {o.role: program.root(o.buffer)[0] for o in operands}
    tensors = [t for group in views for t in group]
    return {roots[t.name]: t.ident for t in reversed(tensors) if program.is_callers(roots[t.name])}


def needs_math(program: Program) -> bool:
    """True when a kernel or a constant of the program uses math.h."""
    kernels = {i.kernel for i in program.instrs if not i.is_marker}
    return any(get_kernel(k).needs_math for k in kernels)


def prefix_of(name: str) -> str:
    """Return the C prefix of a model name."""
    return c_ident(name).lower()
