"""Helium variants of fully connected int8 layers (runtime_c/mve/glow_mve_dot.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from glowc.kernels.base import Prepared, plan_of
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.factors import Ends, with_factors
from glowc.kernels.common.float_shift import rows, with_scales
from glowc.kernels.common.singles import OutputsPlan, with_singles
from glowc.kernels.mve.dot_tile import Dot
from glowc.kernels.mve.shared import FAST, has_centred_codes
from glowc.kernels.mve.stream import end_bytes, end_of, group_records, stream, streamed
from glowc.kernels.records import Records
from glowc.kernels.shapes import FullyConnected
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class FullyConnectedPlan(OutputsPlan):
    """`end`: by which functions sums become codes; "shared": all outputs have one scale, which is not in the stream."""

    end: str

    @property
    def one(self) -> Dot:
        """The function for a row."""
        return Dot(1, self.end)

    @property
    def end_bytes(self) -> int:
        """Bytes of the stream that are biases of four outputs, and their ends."""
        return end_bytes(self.end)


def accepts(instr: Instr) -> bool:
    """Accept int8 layers whose outputs the 16-bit offsets of a store reach."""
    return has_centred_codes(instr) and instr.int_("out_n") < 1 << 15


def prepare(constants: Arrays, instr: Instr, *, shares: bool = True) -> Prepared:
    """Return the stream of constants, without scales where it `shares` one."""
    shape = FullyConnected.of(instr)
    weights = constants["weights"].reshape(shape.out_n, 1, shape.in_k)
    ends = Ends.of(constants, shape.out_n)
    scaled = any(operand.role == "scale" for operand in instr.operands)
    shared = shares and scaled and bool((ends.words == ends.words[0]).all())
    packed = stream(weights, constants["bias"], None if shared else ends, instr.int_("in_zp"))
    scale = {"scale": ends.words[:1].view(np.float32)} if shared else {}
    plan = FullyConnectedPlan(end="shared" if shared else end_of(ends, instr))
    return Prepared({"weights": packed, **ends.empty, **scale}, plan)


def records(instr: Instr) -> Records | None:
    """Return where the weights of a stream lie."""
    return group_records(instr, instr.int_("out_n"), shared=plan_of(instr, FullyConnectedPlan).end == "shared")


LAYER = replace(
    FAST, accepts=accepts, prepare=prepare, packs=WEIGHTED, header="glow_mve_dot.h",
    records=records,
)  # fmt: skip
SCALED = replace(LAYER, prepare=partial(prepare, shares=False))
SINGLE = with_singles(LAYER, "glow_mve_dot_s8", "glow_mve_single.h")

VARIANTS = {
    "fc_s8": (LAYER, SINGLE),
    "fc_s8q31": (with_factors(LAYER, "glow_mve_dot.h"),),
    "fc_s8rs": (with_scales(LAYER, rows, streamed),),
}
