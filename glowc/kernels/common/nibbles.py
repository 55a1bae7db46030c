"""Weights of 4 bits, two in a byte, as the kernel unpack_s4 reads them (templates/kernels/*/unpack_s4.c.j2).

A code is stored as itself plus 8. Words of weights are stored by twos: the low halves of the bytes of a stored word
are the first one, the high halves the second. With `lanes` more than 1 so many words are, and so many after them.
What is left after whole groups is stored by twos.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.records import Records
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

PACKED = frozenset({"packed"})
"""The constants of unpack_s4."""

_EIGHTS = 0x08080808
SIGN_OF_BYTES, SIGN_OF_HALFWORDS = 0x80808080, 0x80008000


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackPlan(Plan):
    """`lanes` words are stored side by side; `joined`: halfwords are unpacked, not bytes; what there is to copy.

    `single`: a record has a word of weights after those stored by twos.
    """

    lanes: int
    joined: bool
    lead: bool
    head: bool
    tail: bool
    rest: bool
    single: bool

    @staticmethod
    def of(instr: Instr, lanes: int) -> UnpackPlan:
        """Return the plan of an unpack_s4."""
        lead, head, tail, rest = (instr.int_(name) > 0 for name in ("lead", "head", "tail", "rest"))
        return UnpackPlan(
            lanes=lanes, joined=not holds_bytes(instr), lead=lead, head=head, tail=tail, rest=rest,
            single=instr.int_("body") % 2 == 1,
        )  # fmt: skip


def holds_bytes(instr: Instr) -> bool:
    """Accept weights that are bytes."""
    return instr.int_("joined") == 0


def records_of(instr: Instr) -> Records:
    """Return what an unpack_s4 unpacks."""
    fields = {name: instr.int_(name) for name in ("body", "count", "lead", "head", "tail")}
    return Records(**fields, joined=not holds_bytes(instr))


def stored_by(lanes: int) -> Callable[[Arrays, Instr], Prepared]:
    """Return what prepares unpack_s4 for `lanes` words side by side."""

    def prepare(constants: Arrays, instr: Instr) -> Prepared:
        packed = nibbles(constants["packed"], records_of(instr), lanes)
        assert packed is not None
        return Prepared({"packed": packed}, UnpackPlan.of(instr, lanes))

    return prepare


def words_of(array: np.ndarray) -> np.ndarray:
    """Return the bytes of a constant as uint32 words, the last one filled up."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return np.pad(data, (0, -data.size % 4)).view(np.uint32)


def is_stored(variant: KernelVariant, instr: Instr, weights: np.ndarray) -> bool:
    """Say whether the constant of weights that a variant packed for an instruction can be stored in 4 bits."""
    found = variant.records(instr) if variant.records is not None else None
    return found is not None and nibbles(words_of(weights), found) is not None


def nibbles(words: np.ndarray, r: Records, lanes: int = 1) -> np.ndarray | None:
    """Return uint32 words as they are stored; None where a weight of a record is not one of 4 bits."""
    if words.size < r.words or r.body < 1:
        return None
    first, rest = words[: r.lead], words[r.words :]
    records = words[r.lead : r.words].reshape(r.count, -1)
    sign = np.uint32(SIGN_OF_HALFWORDS if r.joined else SIGN_OF_BYTES)
    codes = ((records[:, r.head : r.head + r.body] ^ sign) + np.uint32(_EIGHTS)) ^ sign
    if (codes & np.uint32(0xF0F0F0F0)).any() or (_unpacked(codes, sign) != records[:, r.head : r.head + r.body]).any():
        return None
    stored = _paired(codes, lanes)
    parts = np.concatenate((records[:, : r.head], stored, records[:, r.head + r.body :]), axis=1)
    return np.concatenate((first, parts.reshape(-1), rest))


def _unpacked(codes: np.ndarray, sign: np.uint32) -> np.ndarray:
    return ((codes | sign) - np.uint32(_EIGHTS)) ^ sign


def _paired(codes: np.ndarray, lanes: int) -> np.ndarray:
    """Return words of codes below 16 as half as many, a record a row."""
    whole = codes.shape[1] // (2 * lanes) * 2 * lanes
    groups = codes[:, :whole].reshape(len(codes), -1, 2, lanes)
    left = np.pad(codes[:, whole:], ((0, 0), (0, (codes.shape[1] - whole) % 2))).reshape(len(codes), -1, 2)
    pairs = (groups[:, :, 0] | groups[:, :, 1] << 4).reshape(len(codes), -1), left[..., 0] | left[..., 1] << 4
    return np.concatenate(pairs, axis=1)
