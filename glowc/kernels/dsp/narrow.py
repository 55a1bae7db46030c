"""Weights of few bits on the DSP extension.

fc_s8 on SMLAD reads those of 4 bits or of a palette as they are stored (runtime_c/dsp/glow_dsp_narrow.h), others are
unpacked (runtime_c/dsp/glow_dsp_unpack.h): those of a palette are looked up by twos, in a table of all pairs that each
call makes in its scratch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.few_codes import NARROW_BITS
from glowc.kernels.base import KernelVariant, Prepared, plan_of
from glowc.kernels.common.constants import EMPTY, WEIGHTED
from glowc.kernels.common.narrow import (
    UnpackPlan,
    in_order,
    indexed_by,
    shifted,
    unpacking,
    vector_of,
    weight_bits,
    weight_form,
    weight_palette,
)  # fmt: skip
from glowc.kernels.dsp.narrow_tile import assembly
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.dsp.stream import accepts_any_zero
from glowc.kernels.features import Stated
from glowc.kernels.shapes import FullyConnected
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_OUTPUTS, _UNIT = 4, 8
_PLACES = np.array([0, 4, 8, 12, 16, 20, 24, 28])  # of the weights of a unit in their word
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowPlan(Plan):
    """`bits` of a weight, or of a place in a palette, whose pairs are looked up."""

    bits: int = 4
    paired: bool = False

    @property
    def sums(self) -> str:
        """The name of the function that multiplies."""
        return f"glow_dsp_narrow_sums{f'_p{self.bits}' if self.paired else ''}"

    @property
    def assembly(self) -> str:
        """Its assembly."""
        return assembly(self.bits, paired=self.paired)


def accepts(instr: Instr) -> bool:
    """Accept weights of 4 bits, and inputs that may take two bytes of scratch each."""
    return weight_bits(instr) == 4 and _has_short_rows(instr)


def accepts_palette(instr: Instr) -> bool:
    """Accept the same of weights of a palette, which are so many that a table of its pairs is worth its making."""
    return bool(weight_palette(instr)) and _has_short_rows(instr)


def _has_short_rows(instr: Instr) -> bool:
    few = instr.int_("w_zp") == 0 and accepts_any_zero(instr)
    return few and _row_bytes(instr) <= _MOST_BYTES


def _row_bytes(instr: Instr) -> int:
    """A row of inputs as int16, in whole units."""
    return 2 * _UNIT * -(-instr.int_("in_k") // _UNIT)


def _table_bytes(instr: Instr) -> int:
    """A row of inputs, and a word for each two codes of the palette."""
    return _row_bytes(instr) + 4 * (1 << 2 * plan_of(instr, NarrowPlan).bits)


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the blocks of four outputs, filled up with zeros."""
    places = constants["weights"].astype(np.int64) + 8
    return Prepared(
        {**EMPTY, "weights": _stream(instr, constants, _blocks(instr, places, _PLACES, 8)).reshape(-1)}, NarrowPlan()
    )


def prepare_palette(constants: Arrays, instr: Instr) -> Prepared:
    """Return the palette as a vector, then the blocks of four outputs; of places of 2 bits two outputs to a word."""
    form = weight_form(instr)
    places = form.indices(constants["weights"].astype(np.int8)) if form is not None else None
    assert form is not None
    assert places is not None
    pairs = np.concatenate((2 * form.bits * np.arange(4), 2 * form.bits * np.arange(4) + form.bits))
    words = _blocks(instr, places.astype(np.int64), pairs, 0)
    if form.bits == 2:
        words = words[..., 0::2] | words[..., 1::2] << 16
    stream = _stream(instr, constants, words).reshape(-1)
    return Prepared(
        {**EMPTY, "weights": np.concatenate((vector_of(form), stream))}, NarrowPlan(bits=form.bits, paired=True)
    )


def _blocks(instr: Instr, places: np.ndarray, shifts: np.ndarray, fill: int) -> np.ndarray:
    """Return what is stored of weights as words [block][unit][output], each weight of a unit at its place.

    What is beyond them is `fill`: of inputs that are 0, and of outputs that are not written.
    """
    s = FullyConnected.of(instr)
    blocks, units = -(-s.out_n // _OUTPUTS), -(-s.in_k // _UNIT)
    stored = np.full((blocks * _OUTPUTS, units * _UNIT), fill, np.int64)
    stored[: s.out_n, : s.in_k] = places.reshape(s.out_n, s.in_k)
    return np.asarray((stored.reshape(blocks, _OUTPUTS, units, _UNIT) << shifts).sum(3).transpose(0, 2, 1))


def _stream(instr: Instr, constants: Arrays, words: np.ndarray) -> np.ndarray:
    """Return the blocks with their biases and scales."""
    s, blocks = FullyConnected.of(instr), len(words)
    weights = constants["weights"].reshape(s.out_n, s.in_k).astype(np.int64)
    ends = np.zeros((2, blocks * _OUTPUTS), np.uint32)
    bias = constants["bias"].astype(np.int64) - instr.int_("in_zp") * weights.sum(1)
    ends[0, : s.out_n] = bias & 0xFFFFFFFF
    ends[1, : s.out_n] = np.broadcast_to(constants["scale"], (s.out_n,)).astype(np.float32).view(np.uint32)
    ends = ends.reshape(2, blocks, _OUTPUTS).transpose(1, 0, 2).reshape(blocks, -1)
    return np.concatenate((words.reshape(blocks, -1).astype(np.uint32), ends), axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackDspPlan(UnpackPlan):
    """The same, and what a word of weights is by the DSP extension."""

    def subtracted(self, stored: str, k: int) -> str:
        """The same by the DSP extension."""
        return f"glow_dsp_less_{self.form}({self.code(stored, k)}, {self.half})"

    def paired(self, stored: str, k: int) -> str:
        """The same by a table of all pairs of codes; places are stored in the order of the bytes of weights."""
        pair = 2 * self.bits
        both = [f"pairs[{shifted(stored, (2 * k + i) * pair)} & {(1 << pair) - 1}u]" for i in (0, 1)]
        return f"glow_dsp_two_pairs({both[0]}, {both[1]})"


def pair_bytes(instr: Instr) -> int:
    """A halfword for each two codes of the palette."""
    return 2 * instr.operand("palette").type.elements ** 2


NARROW = KernelVariant(
    "dsp", form="narrow", also=FPU, rank=12, header="glow_dsp_narrow.h", template="{}_narrow", accepts=accepts,
    prepare=prepare, packs=WEIGHTED, scratch_bytes=_row_bytes, unpacks=True, stated=Stated(macs=1.45),
)  # fmt: skip
PALETTE = replace(
    NARROW, form="palette", accepts=accepts_palette, prepare=prepare_palette,
    scratch_bytes=_table_bytes, stated=Stated(macs=1.9),
)  # fmt: skip

_UNPACK = KernelVariant("dsp", rank=10)
_PAIRS = replace(_UNPACK, header="glow_dsp_unpack.h", scratch_bytes=pair_bytes)

VARIANTS = {
    "fc_s8": (NARROW, PALETTE),
    **unpacking(_UNPACK, 1, "glow_dsp_unpack.h", UnpackDspPlan),
    **{f"unpack_p{bits}": (indexed_by(_PAIRS, bits, in_order, 1, plan=UnpackDspPlan),) for bits in NARROW_BITS},
}
