"""The low-level IR: a linear list of address-only instructions over typed buffers.

Every operand says how it is accessed; `alloc` and `dealloc` mark lifetimes; a buffer that is an alias of
another is a view (no bytes of its own). Scratch is an operand like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, TypeAlias

import numpy as np

from glowc.graph.types import TensorType


class Access(Enum):
    """How an instruction uses an operand."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"

    @property
    def reads(self) -> bool:
        """True when the operand's old bytes matter."""
        return self is not Access.OUT

    @property
    def writes(self) -> bool:
        """True when the operand's bytes change."""
        return self is not Access.IN


class BufferKind(Enum):
    """Where a buffer's bytes live and who owns them."""

    CONST = "const"
    INPUT = "input"
    OUTPUT = "output"
    ACTIVATION = "activation"
    SCRATCH = "scratch"
    STATE = "state"


ParamValue = int | float | str
_plans: dict[str, type[Plan]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the variant of an instruction decided when it prepared the constants: what its template prints by.

    Each family of kernels has its own, a frozen dataclass of numbers, words, tuples and other plans. `path` is the way
    that a variant takes: instructions of one path share code. `numbers` are the fields that differ between layers which
    share a function: there they are fields of its argument struct, and the template prints them by as `n`.
    """

    numbers: ClassVar[tuple[str, ...]] = ()
    path: str = ""

    def __init_subclass__(cls) -> None:
        """Remember the class by the name that dumps show."""
        _plans[cls.title()] = cls

    @classmethod
    def title(cls) -> str:
        """Return the name of the class, with that of its module in the room of kernels: "mve.conv.ConvPlan"."""
        module, room = cls.__module__, "glowc.kernels."
        return f"{module.removeprefix(room)}.{cls.__name__}" if module.startswith(room) else cls.__name__

    @property
    def without_numbers(self) -> Plan:
        """The plan as it belongs to the identity of a function that layers share."""
        none: dict[str, Any] = dict.fromkeys(self.numbers, 0)
        return replace(self, **none) if none else self

    @property
    def cost_path(self) -> str:
        """What the costs of a path are filed under."""
        return self.path

    @property
    def cost_kind(self) -> str:
        """What costs are filed under besides the path, where that is not the element type of the weights."""
        return ""

    @property
    def reads_in_place(self) -> bool:
        """True when inputs are read where they lie, and through scratch only at the edges of the image."""
        return False

    @property
    def reads_weights_once(self) -> bool:
        """True when weights that no data cache keeps are read for all pixels part by part, each of which one keeps."""
        return False

    def touched(self, _: Instr) -> Mapping[str, int]:
        """Return the elements of inputs and scratch read and written, by role; none where loops are as usual."""
        return {}

    def work(self, _: Instr) -> Mapping[str, float]:
        """Return features of glowc.kernels.features that follow from the plan."""
        return {}

    def row_waste(self, _: Instr) -> float:
        """Return what calls for single rows cost, as a multiple of one call for all rows, but for blocks of pixels."""
        return 1.0

    @property
    def ends_with_rows(self) -> bool:
        """True when no block of pixels holds some of two rows."""
        return False

    @property
    def lists_steps(self) -> bool:
        """True when a list of the steps of a product is in scratch."""
        return False

    @staticmethod
    def named(name: str) -> type[Plan]:
        """Return the class of plans of that title; KeyError when there is none."""
        return _plans[name]


_plans[Plan.title()] = Plan
NO_PLAN = Plan()


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: the name the kernel gives it, the buffer, the access and the tensor seen there."""

    role: str
    buffer: str
    access: Access
    type: TensorType


@dataclass(frozen=True, slots=True)
class Instr:
    """One call of a kernel by its `variant` of that name; `rows` is the row range of a spatial kernel, else None.

    `plan` is what the variant decided when it prepared the constants. `cut`: several calls compute it, in order,
    between which its scratch keeps what it holds; they take parts of its rows, of so many `columns`, 0: whole ones,
    and of so many output `channels`, 0: all; or of all of its pixels, where it has channels alone. `shares`: so many
    cores compute it at once, each with a scratch of its own.
    """

    kernel: str
    variant: str
    operands: tuple[Operand, ...]
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    rows: tuple[int, int] | None = None
    name: str = ""
    origin: tuple[str, ...] = ()
    op: str = ""
    macs: int = 0
    plan: Plan = NO_PLAN
    cut: bool = False
    columns: int = 0
    channels: int = 0
    shares: int = 1

    def int_(self, key: str) -> int:
        """Return a parameter that is a whole number; KeyError when there is none."""
        return int(self.params[key])

    def operand(self, role: str) -> Operand:
        """Return the operand of that role; KeyError when there is none."""
        for operand in self.operands:
            if operand.role == role:
                return operand
        raise KeyError(role)

    @property
    def is_marker(self) -> bool:
        """True for alloc and dealloc, which print no C."""
        return self.kernel in ("alloc", "dealloc")


@dataclass(frozen=True, slots=True)
class Buffer:
    """A range of bytes; an alias lies `alias_offset_bytes` after the start of `alias_of`."""

    name: str
    kind: BufferKind
    size_bytes: int
    align_bytes: int = 1
    alias_of: str | None = None
    alias_offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Advance:
    """An operand that moves with the rows: row y lies `y % ring` rows of `row_bytes` after its buffer's start."""

    role: str
    row_bytes: int
    ring: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Instructions [begin, end), markers not counted, that run row by row.

    Every step computes the next row of one instruction, given by its number from `begin` on. The step `end - begin`
    takes the next row of the model's input `feed`, for a model that is fed by rows; the buffer `progress` then keeps
    the step and the rows between calls. `advances` are, per
    instruction, the operands that its kernel takes one row at a time; kernels with a row range find rows themselves.
    """

    begin: int
    end: int
    steps: tuple[int, ...]
    advances: tuple[tuple[Advance, ...], ...]
    feed: Advance | None = None
    progress: str = ""


WHOLE = 4096
"""The end of the last part of an instruction with units."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows [begin, end) of an instruction by its number, markers not counted; all of one without rows is its row 0.

    Of one with units they are in parts of WHOLE, of one with columns parts of rows.
    """

    index: int
    begin: int
    end: int


Stage: TypeAlias = tuple[Part, ...]
"""Parts of one instruction that cores compute at once, the first core the first."""


@dataclass(frozen=True, slots=True)
class Slices:
    """An inference in steps, each of which computes stages, in order.

    `walks` are, by number, elementwise instructions of a row, and the operands that advance row by row; `ends` are
    the ends of instructions whose parts are no rows, but of all that they do. The buffer `progress` keeps the stage
    that comes next, "": there is one step. At most so many `cores` compute a stage.
    """

    steps: tuple[tuple[Stage, ...], ...]
    walks: Mapping[int, tuple[Advance, ...]]
    ends: Mapping[int, int]
    progress: str = ""
    cores: int = 1

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of all steps."""
        return tuple(stage for step in self.steps for stage in step)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of all steps."""
        return tuple(part for stage in self.stages for part in stage)


@dataclass(frozen=True, slots=True)
class Program:
    """A whole network as instructions. The role of an operand in `inputs`/`outputs` is the model's name for it.

    `unpacked` holds, by "instruction name:role", the original of a constant that a kernel variant rearranged: what
    the interpreter reads. `states` are the initial values of the buffers of kind STATE, which keep their bytes from one
    inference to the next. `segments` are the parts that run row by row, in order. With `caller_io`
    the model's inputs and outputs are the caller's buffers instead of parts of the arena. `narrow` names the
    instructions whose weights are codes of 4 or 2 bits, which may be stored as such.
    """

    name: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    buffers: Mapping[str, Buffer]
    consts: Mapping[str, np.ndarray]
    instrs: tuple[Instr, ...]
    unpacked: Mapping[str, np.ndarray] = field(default_factory=dict)
    states: Mapping[str, np.ndarray] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()
    slices: Slices | None = None
    caller_io: bool = False
    narrow: frozenset[str] = frozenset()

    def root(self, buffer: str) -> tuple[str, int]:
        """Return the buffer that owns the bytes of `buffer`, and the offset in it in bytes."""
        offset = 0
        current = self.buffers[buffer]
        while current.alias_of is not None:
            offset += current.alias_offset_bytes
            current = self.buffers[current.alias_of]
        return current.name, offset

    def is_callers(self, root: str) -> bool:
        """Return whether a root is a buffer of the caller, outside of the arena."""
        return self.caller_io and self.buffers[root].kind in (BufferKind.INPUT, BufferKind.OUTPUT)

    @property
    def streamed(self) -> frozenset[int]:
        """The instructions, markers not counted, that run inside of segments."""
        return frozenset(i for s in self.segments for i in range(s.begin, s.end))


def scratch_of(instr: Instr, one: Buffer) -> Buffer:
    """Return the scratch of an instruction of which each core needs `one`: they are aligned alike."""
    if instr.shares == 1:
        return one
    return replace(one, size_bytes=instr.shares * (-(-one.size_bytes // one.align_bytes) * one.align_bytes))


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of scratch of an instruction."""
    return sum(o.type.size_bytes for o in instr.operands if o.role == "scratch")
