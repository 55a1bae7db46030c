"""Weights of few bits on the DSP extension (runtime_c/dsp/glow_dsp_unpack.h).

Those of a palette are looked up by twos, in a table of all pairs that each call makes in its scratch.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowc.graph.few_codes import NARROW_BITS
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.narrow import UnpackPlan, in_order, indexed_by, shifted, unpacking
from glowc.program.ir import Instr


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


_PAIRS = KernelVariant("dsp", rank=10, header="glow_dsp_unpack.h", scratch_bytes=pair_bytes)

VARIANTS = {
    **unpacking(KernelVariant("dsp", rank=10), 1, "glow_dsp_unpack.h", UnpackDspPlan),
    **{f"unpack_p{bits}": (indexed_by(_PAIRS, bits, in_order, 1, plan=UnpackDspPlan),) for bits in NARROW_BITS},
}
