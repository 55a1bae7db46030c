"""Layers that end as TensorFlow Lite does on SMLAD: those with a float32 scale with another ending (glow_dsp_q31.h).

Of a factor of 1/2 or more, or of 0, the template prints the definition, and the constants stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.float_shift import DEFINITION, DefinedPlan
from glowc.kernels.dsp import conv
from glowc.kernels.dsp.ends import factors_of, fixed_end
from glowc.kernels.dsp.stream import pairs
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

PACKED = frozenset({"weights", "bias", "mul", "shift"})
_EMPTY: Arrays = {"bias": np.zeros(1, np.int32), "mul": np.zeros(1, np.int32), "shift": np.zeros(1, np.int8)}
Prepare = Callable[[Arrays, Instr], Prepared]


def _where_fit(channels: Callable[[Instr], int], prepare: Prepare) -> Prepare:
    """Return a preparation that leaves layers alone whose factors have no such form."""

    def checked(constants: Arrays, instr: Instr) -> Prepared:
        if not factors_of(constants, channels(instr)).fit:
            return Prepared(plan=DEFINITION)
        prepared = prepare(constants, instr)
        return Prepared({"weights": prepared.constants["weights"], **_EMPTY}, prepared.plan)

    return checked


def _scratch(plain: KernelVariant) -> Callable[[Instr], int]:
    return lambda instr: 0 if isinstance(instr.plan, DefinedPlan) else plain.scratch_bytes(instr)


def _out_c(instr: Instr) -> int:
    return instr.int_("out_c")


def _prepare_quad(constants: Arrays, instr: Instr) -> Prepared:
    shape = Conv.of(instr)
    plan = conv.collecting_quad(shape)
    stream = pairs(conv.collected(constants["weights"], shape, plan.path), constants, instr)
    plan = replace(plan, form=stream.form, end=fixed_end(instr), row_ends=plan.path == "rows", fixed=True)
    return Prepared(stream.constants, plan)


def _keep_quad(constants: Arrays, instr: Instr, scratch_bytes: int) -> Prepared | None:
    if isinstance(instr.plan, DefinedPlan):
        return None
    return conv.keep_quad(constants, instr, scratch_bytes)


def _modest_quad(instr: Instr) -> int:
    return 0 if isinstance(instr.plan, DefinedPlan) else conv.modest_quad(instr)


def fixed_variant(
    plain: KernelVariant, prepare: Prepare, channels: Callable[[Instr], int], header: str
) -> KernelVariant:
    """Return a variant of a kernel with a scale as one that ends in a multiplier and a shift."""
    return replace(
        plain, prepare=_where_fit(channels, prepare), packs=PACKED, header=header, scratch_bytes=_scratch(plain),
    )  # fmt: skip


CONV_QUAD = replace(
    fixed_variant(conv.QUAD, _prepare_quad, _out_c, "glow_dsp_quad_q31.h"),
    slow_with=frozenset(), modest_bytes=_modest_quad, keeps=_keep_quad,
)  # fmt: skip

VARIANTS = {
    "conv_s8q31": (CONV_QUAD,),
}
