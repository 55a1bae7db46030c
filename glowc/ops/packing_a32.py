"""The A32 variants of the kernels for Advanced SIMD (runtime_c/glow_a32.h), with the constants of packing_a64."""

from __future__ import annotations

from glowc.instr.ir import Instr
from glowc.ops.base import KernelVariant
from glowc.ops.packing_a64 import conv_variant, fc_variant
from glowc.ops.packing_neon import (
    accepts_dense,
    accepts_fused,
    add_plan,
    average_variant,
    depthwise_variant,
    dynamic_variant,
    float_variants,
    fused_plan,
    matmul_variant,
    maximum_variant,
)

HEADER = "glow_a32.h"
_NEEDS = {"a32", "neon"}
CONV = conv_variant("a32", _NEEDS, 30, HEADER)
FC = fc_variant("a32", _NEEDS, 30, HEADER)
DEPTHWISE = depthwise_variant("a32", _NEEDS, HEADER)
FLOAT = float_variants("a32", _NEEDS, "glow_neon_f32.h")
AVERAGE = average_variant("a32", _NEEDS, HEADER)
FC_DYNAMIC = dynamic_variant("a32", _NEEDS)
MAXIMUM = maximum_variant("a32", _NEEDS)
MATMUL = matmul_variant("a32", _NEEDS, HEADER)


def _accepts_agreed(instr: Instr) -> bool:
    """Accept dense sums in the fused form: A32 has no vector division."""
    return accepts_dense(instr) and add_plan(instr)["form"] == "agreed"


ADD = KernelVariant(
    "a32", frozenset(_NEEDS), rank=30, in_place=True, accepts=_accepts_agreed, header=HEADER, plan=add_plan
)
ADD_FUSED = KernelVariant(
    "a32", frozenset(_NEEDS), rank=30, in_place=True, accepts=accepts_fused, header=HEADER, plan=fused_plan
)
