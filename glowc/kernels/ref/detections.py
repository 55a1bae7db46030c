"""The plain variants that suppress boxes, which note in scratch which of them are left."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN
from glowc.program.ir import Instr

_FLOAT_BYTES = 4


def _a_float_each(instr: Instr) -> int:
    return _FLOAT_BYTES * instr.int_("n")


def _two_floats_each(instr: Instr) -> int:
    return 2 * _a_float_each(instr)


VARIANTS = {
    "best_boxes": (replace(PLAIN, scratch_bytes=_two_floats_each),),
    "class_boxes": (replace(PLAIN, scratch_bytes=_a_float_each),),
}
