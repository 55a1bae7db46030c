"""Constants and plans of the A64 and A32 variant of dwconv_s8 that takes every shape (simd/dwconv_s8_taps.c.j2).

A block of 8 outputs is one stream: biases, scales, then 8 weights for each tap (int8, or int16 where the layer's are).
Zero points are subtracted from inputs and weights as they are widened to 16 bits, so nothing is folded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.constants import EMPTY
from glowc.kernels.simd.layers import blocks, stream
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays

OUTPUTS = 8
PIXELS = 4
_CHUNK = {"a32": 5, "neon": 8}  # taps of a kernel row whose weights stay in registers
_UNROLLED = 16  # columns of a kernel row; wider ones take one tap at a time


def _accepts(instr: Instr) -> bool:
    """Accept int8 inputs with adjacent channels, one input channel an output."""
    codes = all(instr.operand(role).type.dtype is DType.S8 for role in ("in", "out"))
    weights = instr.operand("weights").type.dtype in (DType.S8, DType.S16)
    return codes and weights and instr.int_("in_ch") == 1 and instr.int_("groups") == instr.int_("in_c")


def _chunks(isa: str, k_w: int) -> list[int]:
    """Return the taps of a kernel row in equal parts, as far as they divide."""
    parts = -(-k_w // _CHUNK[isa])
    return [k_w // parts + (i < k_w % parts) for i in range(parts)]


def _is_wide(instr: Instr) -> bool:
    return instr.kernel.endswith("w16")


def plan(isa: str, instr: Instr) -> Mapping[str, ParamValue]:
    """Return what the template prints with."""
    k_h, k_w, in_c, out_c = (instr.int_(key) for key in ("k_h", "k_w", "in_c", "out_c"))
    multiplier = out_c // in_c
    return {
        "isa": isa, "k_h": k_h, "k_w": k_w, "stride": instr.int_("stride_w"), "dil": instr.int_("dil_w"),
        "pixels": min(PIXELS, instr.int_("out_w")), "looped": int(k_w > _UNROLLED),
        "chunks": " ".join(map(str, _chunks(isa, k_w))), "wide": int(_is_wide(instr)),
        "few": in_c if in_c < OUTPUTS else 0, "narrow": out_c if out_c < OUTPUTS else 0,
        "lookup": multiplier if multiplier > 1 else 0,
        "block_bytes": 8 * OUTPUTS + k_h * k_w * OUTPUTS * (2 if _is_wide(instr) else 1),
    }  # fmt: skip


def pack(constants: Arrays, instr: Instr) -> Arrays:
    """Pack the constants."""
    out_c = instr.int_("out_c")
    taps = constants["weights"].reshape(-1, out_c).T
    scale = np.broadcast_to(constants["scale"].reshape(-1), (out_c,)).astype(np.float32)
    return {"weights": stream(taps, constants["bias"], scale, blocks(out_c, OUTPUTS), 1), **EMPTY}


def _variant(isa: str, needs: set[str], header: str) -> KernelVariant:
    return KernelVariant(
        f"{isa}_taps", frozenset(needs), rank=29, accepts=_accepts, header=header,
        template="{}_taps", pack=pack,
        plan=lambda instr: plan(isa, instr), row_block=PIXELS,
    )  # fmt: skip


DEPTHWISE = (
    _variant("a32", {"a32", "neon"}, "glow_a32.h"),
    _variant("neon", {"a64", "neon"}, "glow_neon.h"),
)

VARIANTS = {
    "dwconv_s8": DEPTHWISE,
    "dwconv_s8w16": DEPTHWISE,
}
