"""What a variant of a kernel is to the compiler: the CPUs and shapes that it is for, and what it needs besides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from glowc.errors import InternalError
from glowc.graph.types import DType, TensorType, type_of
from glowc.kernels.features import Stated
from glowc.kernels.isas import instruction_set
from glowc.kernels.records import Records
from glowc.program.ir import NO_PLAN, Instr, Plan, scratch_bytes
from glowc.program.kernel import Arrays

P = TypeVar("P", bound=Plan)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a variant makes of an instruction: the constants that it replaces, by role, and its plan."""

    constants: Arrays = field(default_factory=dict)
    plan: Plan = NO_PLAN


def always(_: Instr) -> bool:
    """Accept every instruction."""
    return True


def no_scratch(_: Instr) -> int:
    """Need no scratch."""
    return 0


@dataclass(frozen=True, slots=True)
class Reads:
    """How often a product reads its inputs: an input once for `at_once` outputs, or several times along the window.

    `along`: a row of the window stays in registers while the kernel goes along it. `value_bytes` are those of a value
    in its scratch, 0: as many as in the input.
    """

    at_once: int = 4
    along: bool = False
    value_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Columns:
    """The pixels of a row that a call may compute: a multiple of `step`, or what is left, of an instruction `least`.

    Weights are read once for `whole` pixels.
    """

    step: int
    least: Callable[[Instr], int] = lambda _: 1
    whole: Callable[[Instr], int] = lambda _: 1


@dataclass(frozen=True, slots=True)
class KernelVariant:
    """One C implementation of a kernel: for which CPUs, which shapes, and what it needs besides.

    `isa` is one of the table of instruction sets (isas.py), `form` what tells variants of one set apart; `also` are CPU
    features that it needs besides those of the set, `slow_with` those with which lower variants take fewer cycles: it
    is not for CPUs that have one. `in_place` allows the output to have the same address as the first
    input named in the kernel's `in_place`; the variant with the highest `rank` among the accepted is chosen.
    `prepare` takes all constant operands by role and returns those that it replaces (weights as they are read, biases
    with the zero point folded in ...) and the plan that the template prints by as `v`, which belongs to the function's
    identity; the constants that it needs are `packs`: where one of them is computed or an input of the model, the
    variant is not for the instruction. `scratch_bytes` sees the plan. `placed` returns the plan anew once it is known
    which rows the instruction reads and writes in rings, and how long they are. `template` names the template file,
    with {} for the kernel's name or that of its family (`KernelDef.template`), and the folder where it is not that of
    the instruction set; `header` is the runtime header that it needs. `like` names the variant whose costs it has,
    where it is not measured by itself; `costs_of` the same of a variant that is one to choose from, another order of
    that one's instructions.
    `rows_in_order` keeps the kernel's row contract (`KernelDef.row_window`, `length`), so that the output may be
    planned over input that is dead by then; it is faster where that is a multiple of `overlap_bytes` away, 0: nowhere.
    `streams` says of a variant with scratch that calls for single rows give what one call for all gives at little more
    cost, and that no scratch lives from one call to the next.
    `speed_only` variants spend RAM that only `--opt speed` is for.
    `reads` says how often its inputs are read, and `stated` what a call takes, roughly, where that is not what kernels
    of the instruction set take: it counts where nothing was measured, and a variant that states no less than one of
    lower rank is not tried.
    `modest_bytes` are those of scratch beyond which the arena is never to grow for it: with more it is for layers
    beside which the arena has that much to spare.
    `keeps` prepares an instruction anew that has so many bytes for its scratch: it copies weights there, which it would
    read from flash again and again, or collects more inputs there before it reads them; the last number are the bytes
    that a cache of the flash keeps in between. None where that does not pay. `wanted_bytes` are those for which the
    arena may grow, as then none of them are read again, and those for which it may grow by a little, as then all of
    them are read half as often. `spared_bytes` are those that the plan of an instruction which keeps weights does not
    read from flash again.
    `spends` returns the plan of an instruction that has so many bytes for its scratch: it then takes less time. For
    fewer bytes than a plan can have it returns that with the fewest.
    `records` says where the weights lie in its packed constant, so that weights of 4 bits can be stored as such and
    unpacked in front of it; None where it has them in another form. `unpacks` variants read such weights as they are
    stored.
    `same_bits` variants compute reals whose bits are the same on every CPU: they are for instructions that need this
    (kernels/common/reals.py), and for no others.
    `units` are the steps of equal cost that an instruction can be left and gone on with between, where those are no
    rows: its function then takes a range of WHOLE in place of rows; 0 where rows are all that there is. Of one
    with `columns` a call may compute some pixels of a row: it reads out_w and pad_left as expressions; and where
    `channels` says so, that many output channels, or a multiple, or a pair at least that is left: out_pitch is then
    more than out_c.
    `leads` are three numbers. With units: how many make a group, how many of them begin it, and the cycles of each that
    does. Without: the third alone, the cycles that the first pixels take besides.
    `doubt` is how many times as long as predicted an instruction can take.
    `row_block` are the pixels that it computes together: a row of a call costs as much as one of a whole multiple.
    """

    isa: str
    form: str = ""
    also: frozenset[str] = frozenset()
    slow_with: frozenset[str] = frozenset()
    rank: int = 0
    in_place: bool = False
    accepts: Callable[[Instr], bool] = always
    scratch_bytes: Callable[[Instr], int] = no_scratch
    prepare: Callable[[Arrays, Instr], Prepared] | None = None
    placed: Callable[[Instr], Plan] | None = None
    rows_in_order: bool = True
    overlap_bytes: Callable[[Instr], int] = lambda _: 1
    streams: bool = False
    row_block: int = 1
    speed_only: bool = False
    template: str = "{}"
    header: str = ""
    packs: frozenset[str] = frozenset()
    like: str = ""
    costs_of: str = ""
    reads: Reads = Reads()
    stated: Stated | None = None
    modest_bytes: Callable[[Instr], int] | None = None
    keeps: Callable[[Arrays, Instr, int, int], Prepared | None] | None = None
    spends: Callable[[Instr, int], Plan] | None = None
    wanted_bytes: Callable[[Instr], tuple[int, ...]] = lambda _: ()
    spared_bytes: Callable[[Instr], int] = no_scratch
    records: Callable[[Instr], Records | None] | None = None
    unpacks: bool = False
    same_bits: bool = False
    units: Callable[[Instr], int] = no_scratch
    leads: Callable[[Instr], tuple[int, int, float]] = lambda _: (0, 0, 0.0)
    doubt: Callable[[Instr], float] = lambda _: 1.0
    columns: Columns | None = None
    channels: Callable[[Instr], int] = no_scratch

    name: str = field(init=False)
    """The name among the variants of a kernel, and of its functions in C."""

    def __post_init__(self) -> None:
        """Join the name once: variants are asked for by it all the time."""
        object.__setattr__(self, "name", f"{self.isa}_{self.form}" if self.form else self.isa)

    def __hash__(self) -> int:
        """Tell variants apart by their names, which those of one kernel have for themselves."""
        return hash(self.name)

    @property
    def cost_name(self) -> str:
        """The name of the variant whose costs it has."""
        return self.like or self.costs_of or self.name

    @property
    def needs(self) -> frozenset[str]:
        """The CPU features without which it does not run."""
        return instruction_set(self.isa).needs | self.also

    @property
    def folder(self) -> str:
        """The folder of the instruction set in the three trees."""
        return instruction_set(self.isa).folder


@dataclass(frozen=True, slots=True)
class UnfitPlan(Plan):
    """Of an instruction whose constants the variant is not for: it is never chosen, and has no template."""


UNFIT = Prepared(plan=UnfitPlan())
"""What a variant prepares of constants that it is not for."""


def fits(prepared: Prepared) -> bool:
    """Say whether a variant is for the constants that it prepared."""
    return not isinstance(prepared.plan, UnfitPlan)


def prepare(variant: KernelVariant, constants: Arrays, instr: Instr) -> Prepared:
    """Return what a variant makes of an instruction with these constants, by role."""
    return Prepared() if variant.prepare is None else variant.prepare(constants, instr)


def plan_of(instr: Instr, kind: type[P]) -> P:
    """Return the plan of an instruction, which is of that kind; InternalError when it has another."""
    if not isinstance(instr.plan, kind):
        raise InternalError(f"{instr.name}: {instr.kernel}__{instr.variant} has no {kind.__name__}: {instr.plan}")
    return instr.plan


def plan_in(prepared: Prepared, kind: type[P]) -> P:
    """Return the plan that a variant made, which is of that kind; InternalError when it is of another."""
    if not isinstance(prepared.plan, kind):
        raise InternalError(f"no {kind.__name__}: {prepared.plan}")
    return prepared.plan


def prepared_instr(instr: Instr, prepared: Prepared) -> Instr:
    """Return an instruction with its plan, and operands of the types that its prepared constants have."""
    arrays = prepared.constants
    operands = (replace(o, type=type_of(arrays[o.role])) if o.role in arrays else o for o in instr.operands)
    return replace(instr, operands=tuple(operands), plan=prepared.plan)


def spending(instr: Instr, variant: KernelVariant, room_bytes: int) -> Instr:
    """Return an instruction that spends as much of so many bytes of scratch as makes it faster, as it is for fewer."""
    if variant.spends is None or room_bytes <= scratch_bytes(instr):
        return instr
    return _with_scratch(instr, variant, variant.spends(instr, room_bytes))


def sparing(instr: Instr, variant: KernelVariant, limit_bytes: int) -> Instr:
    """Return an instruction that takes at most so many bytes of scratch, or as few as it can."""
    if variant.spends is None or variant.scratch_bytes(instr) <= limit_bytes:
        return instr
    return _with_scratch(instr, variant, variant.spends(instr, limit_bytes))


def _with_scratch(instr: Instr, variant: KernelVariant, plan: Plan) -> Instr:
    found = replace(instr, plan=plan)
    own = TensorType((variant.scratch_bytes(found),), DType.U8)
    return replace(found, operands=tuple(replace(o, type=own) if o.role == "scratch" else o for o in found.operands))


def streams_rows(variant: KernelVariant, instr: Instr) -> bool:
    """Say whether a variant may compute the rows of an instruction one call at a time, in rings."""
    return variant.rows_in_order and (variant.streams or variant.scratch_bytes(instr) == 0)


def stated_insns(variant: KernelVariant, instr: Instr) -> float:
    """Return what a call takes, roughly, by what is stated."""
    return (variant.stated or instruction_set(variant.isa).stated).insns(instr)


def block_waste(variant: KernelVariant, instr: Instr) -> float:
    """Return what a call takes as a multiple of what it would if whole blocks of pixels filled the image."""
    shape = (int(instr.params.get("out_h", 0)), int(instr.params.get("out_w", 0)))
    pixels = shape[1] if instr.plan.ends_with_rows else shape[0] * shape[1]
    return -(-pixels // variant.row_block) * variant.row_block / pixels if pixels else 1.0


def row_waste(variant: KernelVariant, instr: Instr) -> float:
    """Return what calls for single rows cost, as a multiple of one call for all rows."""
    width = int(instr.params.get("out_w", 0)) if instr.rows is not None else 0
    blocks = -(-width // variant.row_block) * variant.row_block / width if width else 1.0
    return blocks * (instr.plan.row_waste(instr) if instr.rows is not None else 1.0)


# What every variant in portable C for all CPUs starts from.
PLAIN = KernelVariant("ref", reads=Reads(at_once=1))
