"""Products on Advanced SIMD besides those of int8 layers: of two tensors, and of rows of weights.

matmul_s8, matmul_s8q31: both tensors are widened to 16 bits; of two int16 tensors by common/products.py. LSTM and SVDF
of TensorFlow Lite take four rows of weights at a time; recurrent layers of float32 are the reference's loops, with rows
of weights multiplied by vectors. conv_integer: zero points known at run time (runtime_c/simd/glow_neon_integer.h).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.factors import is_right_shift
from glowc.kernels.common.products import product_variants, rows_variants
from glowc.kernels.common.recurrent import in_fours
from glowc.kernels.shapes import MatMul
from glowc.kernels.simd.core import CORES, both, prepare_core
from glowc.program.ir import Instr

_FUNCTIONS = {"lstm_f32": 400, "gru_f32": 250, "rnn_f32": 90}
"""Instructions of the functions of a cell and step: Sigmoid and Tanh take about eighty each."""


def _accepts_matmul(instr: Instr) -> bool:
    return instr.int_("n") >= 4 and instr.int_("k") >= 4


def _accepts_fixed(instr: Instr) -> bool:
    """Accept the same where sums are shifted to the right."""
    return _accepts_matmul(instr) and is_right_shift(instr)


def _matmul_bytes(instr: Instr) -> int:
    """Bytes: the right operand of one product and four rows of the left, in 16 bits (simd/matmul_s8.c.j2)."""
    s = MatMul.of(instr)
    return 2 * (-(-s.k // 4) * 4) * (-(-s.n // 8) * 8 + 4)


def _accepts_integer(instr: Instr) -> bool:
    """Accept NHWC without groups, two outputs or more, at least a vector of adjacent inputs."""
    plain = instr.int_("nhwc") == instr.int_("groups") == 1 and instr.int_("out_c") >= 2
    return plain and instr.int_("dil_w") == 1 and instr.int_("k_w") * instr.int_("in_c") >= 8


_MATMUL = tuple(
    KernelVariant(
        isa, rank=30, header=header, scratch_bytes=_matmul_bytes, accepts=_accepts_matmul,
        prepare=partial(prepare_core, a32=CORES[isa].a32),
    )
    for isa, header in (("a32", "glow_a32.h"), ("a64", "glow_neon.h"))
)  # fmt: skip
_RECURRENT = in_fours(KernelVariant("a64", rank=30, header="glow_neon_four.h"), "glow_neon_four", 0.9, _FUNCTIONS)

VARIANTS = {
    "conv_integer": both(KernelVariant("a64", rank=30, header="glow_neon_integer.h", accepts=_accepts_integer)),
    "matmul_s8": _MATMUL,
    "matmul_s8q31": tuple(replace(v, header="glow_neon_q31.h", accepts=_accepts_fixed) for v in _MATMUL),
    **product_variants(("a64", "a32"), "neon", 0.6),
    **rows_variants(("a64", "a32"), "neon", 0.6),
    **{kernel: both(variant) for kernel, variant in _RECURRENT.items()},
}
