"""What an operator and a kernel are to the compiler: `OpDef`, `KernelDef`, `KernelVariant`.

An operator file in this folder defines `OP` (or `OPS`) and, when it brings kernels, `KERNELS`. The folder is
listed in sorted order by `registry`; nothing else has to be edited.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import numpy as np

from glowc.board import Cpu
from glowc.graph.attrs import Attr, Float, Str
from glowc.graph.graph import AttrValue, Node
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.program.ir import Access, Instr, ParamValue

Types = tuple[TensorType, ...]
MaybeTypes = tuple[TensorType | None, ...]


class OpError(ValueError):
    """A node does not fit its operator's type rule; the text says what was seen."""


@dataclass(frozen=True, slots=True)
class Call:
    """One evaluation of an operator by the numpy interpreter: arrays, and the types that give them meaning."""

    node: Node
    inputs: tuple[np.ndarray | None, ...]
    in_types: MaybeTypes
    out_types: Types

    @property
    def attrs(self) -> Mapping[str, AttrValue]:
        """The node's attributes."""
        return self.node.attrs

    def array(self, index: int) -> np.ndarray:
        """Return input `index`, which must be present."""
        value = self.inputs[index]
        assert value is not None
        return value

    def optional(self, index: int) -> np.ndarray | None:
        """Return input `index`, or None when the node leaves it out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def quant(self, index: int) -> QuantParams | None:
        """Quantisation of input `index`, None for a float one."""
        type_ = self.in_types[index]
        return type_.quant if type_ is not None else None

    @property
    def out_quant(self) -> QuantParams | None:
        """Quantisation of the first output."""
        return self.out_types[0].quant


@dataclass(frozen=True, slots=True)
class Ref:
    """What a lowering passes to `emit`: a buffer or constant, and the tensor type seen there."""

    buffer: str
    type: TensorType


class LowerCtx(Protocol):
    """What a lowering may ask and do; `glowc.lower` implements it."""

    @property
    def cpu(self) -> Cpu:
        """The CPU compiled for."""
        ...

    def type(self, value: str) -> TensorType:
        """Type of a graph value."""
        ...

    def const_value(self, value: str) -> np.ndarray | None:
        """The array of a graph constant, None when the value is computed at run time."""
        ...

    def is_used(self, value: str) -> bool:
        """True when a node reads the graph value or it is an output of the model."""
        ...

    def read(self, value: str) -> Ref:
        """Operand that reads a graph value (a constant is added to the weights)."""
        ...

    def write(self, value: str) -> Ref:
        """Operand that writes a graph value."""
        ...

    def const(self, array: np.ndarray, name: str) -> Ref:
        """Add a constant; equal constants are stored once."""
        ...

    def temp(self, type_: TensorType, name: str) -> Ref:
        """Add an intermediate tensor that is no graph value."""
        ...

    def state(self, name: str, type_: TensorType, initial: np.ndarray) -> Ref:
        """Add a tensor that keeps its value between inferences; `initial` is what a reset writes."""
        ...

    def kept(self, value: str, initial: np.ndarray) -> Ref:
        """Let a graph value keep its bytes between inferences; another buffer when it is an output of the model."""
        ...

    def emit(
        self,
        kernel: str,
        operands: Mapping[str, Ref],
        params: Mapping[str, ParamValue] | None = None,
        *,
        rows: tuple[int, int] | None = None,
        macs: int = 0,
    ) -> None:
        """Append one instruction for the node being lowered; the variant is chosen here."""
        ...


@dataclass(frozen=True, slots=True)
class OpDef:
    """An operator of the graph IR.

    `infer(node, in_types)` returns the output types (shape and dtype are binding; quantisation is the
    graph's) and raises OpError; `reference(call)` evaluates it in numpy, by the formula that the kernels
    must meet bit for bit on integers; `lower(node, ctx)` emits instructions. `attrs` are the attributes that the
    operator knows, those that passes put on it included, with kind and default: `{"alpha": Float(0.01)}`. Another
    one is an error at import and behind every pass. `max_version` is the newest ONNX opset version whose
    definition is known (its since_version). `int8` says that QDQ around it folds to integers.
    """

    name: str
    infer: Callable[[Node, MaybeTypes], Types]
    reference: Callable[[Call], tuple[np.ndarray, ...]]
    lower: Callable[[Node, LowerCtx], None]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    domain: str = ""
    max_version: int = 0
    int8: bool = False
    doc: str = ""
    required: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse a mere set of names; note the attributes that every node must have."""
        if not isinstance(self.attrs, Mapping):
            raise TypeError(f"operator {self.name}: attrs needs kinds and defaults, {{'alpha': Float(0.01)}}")
        object.__setattr__(self, "required", frozenset(key for key, attr in self.attrs.items() if attr.required))


CLAMP: Mapping[str, Attr] = {"act_min": Float(-math.inf), "act_max": Float(math.inf)}
"""Attributes of an operator that can clamp its result."""
LAYOUT = Str("nchw", words=("nchw", "nhwc"))


def clamp_of(node: Node) -> tuple[float, float]:
    """Return the bounds that a node clamps its result to."""
    return node.float_("act_min"), node.float_("act_max")


Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Packed:
    """What packing made of the constants: arrays by role, and facts that it found, which the plan may print with."""

    arrays: Arrays
    facts: Mapping[str, ParamValue] = field(default_factory=dict)


def always(_: Instr) -> bool:
    """Accept every instruction."""
    return True


def no_scratch(_: Instr) -> int:
    """Need no scratch."""
    return 0


_ACTIVATIONS = frozenset({"in", "in_scale", "in_zp", "a", "b", "scratch"})


def no_plan(_: Instr) -> Mapping[str, ParamValue]:
    """Print with the kernel's own parameters only."""
    return {}


@dataclass(frozen=True, slots=True)
class KernelVariant:
    """One C implementation of a kernel: for which CPUs, which shapes, and what it needs besides.

    `needs` are CPU features; `in_place` allows the output to have the same address as the first input
    named in the kernel's `in_place`; the variant with the highest `rank` among the accepted is chosen.
    `pack_weights` rearranges the constant operand `weights` at compile time; `pack` takes all constant operands
    by role and returns those that it replaces (weights with the bias folded in, an empty bias ...), with what it found
    out about them as `Packed`: `plan` and `scratch_bytes` see that in `Instr.facts`. `plan` gives
    further values that the template prints as `v.<key>`; they belong to the function's identity. `template_isa`
    names the template file when variants share one; `header` is the runtime header that it needs. `packs` are the
    operands that `pack` reads, by default all but the activations: where one of them is computed or an input of the
    model, the variant is not for the instruction. `like` names the variant whose costs it has, where it is not measured
    by itself.
    `rows_in_order` keeps the kernel's row contract (`KernelDef.row_window`, `length`), so that the output may be
    planned over input that is dead by then; `streams` says of a variant with scratch that calls for single rows
    give what one call for all gives at little more cost, and that no scratch lives from one call to the next.
    `speed_only` variants spend RAM or flash that only `--opt speed` is for.
    `row_block` are the pixels that it computes together: a row of a call costs as much as one of a whole multiple.
    """

    isa: str
    needs: frozenset[str] = frozenset()
    rank: int = 0
    in_place: bool = False
    accepts: Callable[[Instr], bool] = always
    scratch_bytes: Callable[[Instr], int] = no_scratch
    pack_weights: Callable[[np.ndarray, Instr], np.ndarray] | None = None
    pack: Callable[[Arrays, Instr], Arrays | Packed] | None = None
    plan: Callable[[Instr], Mapping[str, ParamValue]] = no_plan
    rows_in_order: bool = True
    streams: bool = False
    row_block: int = 1
    speed_only: bool = False
    template_isa: str = ""
    header: str = ""
    packs: frozenset[str] | None = None
    like: str = ""

    def packed_roles(self, instr: Instr) -> frozenset[str]:
        """Return the operands of an instruction that must be constants for this variant to prepare them."""
        if self.pack is None and self.pack_weights is None:
            return frozenset()
        read = frozenset(o.role for o in instr.operands if o.access is Access.IN) - _ACTIVATIONS
        return read if self.packs is None else self.packs


def pack_constants(variant: KernelVariant, constants: Arrays, instr: Instr) -> Packed:
    """Return the constants that a variant replaces, and what it found out about them."""
    replaced: dict[str, np.ndarray] = {}
    if variant.pack_weights is not None:
        replaced["weights"] = variant.pack_weights(constants["weights"], instr)
    found = variant.pack(constants, instr) if variant.pack is not None else Packed({})
    packed = found if isinstance(found, Packed) else Packed(found)
    return Packed({**replaced, **packed.arrays}, packed.facts)


def streams_rows(variant: KernelVariant, instr: Instr) -> bool:
    """Say whether a variant may compute the rows of an instruction one call at a time, in rings."""
    return variant.rows_in_order and (variant.streams or variant.scratch_bytes(instr) == 0)


def row_waste(variant: KernelVariant, instr: Instr) -> float:
    """Return what calls for single rows cost, as a multiple of one call for all rows."""
    width = int(instr.params.get("out_w", 0)) if instr.rows is not None else 0
    return -(-width // variant.row_block) * variant.row_block / width if width else 1.0


def guessed_insns(instr: Instr) -> int:
    """Return what a call takes, roughly, where nothing was measured: fast kernels, the slow reference, little code."""
    return instr.macs * _GUESSES.get(instr.isa, 1)


_GUESSES = {"ref": 25, "m3s": 15, "m0s": 15}


REF = (KernelVariant("ref"),)
REF_IN_PLACE = (KernelVariant("ref", in_place=True),)


@dataclass(frozen=True, slots=True)
class Formal:
    """What a kernel says of one operand: role, access and the element kinds that it may have."""

    role: str
    access: Access
    kinds: frozenset[DType]


def _formal(text: str, kind: str) -> Formal:
    access, operand = text.split()
    role, _, own = operand.partition(":")
    return Formal(role, Access(access), _kinds(own or kind))


@cache
def _kinds(text: str) -> frozenset[DType]:
    """Return the element kinds of a text: s8|u8, b4 (all of four bytes) or * (all)."""
    if text == "*":
        return frozenset(DType)
    if text.startswith("b") and text[1:].isdigit():
        return frozenset(kind for kind in DType if kind.bytes == int(text[1:]))
    return frozenset(map(DType, text.split("|")))


@dataclass(frozen=True, slots=True)
class KernelDef:
    """One instruction kind: operands in C argument order, parameters, meaning and variants.

    `operands` are "in x", "out y" or "inout z", with the element kinds that they may have, "in w:s8|u8", where those
    are not the kernel's `kind`: "s8|s16", "b4" for all of four bytes, "*" for all. `params` are integers,
    `float_params` float32 numbers, `print_params` numbers or words that the template prints with (unrolling, an
    expression; never function arguments, so they are part of the function's identity). A spatial kernel
    (`rows`) takes the output rows [y_begin, y_end) as run-time arguments. `interpret(arrays, params)`
    fills the output arrays in numpy. `template` names the template file when several kernels share one.
    `row_window(params, y)` are the rows [first, last) of operand `in` that output row y reads: set where a spatial
    kernel reads no others. `length` is the parameter that counts the elements of an elementwise kernel, which
    reads and writes in index order; it then also works on a part of its tensors. `one_buffer`: operands may begin at
    the same address, of which the kernel reads and writes different parts. A plugin's kernel may be the C
    function `extern` instead of a template: operands, then params and float_params; `extern_header` declares it, and
    `extern_sources`, which go into the bundle, define it.
    """

    name: str
    operands: tuple[str, ...]
    params: tuple[str, ...]
    interpret: Callable[[Arrays, Mapping[str, ParamValue]], None]
    float_params: tuple[str, ...] = ()
    print_params: tuple[str, ...] = ()
    rows: bool = False
    in_place: tuple[str, ...] = ()
    template: str = ""
    variants: tuple[KernelVariant, ...] = REF
    needs_math: bool = False
    row_window: Callable[[Mapping[str, ParamValue], int], tuple[int, int]] | None = None
    length: str = ""
    one_buffer: bool = False
    kind: str = "*"
    extern: str = ""
    extern_header: str = ""
    extern_sources: tuple[str, ...] = ()
    doc: str = ""
    signature: tuple[Formal, ...] = field(init=False)
    roles: tuple[tuple[str, Access], ...] = field(init=False)
    param_names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Read the texts of the operands once."""
        signature = tuple(_formal(text, self.kind) for text in self.operands)
        names = frozenset((*self.params, *self.float_params, *self.print_params))
        object.__setattr__(self, "signature", signature)
        object.__setattr__(self, "roles", tuple((formal.role, formal.access) for formal in signature))
        object.__setattr__(self, "param_names", names)
