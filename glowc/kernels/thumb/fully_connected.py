"""fc_s8, fc_s8q31 and fc_s8rs for cores without SIMD: eight outputs at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared, Reads
from glowc.kernels.common.constants import SHIFTED, WEIGHTED
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.records import plain_records
from glowc.kernels.shapes import FullyConnected
from glowc.kernels.thumb.fold import accepts_matrix, fold, fold_fixed, fold_shift, has_large
from glowc.kernels.thumb.forms import HEADER, both, fixed
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class FcPlan(Plan):
    """`full`: all int8 codes are allowed; `offset`: the weights have a zero point; `shifts`: fc_s8rs, or
    `fixed`, fc_s8q31. `large`: some scales are 1/4 or more.
    """

    full: bool
    offset: bool
    shifts: bool
    fixed: bool = False
    large: bool = False


def weights_of(constants: Arrays, instr: Instr) -> np.ndarray:
    """Return the weights as [outputs, inputs]."""
    shape = FullyConnected.of(instr)
    return constants["weights"].reshape(shape.out_n, shape.in_k)


def fc_order(weights: np.ndarray) -> np.ndarray:
    """Return weights[O, K] of eight outputs in turn, those of the last ones as rows."""
    outputs = header_number("glow_thumb_base.h", "GLOW_THUMB_FC")
    blocks = len(weights) - len(weights) % outputs
    turns = weights[:blocks].reshape(-1, outputs, weights.shape[1]).transpose(0, 2, 1)
    return np.concatenate((turns.reshape(-1), weights[blocks:].reshape(-1)))


def _plan(instr: Instr, *, shifts: bool) -> FcPlan:
    full = (instr.int_("out_min"), instr.int_("out_max")) == (-128, 127)
    return FcPlan(full=full, offset=instr.int_("w_zp") != 0, shifts=shifts)


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return weights of eight outputs in turn; fold the zero point into the bias."""
    weights = weights_of(constants, instr)
    found = {"weights": fc_order(weights), "bias": fold(weights, constants, instr)}
    plan = replace(_plan(instr, shifts=False), large=has_large(constants, {}, len(weights)))
    return Prepared(found, plan)


def prepare_shift(constants: Arrays, instr: Instr) -> Prepared:
    """Return the constants of fc_s8rs."""
    weights = weights_of(constants, instr)
    return Prepared({"weights": fc_order(weights), **fold_shift(weights, constants, instr)}, _plan(instr, shifts=True))


def prepare_fixed(constants: Arrays, instr: Instr) -> Prepared:
    """Return the constants of fc_s8q31."""
    weights = weights_of(constants, instr)
    plan = replace(_plan(instr, shifts=True), fixed=True)
    return Prepared({"weights": fc_order(weights), **fold_fixed(weights, constants, instr)}, plan)


_PLAIN = KernelVariant("v7m", rank=5, header=HEADER, accepts=accepts_matrix, prepare=prepare, packs=WEIGHTED,
                       reads=Reads(at_once=8), records=plain_records)  # fmt: skip

VARIANTS = {
    "fc_s8": both(_PLAIN),
    "fc_s8q31": fixed(both(replace(_PLAIN, prepare=prepare_fixed))),
    "fc_s8rs": both(replace(_PLAIN, prepare=prepare_shift, packs=SHIFTED)),
}
