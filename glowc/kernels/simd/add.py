"""int8 sums on A64 and A32: float32 forms, and fixed point where that is the same function (add_terms.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import UNFIT, KernelVariant, Prepared, plan_of
from glowc.kernels.common.assembly import Printed, joined
from glowc.kernels.common.rows import RowPlan, steps
from glowc.kernels.common.sums import SumKey, pair_sums, sum_key
from glowc.kernels.simd.add_terms import (
    Terms,
    fixed_fused,
    fixed_plain,
    fixed_terms,
    plain_sum,
    point_of,
    rounded_twice,
)
from glowc.kernels.simd.core import CORES
from glowc.kernels.simd.elementwise import accepts_long_rows
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_STORED = ("mul[0]", "mul[1]", "mul[2]")
_VECTOR = 16  # codes


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPlan(RowPlan):
    """What the templates print by.

    `form`: sub, the formula of add_s8; fused, that of add_s8f; agreed, add_s8 where the fused one gives the same codes
    with `terms`; fixed, in fixed point by `fixed`: the factors of both operands and the start, as C expressions; ref,
    the definition. `stored`: these three are the operand `mul`, and nothing reads `offset`. `low`, `high`: the range is
    narrower than int8 at that end. `half`: what makes codes of the fused form. `twice`: constants with which a core
    that rounds products and sums one by one gives the codes of the fused form; empty where there are none (A32).
    `twos`: rows are whole pairs of vectors, which are added together: a core that issues in order has something to do
    while it waits for either.
    """

    form: str
    low: bool
    high: bool
    half: int = 0
    terms: tuple[float, ...] = ()
    fixed: tuple[str, ...] = ()
    stored: bool = False
    twice: tuple[float, ...] = ()
    twos: bool = False

    def work(self, instr: Instr) -> Mapping[str, float]:
        """Return the sums that take the formula of add_s8, with a division, and those by one vector at a time."""
        sums = float(instr.operand("out").type.elements)
        return {"real_sums": sums * (self.form == "sub"), "lone_sums": sums * (self.form == "fixed" and not self.twos)}

    def limits(self, p: Printed, lanes: int) -> str:
        """Return the limits of a vector of so many codes."""
        dup = "vdupq_n_s8" if lanes == _VECTOR else "vdup_n_s8"
        ends = (("lo", "out_min", self.low), ("hi", "out_max", self.high))
        return joined(f"const int8x{lanes}_t {n} = {dup}((int8_t){p[end]});" for n, end, there in ends if there)

    def limited(self, codes: str, lanes: int) -> str:
        """Return codes within them."""
        q = "q" if lanes == _VECTOR else ""
        codes = f"vmax{q}_s8({codes}, lo)" if self.low else codes
        return f"vmin{q}_s8({codes}, hi)" if self.high else codes

    def same(self, lanes: int) -> str:
        """Return a vector of the code that repeats, where one does."""
        code = "right" if self.a_step else "left"
        return joined((f"int8_t same[{lanes}];", f"memset(same, {code}, sizeof same);") if self.repeats else ())

    def operands(self, x: str = "x + i", y: str = "y + i") -> str:
        """Return both operands at these places, or what repeats."""
        return f"{x if self.a_step else 'same'}, {y if self.b_step else 'same'}"

    def last(self, p: Printed) -> str:
        """Return what copies the last elements of a row that are no vector."""
        rows = (("last[0]", "x", self.a_step), ("last[1]", "y", self.b_step))
        return joined(f"memcpy({to}, {row} + i, (size_t)({self.n(p)} - i));" for to, row, step in rows if step)

    def constants(self, p: Printed, terms: str) -> str:
        """Return the constants of the form on A64; `terms` as C has them."""
        if self.form == "sub":
            zeros = f"vdup_n_s8((int8_t){p['a_zp']}), vdup_n_s8((int8_t){p['b_zp']}), vdupq_n_f32({p['out_scale']})"
            scales = f"vdupq_n_s16((int16_t){p['out_zp']}), {p['a_scale']}, {p['b_scale']}"
            return joined([f"const glow_neon_add_t s = {{{zeros}, {scales}}};"])
        if self.form == "fixed":
            return joined([f"const glow_neon_fixed_t s = glow_neon_fixed({', '.join(self.fixed)});"])
        ratios = f"{p['a_ratio']}, {p['b_ratio']}, {p['fixed']}, {self.half}" if self.form == "fused" else f"{terms}, 0"
        return joined([f"const glow_neon_sum_t s = glow_neon_sum({ratios});"])

    def sum(self, operands: str, p: Printed) -> str:
        """Return the sum of sixteen codes of both operands on A64."""
        if self.form == "sub":
            return f"glow_neon_add_s8x16(&s, {operands}, {int(p['sign'] == '-')})"
        function = "fixed_s8x16" if self.form == "fixed" else "sum_u8x16" if self.half else "sum_s8x16"
        return f"glow_neon_{function}(&s, {operands})"


def _plan(form: str, instr: Instr) -> AddPlan:
    """Return a plan with the operands' steps along a row, and which limits are inside int8."""
    a_step, b_step = steps(instr)
    low, high = instr.int_("out_min") > -128, instr.int_("out_max") < 127
    return AddPlan(form=form, a_step=a_step, b_step=b_step, low=low, high=high)


def _terms(instr: Instr, a: str, b: str, c: str) -> Terms:
    return float(instr.params[a]), float(instr.params[b]), float(instr.params[c])


def _texts(fixed: tuple[int, int, int]) -> tuple[str, ...]:
    return tuple(map(str, fixed))


def _fixed(instr: Instr, fixed: tuple[str, ...], *, a32: bool) -> AddPlan:
    """Return the plan of a sum in fixed point."""
    plan = replace(_plan("fixed", instr), fixed=fixed)
    return plan if a32 else replace(plan, twos=_in_twos(instr))


def _in_twos(instr: Instr) -> bool:
    return instr.int_(f"d{instr.int_('rank') - 1}") % (2 * _VECTOR) == 0


def _placed(instr: Instr) -> AddPlan:
    """Return the plan for rows of the length that they have: those of a stream and of parts are shorter."""
    plan = plan_of(instr, AddPlan)
    return replace(plan, twos=plan.form == "fixed" and _in_twos(instr))


def _twice(plan: AddPlan, terms: Terms, *, a32: bool) -> AddPlan:
    return replace(plan, twice=rounded_twice(terms, plan.half) or ()) if a32 else plan


def add_plan(instr: Instr, *, a32: bool) -> AddPlan:
    """Return the plan of add_s8."""
    zero = tuple(instr.int_(key) for key in ("a_zp", "b_zp", "out_zp"))
    sign, scales = str(instr.params["sign"]), _terms(instr, "a_scale", "b_scale", "out_scale")
    fixed = fixed_plain(sign, zero, scales, point_of(a32=a32))
    if fixed is not None:
        return _fixed(instr, _texts(fixed), a32=a32)
    terms = plain_sum(sign, zero, scales)[1]
    if terms is None:
        return _plan("sub", instr)
    return _twice(replace(_plan("agreed", instr), terms=terms), terms, a32=a32)


def _fused_plan(instr: Instr, *, a32: bool) -> AddPlan:
    """Return the plan of add_s8f."""
    terms, half = _terms(instr, "a_ratio", "b_ratio", "fixed"), instr.int_("half")
    fixed = fixed_fused(terms, half, point_of(a32=a32))
    if fixed is not None:
        return _fixed(instr, _texts(fixed), a32=a32)
    return _twice(replace(_plan("fused", instr), half=half), terms, a32=a32)


def _accepts_fused(instr: Instr) -> bool:
    """Accept sums whose value before the rounding stays below 32000."""
    if not accepts_long_rows(instr) or instr.int_("half") not in (0, 128):
        return False
    a_ratio, b_ratio, fixed = _terms(instr, "a_ratio", "b_ratio", "fixed")
    return 255.0 * (abs(a_ratio) + abs(b_ratio)) + abs(fixed) <= 32000.0


def _accepts_a32(instr: Instr) -> bool:
    """Accept sums in fixed point or in the fused form: A32 has no vector division."""
    return accepts_long_rows(instr) and add_plan(instr, a32=True).form != "sub"


def _prepare(_: Arrays, instr: Instr, *, a32: bool) -> Prepared:
    return Prepared(plan=add_plan(instr, a32=a32))


def _prepare_fused(_: Arrays, instr: Instr, *, a32: bool) -> Prepared:
    return Prepared(plan=_fused_plan(instr, a32=a32))


def _accepts_shift(instr: Instr) -> bool:
    return accepts_long_rows(instr) and all(
        instr.operand(role).type.dtype is DType.S8 for role in ("a", "b", "out")
    )  # fmt: skip


def _prepare_shift(constants: Arrays, instr: Instr, *, a32: bool) -> Prepared:
    """Return `mul` as the factors and the start of the fixed sum; UNFIT when it is not the same function."""
    mul, offset, shift = int(constants["mul"][0]), int(constants["offset"][0]), instr.int_("shift")
    sign = 1 if instr.params["sign"] == "+" else -1
    a, b = (np.arange(-128, 128, dtype=object) - instr.int_(key) for key in ("a_zp", "b_zp"))
    exact = (((a[:, None] + sign * b[None, :]) * mul + offset) >> shift) + instr.int_("out_zp")
    wanted = np.clip(exact, -128, 127).astype(np.float64)
    ratio = mul / 2.0**shift
    fixed = fixed_terms(wanted, (ratio, sign * ratio), point_of(a32=a32))
    if fixed is None:
        return UNFIT
    plan = replace(_fixed(instr, _STORED, a32=a32), stored=True)
    return Prepared({"mul": np.asarray(fixed, np.int32)}, plan)


@lru_cache(maxsize=64)
def _q31_terms(key: SumKey, *, a32: bool) -> tuple[int, int, int] | None:
    """Return the fixed sum that has one addition and one rounding; None when it is not the same function."""
    sums = pair_sums(key)
    return fixed_terms(sums.codes.astype(np.float64), sums.ratios, point_of(a32=a32), sums.bounds)


def _accepts_q31(instr: Instr, *, a32: bool) -> bool:
    return accepts_long_rows(instr) and _q31_terms(sum_key(instr), a32=a32) is not None


def _prepare_q31(_: Arrays, instr: Instr, *, a32: bool) -> Prepared:
    fixed = _q31_terms(sum_key(instr), a32=a32)
    assert fixed is not None
    return Prepared(plan=_fixed(instr, _texts(fixed), a32=a32))


_A64 = KernelVariant("a64", rank=30, in_place=True, header="glow_neon.h", placed=_placed)
_A32 = replace(_A64, isa="a32", header="glow_a32.h", template="{}_a32", placed=None)
_SHIFT = frozenset({"mul", "offset"})


def _both(
    prepare: Callable[..., Prepared], accepts: Callable[[Instr], bool], packs: frozenset[str] = frozenset()
) -> tuple[KernelVariant, ...]:  # fmt: skip
    return tuple(
        replace(v, accepts=accepts, prepare=partial(prepare, a32=CORES[v.isa].a32), packs=packs) for v in (_A32, _A64)
    )


VARIANTS = {
    "add_s8": (_both(_prepare, _accepts_a32)[0], _both(_prepare, accepts_long_rows)[1]),
    "add_s8f": _both(_prepare_fused, _accepts_fused),
    "add_s8q31": tuple(
        replace(v, accepts=partial(_accepts_q31, a32=CORES[v.isa].a32)) for v in _both(_prepare_q31, accepts_long_rows)
    ),
    "add_s8rs": _both(_prepare_shift, _accepts_shift, _SHIFT),
}
