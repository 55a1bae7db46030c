"""Weights of 4 or 2 bits, several in a byte, as unpack_s4 and unpack_s2 read them (templates/kernels/*/unpack.c.j2).

A code is stored as itself plus half of the codes, 8 or 2. Words of weights are stored by twos or fours, `per`: the
lowest bits of the bytes of a stored word are the first one, the next bits the one after. With `lanes` more than 1 so
many words are the first, and so many after them. What is left after whole groups is stored word by word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.records import Records
from glowc.kernels.shapes import NARROW_BITS
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

PACKED = frozenset({"packed"})
"""The constants of the kernels that unpack."""

_FEW_ROWS = 2
_SIGN_OF_BYTES, _SIGN_OF_HALFWORDS = 0x80808080, 0x80008000


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackPlan(Plan):
    """`lanes` words of `bits` a code are stored side by side; `joined`: halfwords are unpacked, not bytes.

    `lead`, `head`, `tail`, `rest`: there is such to copy. `left`: words of a record after those of whole stored words.
    """

    bits: int
    lanes: int
    joined: bool
    lead: bool
    head: bool
    tail: bool
    rest: bool
    left: int

    @staticmethod
    def of(instr: Instr, bits: int, lanes: int) -> UnpackPlan:
        """Return the plan of a kernel that unpacks."""
        lead, head, tail, rest = (instr.int_(name) > 0 for name in ("lead", "head", "tail", "rest"))
        return UnpackPlan(
            bits=bits, lanes=lanes, joined=not holds_bytes(instr), lead=lead, head=head, tail=tail, rest=rest,
            left=instr.int_("body") % (8 // bits),
        )  # fmt: skip

    @property
    def per(self) -> int:
        """Words that a stored word holds."""
        return 8 // self.bits

    @property
    def mask(self) -> str:
        """The lowest code of each byte."""
        return f"0x{0x01010101 * ((1 << self.bits) - 1):08x}u"

    @property
    def half(self) -> str:
        """What a code is stored with."""
        return f"0x{0x01010101 << (self.bits - 1):08x}u"

    @property
    def sign(self) -> str:
        """A bit of each byte or halfword, from which a subtraction may borrow."""
        return f"0x{_SIGN_OF_HALFWORDS if self.joined else _SIGN_OF_BYTES:08x}u"


def weight_bits(instr: Instr) -> int:
    """Return of how few bits the weights of an instruction are, not packed yet; 0: of bytes."""
    quant = instr.operand("weights").type.quant
    return quant.bits if quant is not None and quant.bits in NARROW_BITS else 0


def has_few_rows(instr: Instr) -> bool:
    """Accept so few rows that unpacking the weights of a fully connected layer first would take longer."""
    return instr.int_("rows") <= _FEW_ROWS


def holds_bytes(instr: Instr) -> bool:
    """Accept weights that are bytes."""
    return instr.int_("joined") == 0


def records_of(instr: Instr) -> Records:
    """Return what an instruction unpacks."""
    fields = {name: instr.int_(name) for name in ("body", "count", "lead", "head", "tail")}
    return Records(**fields, joined=not holds_bytes(instr))


def unpacking(variant: KernelVariant, lanes: int, header: str) -> dict[str, tuple[KernelVariant, ...]]:
    """Return the variants of the kernels that unpack, for `lanes` words side by side; `header` may be none."""
    return {f"unpack_s{bits}": (stored_by(variant, bits, lanes, header),) for bits in NARROW_BITS}


def stored_by(variant: KernelVariant, bits: int, lanes: int, header: str) -> KernelVariant:
    """Return the variant of one of them."""
    return replace(variant, header=header, packs=PACKED, prepare=partial(_prepared, bits, lanes))


def _prepared(bits: int, lanes: int, constants: Arrays, instr: Instr) -> Prepared:
    packed = narrowed(constants["packed"], records_of(instr), bits, lanes)
    assert packed is not None
    return Prepared({"packed": packed}, UnpackPlan.of(instr, bits, lanes))


def words_of(array: np.ndarray) -> np.ndarray:
    """Return the bytes of a constant as uint32 words, the last one filled up."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return np.pad(data, (0, -data.size % 4)).view(np.uint32)


def stored_bits(variant: KernelVariant, instr: Instr, weights: np.ndarray) -> int | None:
    """Return in how few bits the weights can be stored that a variant packed for an instruction; None: in bytes."""
    found = variant.records(instr) if variant.records is not None else None
    if found is None:
        return None
    words = words_of(weights)
    return next((bits for bits in NARROW_BITS if narrowed(words, found, bits) is not None), None)


def narrowed(words: np.ndarray, r: Records, bits: int, lanes: int = 1) -> np.ndarray | None:
    """Return uint32 words as they are stored; None where a weight of a record has more bits."""
    if words.size < r.words or r.body < 1 or r.count < 1:
        return None
    first, rest = words[: r.lead], words[r.words :]
    records = words[r.lead : r.words].reshape(r.count, -1)
    sign = np.uint32(_SIGN_OF_HALFWORDS if r.joined else _SIGN_OF_BYTES)
    half, mask = np.uint32(0x01010101 << (bits - 1)), np.uint32(0x01010101 * ((1 << bits) - 1))
    body = records[:, r.head : r.head + r.body]
    codes = ((body ^ sign) + half) ^ sign
    if (codes & ~mask).any() or ((((codes | sign) - half) ^ sign) != body).any():
        return None
    parts = (records[:, : r.head], _stored(codes, bits, lanes), records[:, r.head + r.body :])
    return np.concatenate((first, np.concatenate(parts, axis=1).reshape(-1), rest))


def _stored(codes: np.ndarray, bits: int, lanes: int) -> np.ndarray:
    """Return words of codes, a record a row, several in one word."""
    per, count = 8 // bits, codes.shape[1]
    whole = count // (per * lanes) * per * lanes
    groups = codes[:, :whole].reshape(len(codes), -1, per, lanes)
    left = np.pad(codes[:, whole:], ((0, 0), (0, -count % per))).reshape(len(codes), -1, per, 1)
    return np.concatenate([_joined(part, bits).reshape(len(codes), -1) for part in (groups, left)], axis=1)


def _joined(groups: np.ndarray, bits: int) -> np.ndarray:
    """Return codes [..., per, lanes] as [..., lanes]."""
    places = (np.arange(groups.shape[2], dtype=np.uint32) * bits)[:, None]
    return np.asarray(np.bitwise_or.reduce(groups << places, axis=2))
