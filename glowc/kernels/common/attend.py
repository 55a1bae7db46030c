"""What variants of attend_f32 share (templates/kernels/common): in floats, four rows at a time of some heads;
of int8 caches in integers (runtime_c/glow_shares.h).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_MOST = 4  # heads whose products are in registers
_WIDEST = 256  # elements of a key: products of codes of 16 and 8 bits are below 2^30
_DISTANCE_BITS = 16  # of a fraction
_TOP = 32767  # code of the largest element of a query


@dataclass(frozen=True, slots=True, kw_only=True)
class AttendPlan(Plan):
    """`family` of the header's functions, the kind of the caches, and the heads that are computed `together`."""

    family: str
    codes: str
    together: int


def _accepts(instr: Instr) -> bool:
    """Accept values of whole vectors."""
    return int(instr.params["value"]) % 4 == 0


def by_fours(variant: KernelVariant, family: str) -> KernelVariant:
    """Return the variant of an instruction set whose functions have that name."""

    def prepare(_: Arrays, instr: Instr) -> Prepared:
        group = int(instr.params["group"])
        together = max(n for n in range(1, _MOST + 1) if group % n == 0)
        kind = instr.operand("k").type.dtype.value
        return Prepared(plan=AttendPlan(family=f"glow_{family}", codes=kind, together=together))

    header, template = f"glow_{family}_attend.h", "common/attend_f32"
    return replace(variant, header=header, template=template, accepts=_accepts, prepare=prepare)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttendCodesPlan(Plan):
    """`shift`: bits that products are multiplied by so that they use 32; `per_scale`: their rate for scale 1, in C."""

    family: str
    together: int
    shift: int
    per_scale: str


def _accepts_codes(instr: Instr, keys: int) -> bool:
    """Accept int8 caches whose keys are `keys` elements or a multiple, and products that fit in 31 bits."""
    key, positive = int(instr.params["key"]), float(instr.params["scale"]) > 0
    return instr.operand("k").type.dtype is DType.S8 and key % keys == 0 and key <= _WIDEST and positive


def of_codes(variant: KernelVariant, family: str, keys: int) -> KernelVariant:
    """Return the variant in integers of an instruction set whose functions have that name."""

    def prepare(_: Arrays, instr: Instr) -> Prepared:
        shift = (_WIDEST // int(instr.params["key"])).bit_length() - 1
        per_scale = f"{math.log2(math.e) * 2.0 ** (_DISTANCE_BITS + 32 - shift) / _TOP:.9e}f"
        together = 2 - int(instr.params["group"]) % 2
        return Prepared(
            plan=AttendCodesPlan(family=f"glow_{family}", together=together, shift=shift, per_scale=per_scale)
        )

    def accepts(instr: Instr) -> bool:
        return _accepts(instr) and _accepts_codes(instr, keys)

    return replace(variant, template="common/attend_codes", accepts=accepts, prepare=prepare)
