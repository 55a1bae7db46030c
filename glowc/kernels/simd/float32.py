"""Layers and products of float32 on A64 and A32 (runtime_c/simd/glow_neon_f32.h), weights of float32 or int8."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared, plan_of
from glowc.kernels.common.assembly import Printed
from glowc.kernels.common.attend import by_fours
from glowc.kernels.common.few import few_plan
from glowc.kernels.common.windows import is_point, planar, transposed
from glowc.kernels.shapes import Conv
from glowc.kernels.simd.core import CORES, both
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatPlan(Plan):
    """`coded`: the weights are int8 codes, with scales. `path` of a convolution: point, or windows in scratch."""

    coded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthwiseFloatPlan(FloatPlan):
    """Windows of `k_h` x `k_w`; `fast`: their weights stay in registers, those of `vectors` of four channels."""

    k_h: int
    k_w: int
    fast: bool
    vectors: int

    def scaled(self, p: Printed) -> str:
        """Return what makes the sums of vector {k} with codes those of real weights, with the bias; else nothing."""
        if not self.coded:
            return ""
        factor = f"{p['scale_step']} != 0 ? vld1q_f32(scale + c + {{4k}}) : vdupq_n_f32(scale[0])"
        return f"          acc{{k}} = vaddq_f32(vmulq_f32(acc{{k}}, {factor}), vld1q_f32(bias + c + {{4k}}));\n"


def _is_f32(instr: Instr, *roles: str) -> bool:
    return all(instr.operand(role).type.dtype is DType.F32 for role in roles)


def _is_coded(instr: Instr) -> bool:
    return instr.operand("weights").type.dtype is DType.S8


def _accepts_weights(instr: Instr) -> bool:
    """Accept weights of float32, or of int8 with zero point 0."""
    plain = _is_f32(instr, "weights") or (_is_coded(instr) and instr.int_("w_zp") == 0)
    return _is_f32(instr, "in", "out") and plain


def _accepts_conv(instr: Instr) -> bool:
    s = Conv.of(instr)
    return _accepts_weights(instr) and s.groups == 1 and s.inputs >= 4 and s.out_c >= 4


def _prepare_conv(_: Arrays, instr: Instr) -> Prepared:
    path = "point" if is_point(Conv.of(instr)) else "windows"
    return Prepared(plan=FloatPlan(path=path, coded=_is_coded(instr)))


def _conv_scratch(instr: Instr) -> int:
    """Bytes: the windows of four pixels, where they are not the tensor itself."""
    return 0 if plan_of(instr, FloatPlan).path == "point" else 16 * Conv.of(instr).inputs


def _accepts_depthwise(instr: Instr) -> bool:
    s = Conv.of(instr)
    same = s.groups == s.out_c == s.in_c >= 4
    return _accepts_weights(instr) and same and s.in_ch == 1 and s.in_col == s.in_c


def _prepare_depthwise(_: Arrays, instr: Instr, *, a32: bool) -> Prepared:
    """Up to nine taps are unrolled; A32 has registers for the weights of four channels."""
    s, vectors = Conv.of(instr), 1 if a32 else 2
    plan = DepthwiseFloatPlan(coded=_is_coded(instr), k_h=s.k_h, k_w=s.k_w, fast=s.taps <= 9, vectors=vectors)
    return Prepared(plan=plan)


def _accepts_fc(instr: Instr) -> bool:
    return _accepts_weights(instr) and instr.int_("in_k") >= 4 and instr.int_("out_n") >= 4


def _prepare_fc(_: Arrays, instr: Instr) -> Prepared:
    return Prepared(plan=FloatPlan(coded=_is_coded(instr)))


def _accepts_few(instr: Instr) -> bool:
    return _is_f32(instr, "in", "weights", "out") and not _accepts_fc(instr)


def _prepare_few(_: Arrays, instr: Instr) -> Prepared:
    return Prepared(plan=few_plan(instr))


def _accepts_matmul(instr: Instr) -> bool:
    suits = instr.int_("b_col") == 1 or _is_dots(instr)
    return _is_f32(instr, "a", "b", "bias", "out") and suits and instr.int_("out_col") == 1 and instr.int_("n") >= 4


def _is_dots(instr: Instr) -> bool:
    """Say whether the inputs of a row and of a column are adjacent."""
    return instr.int_("a_col") == instr.int_("b_row") == 1 and instr.int_("k") >= 4


def _prepare_matmul(_: Arrays, instr: Instr) -> Prepared:
    return Prepared(plan=Plan(path="columns" if instr.int_("b_col") == 1 else "dots"))


_A32 = KernelVariant("a32", rank=30, header="glow_neon_f32.h")
_BOTH = (_A32, replace(_A32, isa="a64"))
CONV = tuple(
    replace(v, accepts=_accepts_conv, prepare=_prepare_conv, scratch_bytes=_conv_scratch, streams=True) for v in _BOTH
)
DEPTHWISE = tuple(
    replace(v, accepts=_accepts_depthwise, prepare=partial(_prepare_depthwise, a32=CORES[v.isa].a32)) for v in _BOTH
)
FC = tuple(replace(v, accepts=_accepts_fc, prepare=_prepare_fc) for v in _BOTH)
FEW = tuple(
    replace(v, form="few", rank=v.rank - 1, template="{}_few", accepts=_accepts_few, prepare=_prepare_few, header="")
    for v in _BOTH
)
MATMUL = tuple(replace(v, accepts=_accepts_matmul, prepare=_prepare_matmul) for v in _BOTH)

VARIANTS = {
    "attend_f32": tuple(by_fours(v, "neon") for v in _BOTH),
    "conv_f32": CONV,
    "conv_f32w8": CONV,
    "conv_transpose": tuple(transposed(v) for v in _BOTH),
    "dwconv_f32": (*DEPTHWISE, *both(planar("a64"))),
    "dwconv_f32w8": DEPTHWISE,
    "fc_f32": (*FC, *FEW),
    "fc_f32w8": FC,
    "matmul_f32": MATMUL,
}
