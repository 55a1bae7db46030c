"""What an instruction kind is: operands, parameters and meaning of a kernel; and the table of all of them.

The low-level IR knows the form of a definition. The operators fill the table (`glowc.ops.registry`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeAlias

import numpy as np

from glowc.errors import InternalError
from glowc.graph.scope import Table
from glowc.graph.types import DType
from glowc.program.ir import Access, ParamValue
from glowc.program.params import Kind, P, names_of, typed

Arrays = Mapping[str, np.ndarray]


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
class Outer:
    """A loop over `count`, a parameter; `steps` are those whose product an operand advances by, in elements.

    A turn is a `grain` of it, the last one what is left as well. Where elements lie `count` apart, templates name this
    distance `pitch`.
    """

    count: str
    steps: Mapping[str, tuple[str, ...]]
    grain: int = 1
    pitch: str = ""

    def turns(self, params: Mapping[str, ParamValue]) -> int:
        """Return how many turns an instruction with these parameters takes."""
        return int(params[self.count]) // self.grain


@dataclass(frozen=True, slots=True)
class KernelDef(Generic[P]):
    """One instruction kind: operands in C argument order, parameters and meaning.

    `operands` are "in x", "out y" or "inout z", with the element kinds that they may have, "in w:s8|u8", where those
    are not the kernel's `kind`: "s8|s16", "b4" for all of four bytes, "*" for all. `takes` is the dataclass of its
    parameters (`glowc.program.params`): from it come `params`, the names of the integers, `float_params` (float32
    numbers) and `print_params` (numbers or words that the template prints with: unrolling, an expression; never
    function arguments, so they are part of the function's identity). `interpret(arrays, p)` fills the output arrays in
    numpy. A spatial kernel (`rows`) takes the output rows [y_begin, y_end) as run-time arguments and has
    `interpret_rows(arrays, p, rows)` instead. `template` names the template file when several kernels share one.
    `row_window(p, y)` are the rows [first, last) of operand `in` that output row y reads: set where a spatial
    kernel reads no others. `length` is the parameter that counts the elements of an elementwise kernel, which
    reads and writes in index order; it then also works on a part of its tensors: of whole groups of as many elements as
    the parameter `period` says, where it has constants for each element of a group. `touched(p)` are the elements that
    are read and written of operands, by role, where that is not each of them once. `inlined`: its few instructions may
    become part of the code that calls it, whose constants they gain by. `one_buffer`: operands may begin at the same
    address, of which the kernel reads and writes different parts. `outer` are loops around all that it does: a
    part of its results comes from a part of the first of them that is one. A plugin's kernel may be the C
    function `extern` instead of a template: operands, then params and float_params; `extern_header` declares it, and
    `extern_sources`, which go into the bundle, define it.
    """

    name: str
    operands: tuple[str, ...]
    takes: type[P]
    interpret: Callable[[Arrays, P], None] | None = None
    interpret_rows: Callable[[Arrays, P, range], None] | None = None
    in_place: tuple[str, ...] = ()
    template: str = ""
    needs_math: bool = False
    row_window: Callable[[P, int], tuple[int, int]] | None = None
    length: str = ""
    period: str = ""
    touched: Callable[[P], dict[str, int]] | None = None
    one_buffer: bool = False
    outer: tuple[Outer, ...] = ()
    inlined: bool = False
    kind: str = "*"
    extern: str = ""
    extern_header: str = ""
    extern_sources: tuple[str, ...] = ()
    doc: str = ""
    rows: bool = field(init=False)
    signature: tuple[Formal, ...] = field(init=False)
    roles: tuple[tuple[str, Access], ...] = field(init=False)
    params: tuple[str, ...] = field(init=False)
    float_params: tuple[str, ...] = field(init=False)
    print_params: tuple[str, ...] = field(init=False)
    param_names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Read the texts of the operands and the fields of the parameters once."""
        if (self.interpret is None) == (self.interpret_rows is None):
            raise InternalError(f"kernel {self.name} needs one of interpret and interpret_rows")
        signature = tuple(_formal(text, self.kind) for text in self.operands)
        object.__setattr__(self, "rows", self.interpret_rows is not None)
        object.__setattr__(self, "signature", signature)
        object.__setattr__(self, "roles", tuple((formal.role, formal.access) for formal in signature))
        for name, kind in (("params", Kind.INT), ("float_params", Kind.FLOAT), ("print_params", Kind.PRINTED)):
            object.__setattr__(self, name, names_of(self.takes, kind))
        names = frozenset((*self.params, *self.float_params, *self.print_params))
        object.__setattr__(self, "param_names", names)

    def outer_of(self, params: Mapping[str, ParamValue]) -> Outer | None:
        """Return the outermost loop of an instruction that has several turns."""
        return next((loop for loop in self.outer if loop.turns(params) > 1), None)

    def run(
        self, arrays: Arrays, params: Mapping[str, ParamValue], rows: tuple[int, int] | None = None
    ) -> None:  # fmt: skip
        """Evaluate an instruction of this kind in numpy; `rows` are the output rows of a spatial kernel."""
        self.run_typed(arrays, typed(self.takes, params), rows)

    def run_typed(self, arrays: Arrays, p: P, rows: tuple[int, int] | None = None) -> None:
        """Evaluate an instruction whose parameters are an object of `takes`."""
        if self.interpret_rows is not None and rows is not None:
            self.interpret_rows(arrays, p, range(*rows))
        elif self.interpret is not None and rows is None:
            self.interpret(arrays, p)
        else:
            raise InternalError(f"kernel {self.name} with rows {rows}")


AnyKernel: TypeAlias = KernelDef[Any]
"""An instruction kind, whatever its parameters."""

KNOWN_KERNELS: Table[AnyKernel] = Table()
"""Every instruction kind by name: the operators fill this table."""


def all_kernels() -> Mapping[str, AnyKernel]:
    """Return every instruction kind by name."""
    return KNOWN_KERNELS.all()


def find_kernel(name: str) -> AnyKernel | None:
    """Return the instruction kind of that name, or None."""
    return KNOWN_KERNELS.all().get(name)


def get_kernel(name: str) -> AnyKernel:
    """Return the instruction kind of that name; InternalError when there is none."""
    kernel = KNOWN_KERNELS.all().get(name)
    if kernel is None:
        raise InternalError(f"no kernel named {name}")
    return kernel
