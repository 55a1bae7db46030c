"""Sums and products of int8 tensors without FPU, on rows of adjacent or repeated codes.

Sums: out = clamp((a * a_mul + b * b_mul + offset) >> shift) in 32 bits. The factors are found, and proved on all 65536
pairs of codes against the kernel's own meaning, at compile time. Where no linear form gives every code, those whose sum
is within `near` of a rounding boundary are computed by the definition. Products: one multiplication by the scale as a
factor of 2^-32, as fold.py tells.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.assembly import Printed
from glowc.kernels.common.rows import RowPlan, accepts_rows, steps
from glowc.kernels.shapes import AXES
from glowc.kernels.thumb.forms import HEADER, Q31_HEADER, both
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays, get_kernel

_MOST_STEPS = 6  # the factors' neighbours that are tried
_MAX_SHIFT = 24
_RARE = 64  # a boundary's surroundings may be one part in so many of a step
_HALF = 128
_PRODUCT_NEAR = 3 << 16
"""How near to a tie, in 2^-32, products may be misjudged: the factor is cut off (products are below 2^16), the float32
product is rounded by at most 2^-16 where the code is no bound, the sum with the zero point by 2^-17."""

Form = tuple[int, int, int, int, int]
"""(a_mul, b_mul, offset, shift, near)."""


@cache
def _codes(kernel: str, params: tuple[tuple[str, ParamValue], ...]) -> np.ndarray:
    """Return the kernel's codes [a, b] of all pairs."""
    a, b = (grid.reshape(-1).astype(np.int8) for grid in np.meshgrid(*[np.arange(-128, 128)] * 2, indexing="ij"))
    out = np.zeros(a.size, np.int8)
    dense = dict.fromkeys(AXES, 1) | {"d0": a.size, "a0": 1, "b0": 1, "rank": 1}
    get_kernel(kernel).run({"a": a, "b": b, "out": out}, dict(params) | dense)
    return out.reshape(256, 256).astype(np.int64)


@cache
def linear_form(kernel: str, params: tuple[tuple[str, ParamValue], ...]) -> Form | None:
    """Return the linear form of a sum, `near` 0 where it is right for every pair; None: too often wrong."""
    p, want = dict(params), _codes(kernel, params)
    low, high = int(p["out_min"]), int(p["out_max"])
    ratio_a, ratio_b, fixed = _real_form(kernel, p)
    room = (1 << 31) / (_HALF * (abs(ratio_a) + abs(ratio_b)) + abs(fixed) + 1.0)
    shift = min(_MAX_SHIFT, int(np.floor(np.log2(room))))
    if shift < 1:
        return None
    step = 1 << shift
    a_mul, b_mul = round(ratio_a * step), round(ratio_b * step)
    codes = np.arange(-128, 128)
    for da, db in _neighbours():
        sums = codes[:, None] * (a_mul + da) + codes[None, :] * (b_mul + db)
        least = np.where(want > low, want * step - sums, -(1 << 40)).max()
        most = np.where(want < high, (want + 1) * step - sums - 1, 1 << 40).min()
        offset = int(min(max((int(least) + int(most)) // 2, -(1 << 30)), 1 << 30))
        if least <= offset <= most and max(np.abs(sums).max(), np.abs(sums + offset).max()) < 1 << 31:
            return a_mul + da, b_mul + db, offset, shift, 0
    sums = codes[:, None] * a_mul + codes[None, :] * b_mul + round((fixed + 0.5) * step)
    wrong = np.clip(sums >> shift, low, high) != want
    beyond = sums & (step - 1)
    near = int(np.minimum(beyond, step - beyond)[wrong].max()) + 1 if wrong.any() else 0
    fits = near * _RARE < step and np.abs(sums).max() + near < 1 << 31
    return (a_mul, b_mul, round((fixed + 0.5) * step), shift, near) if fits else None


def _neighbours() -> list[tuple[int, int]]:
    """Return the steps from the rounded factors to those that are tried, the nearest first."""
    span = range(-_MOST_STEPS, _MOST_STEPS + 1)
    return sorted(itertools.product(span, span), key=lambda d: abs(d[0]) + abs(d[1]))


def _real_form(kernel: str, p: Mapping[str, ParamValue]) -> tuple[float, float, float]:
    """Return (ra, rb, fixed) of the code a * ra + b * rb + fixed before rounding, in real numbers."""
    if kernel == "add_s8q31":
        fa, fb, k = (float(p[f"{x}_mul"]) * 2.0 ** (int(p[f"{x}_shift"]) - 31) for x in ("a", "b", "out"))
        ra, rb = (f * k * (1 << int(p["left"])) for f in (fa, -fb if p["sign"] == "-" else fb))
        return ra, rb, float(p["out_zp"]) - float(p["a_zp"]) * ra - float(p["b_zp"]) * rb
    if kernel == "add_s8f":
        ra, rb, half = float(p["a_ratio"]), float(p["b_ratio"]), float(p["half"])
        return ra, rb, float(p["fixed"]) + half * (ra + rb) - half
    sign = -1.0 if p["sign"] == "-" else 1.0
    ra, rb = float(p["a_scale"]) / float(p["out_scale"]), sign * float(p["b_scale"]) / float(p["out_scale"])
    return ra, rb, float(p["out_zp"]) - float(p["a_zp"]) * ra - float(p["b_zp"]) * rb


def _form(instr: Instr) -> Form | None:
    axes = {*AXES, "rank"}
    return linear_form(instr.kernel, tuple(sorted((k, v) for k, v in instr.params.items() if k not in axes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRowPlan(RowPlan):
    """`full`: all int8 codes are allowed."""

    full: bool

    def bounded(self, code: str, p: Printed) -> str:
        """Return a code within the limits of the layer."""
        return code if self.full else f"glow_clamp({code}, {p['out_min']}, {p['out_max']})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPlan(ByteRowPlan):
    """The linear form; `near`: sums as near to a rounding boundary are computed by the definition, `fused` or not.

    `fixed`: that definition has multipliers and shifts.
    """

    a_mul: int
    b_mul: int
    offset: int
    shift: int
    near: int
    fused: bool
    fixed: bool = False

    def sum(self, k: int = 0) -> str:
        """Return the linear form of the codes k after i, in 2^-shift; `a_mul` and `b_mul` are variables."""
        return f"{self.left(k)} * a_mul + {self.right(k)} * b_mul + {self.offset}"

    def code(self, sum_: str, p: Printed) -> str:
        """Return the code of such a sum."""
        if self.full:
            return f"GLOW_THUMB_SAT8_ASR({sum_}, {self.shift})"
        return self.bounded(f"{sum_} >> {self.shift}", p)

    @property
    def cost_kind(self) -> str:
        """Sums near a rounding boundary take a branch, and some of them a function."""
        return "near" if self.near else "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPlan(ByteRowPlan):
    """`near`: products as near to a tie, in 2^-32, are computed by the definition."""

    near: int


def _rows(instr: Instr) -> ByteRowPlan:
    a, b = steps(instr)
    return ByteRowPlan(a_step=a, b_step=b, full=(instr.int_("out_min"), instr.int_("out_max")) == (-128, 127))


def accepts(instr: Instr) -> bool:
    """Accept operands whose sum has a linear form."""
    return accepts_rows(instr) and _form(instr) is not None


def prepare_sum(_: Arrays, instr: Instr) -> Prepared:
    """Return the linear form of a sum."""
    form, rows = _form(instr), _rows(instr)
    assert form is not None
    a_mul, b_mul, offset, shift, near = form
    return Prepared(
        plan=LinearPlan(a_step=rows.a_step, b_step=rows.b_step, full=rows.full, a_mul=a_mul, b_mul=b_mul, offset=offset,
                        shift=shift, near=near, fused=instr.kernel == "add_s8f", fixed=instr.kernel == "add_s8q31")
    )  # fmt: skip


def prepare_product(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of a product."""
    rows = _rows(instr)
    return Prepared(plan=ProductPlan(a_step=rows.a_step, b_step=rows.b_step, full=rows.full, near=_PRODUCT_NEAR))


def _accepts_product(instr: Instr) -> bool:
    """Accept scales that are factors for both instruction sets."""
    return accepts_rows(instr) and 2.0**-32 <= float(instr.params["scale"]) < 0.25


def _accepts_shift(instr: Instr) -> bool:
    return accepts_rows(instr) and all(
        operand.type.dtype is DType.S8 for operand in map(instr.operand, ("a", "b", "out"))
    )


def prepare_shift(constants: Arrays, instr: Instr) -> Prepared:
    """Return `mul`: the multiplier, the offset with all zero points, and whether 32 bits hold every sum."""
    p = instr.params
    mul, offset = int(constants["mul"].reshape(-1)[0]), int(constants["offset"].reshape(-1)[0])
    zeros = int(p["a_zp"]) + int(p["b_zp"]) * (-1 if p["sign"] == "-" else 1)
    fixed = offset - mul * zeros + (int(p["out_zp"]) << int(p["shift"]))
    narrow = 256 * abs(mul) + abs(fixed) < 1 << 31 and int(p["shift"]) < 32
    return Prepared({"mul": np.asarray([mul, fixed if narrow else 0, narrow], np.int32)}, _rows(instr))


ADD = both(
    KernelVariant("v7m", rank=5, header=HEADER, in_place=True, accepts=accepts, prepare=prepare_sum)
)  # fmt: skip
ADD_FIXED = tuple(replace(variant, header=Q31_HEADER) for variant in ADD)
MULTIPLY = tuple(replace(variant, accepts=_accepts_product, prepare=prepare_product) for variant in ADD)
ADD_SHIFT = tuple(
    replace(variant, accepts=_accepts_shift, prepare=prepare_shift, packs=frozenset({"mul", "offset"}))
    for variant in ADD
)

VARIANTS = {
    "add_s8": ADD,
    "add_s8f": ADD,
    "add_s8q31": ADD_FIXED,
    "add_s8rs": ADD_SHIFT,
    "mul_s8": MULTIPLY,
    "mul_s8u": MULTIPLY,
}
