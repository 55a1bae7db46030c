"""How sums become codes on A64 and A32, as the macros of glow_a64.h and glow_a32.h are put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from glowc.kernels.common.assembly import Printed, joined
from glowc.kernels.common.factors import is_rectified
from glowc.kernels.simd.core import CORES, Core
from glowc.program.ir import Instr, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending(Plan):
    """The end of a block.

    `bounded`: no product of a sum and its scale leaves +-32000 (`stream.is_bounded`); `odd`: the zero point is odd;
    `low`, `high`: the range is narrower than int8 at that end. `fixed`: there are multipliers and shifts instead of
    float32 scales, which halve away from zero; `rectified`: that makes no difference.
    """

    bounded: bool
    odd: bool
    low: bool
    high: bool
    fixed: bool = False
    rectified: bool = False

    @staticmethod
    def of(instr: Instr, *, bounded: bool, fixed: bool = False) -> Ending:
        """Return the end of a layer."""
        return Ending(
            bounded=bounded,
            fixed=fixed,
            rectified=fixed and is_rectified(instr),
            odd=instr.int_("out_zp") % 2 == 1,
            low=instr.int_("out_min") > -128,
            high=instr.int_("out_max") < 127,
        )

    @property
    def kind(self) -> str:
        """How products are rounded to 16 bits."""
        if self.fixed:
            return ("RECTIFIED" if self.rectified else "FIXED") + ("" if self.bounded else "_ANY")
        return "SMALL" if self.bounded else "ANY"

    @property
    def magic(self) -> bool:
        """True when a number is added that rounds."""
        return self.bounded and not self.fixed

    @property
    def inputs(self) -> Mapping[str, bool]:
        """The operands that the end of a block on A64 reads, and whether they are there."""
        return {
            '[magic] "w"(magic)': self.magic,
            '[zp] "w"(zp)': self.point != "NONE",
            '[lo] "w"(lo)': self.low,
            '[hi] "w"(hi)': self.high,
        }

    @property
    def head_bytes(self) -> int:
        """Bytes of an output before the weights of a stream: bias, scale or multiplier, shift."""
        return 9 if self.fixed else 8

    @property
    def point(self) -> str:
        """How A64 adds the zero point: bounded products take an even one in the rounding."""
        return "ANY" if not self.bounded else "SMALL" if self.odd or self.fixed else "NONE"

    @property
    def a32(self) -> str:
        """The arguments of the macros of A32."""
        limits = self.kind if self.low or self.high else "FREE"
        return f"{self.kind}, {'ODD' if self.odd else 'NONE'}, {limits}"


A32_ENDS = ("const int8_t *head = w;", "const glow_a32_limits_t *k_at = &limits;")
"""The variables from which a block on A32 reads how it ends: the begin of its stream, zero point and limits."""


class OnCore:
    """What a plan knows of its instruction set, its field `isa`; costs are filed under words, as a stream begins."""

    __slots__ = ()
    isa: str

    @property
    def core(self) -> Core:
        """How the instruction set multiplies."""
        return CORES[self.isa]

    @property
    def a32(self) -> bool:
        """True on A32."""
        return self.core.a32

    @property
    def clobbers(self) -> str:
        """The macro of the registers that assembly uses."""
        return f"GLOW_A{32 if self.a32 else 64}_CLOBBERS"

    @property
    def word(self) -> str:
        """The C type of a register."""
        return "int32_t" if self.a32 else "int64_t"

    @property
    def cost_kind(self) -> str:
        """What costs are filed under."""
        return "s32"


class Ended(OnCore):
    """The same of a plan with an `ending`, and `pairs` where two products fit 16 bits."""

    __slots__ = ()
    ending: Ending
    pairs: bool

    def end_registers(self, p: Printed) -> Iterator[str]:
        """Yield what the end of a block reads: zero point and limits."""
        end, point = self.ending, p["out_zp"]
        if self.a32:
            limits = f"{point}, {int(end.odd)}, {p['out_min']}, {p['out_max']}"
            yield f"const glow_a32_limits_t limits = glow_a32_limits({limits});"
            return
        if end.magic:
            magic = "12582912.0f" if end.odd else f"(float)(12582912 + {point})"
            yield f"const float32x4_t magic = vdupq_n_f32({magic});"
        if end.point != "NONE":
            yield f"const int16x8_t zp = vdupq_n_s16((int16_t){point});"
        if end.low:
            yield f"const int8x16_t lo = vdupq_n_s8((int8_t){p['out_min']});"
        if end.high:
            yield f"const int8x16_t hi = vdupq_n_s8((int8_t){p['out_max']});"

    def declared(self, p: Printed) -> str:
        """Return the same as text."""
        return joined(self.end_registers(p))

    @property
    def products_form(self) -> str:
        """How the macros of A64 and A32 name whether two products fit 16 bits."""
        return "PAIRS" if self.pairs else "ANY"

    @property
    def cost_kind(self) -> str:
        """What costs are filed under: an element type for each way in which products are added and rounded."""
        return f"{'u' if self.ending.bounded else 's'}{16 if self.pairs else 32}"
