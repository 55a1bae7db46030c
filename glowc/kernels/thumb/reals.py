"""Kernels on codes whose definition is in float32, for cores without FPU (runtime_c/thumb/glow_thumb_reals.h).

softmax_s8: the sum of the exponentials is computed as float32 would, in integers. The quotient is a product with the
sum's reciprocal of 16 bits, at most 2^-13 of itself too small; only quotients that near below a tie are divided.
layer_norm_s8: gains and shifts become integers in scratch. A row's codes, apart from their mean and divided by their
deviation, are below the root of their number (Cauchy), which bounds every value; near a tie the definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glowc.kernels.base import KernelVariant
from glowc.kernels.thumb.layers import NEEDS
from glowc.program.ir import Instr, ParamValue

_MOST_STEPS = 1 << 15
_LONGEST = 1024
_HEADER = "glow_thumb_reals.h"


def _accepts_softmax(instr: Instr) -> bool:
    """Accept a whole number of steps."""
    steps = float(instr.params["steps"])
    return 1.0 <= steps < _MOST_STEPS and steps.is_integer()


def _softmax_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Return the steps, and the bits that stay for the fraction of a code."""
    steps = int(float(instr.params["steps"]))
    return {"steps": steps, "fraction": 30 - steps.bit_length()}


def _accepts_norm(instr: Instr) -> bool:
    """Accept rows of which the scratch is small."""
    return int(instr.params["n"]) <= _LONGEST


def _norm_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Return by how many bits n * 255 stays below 2^30, and those of the root of n."""
    n = int(instr.params["n"])
    return {"place": 30 - (255 * n).bit_length(), "reach": -(-n.bit_length() // 2)}


def _both(variant: KernelVariant) -> tuple[KernelVariant, KernelVariant]:
    """Return a variant for Armv7-M and, from the same template, for Armv6-M."""
    return variant, replace(variant, isa="m0", needs=frozenset({"thumb1"}))


SOFTMAX = _both(
    KernelVariant("m3", NEEDS, rank=5, header=_HEADER, in_place=True, accepts=_accepts_softmax, plan=_softmax_plan)
)
LAYER_NORM = _both(
    KernelVariant(
        "m3", NEEDS, rank=5, header=_HEADER, in_place=True, accepts=_accepts_norm, plan=_norm_plan,
        scratch_bytes=lambda instr: 8 * int(instr.params["n"]),
    )
)  # fmt: skip

VARIANTS = {
    "layer_norm_s8": LAYER_NORM,
    "softmax_s8": SOFTMAX,
}
