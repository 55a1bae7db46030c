"""Layers that end as TensorFlow Lite does on SMLAD: those with a float32 scale with another ending (glow_dsp_q31.h).

They are not for factors of 1/2 or more, or of 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from glowc.kernels.base import UNFIT, KernelVariant, Prepared, plan_in
from glowc.kernels.common.factors import FIXED, FIXED_EMPTY, fit
from glowc.kernels.dsp import conv, depthwise, eight, fully_connected, paired, winograd
from glowc.kernels.dsp.conv import ConvPlan
from glowc.kernels.dsp.ends import factors_of, fixed_end
from glowc.kernels.dsp.forms import summed_groups
from glowc.kernels.dsp.fully_connected import FcPlan
from glowc.kernels.dsp.stream import pairs
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

Prepare = Callable[[Arrays, Instr], Prepared]


def _where_fit(prepare: Prepare) -> Prepare:
    """Return a preparation that leaves layers alone whose factors have no such form."""

    def checked(constants: Arrays, instr: Instr) -> Prepared:
        if not fit(constants):
            return UNFIT
        prepared = prepare(constants, instr)
        if prepared == UNFIT:
            return UNFIT
        return Prepared({"weights": prepared.constants["weights"], **FIXED_EMPTY}, prepared.plan)

    return checked


def _prepare_quad(constants: Arrays, instr: Instr) -> Prepared:
    shape = Conv.of(instr)
    plan = conv.collecting_quad(shape, rests=True)
    weights = conv.collected(constants["weights"], shape, plan.path, plan.rest)
    summed = summed_groups(weights, instr)
    stream = pairs(weights, constants, instr, summed=summed)
    rows = plan.path == "rows"
    plan = replace(plan, form=stream.form, end=fixed_end(instr), row_ends=rows, fixed=True, summed=summed)
    return Prepared(stream.constants, plan)


def _conv(plain: KernelVariant) -> KernelVariant:
    """Return the variant of one by blocks of four channels."""
    assert plain.prepare is not None
    prepare_plain = plain.prepare

    def prepare(constants: Arrays, instr: Instr) -> Prepared:
        prepared = prepare_plain(constants, instr)
        return replace(prepared, plan=replace(plan_in(prepared, ConvPlan), end=fixed_end(instr), fixed=True))

    return fixed_variant(plain, prepare, "glow_dsp_gemm_q31.h")


def _fc(plain: KernelVariant) -> KernelVariant:
    """Return the variant of `plain`; its functions do not limit codes."""
    assert plain.prepare is not None
    prepare_plain = plain.prepare

    def prepare(constants: Arrays, instr: Instr) -> Prepared:
        prepared, end = prepare_plain(constants, instr), fixed_end(instr)
        if prepared == UNFIT:
            return UNFIT
        plan = replace(plan_in(prepared, FcPlan), end={"v8": "r8", "s8": "n8"}.get(end, end), fixed=True)
        return replace(prepared, plan=plan)

    return fixed_variant(plain, prepare, "glow_dsp_fc_q31.h")


def _prepare_small(constants: Arrays, instr: Instr) -> Prepared:
    """Multipliers and places of all channels as their ending reads them; all else stays as that of `ref`."""
    if not fit(constants):
        return UNFIT
    ends = factors_of(constants, instr.int_("out_c"))
    plan = depthwise.SmallPlan(offset=instr.int_("w_zp") != 0, fixed=True)
    return Prepared({"mul": ends.muls.astype(np.int32), "shift": ends.places.astype(np.int8)}, plan)


def fixed_variant(plain: KernelVariant, prepare: Prepare, header: str) -> KernelVariant:
    """Return a variant of a kernel with a scale as one that ends in a multiplier and a shift."""
    return replace(plain, prepare=_where_fit(prepare), packs=FIXED, header=header)


CONV_QUAD = replace(
    fixed_variant(conv.QUAD, _prepare_quad, "glow_dsp_quad_q31.h"),
    accepts=conv.accepts_rests, modest_bytes=conv.modest_quad, keeps=conv.keep_quad,
    wanted_bytes=conv.wanted_bytes,
)  # fmt: skip

WINOGRAD = fixed_variant(winograd.CONV, winograd.prepare_fixed, "glow_dsp_winograd.h")
WINOGRAD_PAIRED = fixed_variant(winograd.PAIRED, winograd.in_order(winograd.prepare_fixed), "glow_dsp_winograd.h")
CONV, PAIRED, BATCH = map(_conv, (conv.CONV, paired.PAIRED, paired.BATCH))
FC, FC_CROSSED = map(_fc, (fully_connected.FC, paired.CROSSED_FC))
FC_EIGHT = replace(_fc(eight.EIGHT), slow_with=frozenset())

DEPTHWISE = fixed_variant(depthwise.DEPTHWISE, depthwise.prepare, "glow_dsp_planar.h")
DEPTHWISE_PAIRED = fixed_variant(depthwise.PAIRED, depthwise.in_order(depthwise.prepare), "glow_dsp_planar.h")

DEPTHWISE_SMALL = replace(
    depthwise.SMALL, prepare=_prepare_small, packs=frozenset({"mul", "shift"}), header="glow_dsp_small_q31.h"
)

VARIANTS = {
    "dwconv_s8q31": (DEPTHWISE, DEPTHWISE_PAIRED, DEPTHWISE_SMALL),
    "conv_s8q31": (CONV, CONV_QUAD, PAIRED, BATCH, WINOGRAD, WINOGRAD_PAIRED),
    "fc_s8q31": (FC, FC_EIGHT, FC_CROSSED),
}
