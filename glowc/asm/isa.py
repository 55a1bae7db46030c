"""Thumb-2 with DSP, single-precision FPU and Helium: text, class and meaning of each instruction that kernels use.

A meaning takes the registers read (uint32, one value per case of a batch, four of a vector), then the immediates, and
returns what is written; those of loads and stores take the memory first. Not modelled: the Q flag, other flags than Z
and N, other roundings than to nearest. What SSUB8 tells SEL is a register of flags of its own: the bytes that it
takes from the first operand.
Sources: Arm DDI 0403E, chapter A7; of Helium Arm DDI 0553B, chapter C2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glowc.asm.insn import FLAG, Insn, Register

Words = NDArray[np.uint32]
Longs = NDArray[np.int64]
GE = Register(FLAG, 1, virtual=False)
P0 = Register(FLAG, 2, virtual=False)
"""The bytes of vectors that predicated instructions take, one bit each."""
_LEAST, _MOST = -(2**31), 2**31 - 1


class Kind(Enum):
    """Classes that the tables of cores tell apart."""

    PLAIN, SHIFTED, SHIFTED_BY, PARALLEL = "plain", "with a shifted operand", "shifted by a register", "parallel"
    PACK = "parts of two words"
    SATURATE, SELECT, MULTIPLY, BRANCH = "saturate", "select", "multiply", "branch"
    LOAD, LOAD_MANY, STORE, STORE_MOVING = "load", "load many", "store", "store, moving its base"
    MOVE, MOVE_PAIR, FLOAT = "move to or from the FPU", "two moves", "float"
    VECTOR_LOAD, VECTOR_STORE = "load a vector", "store a vector"
    VECTOR_MULTIPLY, VECTOR, VECTOR_NARROW = "multiply or convert vectors", "vectors", "narrow vectors"
    VECTOR_SHIFT, VECTOR_FILL = "shift vectors by vectors", "make a vector of words"


MEMORY = (Kind.LOAD, Kind.LOAD_MANY, Kind.STORE, Kind.STORE_MOVING, Kind.VECTOR_LOAD, Kind.VECTOR_STORE)


class Memory:
    """One array of words for each case; addresses are in bytes from its begin."""

    def __init__(self, words: Words) -> None:
        self.words = np.ascontiguousarray(words)
        self._rows = np.arange(len(words))

    def load(self, address: Words) -> Words:
        """Return a word of each case."""
        return np.asarray(self.words[self._rows, address // 4])

    def store(self, address: Words, value: Words) -> None:
        """Set a word of each case."""
        self.words[self._rows, address // 4] = value

    def load_byte(self, address: Words) -> Words:
        """Return a byte of each case."""
        return (self.load(address) >> (8 * (address % 4))) & np.uint32(255)

    def store_byte(self, address: Words, value: Words) -> None:
        """Set a byte of each case."""
        place = 8 * (address % 4)
        self.store(address, (self.load(address) & ~(np.uint32(255) << place)) | ((value & np.uint32(255)) << place))


@dataclass(frozen=True, slots=True)
class Row:
    """An instruction: `{w0}`, `{r0}`, `{i0}` stand for operands, `{list}` for all registers written but the last.

    `early`: the numbers of registers read that are needed a stage sooner, addresses and shifted ones; `late`: a stage
    later, accumulators and what is stored.
    """

    text: str
    kind: Kind
    meaning: Callable[..., Any]
    early: tuple[int, ...] = ()
    late: tuple[int, ...] = ()


def results(
    insn: Insn, memory: Memory, values: Sequence[Words], isa: Mapping[str, Row] | None = None
) -> tuple[Words, ...]:
    """Return what an instruction writes to its registers, in their order; `isa`: the table, that of Thumb-2 if None."""
    row = (isa or ISA)[insn.op]
    written = row.meaning(*((memory,) if row.kind in MEMORY else ()), *values, *insn.immediates)
    return written if isinstance(written, tuple) else (written,)


def signed(word: Words) -> Longs:
    """Return the words as signed numbers."""
    return word.view(np.int32).astype(np.int64)


def _word(value: Longs) -> Words:
    return np.asarray(value & 0xFFFFFFFF, np.uint32)


def _halves(word: Words) -> tuple[Longs, Longs]:
    low, high = (np.asarray(word >> np.uint32(s), np.uint16).view(np.int16).astype(np.int64) for s in (0, 16))
    return low, high


def _sxtb16(a: Words, rotation: int) -> Words:
    turned = (a >> np.uint32(rotation)) | (a << np.uint32(32 - rotation)) if rotation else a
    low, high = (np.asarray(turned >> np.uint32(s), np.uint8).view(np.int8).astype(np.int64) for s in (0, 16))
    return _word((low & 0xFFFF) | (high & 0xFFFF) << 16)


def _added16(a: Words, b: Words, sign: int) -> Words:
    (a0, a1), (b0, b1) = _halves(a), _halves(b)
    return _word(a0 + sign * b0 & 0xFFFF | (a1 + sign * b1 & 0xFFFF) << 16)


def _smlad(a: Words, b: Words, total: Words) -> Words:
    (a0, a1), (b0, b1) = _halves(a), _halves(b)
    return _word(a0 * b0 + a1 * b1 + signed(total))


def _smla(a: Words, b: Words, total: Words, first: int, second: int) -> Words:
    return _word(_halves(a)[first] * _halves(b)[second] + signed(total))


def _smmla(a: Words, b: Words, total: Words, half: int = 0) -> Words:
    return _word(((signed(total) << 32) + signed(a) * signed(b) + half) >> 32)


def _bfi(a: Words, b: Words, first: int, bits: int) -> Words:
    mask = np.uint32(((1 << bits) - 1) << first)
    return (a & ~mask) | ((b << np.uint32(first)) & mask)


def _shifted(a: Words, places: Words, *, left: bool) -> Words:
    wide, by = a.astype(np.uint64), np.minimum(places, 32).astype(np.uint64)
    return np.asarray((wide << by if left else wide >> by) & np.uint64(0xFFFFFFFF), np.uint32)


def _bytes(word: Words) -> Longs:
    return word[:, None].view(np.int8).astype(np.int64)


def _ssub8(a: Words, b: Words) -> tuple[Words, Words]:
    difference = _bytes(a) - _bytes(b)
    parts = difference.astype(np.uint8), np.where(difference >= 0, 255, 0).astype(np.uint8)
    less, least = (np.ascontiguousarray(part).view(np.uint32)[:, 0] for part in parts)
    return less, least


def _loaded(memory: Memory, base: Words, count: int) -> tuple[Words, ...]:
    return *(memory.load(base + np.uint32(4 * k)) for k in range(count)), base + np.uint32(4 * count)


def _stored(memory: Memory, value: Words, base: Words, offset: int) -> tuple[Words, ...]:
    memory.store(base + np.uint32(offset), value)
    return ()


def _stored_moving(memory: Memory, value: Words, base: Words, step: int) -> Words:
    memory.store(base, value)
    return base + np.uint32(step)


def _stored_pair(memory: Memory, one: Words, two: Words, base: Words, offset: int) -> tuple[Words, ...]:
    memory.store(base + np.uint32(offset), one)
    memory.store(base + np.uint32(offset + 4), two)
    return ()


def _stored_byte_moving(memory: Memory, value: Words, base: Words, step: int) -> Words:
    memory.store_byte(base, value)
    return base + np.uint32(step)


def _stored_byte(memory: Memory, value: Words, address: Words) -> tuple[Words, ...]:
    memory.store_byte(address, value)
    return ()


def _stored_half(memory: Memory, value: Words, address: Words) -> tuple[Words, ...]:
    memory.store_byte(address, value)
    memory.store_byte(address + np.uint32(1), value >> np.uint32(8))
    return ()


def _counted(a: Words, step: int) -> tuple[Words, Words]:
    total = a + np.uint32(step & 0xFFFFFFFF)
    return total, np.asarray(total == 0, np.uint32)


def _real(word: Words) -> NDArray[np.float32]:
    return word.view(np.float32)


def _of_real(value: NDArray[np.float32]) -> Words:
    return np.ascontiguousarray(value, np.float32).view(np.uint32)


def _flushed(value: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return zeros in place of numbers without a leading 1, as Helium takes them."""
    return np.where(np.abs(value) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), value), value)


def _rounded(a: Words) -> Words:
    value = np.nan_to_num(_real(a).astype(np.float64), nan=0.0, posinf=_MOST, neginf=_LEAST)
    return _word(np.clip(np.rint(value), _LEAST, _MOST).astype(np.int64))


def _converted(a: Words, places: int = 0) -> Words:
    return _of_real(a.view(np.int32).astype(np.float32) / np.float32(1 << places))


def _vector(memory: Memory, base: Words) -> Words:
    return np.stack([memory.load(base + np.uint32(4 * k)) for k in range(4)], axis=1)


def _widened(memory: Memory, base: Words, kind: type[np.signedinteger[Any]]) -> Words:
    """Return adjacent bytes as lanes of a kind."""
    count = 16 // np.dtype(kind).itemsize
    lanes = np.stack([memory.load_byte(base + np.uint32(k)) for k in range(count)], axis=1)
    return lanes.astype(np.uint8).view(np.int8).astype(kind).view(np.uint32)


def _lanes(vector: Words, kind: type[np.signedinteger[Any]], first: int, step: int) -> Longs:
    """Return every `step`-th of the lanes of a kind, from the first."""
    return np.ascontiguousarray(vector).view(kind)[:, first::step].astype(np.int64)


def _of_lanes(lanes: Longs, kind: type[np.signedinteger[Any]]) -> Words:
    return lanes.astype(kind).view(np.uint32)


def _vmull(a: Words, b: Words, first: int) -> Words:
    return _of_lanes(_lanes(a, np.int8, first, 2) * _lanes(b, np.int8, first, 2), np.int16)


def _vadd(a: Words, b: Words, kind: type[np.signedinteger[Any]]) -> Words:
    return _of_lanes(_lanes(a, kind, 0, 1) + _lanes(b, kind, 0, 1), kind)


def _vqdmlah(total: Words, a: Words, factor: Words) -> Words:
    product = signed(a) * signed(factor)[:, None] + (signed(total) << 31)
    return _word(np.clip(product >> 31, _LEAST, _MOST))


def _vmla(total: Words, a: Words, factor: Words) -> Words:
    return _word(signed(total) + signed(a) * signed(factor)[:, None])


def _vqdmulh(a: Words, b: Words, half: int = 0) -> Words:
    return _word(np.clip(signed(a) * signed(b) + half >> 31, _LEAST, _MOST))


def _vrshl(a: Words, by: Words) -> Words:
    """Shift by the signed low bytes of lanes: to the left, or to the right with a rounding half."""
    places = by.astype(np.uint8).view(np.int8).astype(np.int64)
    right = np.minimum(-np.minimum(places, 0), 33)
    half = np.where(right > 0, np.left_shift(np.int64(1), np.maximum(right - 1, 0)), 0)
    return _word(np.where(places >= 0, signed(a) << np.clip(places, 0, 32), signed(a) + half >> right))


def _vmladav(a: Words, b: Words, kind: type[np.signedinteger[Any]]) -> Words:
    return _word((_lanes(a, kind, 0, 1) * _lanes(b, kind, 0, 1)).sum(1))


def _narrowed(changed: Words, lanes: Longs, kind: type[np.signedinteger[Any]], first: int) -> Words:
    """Return a vector in which every other lane of a kind is another one, saturated."""
    limits = np.iinfo(kind)
    halves = np.ascontiguousarray(changed).view(kind).copy()
    halves[:, first::2] = np.clip(lanes, limits.min, limits.max)
    return halves.view(np.uint32)


def _vqmovn(changed: Words, a: Words, kind: type[np.signedinteger[Any]], first: int) -> Words:
    wide = np.int32 if kind is np.int16 else np.int16
    return _narrowed(changed, _lanes(a, wide, 0, 1), kind, first)


def _vqadd(a: Words, b: Words) -> Words:
    total = _lanes(a, np.int16, 0, 1) + np.asarray(b, np.uint16).view(np.int16).astype(np.int64)[:, None]
    return _narrowed(_narrowed(a, total[:, ::2], np.int16, 0), total[:, 1::2], np.int16, 1)


def _cut(value: Longs) -> Longs:
    return np.asarray(value & 0xFFFF, np.uint16).view(np.int16).astype(np.int64)


def _saturated(a: Longs, b: Longs) -> Longs:
    return np.asarray(np.clip(a + b, -(1 << 15), (1 << 15) - 1))


def _of_bytes(of: np.ufunc, a: Words, b: Words) -> Words:
    return _of_lanes(of(_lanes(a, np.int8, 0, 1), _lanes(b, np.int8, 0, 1)), np.int8)


def _of_halves(of: Callable[[Longs, Longs], Longs], a: Words, b: Words) -> Words:
    return _of_lanes(of(_lanes(a, np.int16, 0, 1), _lanes(b, np.int16, 0, 1)), np.int16)


def _taken(p0: Words) -> NDArray[np.bool_]:
    return (p0[:, None] >> np.arange(16, dtype=np.uint32) & 1).astype(np.bool_)


def _some(memory: Memory, base: Words, p0: Words) -> Words:
    taken = np.where(_taken(p0), np.ascontiguousarray(_vector(memory, base)).view(np.uint8), 0)
    return np.asarray(taken, np.uint8).view(np.uint32)


def _vector_stored(memory: Memory, vector: Words, base: Words) -> None:
    for k in range(4):
        memory.store(base + np.uint32(4 * k), vector[:, k])


def _vector_stored_moving(memory: Memory, vector: Words, base: Words, step: int) -> Words:
    _vector_stored(memory, vector, base)
    return base + np.uint32(step)


def _stored_at(memory: Memory, vector: Words, base: Words, places: Words) -> tuple[Words, ...]:
    for lane, place in zip(_lanes(vector, np.int16, 0, 1).T, _lanes(places, np.int16, 0, 1).T, strict=True):
        memory.store_byte(base + place.astype(np.uint16), lane.astype(np.uint32))
    return ()


def _stored_bytes_moving(memory: Memory, vector: Words, base: Words, step: int) -> Words:
    for lane in range(4):
        memory.store_byte(base + np.uint32(lane), vector[:, lane])
    return base + np.uint32(step)


def _some_stored(memory: Memory, vector: Words, base: Words, p0: Words) -> tuple[Words, ...]:
    before = np.ascontiguousarray(_vector(memory, base)).view(np.uint8)
    after = np.where(_taken(p0), np.ascontiguousarray(vector).view(np.uint8), before)
    _vector_stored(memory, np.asarray(after, np.uint8).view(np.uint32), base)
    return ()


K = Kind
ISA: dict[str, Row] = {
    "ldr": Row("ldr {w0}, [{r0}, #{i0}]", K.LOAD, lambda m, base, i: m.load(base + np.uint32(i)), early=(0,)),
    "ldr_wide": Row("ldr.w {w0}, [{r0}, #{i0}]", K.LOAD, lambda m, base, i: m.load(base + np.uint32(i)), early=(0,)),
    "ldr_by": Row("ldr {w0}, [{r0}, {r1}, lsl #{i0}]", K.LOAD,
                  lambda m, base, by, i: m.load(base + (by << np.uint32(i))), early=(0, 1)),
    "ldr_moving": Row("ldr {w0}, [{r0}], #{i0}", K.LOAD, lambda m, base, i: (m.load(base), base + np.uint32(i)),
                      early=(0,)),
    "ldrb": Row("ldrb {w0}, [{r0}, #{i0}]", K.LOAD, lambda m, base, i: m.load_byte(base + np.uint32(i)), early=(0,)),
    "vldr": Row("vldr {w0}, [{r0}, #{i0}]", K.LOAD, lambda m, base, i: m.load(base + np.uint32(i)), early=(0,)),
    "ldrd": Row("ldrd {w0}, {w1}, [{r0}, #{i0}]", K.LOAD_MANY,
                lambda m, base, i: (m.load(base + np.uint32(i)), m.load(base + np.uint32(i + 4))), early=(0,)),
    "ldrd_moving": Row("ldrd {w0}, {w1}, [{r0}], #{i0}", K.LOAD_MANY,
                       lambda m, base, i: (*_loaded(m, base, 2)[:2], base + np.uint32(i)), early=(0,)),
    "ldm_still": Row("ldm {r0}, {{{list}}}", K.LOAD_MANY, lambda m, base, i: (*_loaded(m, base, i)[:i], base),
                     early=(0,)),
    "ldm": Row("ldmia.w {r0}!, {{{list}}}", K.LOAD_MANY, _loaded, early=(0,)),
    "vldm": Row("vldmia {r0}!, {{{list}}}", K.LOAD_MANY, _loaded, early=(0,)),
    "str": Row("str {r0}, [{r1}, #{i0}]", K.STORE, _stored, early=(1,), late=(0,)),
    "strd": Row("strd {r0}, {r1}, [{r2}, #{i0}]", K.STORE, _stored_pair, early=(2,), late=(0, 1)),
    "strb_moving": Row("strb {r0}, [{r1}], #{i0}", K.STORE_MOVING, _stored_byte_moving, early=(1,), late=(0,)),
    "strb": Row("strb {r0}, [{r1}, #{i0}]", K.STORE,
                lambda m, value, base, i: _stored_byte(m, value, base + np.uint32(i)), early=(1,), late=(0,)),
    "str_by": Row("str {r0}, [{r1}, {r2}, lsl #{i0}]", K.STORE,
                  lambda m, value, base, by, i: _stored(m, value, base + (by << np.uint32(i)), 0), early=(1, 2),
                  late=(0,)),
    "strb_by": Row("strb {r0}, [{r1}, {r2}, lsl #{i0}]", K.STORE,
                   lambda m, value, base, by, i: _stored_byte(m, value, base + (by << np.uint32(i))), early=(1, 2),
                   late=(0,)),
    "strh": Row("strh {r0}, [{r1}, #{i0}]", K.STORE,
                lambda m, value, base, i: _stored_half(m, value, base + np.uint32(i)), early=(1,), late=(0,)),
    "strh_at": Row("strh {r0}, [{r1}, {r2}]", K.STORE,
                   lambda m, value, base, by: _stored_half(m, value, base + by), early=(1, 2), late=(0,)),
    "strh_by": Row("strh {r0}, [{r1}, {r2}, lsl #{i0}]", K.STORE,
                   lambda m, value, base, by, i: _stored_half(m, value, base + (by << np.uint32(i))), early=(1, 2),
                   late=(0,)),
    "str_moving": Row("str {r0}, [{r1}], #{i0}", K.STORE_MOVING, _stored_moving, early=(1,), late=(0,)),
    "mov": Row("mov {w0}, {r0}", K.PLAIN, lambda a: a),
    "mov_imm": Row("mov.w {w0}, #{i0}", K.PLAIN, np.uint32),
    "adr_steps": Row("adr.w {w0}, 6f", K.PLAIN, lambda: np.uint32(0)),
    "neg": Row("rsb.w {w0}, {r0}, #0", K.PLAIN, lambda a: np.uint32(0) - a),
    "mla": Row("mla {w0}, {r0}, {r1}, {r2}", K.MULTIPLY, lambda a, b, c: a * b + c, late=(2,)),
    "count": Row("adds {w0}, {r0}, #{i0}", K.PLAIN, _counted),
    "add": Row("add.w {w0}, {r0}, #{i0}", K.PLAIN, lambda a, i: a + np.uint32(i)),
    "sub_imm": Row("sub.w {w0}, {r0}, #{i0}", K.PLAIN, lambda a, i: a - np.uint32(i)),
    "add_two": Row("add {w0}, {r0}, {r1}", K.PLAIN, lambda a, b: a + b),
    "add_lsl": Row("add.w {w0}, {r0}, {r1}, lsl #{i0}", K.SHIFTED, lambda a, b, i: a + (b << np.uint32(i)), early=(1,)),
    "add_asr": Row("add.w {w0}, {r0}, {r1}, asr #{i0}", K.SHIFTED, lambda a, b, i: _word(signed(a) + (signed(b) >> i)),
                   early=(1,)),
    "add_sign": Row("add.w {w0}, {r0}, {r1}, asr #31", K.SHIFTED, lambda a, b: _word(signed(a) + (signed(b) >> 31)),
                    early=(1,)),
    "sub_lsl": Row("sub.w {w0}, {r0}, {r1}, lsl #{i0}", K.SHIFTED, lambda a, b, i: a - (b << np.uint32(i)), early=(1,)),
    "sub_asr": Row("sub.w {w0}, {r0}, {r1}, asr #{i0}", K.SHIFTED, lambda a, b, i: _word(signed(a) - (signed(b) >> i)),
                   early=(1,)),
    "rsb_lsl": Row("rsb.w {w0}, {r0}, {r1}, lsl #{i0}", K.SHIFTED, lambda a, b, i: (b << np.uint32(i)) - a, early=(1,)),
    "sub": Row("sub.w {w0}, {r0}, {r1}", K.PLAIN, lambda a, b: a - b),
    "movs": Row("movs {w0}, #{i0}", K.PLAIN, np.uint32),
    "adds": Row("adds {w0}, {r0}, #{i0}", K.PLAIN, lambda a, i: a + np.uint32(i)),
    "adds_two": Row("adds {w0}, {r0}, {r1}", K.PLAIN, lambda a, b: a + b),
    "subs": Row("subs {w0}, {r0}, {r1}", K.PLAIN, lambda a, b: a - b),
    "mvn": Row("mvn {w0}, {r0}", K.PLAIN, lambda a: ~a),
    "eor": Row("eor.w {w0}, {r0}, #{i0}", K.PLAIN, lambda a, i: a ^ np.uint32(i)),
    "and_imm": Row("and.w {w0}, {r0}, #{i0}", K.PLAIN, lambda a, i: a & np.uint32(i)),
    "and_lsr": Row("and.w {w0}, {r0}, {r1}, lsr #{i0}", K.SHIFTED, lambda a, b, i: a & (b >> np.uint32(i)), early=(1,)),
    "ubfx": Row("ubfx {w0}, {r0}, #{i0}, #{i1}", K.SHIFTED,
                lambda a, i, bits: a >> np.uint32(i) & np.uint32((1 << bits) - 1), early=(0,)),
    "orr_lsl": Row("orr.w {w0}, {r0}, {r1}, lsl #{i0}", K.SHIFTED, lambda a, b, i: a | (b << np.uint32(i)), early=(1,)),
    "lsl": Row("lsl.w {w0}, {r0}, #{i0}", K.SHIFTED, lambda a, i: a << np.uint32(i), early=(0,)),
    "lsr": Row("lsr.w {w0}, {r0}, #{i0}", K.SHIFTED, lambda a, i: a >> np.uint32(i), early=(0,)),
    "asr": Row("asr.w {w0}, {r0}, #{i0}", K.SHIFTED, lambda a, i: _word(signed(a) >> i), early=(0,)),
    "lsl_by": Row("lsl.w {w0}, {r0}, {r1}", K.SHIFTED_BY, lambda a, b: _shifted(a, b & 0xFF, left=True)),
    "lsr_by": Row("lsr.w {w0}, {r0}, {r1}", K.SHIFTED_BY, lambda a, b: _shifted(a, b & 0xFF, left=False)),
    "asr_by": Row("asr.w {w0}, {r0}, {r1}", K.SHIFTED_BY,
                  lambda a, b: _word(signed(a) >> np.minimum(signed(b & 0xFF), 32))),
    "pkhbt": Row("pkhbt {w0}, {r0}, {r1}, lsl #16", K.PACK, lambda a, b: (a & 0xFFFF) | (b << np.uint32(16)),
                 early=(1,)),
    "pkhtb": Row("pkhtb {w0}, {r0}, {r1}, asr #16", K.PACK, lambda a, b: (a & 0xFFFF0000) | (b >> np.uint32(16)),
                 early=(1,)),
    "bfi": Row("bfi {w0}, {r1}, #{i0}, #{i1}", K.PACK, _bfi),
    "sxtb16": Row("sxtb16 {w0}, {r0}, ror #{i0}", K.PARALLEL, _sxtb16),
    "sxtab16": Row("sxtab16 {w0}, {r0}, {r1}, ror #{i0}", K.PARALLEL,
                   lambda a, b, i: _added16(a, _sxtb16(b, i), 1), early=(1,)),
    "sadd16": Row("sadd16 {w0}, {r0}, {r1}", K.PARALLEL, lambda a, b: _added16(a, b, 1)),
    "ssub16": Row("ssub16 {w0}, {r0}, {r1}", K.PARALLEL, lambda a, b: _added16(a, b, -1)),
    "smuad": Row("smuad {w0}, {r0}, {r1}", K.MULTIPLY, lambda a, b: _smlad(a, b, np.zeros_like(a))),
    "smlad": Row("smlad {w0}, {r0}, {r1}, {r2}", K.MULTIPLY, _smlad, late=(2,)),
    "smlabt": Row("smlabt {w0}, {r0}, {r1}, {r2}", K.MULTIPLY, lambda a, b, c: _smla(a, b, c, 0, 1), late=(2,)),
    "smlatb": Row("smlatb {w0}, {r0}, {r1}, {r2}", K.MULTIPLY, lambda a, b, c: _smla(a, b, c, 1, 0), late=(2,)),
    "smmla": Row("smmla {w0}, {r0}, {r1}, {r2}", K.MULTIPLY, _smmla, late=(2,)),
    "smmlar": Row("smmlar {w0}, {r0}, {r1}, {r2}", K.MULTIPLY, lambda a, b, c: _smmla(a, b, c, 1 << 31), late=(2,)),
    "usat8": Row("usat {w0}, #8, {r0}", K.SATURATE, lambda a: _word(np.clip(signed(a), 0, 255))),
    "ssat8": Row("ssat {w0}, #8, {r0}", K.SATURATE, lambda a: _word(np.clip(signed(a), -128, 127))),
    "ssat8_asr": Row("ssat {w0}, #8, {r0}, asr #{i0}", K.SATURATE,
                     lambda a, i: _word(np.clip(signed(a) >> i, -128, 127))),
    "qadd": Row("qadd {w0}, {r0}, {r1}", K.SATURATE, lambda a, b: _word(np.clip(signed(a) + signed(b), _LEAST, _MOST))),
    "ssub8": Row("ssub8 {w0}, {r0}, {r1}", K.SELECT, _ssub8),
    "sel": Row("sel {w0}, {r0}, {r1}", K.SELECT, lambda a, b, least: (a & least) | (b & ~least)),
    "vmov": Row("vmov {w0}, {r0}", K.MOVE, lambda a: a),
    "vmov_pair": Row("vmov {w0}, {w1}, {r0}, {r1}", K.MOVE_PAIR, lambda a, b: (a, b)),
    "vcvt": Row("vcvt.f32.s32 {w0}, {r0}", K.FLOAT, _converted),
    "vcvt_fixed": Row("vcvt.f32.s32 {w0}, {r0}, #{i0}", K.FLOAT, _converted),
    "vmul": Row("vmul.f32 {w0}, {r0}, {r1}", K.FLOAT, lambda a, b: _of_real(_real(a) * _real(b))),
    "vnmul": Row("vnmul.f32 {w0}, {r0}, {r1}", K.FLOAT, lambda a, b: _of_real(-(_real(a) * _real(b)))),
    "vcvtr": Row("vcvtr.s32.f32 {w0}, {r0}", K.FLOAT, _rounded),
    "cmp": Row("cmp {r0}, {r1}", K.PLAIN, lambda a, b: np.asarray(a == b, np.uint32)),
    "cmp_least": Row("cmp.w {r0}, #{i0}", K.PLAIN, lambda a, i: np.asarray(a >= np.uint32(i), np.uint32)),
    "cmp_zero": Row("cmp {r0}, #0", K.PLAIN, lambda a: np.asarray(signed(a) < 0, np.uint32)),
    "vldrb": Row("vldrb.8 {w0}, [{r0}, #{i0}]", K.VECTOR_LOAD,
                 lambda m, base, i: _vector(m, base + np.uint32(i & 0xFFFFFFFF))),
    "vldrb_s16": Row("vldrb.s16 {w0}, [{r0}, #{i0}]", K.VECTOR_LOAD,
                     lambda m, base, i: _widened(m, base + np.uint32(i & 0xFFFFFFFF), np.int16)),
    "vldrb_s16_moving": Row("vldrb.s16 {w0}, [{r0}], #{i0}", K.VECTOR_LOAD,
                            lambda m, base, i: (_widened(m, base, np.int16), base + np.uint32(i))),
    "vldrb_s32": Row("vldrb.s32 {w0}, [{r0}, #{i0}]", K.VECTOR_LOAD,
                     lambda m, base, i: _widened(m, base + np.uint32(i), np.int32)),
    "vldrw": Row("vldrw.32 {w0}, [{r0}, #{i0}]", K.VECTOR_LOAD,
                 lambda m, base, i: _vector(m, base + np.uint32(i & 0xFFFFFFFF))),
    "vldrb_to": Row("vldrb.8 {w0}, [{r0}, #{i0}]!", K.VECTOR_LOAD,
                    lambda m, base, i: (_vector(m, base + np.uint32(i)), base + np.uint32(i))),
    "vstrb_words_moving": Row("vstrb.32 {r0}, [{r1}], #{i0}", K.VECTOR_STORE, _stored_bytes_moving),
    "vctp": Row("vctp.8 {r0}", K.VECTOR, lambda count: (np.uint32(1) << np.minimum(count, 16)) - np.uint32(1)),
    "vldrw_to": Row("vldrw.32 {w0}, [{r0}, #{i0}]!", K.VECTOR_LOAD,
                    lambda m, base, i: (_vector(m, base + np.uint32(i)), base + np.uint32(i))),
    "vldrb_some": Row("vpstt\nvldrbt.8 {w0}, [{r0}, #{i0}]\nvldrbt.8 {w1}, [{r1}, #{i0}]", K.VECTOR_LOAD,
                      lambda m, one, two, p0, i: tuple(_some(m, base + np.uint32(i), p0) for base in (one, two))),
    "vldrb_some_moving": Row("vpst\nvldrbt.8 {w0}, [{r0}], #{i0}", K.VECTOR_LOAD,
                             lambda m, base, p0, i: (_some(m, base, p0), base + np.uint32(i))),
    "vstrb_moving": Row("vstrb.8 {r0}, [{r1}], #{i0}", K.VECTOR_STORE, _vector_stored_moving),
    "vstrb_places": Row("vstrb.16 {r0}, [{r1}, {r2}]", K.VECTOR_STORE, _stored_at, early=(2,)),
    "vstrb_some": Row("vpst\nvstrbt.8 {r0}, [{r1}]", K.VECTOR_STORE, _some_stored),
    "vldrb_moving": Row("vldrb.8 {w0}, [{r0}], #{i0}", K.VECTOR_LOAD,
                        lambda m, base, i: (_vector(m, base), base + np.uint32(i))),
    "vldrw_moving": Row("vldrw.32 {w0}, [{r0}], #{i0}", K.VECTOR_LOAD,
                        lambda m, base, i: (_vector(m, base), base + np.uint32(i))),
    "vmullb": Row("vmullb.s8 {w0}, {r0}, {r1}", K.VECTOR_MULTIPLY, lambda a, b: _vmull(a, b, 0)),
    "vmullt": Row("vmullt.s8 {w0}, {r0}, {r1}", K.VECTOR_MULTIPLY, lambda a, b: _vmull(a, b, 1)),
    "vmladav_s8": Row("vmladav.s8 {w0}, {r0}, {r1}", K.VECTOR_MULTIPLY, lambda a, b: _vmladav(a, b, np.int8)),
    "vmladava_s8": Row("vmladava.s8 {w0}, {r1}, {r2}", K.VECTOR_MULTIPLY,
                       lambda total, a, b: total + _vmladav(a, b, np.int8)),
    "vmladav_s16": Row("vmladav.s16 {w0}, {r0}, {r1}", K.VECTOR_MULTIPLY, lambda a, b: _vmladav(a, b, np.int16)),
    "vmladava_s16": Row("vmladava.s16 {w0}, {r1}, {r2}", K.VECTOR_MULTIPLY,
                        lambda total, a, b: total + _vmladav(a, b, np.int16)),
    "vmov_four": Row("vmov {w0:low}, {r0}, {r1}\nvmov {w0:high}, {r2}, {r3}", K.VECTOR_FILL,
                     lambda a, b, c, d: np.stack((a, b, c, d), axis=1)),
    "vqrdmulh": Row("vqrdmulh.s32 {w0}, {r0}, {r1}", K.VECTOR_MULTIPLY, lambda a, b: _vqdmulh(a, b, 1 << 30)),
    "vshr": Row("vshr.s32 {w0}, {r0}, #{i0}", K.VECTOR, lambda a, i: _word(signed(a) >> i)),
    "vrshl": Row("vrshl.s32 {w0}, {r0}, {r1}", K.VECTOR_SHIFT, _vrshl),
    "vqdmlah": Row("vqdmlah.s32 {w0}, {r1}, {r2}", K.VECTOR_MULTIPLY, _vqdmlah),
    "vadd_i16": Row("vadd.i16 {w0}, {r0}, {r1}", K.VECTOR, lambda a, b: _vadd(a, b, np.int16)),
    "vadd_i32": Row("vadd.i32 {w0}, {r0}, {r1}", K.VECTOR, lambda a, b: _vadd(a, b, np.int32)),
    "vmovlb": Row("vmovlb.s16 {w0}, {r0}", K.VECTOR, lambda a: _of_lanes(_lanes(a, np.int16, 0, 2), np.int32)),
    "vmovlt": Row("vmovlt.s16 {w0}, {r0}", K.VECTOR, lambda a: _of_lanes(_lanes(a, np.int16, 1, 2), np.int32)),
    "vmla": Row("vmla.s32 {w0}, {r1}, {r2}", K.VECTOR_MULTIPLY, _vmla),
    "vqdmulh": Row("vqdmulh.s32 {w0}, {r0}, {r1}", K.VECTOR_MULTIPLY, _vqdmulh),
    "vcvt_vector": Row("vcvt.f32.s32 {w0}, {r0}", K.VECTOR_MULTIPLY, _converted),
    "vmul_vector": Row("vmul.f32 {w0}, {r0}, {r1}", K.VECTOR_MULTIPLY,
                       lambda a, b: _of_real(_flushed(_flushed(_real(a)) * _flushed(_real(b))))),
    "vcvtn_vector": Row("vcvtn.s32.f32 {w0}, {r0}", K.VECTOR_MULTIPLY, _rounded),
    "vshrnb": Row("vshrnb.i32 {w0}, {r1}, #{i0}", K.VECTOR_NARROW,
                  lambda changed, a, i: _narrowed(changed, _cut(signed(a) >> i), np.int16, 0)),
    "vqmovnb_s32": Row("vqmovnb.s32 {w0}, {r1}", K.VECTOR_NARROW, lambda changed, a: _vqmovn(changed, a, np.int16, 0)),
    "vqmovnt_s32": Row("vqmovnt.s32 {w0}, {r1}", K.VECTOR_NARROW, lambda changed, a: _vqmovn(changed, a, np.int16, 1)),
    "vqmovnb_s16": Row("vqmovnb.s16 {w0}, {r1}", K.VECTOR_NARROW, lambda changed, a: _vqmovn(changed, a, np.int8, 0)),
    "vqmovnt_s16": Row("vqmovnt.s16 {w0}, {r1}", K.VECTOR_NARROW, lambda changed, a: _vqmovn(changed, a, np.int8, 1)),
    "vqadd_s16": Row("vqadd.s16 {w0}, {r0}, {r1}", K.VECTOR, _vqadd),
    "vqadd_vectors": Row("vqadd.s16 {w0}, {r0}, {r1}", K.VECTOR, lambda a, b: _of_halves(_saturated, a, b)),
    "vmax_s8": Row("vmax.s8 {w0}, {r0}, {r1}", K.VECTOR, lambda a, b: _of_bytes(np.maximum, a, b)),
    "vmax_s16": Row("vmax.s16 {w0}, {r0}, {r1}", K.VECTOR, lambda a, b: _of_halves(np.maximum, a, b)),
    "vmin_s16": Row("vmin.s16 {w0}, {r0}, {r1}", K.VECTOR, lambda a, b: _of_halves(np.minimum, a, b)),
    "vmin_s8": Row("vmin.s8 {w0}, {r0}, {r1}", K.VECTOR, lambda a, b: _of_bytes(np.minimum, a, b)),
    "bmi": Row("bmi.w 9f", K.BRANCH, lambda negative: ()),
    "bhs": Row("bhs.w 9f", K.BRANCH, lambda least: ()),
    "bx": Row("bx {r0}", K.BRANCH, lambda place: ()),
    "bne": Row("bne.w {label}b", K.BRANCH, lambda zero: ()),
}  # fmt: skip
