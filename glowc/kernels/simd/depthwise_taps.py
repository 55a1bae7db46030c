"""dwconv_s8 of every shape on A64 and A32: constants and plans of dwconv_s8_taps.c.j2.

A block of 8 outputs is one stream: biases, scales, then 8 weights for each tap (int8, or int16 where the layer's are).
Zero points are subtracted from inputs and weights as they are widened to 16 bits, so nothing is folded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.assembly import Printed, joined
from glowc.kernels.common.constants import WEIGHTED, padded
from glowc.kernels.common.factors import Ends
from glowc.kernels.shapes import Conv
from glowc.kernels.simd.core import code_limits, requant
from glowc.kernels.simd.ending import OnCore
from glowc.kernels.simd.stream import blocks, stream
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

OUTPUTS = 8
PIXELS = 4
_CHUNK = {"a32": 5, "a64": 8}  # taps of a kernel row whose weights stay in registers
_ROWS = 8  # of windows, by which they share functions
_UNROLLED = 32  # columns of a kernel row; wider ones take one tap at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class TapsPlan(OnCore, Plan):
    """What the template prints by.

    Windows of `k_h` x `k_w`, `pixels` of a row together; `looped`: one tap at a time, else `chunks` of taps of a row.
    `wide`: weights of 16 bits. `few` inputs, `narrow` outputs, where there are
    fewer than 8; `lookup` outputs of an input channel, where there are several. `fixed`: codes end by multipliers and
    shifts.
    """

    isa: str
    k_h: int
    k_w: int
    stride: int
    dil: int
    pixels: int
    looped: bool
    chunks: tuple[int, ...]
    wide: bool
    few: int
    narrow: int
    lookup: int
    fixed: bool

    @property
    def most_rows(self) -> int:
        """Rows of a window for which there is room in a function that layers share."""
        return padded(self.k_h, _ROWS)

    @property
    def reach(self) -> int:
        """Columns from the first that a block of pixels reads to the last."""
        return (self.pixels - 1) * self.stride + (self.k_w - 1) * self.dil

    @property
    def runs(self) -> tuple[range, ...]:
        """The taps of each chunk."""
        begins = (sum(self.chunks[:n]) for n in range(len(self.chunks)))
        return tuple(range(begin, begin + count) for begin, count in zip(begins, self.chunks, strict=True))

    def columns(self, taps: range) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Yield each column that some taps of a row read, counted from their first, with (pixel, tap) of its uses."""
        for column in range((self.pixels - 1) * self.stride + (len(taps) - 1) * self.dil + 1):
            reaches = ((px, column - px * self.stride) for px in range(self.pixels))
            uses = [
                (px, taps[reach // self.dil])
                for px, reach in reaches
                if reach >= 0 and reach % self.dil == 0 and reach // self.dil < len(taps)
            ]
            if uses:
                yield column, uses

    def products(self, taps: range, edge: bool) -> str:
        """Return what adds the products of some taps of a row of the window; `edge`: columns may lie outside."""
        return joined(self._products(taps, edge=edge))

    def _products(self, taps: range, *, edge: bool) -> Iterator[str]:
        for t in taps:
            load = f"vld1q_s16(tap + {8 * t})" if self.wide else f"vsubl_s8(vld1_s8(tap + {8 * t}), w_zero)"
            yield f"const int16x8_t w{t} = {load};"
        for column, uses in self.columns(taps):
            at = taps[0] * self.dil + column
            ahead = f" + {at}" if at else ""
            source = f"from + (left{ahead}) * column" if edge else f"from{ahead} * column" if at else "from"
            yield f"int16x8_t x{column}{' = vdupq_n_s16(0)' if edge else ''};"
            yield (f"if ((uint32_t)(left{ahead}) < (uint32_t)in_w) " if edge else "") + "{"
            if self.few:
                yield "  uint64_t bytes = 0;"
                yield f"  memcpy(&bytes, {source}, {self.few});"
            codes = "vcreate_s8(bytes)" if self.few else f"vld1_s8({source})"
            yield f"  const int8x8_t codes = {codes};"
            yield f"  x{column} = vsubl_s8({'vtbl1_s8(codes, lanes)' if self.lookup else 'codes'}, in_zero);"
            yield "}"
            for px, t in uses:
                yield f"low{px} = vmlal_s16(low{px}, vget_low_s16(x{column}), vget_low_s16(w{t}));"
                if self.a32:
                    yield f"high{px} = vmlal_s16(high{px}, vget_high_s16(x{column}), vget_high_s16(w{t}));"
                else:
                    yield f"high{px} = vmlal_high_s16(high{px}, x{column}, w{t});"

    def limits(self, p: Printed) -> str:
        """Return zero point and limits of codes."""
        return code_limits(p, p["out_zp"], f"{p['out_zp']} & 1", a32=self.a32)

    def codes(self, px: int, point: str) -> str:
        """Return the call that makes the codes of a pixel."""
        if self.fixed:
            return f"glow_a64_fixed_s8x8(low{px}, high{px}, mul0, mul1, shifts, zp, lo, hi)"
        return requant(f"low{px}, high{px}, scale0, scale1", f"{point} & 1", a32=self.a32)


def _accepts(instr: Instr) -> bool:
    """Accept int8 inputs with adjacent channels, one input channel an output."""
    codes = all(instr.operand(role).type.dtype is DType.S8 for role in ("in", "out"))
    weights = instr.operand("weights").type.dtype in (DType.S8, DType.S16)
    return codes and weights and instr.int_("in_ch") == 1 and instr.int_("groups") == instr.int_("in_c")


def _chunks(isa: str, k_w: int) -> tuple[int, ...]:
    """Return the taps of a kernel row in equal parts, as far as they divide."""
    parts = -(-k_w // _CHUNK[isa])
    return tuple(k_w // parts + (i < k_w % parts) for i in range(parts))


def _plan(isa: str, s: Conv, *, wide: bool, fixed: bool) -> TapsPlan:
    multiplier = s.out_c // s.in_c
    return TapsPlan(
        isa=isa, k_h=s.k_h, k_w=s.k_w, stride=s.stride_w, dil=s.dil_w, pixels=min(PIXELS, s.out_w),
        looped=s.k_w > _UNROLLED, chunks=_chunks(isa, s.k_w), wide=wide, few=s.in_c if s.in_c < OUTPUTS else 0,
        narrow=s.out_c if s.out_c < OUTPUTS else 0, lookup=multiplier if multiplier > 1 else 0,
        fixed=fixed,
    )  # fmt: skip


def _prepare(isa: str, constants: Arrays, instr: Instr) -> Prepared:
    s, weights = Conv.of(instr), constants["weights"]
    ends = Ends.of(constants, s.out_c)
    data = stream(weights.reshape(-1, s.out_c).T, constants["bias"], ends, blocks(s.out_c, OUTPUTS), 1)
    plan = _plan(isa, s, wide=weights.dtype == np.int16, fixed=ends.shifts is not None)
    return Prepared({"weights": data, **ends.empty}, plan)


def _variant(isa: str, header: str) -> KernelVariant:
    return KernelVariant(
        isa, form="taps", rank=29, accepts=_accepts, header=header, template="{}_taps", packs=WEIGHTED,
        prepare=lambda constants, instr: _prepare(isa, constants, instr), row_block=PIXELS,
    )  # fmt: skip


TAPS = (
    _variant("a32", "glow_a32.h"),
    _variant("a64", "glow_neon.h"),
)

VARIANTS = {
    "dwconv_s8": TAPS,
    "dwconv_s8w16": TAPS,
}
