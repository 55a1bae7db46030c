"""matmul_s8 on A64 and A32: products of two tensors, both widened to 16 bits."""

from __future__ import annotations

from functools import partial

from glowc.kernels.base import KernelVariant
from glowc.kernels.shapes import MatMul
from glowc.kernels.simd.core import CORES, prepare_core
from glowc.program.ir import Instr


def _accepts(instr: Instr) -> bool:
    return instr.int_("n") >= 4 and instr.int_("k") >= 4


def _scratch_bytes(instr: Instr) -> int:
    """Bytes: the right operand of one product and four rows of the left, in 16 bits (simd/matmul_s8.c.j2)."""
    s = MatMul.of(instr)
    return 2 * (-(-s.k // 4) * 4) * (-(-s.n // 8) * 8 + 4)


MATMUL = tuple(
    KernelVariant(
        isa, rank=30, header=header, scratch_bytes=_scratch_bytes, accepts=_accepts,
        prepare=partial(prepare_core, a32=CORES[isa].a32),
    )
    for isa, header in (("a32", "glow_a32.h"), ("a64", "glow_neon.h"))
)  # fmt: skip

VARIANTS = {"matmul_s8": MATMUL}
