"""Convolutions with inputs of 16 bits on A64 and A32, an output channel a lane (runtime_c/simd/glow_neon_wide.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_CHANNELS = 8
_SCRATCH_BYTES = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class SixteenPlan(Plan):
    """`shifts`: the layer ends in a multiplication and a shift."""

    shifts: bool


def _scratch(instr: Instr) -> int:
    """Bytes of four windows."""
    return 8 * Conv.of(instr).inputs


def _accepts(instr: Instr) -> bool:
    """Accept one group, zero points 0 of inputs and weights, and eight output channels or more."""
    kinds = [instr.operand(role).type.dtype for role in ("in", "weights")]
    plain = kinds == [DType.S16, DType.S8] and instr.int_("in_zp") == instr.int_("w_zp") == 0
    s = Conv.of(instr)
    return plain and s.groups == 1 and s.out_c >= _CHANNELS and _scratch(instr) <= _SCRATCH_BYTES


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Lay the weights of an input for all channels side by side."""
    weights = constants["weights"].reshape(instr.int_("out_c"), -1)
    plan = SixteenPlan(shifts=instr.kernel.endswith("rs"))
    return Prepared({"weights": np.ascontiguousarray(weights.T).reshape(-1)}, plan)


_A64 = KernelVariant(
    "a64", rank=20, header="glow_neon_wide.h", accepts=_accepts, prepare=prepare, packs=frozenset({"weights"}),
    scratch_bytes=_scratch, streams=True, row_block=4,
)  # fmt: skip
_BOTH = (_A64, replace(_A64, isa="a32"))

VARIANTS = {"conv_s16": _BOTH, "conv_s16rs": _BOTH}
