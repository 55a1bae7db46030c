"""lstm_s8 on SMLAD, the four gates of a cell at a time (runtime_c/dsp/glow_dsp_lstm.h)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.recurrent import CONSTANTS, IN_STREAM, by_cell, coded_scratch, goes_forward
from glowc.kernels.dsp.needs import FPU
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_UNIT = 8
_MOST_UNITS = 8  # printed one after the other
_LIMIT = 1 << 23


@dataclass(frozen=True, slots=True, kw_only=True)
class LstmPlan(Plan):
    """`dual`: two gates share a sum; so many units of inputs, of states at a time."""

    dual: bool = False
    units: int = 1
    past_units: int = 1


def _at_once(inputs: int) -> int:
    """Return the most units that divide all of them."""
    units = -(-inputs // _UNIT)
    return max(n for n in range(1, _MOST_UNITS + 1) if units % n == 0)


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream where sums of two gates fit one register."""
    cells = by_cell(constants, instr)
    if not all(_fits(part.weights, part.bias) for part in cells):
        return Prepared(plan=LstmPlan())
    words = np.concatenate([_words(part.weights, part.bias, part.scale) for part in cells], axis=1)
    plan = LstmPlan(dual=True, units=_at_once(instr.int_("in_k")), past_units=_at_once(instr.int_("hidden")))
    return Prepared({**IN_STREAM, "weights": words.reshape(-1)}, plan)


def _fits(weights: np.ndarray, bias: np.ndarray) -> bool:
    """Say whether a halfword holds two weights of w[H, 4, K], and no sum with its bias leaves 24 bits."""
    most = 128 * np.abs(weights).sum(axis=2) + np.abs(bias)
    return bool(weights.min() >= -127) and bool(most.max() < _LIMIT)


def _words(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return [H, words] of one part: w[H, 4, K], bias[H, 4], scale[H, 4]; gates are input, output, forget, cell."""
    padded = np.pad(weights, ((0, 0), (0, 0), (0, -weights.shape[2] % _UNIT)))
    pairs = (256 * padded[:, 0::2] + padded[:, 1::2]).astype(np.int16)  # [H, 2, K]
    words = np.ascontiguousarray(pairs).view(np.int32).transpose(0, 2, 1)  # [H, K / 2, 2]
    starts = np.concatenate((256 * bias[:, 0::2] + bias[:, 1::2], bias[:, 1::2]), axis=1).astype(np.int32)
    ends = np.ascontiguousarray(scale.astype(np.float32)).view(np.int32)
    return np.concatenate((starts, words.reshape(len(words), -1), ends), axis=1)


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of cells, and of a row of inputs and of the state."""
    wide = sum(-(-instr.int_(name) // _UNIT) * _UNIT * 2 for name in ("in_k", "hidden"))
    return coded_scratch(instr) + wide


VARIANTS = {
    "lstm_s8": (
        KernelVariant(
            "dsp", also=FPU, rank=11, header="glow_dsp_lstm.h", prepare=prepare, scratch_bytes=scratch_bytes,
            packs=CONSTANTS, accepts=goes_forward,
        ),
    ),
}  # fmt: skip
