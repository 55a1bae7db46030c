"""Constants, paths and scratch of the A64 and A32 variants of conv_s8 for windows of few inputs (conv_s8_lane.c.j2).

A block is `pixels` x 8 outputs, an input is one lane of a vector (glow_a64_lane.h, glow_a32_lane.h). A block
of outputs is one stream: biases with the input's zero point folded in, scales, then 8 weights of 16 bits for each
input (of 8 bits for points, if they have no zero point); `dot`: for each four inputs, four bytes of each output, where
a pixel of an image is padded to four channels. Weights of 16 bits hold any difference to their zero point.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowc.kernels.base import KernelVariant
from glowc.kernels.common.constants import EMPTY
from glowc.kernels.simd.layers import (
    accepts,
    blocks,
    folded,
    is_bounded,
    is_dense_point,
    is_spread,
    limits,
    marked,
    padded,
    path,
    row_slots,
    stream,
)
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays

OUTPUTS = 8
PIXELS = {"a32": 4, "neon": 8, "dot": 8}
POINT_INPUTS = {"a32": 48, "neon": 24, "dot": 0}  # beyond, products of two inputs in 16 bits are fewer instructions
WINDOW_INPUTS = 160
RUN = 40
_DOT_REGISTERS = 6
_SPARE = 16  # bytes that the last vector of a row may read behind its last window


def _windows(isa: str, instr: Instr) -> bool:
    """Say whether padded rows suit: what packing_a64 would copy window by window, and not too much of it."""
    k_h, k_w, in_c, stride = (instr.int_(key) for key in ("k_h", "k_w", "in_c", "stride_w"))
    if path("neon" if isa == "dot" else isa, instr) != "pixels":
        return False
    if isa == "dot":
        return in_c in (3, 4) and 7 * stride + k_w <= 4 * _DOT_REGISTERS
    return k_h * k_w * in_c <= WINDOW_INPUTS and k_w * in_c <= RUN


def _accepts(isa: str, instr: Instr) -> bool:
    out_w, pixels = instr.int_("out_w"), PIXELS[isa]
    if not accepts(instr) or is_spread(instr) or (isa == "dot" and instr.int_("w_zp") != 0):
        return False
    if out_w < pixels or padded(out_w, pixels) * 4 > out_w * 5:
        return False
    return instr.int_("in_c") <= POINT_INPUTS[isa] if is_dense_point(instr) else _windows(isa, instr)


def plan(isa: str, instr: Instr) -> Mapping[str, ParamValue]:
    """Return what the template prints with."""
    k_h, k_w, in_c, stride = (instr.int_(key) for key in ("k_h", "k_w", "in_c", "stride_w"))
    shared: dict[str, ParamValue] = {
        "isa": isa, "pixels": PIXELS[isa], "narrow": int(instr.int_("out_c") < OUTPUTS), **limits(instr),
    }  # fmt: skip
    if is_dense_point(instr):
        adjacent = in_c == OUTPUTS == instr.int_("in_col") * stride
        point = {"rest": in_c % 8, "adjacent": int(adjacent), "small": int(instr.int_("w_zp") == 0)}
        return {"path": "lane-point", **point, **shared}
    rows = {
        "k_h": k_h,
        "k_w": k_w,
        "stride": stride,
        "slots": row_slots(instr),
        "run": k_w * in_c,
    }
    return {"path": "lane-rows", "adjacent": 0, "spare": _SPARE, "small": 0, **rows, **shared}


def scratch(isa: str, instr: Instr) -> int:
    """Bytes: the padded rows of one window, and what vectors read behind the last."""
    if is_dense_point(instr):
        return 0
    columns = (instr.int_("out_w") - 1) * instr.int_("stride_w") + instr.int_("k_w")
    pixel = 4 if isa == "dot" else 2 * instr.int_("in_c")
    return row_slots(instr) * padded(columns * pixel + _SPARE, 16)


def pack(isa: str, constants: Arrays, instr: Instr) -> Arrays:
    """Pack the constants."""
    out_c, in_c = instr.int_("out_c"), instr.int_("in_c")
    weights = constants["weights"].reshape(out_c, -1, in_c).astype(np.int16) - instr.int_("w_zp")
    bias, scale = folded(weights, constants, instr.int_("in_zp"))
    if isa == "dot":
        rows: np.ndarray = np.zeros((*weights.shape[:2], 4), np.int8)
        rows[..., :in_c] = weights
    else:
        rows = weights.astype(np.int8) if is_dense_point(instr) and instr.int_("w_zp") == 0 else weights
    words = stream(rows.reshape(out_c, -1), bias, scale, blocks(out_c, OUTPUTS), 4 if isa == "dot" else 1)
    return {"weights": marked(words, bounded=is_bounded(weights, bias, scale), pairs=False), **EMPTY}


def _variant(isa: str, needs: set[str], rank: int, header: str) -> KernelVariant:
    return KernelVariant(
        f"{isa}_lane", frozenset(needs), rank=rank, accepts=lambda instr: _accepts(isa, instr), header=header,
        template="{}_lane", pack=lambda constants, instr: pack(isa, constants, instr),
        scratch_bytes=lambda instr: scratch(isa, instr), plan=lambda instr: plan(isa, instr), streams=True,
        row_block=PIXELS[isa],
    )  # fmt: skip


CONV = (
    _variant("a32", {"a32", "neon"}, 31, "glow_a32_lane.h"),
    _variant("neon", {"a64", "neon"}, 31, "glow_a64_lane.h"),
    _variant("dot", {"a64", "neon", "dot"}, 34, "glow_a64_lane.h"),
)

VARIANTS = {
    "conv_s8": CONV,
}
