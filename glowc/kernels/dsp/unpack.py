"""Weights of few bits on the DSP extension (runtime_c/dsp/glow_dsp_unpack.h).

Those of a palette are looked up by twos, in a table of all pairs that each call makes in its scratch.
"""

from __future__ import annotations

from glowc.graph.few_codes import NARROW_BITS
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.narrow import in_order, indexed_by, unpacking
from glowc.program.ir import Instr


def pair_bytes(instr: Instr) -> int:
    """A halfword for each two codes of the palette."""
    return 2 * instr.operand("palette").type.elements ** 2


_PAIRS = KernelVariant("dsp", rank=10, header="glow_dsp_unpack.h", scratch_bytes=pair_bytes)

VARIANTS = {
    **unpacking(KernelVariant("dsp", rank=10), 1, "glow_dsp_unpack.h"),
    **{f"unpack_p{bits}": (indexed_by(_PAIRS, bits, in_order, 1),) for bits in NARROW_BITS},
}
