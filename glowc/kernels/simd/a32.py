"""The A32 variants of the kernels for Advanced SIMD (runtime_c/simd/glow_a32.h), with the constants of packing_a64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.singles import with_singles
from glowc.kernels.simd.add import accepts_fused, add_plan, fused_plan
from glowc.kernels.simd.layers import conv_variant, fc_variant, tight_variant
from glowc.kernels.simd.mul import accepts_long_rows
from glowc.kernels.simd.shared import (
    average_variant,
    depthwise_variant,
    dynamic_variant,
    float_variants,
    matmul_variant,
    maximum_variant,
)
from glowc.program.ir import Instr, ParamValue

HEADER = "glow_a32.h"
_NEEDS = {"a32", "neon"}
CONV = conv_variant("a32", _NEEDS, 30, HEADER)
CONV_TIGHT = tight_variant(CONV)
FC = fc_variant("a32", _NEEDS, 30, HEADER)
FC_SINGLE = with_singles(FC, "glow_neon_dot_s8", "glow_a32_single.h")
DEPTHWISE = depthwise_variant("a32", _NEEDS, HEADER)
FLOAT = float_variants("a32", _NEEDS, "glow_neon_f32.h")
AVERAGE = average_variant("a32", _NEEDS, HEADER)
FC_DYNAMIC = dynamic_variant("a32", _NEEDS)
MAXIMUM = maximum_variant("a32", _NEEDS)
MATMUL = matmul_variant("a32", _NEEDS, HEADER)


def _accepts_agreed(instr: Instr) -> bool:
    """Accept sums in fixed point or in the fused form: A32 has no vector division."""
    return accepts_long_rows(instr) and add_plan("a32", instr)["form"] != "sub"


@lru_cache(maxsize=256)
def _plain(a_ratio: float, b_ratio: float, fixed: float, half: int) -> tuple[float, float, float] | None:
    """Return constants with which products and sums rounded one by one give the codes of the fused form, if any do.

    All pairs of codes are evaluated, for constants some units in the last place from those of the fused form.
    """
    a = np.arange(-128 + half, 128 + half, dtype=np.float64)[:, None]
    b = np.arange(-128 + half, 128 + half, dtype=np.float64)[None, :]
    low, high = -128 + half, 127 + half
    inner = (b * _single(b_ratio) + _single(fixed)).astype(np.float32)
    wanted = np.clip(np.rint((a * _single(a_ratio) + inner).astype(np.float32)), low, high)
    x, y = a.astype(np.float32), b.astype(np.float32)
    for steps in sorted(product((0, -1, 1, -2, 2), repeat=3), key=lambda s: sum(map(abs, s))):
        ra, rb, start = (_moved(v, n) for v, n in zip((a_ratio, b_ratio, fixed), steps, strict=True))
        if np.array_equal(np.clip(np.rint(x * ra + (y * rb + start)), low, high), wanted):
            return float(ra), float(rb), float(start)
    return None


def _single(value: float) -> float:
    """Return the float32 nearest to `value`."""
    return float(np.float32(value))


def _moved(value: float, steps: int) -> np.float32:
    """Return the float32 `steps` units in the last place from `value`."""
    return np.float32(np.float32(value) + np.float32(steps) * np.spacing(np.float32(value)))


def _with_plain(plan: Mapping[str, ParamValue], terms: tuple[float, float, float], half: int) -> dict[str, ParamValue]:
    plain = _plain(*terms, half)
    if plain is None:
        return {**plan, "plain": 0}
    return {**plan, "plain": 1, "plain_a": plain[0], "plain_b": plain[1], "plain_fixed": plain[2]}


def _agreed_plan(instr: Instr) -> Mapping[str, ParamValue]:
    plan = add_plan("a32", instr)
    if plan["form"] == "fixed":
        return plan
    terms = float(plan["a_ratio"]), float(plan["b_ratio"]), float(plan["fixed"])
    return _with_plain(plan, terms, 0)


def _fused_plan(instr: Instr) -> Mapping[str, ParamValue]:
    plan = fused_plan("a32", instr)
    if plan["form"] == "fixed":
        return plan
    terms = (float(instr.params["a_ratio"]), float(instr.params["b_ratio"]), float(instr.params["fixed"]))
    return _with_plain(plan, terms, int(instr.params["half"]))


_ADD = KernelVariant("a32", frozenset(_NEEDS), rank=30, in_place=True, header=HEADER, template="{}_a32")
ADD = replace(_ADD, accepts=_accepts_agreed, plan=_agreed_plan)
ADD_FUSED = replace(_ADD, accepts=accepts_fused, plan=_fused_plan)

VARIANTS = {
    "add_s8": (ADD,),
    "add_s8f": (ADD_FUSED,),
    "avg_pool_s8": (AVERAGE,),
    "conv_f32": (FLOAT["conv_f32"],),
    "conv_f32w8": (FLOAT["conv_f32w8"],),
    "conv_s8": (CONV, CONV_TIGHT),
    "dwconv_f32": (FLOAT["dwconv_f32"],),
    "dwconv_f32w8": (FLOAT["dwconv_f32w8"],),
    "dwconv_s8": (DEPTHWISE,),
    "fc_dynamic": (FC_DYNAMIC,),
    "fc_f32": (FLOAT["fc_f32"],),
    "fc_f32w8": (FLOAT["fc_f32w8"],),
    "fc_s8": (FC, FC_SINGLE),
    "matmul_f32": (FLOAT["matmul_f32"],),
    "matmul_s8": (MATMUL,),
    "max_pool_s8": (MAXIMUM,),
}
