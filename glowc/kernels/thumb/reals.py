"""Kernels on codes whose definition is in float32, for cores without FPU (runtime_c/thumb/glow_thumb_reals.h).

softmax_s8: the sum of the exponentials is computed as float32 would, in integers. The quotient is a product with the
sum's reciprocal of 16 bits, at most 2^-13 of itself too small; only quotients that near below a tie are divided.
layer_norm_s8: gains and shifts become integers in scratch. A row's codes, apart from their mean and divided by their
deviation, are below the root of their number (Cauchy), which bounds every value; near a tie the definition.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.thumb.forms import both
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST_STEPS = 1 << 15
_LONGEST = 1024
_HEADER = "glow_thumb_reals.h"


def _accepts_softmax(instr: Instr) -> bool:
    """Accept a whole number of steps."""
    steps = float(instr.params["steps"])
    return 1.0 <= steps < _MOST_STEPS and steps.is_integer()


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxPlan(Plan):
    """`steps` of the output, and the bits that stay for the `fraction` of a code."""

    steps: int
    fraction: int


def prepare_softmax(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of softmax_s8."""
    steps = int(float(instr.params["steps"]))
    return Prepared(plan=SoftmaxPlan(steps=steps, fraction=30 - steps.bit_length()))


def _accepts_norm(instr: Instr) -> bool:
    """Accept rows of which the scratch is small."""
    return int(instr.params["n"]) <= _LONGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class NormPlan(Plan):
    """`place`: by how many bits n * 255 stays below 2^30; `reach`: the bits of the root of n."""

    place: int
    reach: int


def prepare_norm(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of layer_norm_s8."""
    n = instr.int_("n")
    return Prepared(plan=NormPlan(place=30 - (255 * n).bit_length(), reach=-(-n.bit_length() // 2)))


SOFTMAX = both(
    KernelVariant("v7m", rank=5, header=_HEADER, in_place=True, accepts=_accepts_softmax, prepare=prepare_softmax)
)
LAYER_NORM = both(
    KernelVariant(
        "v7m", rank=5, header=_HEADER, in_place=True, accepts=_accepts_norm, prepare=prepare_norm,
        scratch_bytes=lambda instr: 8 * int(instr.params["n"]),
    )
)  # fmt: skip

VARIANTS = {
    "layer_norm_s8": LAYER_NORM,
    "softmax_s8": SOFTMAX,
}
