"""The `fpu` variants: float32 kernels whose sums stay in the FPU's registers (runtime_c/fpu/glow_fpu.h).

Functions of floats and softmax take four elements at a time (runtime_c/fpu/glow_fpu_elementary.h). Recurrent layers are
the reference's loops, with rows of weights multiplied by the FPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import Columns, KernelVariant, Prepared, plan_of
from glowc.kernels.common.attend import by_fours
from glowc.kernels.common.few import few_plan
from glowc.kernels.common.reals import accepts_function, accepts_softmax
from glowc.kernels.common.recurrent import in_fours
from glowc.kernels.common.windows import planar, transposed
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

NEEDS = frozenset({"thumb"})  # Cortex-M4F, M7, M33, M55
_BLOCK = 4  # outputs, and pixels
_FEW_READS, _FEW_BYTES = 4, 256  # of weights: fewer are not kept
_LARGE = 9  # positions of a window


def _is_planar(instr: Instr) -> bool:
    return instr.int_("in_ch") != 1 and instr.int_("in_c") > 1


def _path(instr: Instr) -> str:
    return "planar" if _is_planar(instr) else "rows"


def _accepts_conv(instr: Instr) -> bool:
    """Accept a window whose rows lie in the input as they are, and at least four outputs."""
    if instr.int_("groups") != 1 or instr.int_("out_c") < _BLOCK:
        return False
    adjacent = instr.int_("in_col") == (1 if _is_planar(instr) else instr.int_("in_c"))
    return adjacent and (instr.int_("dil_w") == 1 or instr.int_("k_w") == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsPlan(Plan):
    """`codes`: weights are int8. `keeps`: those of the first `kept` outputs are copied into the scratch."""

    numbers: ClassVar[tuple[str, ...]] = ("kept",)

    codes: bool = False
    keeps: bool = False
    kept: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvPlan(WeightsPlan):
    """`edges`: there are pixels whose windows leave the input."""

    edges: bool


def _has_edges(s: Conv) -> bool:
    return s.pad_left > 0 or (s.out_w - 1) * s.stride_w + s.k_w > s.in_w


def conv_scratch(instr: Instr) -> int:
    """Bytes of the weights that are kept, and of what is under the windows of four pixels where any leaves its row."""
    s = Conv.of(instr)
    span = (_BLOCK - 1) * s.stride_w + s.k_w
    return kept_bytes(instr) + (4 * s.k_h * span * s.in_c if plan_of(instr, ConvPlan).edges else 0)


def kept_bytes(instr: Instr) -> int:
    """Return the bytes of scratch, whole words, for weights that a layer keeps."""
    return -(-plan_of(instr, WeightsPlan).kept * _output_bytes(instr) // 4) * 4


def spared_bytes(instr: Instr) -> int:
    """Return the bytes of weights that a layer reads from its scratch."""
    return kept_bytes(instr) * (_reads(instr) - 1)


def _output_bytes(instr: Instr) -> int:
    return instr.operand("weights").type.size_bytes // instr.int_("out_c")


def _reads(instr: Instr) -> int:
    """Return how often weights are read: by a convolution for every four pixels."""
    shape = Conv.of(instr)
    return shape.batch * shape.out_h * (shape.out_w if shape.groups > 1 else -(-shape.out_w // _BLOCK))


def keep_weights(_: Arrays, instr: Instr, scratch_bytes: int, near_bytes: int) -> Prepared | None:
    """Keep the weights of as many outputs as there is room for, where they are read several times."""
    free, each, every = scratch_bytes - conv_scratch(instr), _output_bytes(instr), instr.int_("out_c")
    outputs = every if each * every + 3 <= free else free // each // _BLOCK * _BLOCK
    if _reads(instr) < _FEW_READS or outputs * each < min(_FEW_BYTES, every * each):
        return None
    return Prepared(plan=replace(plan_of(instr, ConvPlan), keeps=True, kept=outputs))


def keep_windows(_: Arrays, instr: Instr, scratch_bytes: int, near_bytes: int) -> Prepared | None:
    """Keep all weights of a depthwise layer, which are read for every pixel."""
    every = instr.operand("weights").type.size_bytes <= scratch_bytes and _reads(instr) >= _FEW_READS
    return Prepared(plan=WeightsPlan(keeps=True, kept=instr.int_("out_c"))) if every else None


def prepare_conv(constants: Arrays, instr: Instr) -> Prepared:
    """Order the weights of a planar input by channel first."""
    plan = ConvPlan(path=_path(instr), codes=instr.kernel.endswith("w8"), edges=_has_edges(Conv.of(instr)))
    if not _is_planar(instr):
        return Prepared(plan=plan)
    shape = Conv.of(instr)
    weights = constants["weights"].reshape(shape.out_c, shape.k_h, shape.k_w, shape.in_c)
    return Prepared({"weights": np.ascontiguousarray(weights.transpose(0, 3, 1, 2)).reshape(-1)}, plan)


def prepare_fc(_: Arrays, instr: Instr) -> Prepared:
    """Weights stay as they are."""
    return Prepared(plan=WeightsPlan(codes=instr.kernel.endswith("w8")))


def _zero_at_zero(instr: Instr) -> bool:
    """Say whether int8 weights have zero point 0."""
    return instr.int_("w_zp") == 0


def _accepts_depthwise(instr: Instr) -> bool:
    """Accept one output a channel, at least eight adjacent channels."""
    dense = instr.int_("in_ch") == 1 and instr.int_("in_col") == instr.int_("in_c")
    return dense and instr.int_("groups") == instr.int_("out_c") == instr.int_("in_c") >= 8


def _accepts_fc(instr: Instr) -> bool:
    return instr.int_("in_k") >= _BLOCK and instr.int_("out_n") >= _BLOCK


def _accepts_few(instr: Instr) -> bool:
    return not _accepts_fc(instr)


def prepare_few(_: Arrays, instr: Instr) -> Prepared:
    """Products of few inputs are printed one by one."""
    return Prepared(plan=few_plan(instr))


def prepare_compared(_: Arrays, instr: Instr) -> Prepared:
    """Comparisons take the place of VMAXNM."""
    return Prepared(plan=Plan(path="compared"))


def prepare_matmul(_: Arrays, instr: Instr) -> Prepared:
    """Choose by where the columns of b lie."""
    return Prepared(plan=Plan(path="outer" if instr.int_("b_col") == 1 else "dots"))


def _accepts_matmul(instr: Instr) -> bool:
    """Accept adjacent columns of a, adjacent columns or rows of b, and at least two rows and four columns."""
    adjacent = instr.int_("a_col") == 1 and 1 in (instr.int_("b_col"), instr.int_("b_row"))
    return adjacent and instr.int_("m") >= 2 and instr.int_("n") >= _BLOCK


def _accepts_maximum(instr: Instr) -> bool:
    """Accept adjacent channels, at least four."""
    return instr.int_("in_ch") == 1 and instr.int_("in_c") >= _BLOCK


def _accepts_average(instr: Instr) -> bool:
    """Accept as of a maximum, and windows that are worth a loop of their own."""
    return _accepts_maximum(instr) and instr.int_("k_h") * instr.int_("k_w") >= _LARGE


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryPlan(Plan):
    """`limit`: which bounds there are; steps: an operand goes on along the last axis, or is one number for all."""

    limit: str
    a_step: int
    b_step: int


def prepare_binary(_: Arrays, instr: Instr) -> Prepared:
    """Return the plan of float32 arithmetic."""
    last = instr.int_("rank") - 1
    bounds = [instr.int_("clamp") and abs(float(instr.params[key])) < math.inf for key in ("act_min", "act_max")]
    limit = "" if not any(bounds) else "_between" if bounds[1] else "_from"
    return Prepared(plan=BinaryPlan(limit=limit, a_step=instr.int_(f"a{last}"), b_step=instr.int_(f"b{last}")))


def _accepts_binary(instr: Instr) -> bool:
    """Accept float32 arithmetic on rows of at least eight."""
    if instr.params["op"] not in ("add", "sub", "mul", "div") or instr.operand("out").type.dtype is not DType.F32:
        return False
    last = int(instr.params["rank"]) - 1
    steps = {instr.int_(f"{name}{last}") for name in "ab"}
    return last >= 0 and 1 in steps and steps <= {0, 1} and instr.int_(f"d{last}") >= 2 * _BLOCK


def _accepts_function(instr: Instr) -> bool:
    return accepts_function(instr) and instr.int_("n") >= _BLOCK


def _accepts_softmax(instr: Instr) -> bool:
    return accepts_softmax(instr) and instr.int_("n") >= _BLOCK


_SHARED = KernelVariant("fpu", also=NEEDS, rank=10, header="glow_fpu.h")
CONV = replace(
    _SHARED, accepts=_accepts_conv, prepare=prepare_conv, packs=frozenset({"weights"}), scratch_bytes=conv_scratch,
    streams=True, columns=Columns(4), keeps=keep_weights, spared_bytes=spared_bytes,
)  # fmt: skip
CONV_W8 = replace(CONV, header="glow_fpu_w8.h", accepts=lambda instr: _zero_at_zero(instr) and _accepts_conv(instr))
DEPTHWISE = replace(
    _SHARED, accepts=_accepts_depthwise, header="glow_fpu_taps.h", prepare=lambda _, __: Prepared(plan=WeightsPlan()),
    scratch_bytes=kept_bytes, streams=True, keeps=keep_windows, spared_bytes=spared_bytes,
)  # fmt: skip
FC = replace(_SHARED, accepts=_accepts_fc, prepare=prepare_fc)
FEW = replace(_SHARED, form="few", rank=9, template="{}_few", accepts=_accepts_few, prepare=prepare_few, header="")
FC_W8 = replace(FC, header="glow_fpu_w8.h", accepts=lambda instr: _zero_at_zero(instr) and _accepts_fc(instr))
MATMUL = replace(_SHARED, accepts=_accepts_matmul, prepare=prepare_matmul)
MAXIMUM = replace(_SHARED, also=NEEDS | {"vcvtn"}, accepts=_accepts_maximum, header="glow_fpu_pool.h")  # has VMAXNM
COMPARED = replace(MAXIMUM, form="compared", also=NEEDS, slow_with=frozenset({"vcvtn"}), prepare=prepare_compared)
BINARY = replace(_SHARED, in_place=True, accepts=_accepts_binary, prepare=prepare_binary, header="glow_fpu_binary.h")
AVERAGE = replace(_SHARED, accepts=_accepts_average, header="glow_fpu_pool.h")
_NORM = replace(_SHARED, in_place=True, header="")
_FUNCTION = replace(_NORM, header="glow_fpu_elementary.h", accepts=_accepts_function)
_RECURRENT = in_fours(replace(_SHARED, header="glow_fpu_four.h"), "glow_fpu_four", 1.5)

VARIANTS = {
    "attend_f32": (by_fours(_SHARED, "fpu"),),
    "avg_pool_f32": (AVERAGE,),
    "binary": (BINARY,),
    "conv_f32": (CONV,),
    "conv_f32w8": (CONV_W8,),
    "conv_transpose": (transposed(_SHARED),),
    "dwconv_f32": (DEPTHWISE, planar("fpu")),
    "fc_f32": (FC, FEW),
    "fc_f32w8": (FC_W8,),
    "layer_norm_f32": (_NORM,),
    "layer_norm_stats_f32": (_NORM,),
    "matmul_f32": (MATMUL,),
    "max_pool_f32": (MAXIMUM, COMPARED),
    "softmax_f32": (replace(_FUNCTION, accepts=_accepts_softmax),),
    "unary": (_FUNCTION,),
    **{kernel: (variant,) for kernel, variant in _RECURRENT.items()},
}
