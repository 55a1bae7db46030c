"""Helium variants of fully connected layers whose weights have few bits (runtime_c/mve/glow_mve_narrow.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.narrow import has_few_rows, read_as_stored, weight_bits, weight_palette
from glowc.kernels.features import Stated
from glowc.kernels.mve import fully_connected
from glowc.kernels.mve.shared import FAST
from glowc.kernels.mve.stream import VECTOR
from glowc.program.ir import Instr


def accepts(instr: Instr) -> bool:
    """Accept weights of few bits, few rows, and whole vectors of inputs."""
    return weight_bits(instr) > 0 and _has_vectors(instr)


def accepts_palette(instr: Instr) -> bool:
    """Accept the same of weights of a palette."""
    return bool(weight_palette(instr)) and _has_vectors(instr)


def _has_vectors(instr: Instr) -> bool:
    return has_few_rows(instr) and instr.int_("in_k") % VECTOR == 0 and fully_connected.accepts(instr)


NARROW = replace(
    FAST, form="narrow", rank=21, accepts=accepts, prepare=read_as_stored(fully_connected.LAYER, lanes=4),
    packs=WEIGHTED, header="glow_mve_narrow.h", template="{}_narrow", unpacks=True, stated=Stated(macs=0.25),
)  # fmt: skip
PALETTE = replace(NARROW, form="palette", template="{}_palette", accepts=accepts_palette, stated=Stated(macs=0.32))

VARIANTS = {"fc_s8": (NARROW, PALETTE)}
