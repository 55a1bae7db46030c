"""Constants and plans of the kernels that A64 and A32 share: depthwise, sums, average pooling, and float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.shifted import shifted
from glowc.kernels.simd.layers import HEADER, folded, is_bounded, limits
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays


def _accepts_depthwise(instr: Instr) -> bool:
    """Accept at least eight channels of int8, one output an input channel."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    same = instr.int_("groups") == instr.int_("out_c") == instr.int_("in_c") >= 8
    dense = instr.int_("in_ch") == 1 and instr.int_("in_col") == instr.int_("in_c")
    return same and dense


def _pack_depthwise(constants: Arrays, instr: Instr) -> Arrays:
    """Fold the input's zero point into the bias; repeat a single scale for every channel.

    Weights with a -128 are marked by the element type u8: two of their products need not fit 16 bits. A bias of type
    u32 says that the products are bounded (`is_bounded`). Shifts of the channels (packing_shift) follow in 16 bits.
    """
    codes, shift = shifted(constants["weights"].reshape(-1, instr.int_("out_c")).T, instr.int_("w_zp"))
    weights, values = codes + shift[:, None], constants["weights"]
    bias, scale = folded(weights, constants, instr.int_("in_zp"))
    if instr.int_("w_zp") != 0:
        values = np.concatenate((codes.T.reshape(-1), shift.astype(np.int16).view(np.int8)))
    values = values.view(np.uint8) if codes.min(initial=0) == -128 else values
    bounded = is_bounded(weights, bias, scale)
    return {"weights": values, "bias": bias.view(np.uint32) if bounded else bias, "scale": np.ascontiguousarray(scale)}


def _depthwise_plan(isa: str, instr: Instr) -> Mapping[str, ParamValue]:
    shape = {"k_h": instr.int_("k_h"), "k_w": instr.int_("k_w"), "stride": instr.int_("stride_w")}
    return {"isa": isa, **shape, "shifted": int(instr.int_("w_zp") != 0), **limits(instr)}


def _accepts_nine(instr: Instr) -> bool:
    """Accept windows of at most nine taps: they stay in registers; packing_taps takes the larger ones."""
    k_h, k_w = instr.int_("k_h"), instr.int_("k_w")
    small = k_h * k_w <= 9 and instr.int_("dil_w") == 1 and instr.int_("stride_w") <= k_w
    return _accepts_depthwise(instr) and small


def depthwise_variant(isa: str, needs: set[str], header: str = HEADER) -> KernelVariant:
    """Return a variant of dwconv_s8."""
    return KernelVariant(
        isa, frozenset(needs), rank=30, accepts=_accepts_nine, header=header,
        pack=_pack_depthwise, plan=lambda instr: _depthwise_plan(isa, instr),
    )  # fmt: skip


DEPTHWISE = depthwise_variant("neon", {"a64", "neon"})


def _accepts_depthwise_dot(instr: Instr) -> bool:
    """Accept windows of at most four rows and three columns: their weights and inputs stay in registers."""
    k_w = instr.int_("k_w")
    small = instr.int_("k_h") in (2, 3, 4) and k_w in (2, 3) and instr.int_("stride_w") <= k_w
    return _accepts_depthwise(instr) and small and instr.int_("dil_w") == 1 and instr.int_("w_zp") == 0


def _pack_depthwise_dot(constants: Arrays, instr: Instr) -> Arrays:
    """Pack as `_pack_depthwise`, the weights as [k_w, channels, k_h]: a column's rows are adjacent."""
    k_h, k_w, channels = (instr.int_(key) for key in ("k_h", "k_w", "out_c"))
    packed = _pack_depthwise(constants, instr)
    columns = packed["weights"].reshape(k_h, k_w, channels).transpose(1, 2, 0)
    return {**packed, "weights": np.ascontiguousarray(columns).reshape(-1)}


def _depthwise_dot_plan(instr: Instr) -> Mapping[str, ParamValue]:
    shape = {"k_h": instr.int_("k_h"), "k_w": instr.int_("k_w"), "stride": instr.int_("stride_w")}
    return {**shape, **limits(instr)}


DEPTHWISE_DOT = KernelVariant(
    "dot", frozenset({"a64", "neon", "dot"}), rank=31, accepts=_accepts_depthwise_dot, header=HEADER,
    template="{}_dot",
    pack=_pack_depthwise_dot, plan=_depthwise_dot_plan,
)  # fmt: skip


def _accepts_average(instr: Instr) -> bool:
    """Accept windows that never leave the input and hold at most 255 positions of at least eight channels."""
    p = {key: int(value) for key, value in instr.params.items() if isinstance(value, int)}
    padded = p["pad_top"] or p["pad_left"] or p["pad_bottom"] or p["pad_right"]
    inside = all(
        (p[f"out_{a}"] - 1) * p[f"stride_{a}"] + (p[f"k_{a}"] - 1) * p[f"dil_{a}"] < p[f"in_{a}"] for a in ("h", "w")
    )
    return not padded and inside and p["in_c"] >= 8 and p["in_ch"] == 1 and p["k_h"] * p["k_w"] <= 255


def average_variant(isa: str, needs: set[str], header: str) -> KernelVariant:
    """Return a variant of avg_pool_s8."""
    return KernelVariant(
        isa, frozenset(needs), rank=30, accepts=_accepts_average, header=header,
        plan=lambda instr: {"isa": isa, "odd": instr.int_("out_zp") % 2},
    )  # fmt: skip


AVERAGE = average_variant("neon", {"a64", "neon"}, "glow_neon.h")


def _is_f32(instr: Instr, *roles: str) -> bool:
    return all(instr.operand(role).type.dtype is DType.F32 for role in roles)


def _float_point(instr: Instr) -> bool:
    p = {key: int(value) for key, value in instr.params.items() if isinstance(value, int)}
    inside = all((p[f"out_{a}"] - 1) * p[f"stride_{a}"] < p[f"in_{a}"] for a in ("h", "w"))
    return p["k_h"] == p["k_w"] == 1 and p["pad_top"] == p["pad_left"] == 0 and p["in_ch"] == 1 and inside


def float_scratch(instr: Instr) -> int:
    """Bytes: the windows of four pixels, where they are not the tensor itself."""
    return 0 if _float_point(instr) else 16 * instr.int_("k_h") * instr.int_("k_w") * instr.int_("in_c")


def _plain_weights(instr: Instr) -> bool:
    """Say whether weights are float32, or int8 with zero point 0."""
    kind = instr.operand("weights").type.dtype
    return kind is DType.F32 or (kind is DType.S8 and instr.int_("w_zp") == 0)


def _accepts_conv_f32(instr: Instr) -> bool:
    enough = instr.int_("k_h") * instr.int_("k_w") * instr.int_("in_c") >= 4 and instr.int_("out_c") >= 4
    return _is_f32(instr, "in", "out") and _plain_weights(instr) and instr.int_("groups") == 1 and enough


def _accepts_depthwise_f32(instr: Instr) -> bool:
    dense = instr.int_("in_ch") == 1 and instr.int_("in_col") == instr.int_("in_c")
    same = instr.int_("groups") == instr.int_("out_c") == instr.int_("in_c") >= 4
    return _is_f32(instr, "in", "out") and _plain_weights(instr) and dense and same


def _depthwise_f32_plan(isa: str, instr: Instr) -> Mapping[str, ParamValue]:
    """Up to nine taps are unrolled; A32 has registers for the weights of four channels."""
    k_h, k_w = instr.int_("k_h"), instr.int_("k_w")
    return {"k_h": k_h, "k_w": k_w, "fast": int(k_h * k_w <= 9), "vectors": 1 if isa == "a32" else 2}


def _accepts_fc_f32(instr: Instr) -> bool:
    enough = instr.int_("in_k") >= 4 and instr.int_("out_n") >= 4
    return _is_f32(instr, "in", "out") and _plain_weights(instr) and enough


def _accepts_matmul_f32(instr: Instr) -> bool:
    suits = instr.int_("b_col") == 1 or _is_dots(instr)
    return _is_f32(instr, "a", "b", "bias", "out") and suits and instr.int_("out_col") == 1 and instr.int_("n") >= 4


def _is_dots(instr: Instr) -> bool:
    """Say whether the inputs of a row and of a column are adjacent."""
    return instr.int_("a_col") == instr.int_("b_row") == 1 and instr.int_("k") >= 4


def _matmul_f32_plan(instr: Instr) -> Mapping[str, ParamValue]:
    return {"path": "columns" if instr.int_("b_col") == 1 else "dots"}


def float_variants(isa: str, needs: set[str], header: str) -> Mapping[str, KernelVariant]:
    """Return the float32 variants by kernel."""
    shared = KernelVariant(isa, frozenset(needs), rank=30, header=header)
    conv = replace(
        shared, accepts=_accepts_conv_f32, scratch_bytes=float_scratch, streams=True,
        plan=lambda instr: {"point": int(_float_point(instr)), "path": "point" if _float_point(instr) else "windows"},
    )  # fmt: skip
    depthwise = replace(shared, accepts=_accepts_depthwise_f32, plan=lambda instr: _depthwise_f32_plan(isa, instr))
    dense = replace(shared, accepts=_accepts_fc_f32)
    return {
        "conv_f32": conv,
        "conv_f32w8": conv,
        "dwconv_f32": depthwise,
        "dwconv_f32w8": depthwise,
        "fc_f32": dense,
        "fc_f32w8": dense,
        "matmul_f32": replace(shared, accepts=_accepts_matmul_f32, plan=_matmul_f32_plan),
    }


FLOAT = float_variants("neon", {"a64", "neon"}, "glow_neon_f32.h")


def _matmul_scratch(instr: Instr) -> int:
    """Bytes: the right operand of one product and four rows of the left, in 16 bits (simd/matmul_s8.c.j2)."""
    depth = -(-instr.int_("k") // 4) * 4
    return 2 * depth * (-(-instr.int_("n") // 8) * 8 + 4)


def matmul_variant(isa: str, needs: set[str], header: str) -> KernelVariant:
    """Return a variant of matmul_s8."""
    return KernelVariant(
        isa, frozenset(needs), rank=30, header=header, scratch_bytes=_matmul_scratch,
        accepts=lambda instr: instr.int_("n") >= 4 and instr.int_("k") >= 4, plan=lambda _: {"isa": isa},
    )  # fmt: skip


MATMUL = matmul_variant("neon", {"a64", "neon"}, "glow_neon.h")


def dynamic_variant(isa: str, needs: set[str]) -> KernelVariant:
    """Return a variant of fc_dynamic; its scratch are two rows in 16 bits."""
    return KernelVariant(
        isa, frozenset(needs), rank=30, header="glow_neon_f32.h",
        accepts=lambda instr: instr.operand("in").type.dtype.bits == 8 and instr.int_("out_n") >= 4,
        scratch_bytes=lambda instr: 4 * instr.int_("in_k"),
    )  # fmt: skip


FC_DYNAMIC = dynamic_variant("neon", {"a64", "neon"})


_ELEMENTWISE = KernelVariant("neon", frozenset({"a64", "neon"}), rank=30, header="glow_neon.h", in_place=True)
LUT = replace(_ELEMENTWISE, accepts=lambda instr: instr.int_("n") >= 32)
LAYER_NORM = replace(_ELEMENTWISE, accepts=lambda instr: instr.int_("n") >= 8)
SOFTMAX = replace(
    _ELEMENTWISE, accepts=lambda instr: instr.int_("inner") == 1 and instr.int_("n") >= 8,
    scratch_bytes=lambda instr: 4 * instr.int_("n"),
)  # fmt: skip


def maximum_variant(isa: str, needs: set[str]) -> KernelVariant:
    """Return a variant of max_pool_s8 for at least eight adjacent channels."""
    return KernelVariant(
        isa, frozenset(needs), rank=30, header="glow_neon_f32.h",
        accepts=lambda instr: instr.int_("in_ch") == 1 and instr.int_("in_c") >= 8,
    )  # fmt: skip


MAXIMUM = maximum_variant("neon", {"a64", "neon"})

VARIANTS = {
    "avg_pool_s8": (AVERAGE,),
    "conv_f32": (FLOAT["conv_f32"],),
    "conv_f32w8": (FLOAT["conv_f32w8"],),
    "dwconv_f32": (FLOAT["dwconv_f32"],),
    "dwconv_f32w8": (FLOAT["dwconv_f32w8"],),
    "dwconv_s8": (DEPTHWISE, DEPTHWISE_DOT),
    "fc_dynamic": (FC_DYNAMIC,),
    "fc_f32": (FLOAT["fc_f32"],),
    "fc_f32w8": (FLOAT["fc_f32w8"],),
    "layer_norm_s8": (LAYER_NORM,),
    "lut_s8": (LUT,),
    "matmul_f32": (FLOAT["matmul_f32"],),
    "matmul_s8": (MATMUL,),
    "max_pool_s8": (MAXIMUM,),
    "softmax_s8": (SOFTMAX,),
}
