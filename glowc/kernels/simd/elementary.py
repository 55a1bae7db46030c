"""Functions of floats, softmax and normalised rows by vectors of four (runtime_c/simd/glow_neon_elementary.h)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from glowc.kernels.base import KernelVariant, always
from glowc.kernels.common.elementary import accepts_function, accepts_softmax
from glowc.program.ir import Instr

_SHARED = KernelVariant("a64", rank=30, in_place=True, header="glow_neon_elementary.h")


def _both(accepts: Callable[[Instr], bool]) -> tuple[KernelVariant, ...]:
    return tuple(replace(_SHARED, isa=isa, accepts=accepts) for isa in ("a64", "a32"))


VARIANTS = {
    "layer_norm_f32": _both(always),
    "layer_norm_stats_f32": _both(always),
    "softmax_f32": _both(accepts_softmax),
    "unary": _both(accepts_function),
}
