"""Codes of 8 bits to codes of 16 and back: the float32 definition as one multiplication in integers.

y = clamp(((x * factor >> 16) + add) >> shift), every step exact in 32 bits but for the product. There is such a form
where one `add` gives all codes of x (256 or 65,536 of them) what the definition gives, ties included; which `add` do is
an interval for each code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from glowc.graph.numerics import dequantize, quantize
from glowc.graph.types import DType, QuantParams
from glowc.kernels.base import Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_PAIRS = ((DType.S8, DType.S16), (DType.S16, DType.S8))
_FACTOR_BITS, _LEAST_SHIFT, _MOST_SHIFT = 31, 1, 31  # a shift by 0 is no operand of SSAT
_FAR = 1 << 40
_AWAY = tuple(
    sorted((k * 2.0**-26 for k in range(-32, 33)), key=abs)
)  # from the quotient of the scales, as parts of it
_FEWER = 3  # shifts by less than the largest that are tried: sums of it may leave 32 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class WidthPlan(Plan):
    """y = clamp(((x * factor >> 16) + add) >> shift), factor below 2^31."""

    factor: int
    add: int
    shift: int


def accepts_widths(instr: Instr) -> bool:
    """Accept int8 to int16 and back where the form in integers gives all codes."""
    return _of(instr) is not None


def prepare_widths(_: Arrays, instr: Instr) -> Prepared:
    """Return the factor, the summand and the shift."""
    return Prepared(plan=width_plan_of(instr))


def width_plan_of(instr: Instr) -> WidthPlan:
    """Return the form in integers of an instruction that is accepted."""
    plan = _of(instr)
    assert plan is not None
    return plan


def _of(instr: Instr) -> WidthPlan | None:
    kinds = instr.operand("in").type.dtype, instr.operand("out").type.dtype
    if kinds not in _PAIRS:
        return None
    p = instr.params
    source = QuantParams((float(p["in_scale"]),), (instr.int_("in_zp"),))
    return width_plan(source, QuantParams((float(p["out_scale"]),), (instr.int_("out_zp"),)), *kinds)


@lru_cache(maxsize=256)
def width_plan(source: QuantParams, target: QuantParams, before: DType, after: DType) -> WidthPlan | None:
    """Return the form in integers of codes `before` to codes `after`; None where there is none."""
    x = np.arange(before.qmin, before.qmax + 1, dtype=np.int64)
    y = quantize(dequantize(x.astype(before.numpy), source), target, after).astype(np.int64)
    rises = y[1:] != y[:-1]
    ends = np.append(rises, True) | np.append(True, rises)  # between them, as products rise, no code is another
    x, y = x[ends], y[ends]
    ratio = np.float64(np.float32(source.scale[0])) / np.float64(np.float32(target.scale[0]))
    largest = min(int(np.floor(_FACTOR_BITS - 16 - np.log2(ratio))), _MOST_SHIFT)
    for shift in range(largest, max(largest - _FEWER, _LEAST_SHIFT) - 1, -1):
        for away in _AWAY:
            factor = round(ratio * (1 + away) * 2.0 ** (16 + shift))
            if not 0 < factor < 1 << _FACTOR_BITS:
                continue
            products = x * factor >> 16
            add = _summand(products, y, shift, after)
            if add is not None and abs(add) + int(np.abs(products).max()) <= DType.S32.qmax:
                path = "wide" if after.bits > before.bits else "narrow"
                return WidthPlan(path=path, factor=factor, add=add, shift=shift)
    return None


def _summand(products: np.ndarray, y: np.ndarray, shift: int, kind: DType) -> int | None:
    """Return what makes codes of the products; None where no number does. A saturated code has one bound only."""
    least, most = (y << shift) - products, (y + 1 << shift) - 1 - products
    low = least[y > kind.qmin].max(initial=-_FAR)
    high = most[y < kind.qmax].min(initial=_FAR)
    return (int(low) + int(high)) // 2 if low <= high else None
