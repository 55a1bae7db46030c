"""fc_s8 on SMLAD of weights of 4 bits as they are stored (runtime_c/dsp/glow_dsp_narrow.h)."""

from __future__ import annotations

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.constants import EMPTY, WEIGHTED
from glowc.kernels.common.narrow import has_few_rows, weight_bits
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.dsp.stream import accepts_any_zero
from glowc.kernels.shapes import FullyConnected
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_OUTPUTS, _UNIT = 4, 8
_PLACES = np.array([0, 4, 8, 12, 16, 20, 24, 28])  # of the weights of a unit in their word
_MOST_BYTES = 4096


def accepts(instr: Instr) -> bool:
    """Accept weights of 4 bits, and few rows that may take two bytes of scratch for each input."""
    few = weight_bits(instr) == 4 and instr.int_("w_zp") == 0 and has_few_rows(instr)
    return few and accepts_any_zero(instr) and _row_bytes(instr) <= _MOST_BYTES


def _row_bytes(instr: Instr) -> int:
    """A row of inputs as int16, in whole units."""
    return 2 * _UNIT * -(-instr.int_("in_k") // _UNIT)


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the blocks of four outputs, filled up with zeros."""
    s = FullyConnected.of(instr)
    blocks, units = -(-s.out_n // _OUTPUTS), -(-s.in_k // _UNIT)
    weights = np.zeros((blocks * _OUTPUTS, units * _UNIT), np.int64)
    weights[: s.out_n, : s.in_k] = constants["weights"].reshape(s.out_n, s.in_k)
    words = ((weights + 8).reshape(blocks, _OUTPUTS, units, _UNIT) << _PLACES).sum(3).transpose(0, 2, 1)
    ends = np.zeros((2, blocks * _OUTPUTS), np.uint32)
    bias = constants["bias"].astype(np.int64) - instr.int_("in_zp") * weights[: s.out_n].sum(1)
    ends[0, : s.out_n] = bias & 0xFFFFFFFF
    ends[1, : s.out_n] = np.broadcast_to(constants["scale"], (s.out_n,)).astype(np.float32).view(np.uint32)
    ends = ends.reshape(2, blocks, _OUTPUTS).transpose(1, 0, 2).reshape(blocks, -1)
    stream = np.concatenate((words.reshape(blocks, -1).astype(np.uint32), ends), axis=1)
    return Prepared({**EMPTY, "weights": stream.reshape(-1)})


NARROW = KernelVariant(
    "dsp", form="narrow", also=FPU, rank=12, header="glow_dsp_narrow.h", template="{}_narrow", accepts=accepts,
    prepare=prepare, packs=WEIGHTED, scratch_bytes=_row_bytes, unpacks=True,
)  # fmt: skip

VARIANTS = {"fc_s8": (NARROW,)}
