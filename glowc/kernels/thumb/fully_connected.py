"""fc_s8, fc_s8q31 and fc_s8rs for cores without SIMD: eight outputs at a time, or four rows times all outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared, Reads
from glowc.kernels.common.constants import SHIFTED, WEIGHTED
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.records import plain_records
from glowc.kernels.shapes import FullyConnected
from glowc.kernels.thumb.fold import accepts_matrix, fold, fold_fixed, fold_shift
from glowc.kernels.thumb.forms import HEADER, both, fixed
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_ROWS_BYTES, _V6M_ROWS_BYTES = 4096, 1024  # of scratch for four rows; Armv6-M comes with little RAM


@dataclass(frozen=True, slots=True, kw_only=True)
class FcPlan(Plan):
    """`full`: all int8 codes are allowed; `offset`: the weights have a zero point; `shifts`: fc_s8rs, or
    `fixed`, fc_s8q31.
    """

    full: bool
    offset: bool
    shifts: bool
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FcRowsPlan(Plan):
    """Of several rows; `shifts`: fc_s8rs, or `fixed`, fc_s8q31."""

    shifts: bool
    fixed: bool = False


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
    return Prepared(found, _plan(instr, shifts=False))


def prepare_shift(constants: Arrays, instr: Instr) -> Prepared:
    """Return the constants of fc_s8rs."""
    weights = weights_of(constants, instr)
    return Prepared({"weights": fc_order(weights), **fold_shift(weights, constants, instr)}, _plan(instr, shifts=True))


def prepare_fixed(constants: Arrays, instr: Instr) -> Prepared:
    """Return the constants of fc_s8q31."""
    weights = weights_of(constants, instr)
    plan = replace(_plan(instr, shifts=True), fixed=True)
    return Prepared({"weights": fc_order(weights), **fold_fixed(weights, constants, instr)}, plan)


def prepare_rows(constants: Arrays, instr: Instr) -> Prepared:
    """Fold the zero point into the bias; the weights stay."""
    return Prepared({"bias": fold(weights_of(constants, instr), constants, instr)}, FcRowsPlan(shifts=False))


def prepare_rows_shift(constants: Arrays, instr: Instr) -> Prepared:
    """Return the constants of fc_s8rs of several rows."""
    return Prepared(fold_shift(weights_of(constants, instr), constants, instr), FcRowsPlan(shifts=True))


def prepare_rows_fixed(constants: Arrays, instr: Instr) -> Prepared:
    """Return the constants of fc_s8q31 of several rows."""
    plan = FcRowsPlan(shifts=True, fixed=True)
    return Prepared(fold_fixed(weights_of(constants, instr), constants, instr), plan)


def rows_scratch(instr: Instr) -> int:
    """Two words per input of four rows."""
    return 8 * instr.int_("in_k")


def accepts_rows(instr: Instr) -> bool:
    """Accept at least three rows, of which at most one in four is computed in vain."""
    rows = instr.int_("rows")
    few = rows < 3 or -(-rows // 4) * 3 > rows
    return not few and accepts_matrix(instr) and rows_scratch(instr) <= _ROWS_BYTES


def accepts_few_inputs(instr: Instr) -> bool:
    """Accept rows as `accepts_rows`, with less scratch."""
    return accepts_rows(instr) and rows_scratch(instr) <= _V6M_ROWS_BYTES


_PLAIN = KernelVariant("v7m", rank=5, header=HEADER, accepts=accepts_matrix, prepare=prepare, packs=WEIGHTED,
                       reads=Reads(at_once=8), records=plain_records)  # fmt: skip
_ROWS = replace(
    _PLAIN, form="rows", rank=6, template="{}_rows", accepts=accepts_rows, prepare=prepare_rows,
    scratch_bytes=rows_scratch, reads=Reads(),
)  # fmt: skip


def _fc(
    plain: Callable[[Arrays, Instr], Prepared], rows: Callable[[Arrays, Instr], Prepared], packs: frozenset[str]
) -> tuple[KernelVariant, ...]:  # fmt: skip
    several = both(replace(_ROWS, prepare=rows, packs=packs))
    small = replace(several[1], accepts=accepts_few_inputs)
    return *both(replace(_PLAIN, prepare=plain, packs=packs)), several[0], small


VARIANTS = {
    "fc_s8": _fc(prepare, prepare_rows, WEIGHTED),
    "fc_s8q31": fixed(_fc(prepare_fixed, prepare_rows_fixed, WEIGHTED)),
    "fc_s8rs": _fc(prepare_shift, prepare_rows_shift, SHIFTED),
}
