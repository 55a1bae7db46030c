"""Weights of 4 or 2 bits, several in a byte, as the kernels that unpack read them (templates/kernels/*/unpack*.c.j2).

A code is stored as itself plus half of the codes, 8 or 2, for unpack_s4 and unpack_s2; as its place in a palette of
codes for unpack_p4 and unpack_p2. Words of weights are stored by twos or fours, `per`. By lanes: the lowest bits of the
bytes of a stored word are the first one, the next bits the one after; with more than one lane so many words are the
first, and so many after them. What is left after whole groups is stored word by word. In order: a stored word has the
places of the bytes of its words one after the other, from the lowest bits on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from glowc.graph.few_codes import NARROW_BITS, FewCodes, few_codes
from glowc.kernels.base import KernelVariant, Prepared, prepare, prepared_instr
from glowc.kernels.records import Records
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

PACKED, INDEXED = frozenset({"packed"}), frozenset({"packed", "palette"})
"""The constants of the kernels that unpack, without and with a palette."""

Layout = Callable[[np.ndarray, int], np.ndarray]
"""Stores words of one place in each byte, a record a row, several in one word: of so many bits."""

Word = Callable[[str, int], str]
"""Returns the C of the k-th word of weights in a stored word."""

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

    @classmethod
    def of(cls, instr: Instr, bits: int, lanes: int) -> Self:
        """Return the plan of a kernel that unpacks."""
        lead, head, tail, rest = (instr.int_(name) > 0 for name in ("lead", "head", "tail", "rest"))
        return cls(
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

    @property
    def form(self) -> str:
        """What a weight is an element of, in the names of functions."""
        return "joined" if self.joined else "bytes"

    def copied(self, words: str, needed: bool) -> str:
        """Return the loop that copies so many words, nothing where it is not needed."""
        return f"    for (int32_t i = 0; i < {words}; i++) {{\n      *to++ = *from++;\n    }}\n" if needed else ""

    def words(self, form: Word, stored: str, count: int, first: int = 0) -> list[tuple[int, str]]:
        """Return the first words of weights of a stored word in one of the forms below, numbered from `first` on."""
        return [(first + k, form(stored, k)) for k in range(count)]

    def code(self, stored: str, k: int) -> str:
        """The codes of the k-th word of weights in a stored word."""
        return f"{shifted(stored, k * self.bits)} & {self.mask}"

    def plain(self, stored: str, k: int) -> str:
        """The k-th word of weights, of numbers."""
        return f"((({self.code(stored, k)}) | {self.sign}) - {self.half}) ^ {self.sign}"

    def looked_up(self, stored: str, k: int) -> str:
        """The k-th word of weights, of places in a palette."""
        return f"glow_palette_{self.form}({self.code(stored, k)}, palette)"


def shifted(stored: str, places: int) -> str:
    """Return a stored word moved right by so many bits."""
    return f"({stored} >> {places})" if places else stored


def weight_form(instr: Instr) -> FewCodes | None:
    """Return of which few codes the weights of an instruction are, not packed yet; None: of bytes."""
    quant = instr.operand("weights").type.quant
    return FewCodes(quant.bits, quant.palette) if quant is not None and quant.bits in NARROW_BITS else None


def weight_bits(instr: Instr) -> int:
    """Return of how few bits the weights of an instruction are, not packed yet; 0: of bytes, or of a palette."""
    form = weight_form(instr)
    return form.bits if form is not None and not form.palette else 0


def weight_palette(instr: Instr) -> tuple[int, ...]:
    """Return the palette of the weights of an instruction, not packed yet; none of other weights."""
    form = weight_form(instr)
    return form.palette if form is not None else ()


def holds_bytes(instr: Instr) -> bool:
    """Accept weights that are bytes."""
    return instr.int_("joined") == 0


def records_of(instr: Instr) -> Records:
    """Return what an instruction unpacks."""
    fields = {name: instr.int_(name) for name in ("body", "count", "lead", "head", "tail")}
    return Records(**fields, joined=not holds_bytes(instr))


def unpacking(
    variant: KernelVariant, lanes: int, header: str, plan: type[UnpackPlan] = UnpackPlan
) -> dict[str, tuple[KernelVariant, ...]]:  # fmt: skip
    """Return the variants of the kernels that unpack, for `lanes` words side by side; `header` may be none."""
    return {f"unpack_s{bits}": (stored_by(variant, bits, lanes, header, plan),) for bits in NARROW_BITS}


def stored_by(
    variant: KernelVariant, bits: int, lanes: int, header: str, plan: type[UnpackPlan] = UnpackPlan
) -> KernelVariant:  # fmt: skip
    """Return the variant of one of them, which prints by a kind of plan."""
    return replace(variant, header=header, packs=PACKED, prepare=partial(_prepared, bits, lanes, plan))


def _prepared(bits: int, lanes: int, plan: type[UnpackPlan], constants: Arrays, instr: Instr) -> Prepared:
    packed = narrowed(constants["packed"], records_of(instr), FewCodes(bits), by_lanes(lanes))
    assert packed is not None
    return Prepared({"packed": packed}, plan.of(instr, bits, lanes))


def indexed_by(
    variant: KernelVariant, bits: int, layout: Layout, lanes: int, *, entries: int = 0,
    plan: type[UnpackPlan] = UnpackPlan,
) -> KernelVariant:  # fmt: skip
    """Return the variant of a kernel that unpacks by a palette, of which it reads `entries`, 0: as many as it has."""
    return replace(variant, packs=INDEXED, prepare=partial(_indexed, bits, layout, lanes, entries, plan))


def _indexed(
    bits: int, layout: Layout, lanes: int, entries: int, plan: type[UnpackPlan], constants: Arrays, instr: Instr
) -> Prepared:  # fmt: skip
    palette = constants["palette"]
    form = FewCodes(bits, tuple(dict.fromkeys(palette.tolist())))
    packed = narrowed(constants["packed"], records_of(instr), form, layout)
    assert packed is not None
    read = {"palette": np.tile(palette, entries // palette.size)} if entries else {}
    return Prepared({"packed": packed, **read}, plan.of(instr, bits, lanes))


def unpack_kernel(form: FewCodes) -> str:
    """Return the kernel that unpacks weights stored so."""
    return f"unpack_{'p' if form.palette else 's'}{form.bits}"


def palette_of(form: FewCodes) -> np.ndarray:
    """Return the palette as kernels read it: int8, 16 or 4 codes, the last one again where there are fewer."""
    return np.pad(np.asarray(form.palette, np.int8), (0, (1 << form.bits) - len(form.palette)), mode="edge")


def words_of(array: np.ndarray) -> np.ndarray:
    """Return the bytes of a constant as uint32 words, the last one filled up."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return np.pad(data, (0, -data.size % 4)).view(np.uint32)


def stored_form(
    variant: KernelVariant, instr: Instr, weights: np.ndarray, palette: tuple[int, ...] = ()
) -> FewCodes | None:
    """Return as what codes the weights can be stored that a variant packed for an instruction; None: as bytes.

    They are places in `palette` rather than in one of their own where they are as few bits.
    """
    found = variant.records(instr) if variant.records is not None else None
    words = words_of(weights)
    if found is None or not _has(found, words):
        return None
    form = few_codes(_codes(_bodies(words, found), found.joined))
    if form is not None and form.palette and {*form.palette} <= {*palette} and len(palette) <= 1 << form.bits:
        return FewCodes(form.bits, palette)
    return form


def narrowed(words: np.ndarray, r: Records, form: FewCodes, layout: Layout) -> np.ndarray | None:
    """Return uint32 words as they are stored; None where a weight of a record is none of the codes."""
    if not _has(r, words):
        return None
    places = form.indices(_codes(_bodies(words, r), r.joined))
    if places is None:
        return None
    records = words[r.lead : r.words].reshape(r.count, -1)
    stored = layout(places.view(np.uint32)[..., 0], form.bits)
    parts = (records[:, : r.head], stored, records[:, r.head + r.body :])
    return np.concatenate((words[: r.lead], np.concatenate(parts, axis=1).reshape(-1), words[r.words :]))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan(Plan):
    """`bits` of a weight of a layer that reads its weights as they are stored."""

    bits: int


def read_as_stored(plain: KernelVariant, lanes: int) -> Callable[[Arrays, Instr], Prepared]:
    """Return how constants are prepared for a variant that reads the words of `plain` by lanes, as they are stored.

    They stand behind the vector of their palette if they have one.
    """

    def prepare_stored(constants: Arrays, instr: Instr) -> Prepared:
        done, form = prepare(plain, constants, instr), weight_form(instr)
        records = plain.records(prepared_instr(instr, done)) if plain.records is not None else None
        assert records is not None
        assert form is not None
        packed = narrowed(words_of(done.constants["weights"]), records, form, by_lanes(lanes))
        assert packed is not None
        weights = np.concatenate((vector_of(form), packed)) if form.palette else packed
        return Prepared({**done.constants, "weights": weights}, StoredPlan(bits=form.bits))

    return prepare_stored


def vector_of(form: FewCodes) -> np.ndarray:
    """Return a palette as four words: 16 codes."""
    return np.resize(palette_of(form), 16).view(np.uint32)


def _has(r: Records, words: np.ndarray) -> bool:
    return words.size >= r.words and r.body >= 1 and r.count >= 1


def _bodies(words: np.ndarray, r: Records) -> np.ndarray:
    """Return the words of weights, a record a row."""
    return np.ascontiguousarray(words[r.lead : r.words].reshape(r.count, -1)[:, r.head : r.head + r.body])


def _codes(body: np.ndarray, joined: bool) -> np.ndarray:
    """Return the int8 codes of words [...], four of each, the lowest first."""
    codes = body[..., None].view(np.int8)
    if not joined:
        return codes
    halves = body[..., None].view(np.int16)
    low = halves.astype(np.int8)
    return np.stack((low, ((halves - low) >> 8).astype(np.int8)), axis=-1).reshape(codes.shape)


def by_lanes(lanes: int) -> Layout:
    """Return how words are stored by the lowest bits of so many of them."""
    return partial(_by_lanes, lanes)


def _by_lanes(lanes: int, places: np.ndarray, bits: int) -> np.ndarray:
    per, count = 8 // bits, places.shape[1]
    whole = count // (per * lanes) * per * lanes
    groups = places[:, :whole].reshape(len(places), -1, per, lanes)
    left = np.pad(places[:, whole:], ((0, 0), (0, -count % per))).reshape(len(places), -1, per, 1)
    return np.concatenate([_joined(part, bits).reshape(len(places), -1) for part in (groups, left)], axis=1)


def in_order(places: np.ndarray, bits: int) -> np.ndarray:
    """Store places one after the other."""
    per = 8 // bits
    each = np.pad(places, ((0, 0), (0, -places.shape[1] % per)))[..., None].view(np.uint8).astype(np.uint32)
    return _joined(each.reshape(len(places), -1, 4 * per, 1), bits)[..., 0]


def _joined(groups: np.ndarray, bits: int) -> np.ndarray:
    """Return places [..., several, lanes] as [..., lanes]."""
    shifts = (np.arange(groups.shape[2], dtype=np.uint32) * bits)[:, None]
    return np.asarray(np.bitwise_or.reduce(groups << shifts, axis=2))
