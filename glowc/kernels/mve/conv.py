"""Helium variants of int8 convolutions (runtime_c/mve/glow_mve_dot.h, glow_mve_run.h, glow_mve_gather.h)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowc.kernels.base import Prepared
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.factors import Ends, with_factors
from glowc.kernels.common.float_shift import rows, with_scales
from glowc.kernels.mve.conv_plans import (
    ConvPlan,
    GatherPlan,
    PackedPlan,
    PointPlan,
    RunPlan,
    UnrolledPlan,
    WindowPlan,
    WindowRowsPlan,
    choose_plan,
    rows_are_one,
    table_bytes,
)
from glowc.kernels.mve.shared import FAST, has_centred_codes, overlap_bytes
from glowc.kernels.mve.stream import end_of, group_records, stream, streamed
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays


def accepts(instr: Instr) -> bool:
    """Accept dense int8 convolutions whose rows the 16-bit offsets of a store reach."""
    shape = Conv.of(instr)
    return has_centred_codes(instr) and shape.groups == 1 and shape.out_w * shape.out_c < 1 << 16


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of constants, and a table of offsets in place of biases where it is not in the scratch."""
    shape = Conv.of(instr)
    ends = Ends.of(constants, shape.out_c)
    plan = choose_plan(instr, end_of(ends, instr))
    segments = shape.k_h if isinstance(plan, RunPlan | PointPlan | WindowRowsPlan | WindowPlan) else 1
    weights = constants["weights"].reshape(shape.out_c, segments, -1)
    if isinstance(plan, PackedPlan | GatherPlan):
        weights = np.pad(weights, ((0, 0), (0, 0), (0, plan.held - weights.shape[2])))
    lines_of = instr if plan.code or isinstance(plan, RunPlan | PackedPlan) else None
    cuts = plan.code.cuts if plan.code else ()
    packed = {**ends.empty, "weights": stream(weights, constants["bias"], ends, instr.int_("in_zp"), lines_of, cuts)}
    if isinstance(plan, PackedPlan | GatherPlan) and not plan.table_in_scratch:
        packed["bias"] = gather_table(shape)
    return Prepared(packed, plan)


def gather_table(shape: Conv) -> np.ndarray:
    """Return what glow_mve_gather_init would write, as int32."""
    ky, kx, c = (i.reshape(-1) for i in np.indices((shape.k_h, shape.k_w, shape.in_c)))
    rows, columns = ky * shape.dil_h, kx * shape.dil_w
    offsets = rows * shape.in_row + columns * shape.in_col + c * shape.in_ch
    whole = table_bytes(shape.inputs) // 4
    parts = ((offsets, np.uint16), (rows, np.uint8), (columns, np.uint8))
    padded = (np.pad(values, (0, whole - ky.size)).astype(kind).view(np.int8) for values, kind in parts)
    return np.concatenate(list(padded)).view(np.int32)


def placed(instr: Instr) -> Plan:
    """Return the plan once rings and directions are settled: they say whether rows are one."""
    plan = instr.plan
    return (
        replace(plan, merged=rows_are_one(Conv.of(instr)))
        if isinstance(plan, PointPlan | RunPlan | UnrolledPlan)
        else plan
    )


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of pixels, of a table and of steps; the definition needs none."""
    plan = instr.plan
    return plan.scratch_bytes(Conv.of(instr)) if isinstance(plan, ConvPlan) else 0


LAYER = replace(
    FAST, accepts=accepts, prepare=prepare, packs=WEIGHTED, scratch_bytes=scratch_bytes, placed=placed, streams=True,
    overlap_bytes=overlap_bytes,
    header="glow_mve_gather.h", records=lambda instr: group_records(instr, instr.int_("out_c")),
)  # fmt: skip

VARIANTS = {
    "conv_s8": (LAYER,),
    "conv_s8q31": (with_factors(LAYER, "glow_mve_gather.h"),),
    "conv_s8rs": (with_scales(LAYER, rows, streamed),),
}
