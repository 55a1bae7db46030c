"""A64 with Advanced SIMD, SDOT and SMMLA: text, class and meaning of each instruction that kernels use, as in `isa`.

A vector is four words of each case, the address of a base one word. What is changed in place is read first.
Source: Arm DDI 0487J, chapter C7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glowc.asm.isa import ISA, Kind, Longs, Memory, Row, Words

_FORMS: dict[int, type[np.signedinteger[Any]]] = {8: np.int8, 16: np.int16, 32: np.int32}


def _lanes(vector: Words, bits: int) -> Longs:
    return np.ascontiguousarray(vector).view(_FORMS[bits]).astype(np.int64)


def _of(lanes: Longs, bits: int) -> Words:
    return np.ascontiguousarray(lanes.astype(_FORMS[bits])).view(np.uint32)


def _half(vector: Words, bits: int, *, high: bool) -> Longs:
    lanes = _lanes(vector, bits)
    return lanes[:, lanes.shape[1] // 2 :] if high else lanes[:, : lanes.shape[1] // 2]


def _long(*, high: bool) -> Callable[[Words, Words], Words]:
    return lambda a, b: _of(_half(a, 8, high=high) * _half(b, 8, high=high), 16)


def _more(total: Words, a: Words, b: Words) -> Words:
    return _of(_lanes(total, 16) + _half(a, 8, high=True) * _half(b, 8, high=True), 16)


def _pairs(total: Words, a: Words) -> Words:
    return _of(_lanes(total, 32) + _lanes(a, 16).reshape(len(a), 4, 2).sum(2), 32)


def _by_lane(*, high: bool) -> Callable[[Words, Words, Words, int], Words]:
    return lambda total, a, b, lane: _of(
        _lanes(total, 32) + _half(a, 16, high=high) * _lanes(b, 16)[:, lane : lane + 1], 32
    )


def _sdot(total: Words, a: Words, b: Words, lane: int) -> Words:
    fours, four = _lanes(a, 8).reshape(len(a), 4, 4), _lanes(b, 8).reshape(len(b), 4, 4)[:, lane : lane + 1]
    return _of(_lanes(total, 32) + (fours * four).sum(2), 32)


def _smmla(total: Words, a: Words, b: Words) -> Words:
    rows, columns = _lanes(a, 8).reshape(len(a), 2, 1, 8), _lanes(b, 8).reshape(len(b), 1, 2, 8)
    return _of(_lanes(total, 32) + (rows * columns).sum(3).reshape(len(a), 4), 32)


def _loaded(memory: Memory, base: Words, count: int = 16) -> Words:
    """Return adjacent bytes, and zeros up to sixteen."""
    lanes = [memory.load_byte(base + np.uint32(k)) if k < count else np.zeros_like(base) for k in range(16)]
    return np.ascontiguousarray(np.stack(lanes, axis=1).astype(np.uint8)).view(np.uint32)


def _half_loaded(half: int) -> Callable[[Memory, Words, Words, Words], tuple[Words, Words]]:
    def load(memory: Memory, changed: Words, base: Words, step: Words) -> tuple[Words, Words]:
        to = changed.copy()
        to[:, 2 * half : 2 * half + 2] = _loaded(memory, base, 8)[:, :2]
        return to, base + step

    return load


def _narrow(bits: int) -> Callable[[Words], Words]:
    """Return what makes lanes half as wide, with saturation, and zeros above them."""

    def narrow(a: Words) -> Words:
        most = 1 << (bits - 1)
        lanes = np.clip(_lanes(a, 2 * bits), -most, most - 1)
        return _of(np.concatenate((lanes, np.zeros_like(lanes)), axis=1), bits)

    return narrow


def _narrow_high(bits: int) -> Callable[[Words, Words], Words]:
    return lambda changed, a: np.concatenate((changed[:, :2], _narrow(bits)(a)[:, :2]), axis=1)


def _unzipped(first: int) -> Callable[[Words, Words], Words]:
    return lambda a, b: _of(np.concatenate((_lanes(a, 16)[:, first::2], _lanes(b, 16)[:, first::2]), axis=1), 16)


def _stored(size: int) -> Callable[..., tuple[Words, ...]]:
    """Return what stores so many bytes of a vector, of a lane if that is told."""

    def store(memory: Memory, vector: Words, base: Words, *more: Words | int) -> tuple[Words, ...]:
        lane = more[0] if more and isinstance(more[0], int) else 0
        at = base + more[0] if more and not isinstance(more[0], int) else base
        for k in range(size):
            memory.store_byte(at + np.uint32(k), _lanes(vector, 8)[:, size * lane + k].astype(np.uint32))
        return ()

    return store


def _stored_moving(size: int) -> Callable[..., Words]:
    def store(memory: Memory, vector: Words, base: Words, step: int) -> Words:
        _stored(size)(memory, vector, base)
        return base + np.uint32(step)

    return store


def _sums16(a: Words, b: Words, *, saturated: bool) -> Words:
    total = _lanes(a, 16) + _lanes(b, 16)
    return _of(np.clip(total, -(1 << 15), (1 << 15) - 1) if saturated else total, 16)


def _real(word: Words) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.ascontiguousarray(word).view(np.float32)


def _list(count: int, form: str) -> tuple[str, Callable[[Memory, Words], list[Words]]]:
    """Return the text of a load of vectors that follow each other, and what it loads."""
    size = 8 if form == "8b" else 16
    names = ", ".join(f"{{w{k}:v}}.{form}" for k in range(count))
    return f"ld1 {{{{{names}}}}}, [{{r0}}]", lambda m, base: [
        _loaded(m, base + np.uint32(size * k), size) for k in range(count)
    ]


def _moved(count: int, form: str) -> Row:
    name, load = _list(count, form)
    return Row(f"{name}, #{{i0}}", Kind.VECTOR_LOAD, lambda m, base, i: (*load(m, base), base + np.uint32(i)))


_FOUR, _FOUR_LOADED = _list(4, "16b")
_LOAD, _MULTIPLY, _VECTOR, _STORE = Kind.VECTOR_LOAD, Kind.VECTOR_MULTIPLY, Kind.VECTOR, Kind.VECTOR_STORE
A64: dict[str, Row] = {
    "ldr_q": Row("ldr {w0:q}, [{r0}, #{i0}]", _LOAD, lambda m, base, i: _loaded(m, base + np.uint32(i))),
    "ldr_d": Row("ldr {w0:d}, [{r0}, #{i0}]", _LOAD, lambda m, base, i: _loaded(m, base + np.uint32(i), 8)),
    "ldr_s": Row("ldr {w0:s}, [{r0}, #{i0}]", _LOAD, lambda m, base, i: _loaded(m, base + np.uint32(i), 4)),
    "ldr_h": Row("ldr {w0:h}, [{r0}, #{i0}]", _LOAD, lambda m, base, i: _loaded(m, base + np.uint32(i), 2)),
    "ldp_s": Row("ldp {w0:s}, {w1:s}, [{r0}, #{i0}]", _LOAD,
                 lambda m, base, i: tuple(_loaded(m, base + np.uint32(i + k), 4) for k in (0, 4))),
    "ld1r_moving": Row("ld1r {{{w0:v}.2d}}, [{r0}], #{i0}", _LOAD,
                       lambda m, base, i: (np.tile(_loaded(m, base, 8)[:, :2], 2), base + np.uint32(i))),
    "mov": Row("mov {w0:v}.16b, {r0:v}.16b", _VECTOR, lambda a: a),
    "ldur_q": Row("ldur {w0:q}, [{r0}, #{i0}]", _LOAD, lambda m, base, i: _loaded(m, base + np.uint32(i))),
    "ldr_q_moving": Row("ldr {w0:q}, [{r0}], #{i0}", _LOAD,
                        lambda m, base, i: (_loaded(m, base), base + np.uint32(i))),
    "ldr_q_by": Row("ldr {w0:q}, [{r0}, {r1}]", _LOAD, lambda m, base, by: _loaded(m, base + by)),
    "ldr_d_by": Row("ldr {w0:d}, [{r0}, {r1}]", _LOAD, lambda m, base, by: _loaded(m, base + by, 8)),
    "ldp_q": Row("ldp {w0:q}, {w1:q}, [{r0}, #{i0}]", _LOAD,
                 lambda m, base, i: (_loaded(m, base + np.uint32(i)), _loaded(m, base + np.uint32(i + 16)))),
    "ldp_q_moving": Row("ldp {w0:q}, {w1:q}, [{r0}], #{i0}", _LOAD,
                        lambda m, base, i: (_loaded(m, base), _loaded(m, base + np.uint32(16)), base + np.uint32(i))),
    "ld1_four": Row(_FOUR, _LOAD, lambda m, base: tuple(_FOUR_LOADED(m, base))),
    "ld1_four_by": Row(f"{_FOUR}, {{r1}}", _LOAD, lambda m, base, by: (*_FOUR_LOADED(m, base), base + by)),
    "ld1_four_moving": _moved(4, "16b"),
    "ld1_two_moving": _moved(2, "16b"),
    "ld1_halves_moving": _moved(2, "8b"),
    "ld1_low_by": Row("ld1 {{{w0:v}.d}}[0], [{r1}], {r2}", _LOAD, _half_loaded(0)),
    "ld1_high_by": Row("ld1 {{{w0:v}.d}}[1], [{r1}], {r2}", _LOAD, _half_loaded(1)),
    "add": Row("add {w0}, {r0}, #{i0}", Kind.PLAIN, lambda a, i: a + np.uint32(i)),
    "add_two": Row("add {w0}, {r0}, {r1}", Kind.PLAIN, lambda a, b: a + b),
    "add_lsl": Row("add {w0}, {r0}, {r1}, lsl #{i0}", Kind.SHIFTED, lambda a, b, i: a + (b << np.uint32(i))),
    "smull": Row("smull {w0:v}.8h, {r0:v}.8b, {r1:v}.8b", _MULTIPLY, _long(high=False)),
    "smull2": Row("smull2 {w0:v}.8h, {r0:v}.16b, {r1:v}.16b", _MULTIPLY, _long(high=True)),
    "smlal2": Row("smlal2 {w0:v}.8h, {r1:v}.16b, {r2:v}.16b", _MULTIPLY, _more),
    "sadalp": Row("sadalp {w0:v}.4s, {r1:v}.8h", _VECTOR, _pairs),
    "saddlp": Row("saddlp {w0:v}.4s, {r0:v}.8h", _VECTOR, lambda a: _pairs(np.zeros_like(a), a)),
    "smlal_lane": Row("smlal {w0:v}.4s, {r1:v}.4h, {r2:v}.h[{i0}]", _MULTIPLY, _by_lane(high=False)),
    "smlal2_lane": Row("smlal2 {w0:v}.4s, {r1:v}.8h, {r2:v}.h[{i0}]", _MULTIPLY, _by_lane(high=True)),
    "sdot": Row("sdot {w0:v}.4s, {r1:v}.16b, {r2:v}.4b[{i0}]", _MULTIPLY, _sdot),
    "smmla": Row("smmla {w0:v}.4s, {r1:v}.16b, {r2:v}.16b", _MULTIPLY, _smmla),
    "sxtl": Row("sxtl {w0:v}.8h, {r0:v}.8b", _VECTOR, lambda a: _of(_half(a, 8, high=False), 16)),
    "sxtl2": Row("sxtl2 {w0:v}.8h, {r0:v}.16b", _VECTOR, lambda a: _of(_half(a, 8, high=True), 16)),
    "ext": Row("ext {w0:v}.16b, {r0:v}.16b, {r1:v}.16b, #8", _VECTOR,
               lambda a, b: np.concatenate((a[:, 2:], b[:, :2]), axis=1)),
    "scvtf": Row("scvtf {w0:v}.4s, {r0:v}.4s", _MULTIPLY, ISA["vcvt_vector"].meaning),
    "fcvtns": Row("fcvtns {w0:v}.4s, {r0:v}.4s", _MULTIPLY, ISA["vcvtn_vector"].meaning),
    "fmul": Row("fmul {w0:v}.4s, {r0:v}.4s, {r1:v}.4s", _MULTIPLY, lambda a, b: (_real(a) * _real(b)).view(np.uint32)),
    "fadd": Row("fadd {w0:v}.4s, {r0:v}.4s, {r1:v}.4s", _MULTIPLY, lambda a, b: (_real(a) + _real(b)).view(np.uint32)),
    "sqrdmulh": Row("sqrdmulh {w0:v}.4s, {r0:v}.4s, {r1:v}.4s", _MULTIPLY, ISA["vqrdmulh"].meaning),
    "ssra": Row("ssra {w0:v}.4s, {r1:v}.4s, #{i0}", _VECTOR,
                lambda total, a, i: _of(_lanes(total, 32) + (_lanes(a, 32) >> i), 32)),
    "srshl": Row("srshl {w0:v}.4s, {r0:v}.4s, {r1:v}.4s", _VECTOR, ISA["vrshl"].meaning),
    "addp": Row("addp {w0:v}.4s, {r0:v}.4s, {r1:v}.4s", _VECTOR,
                lambda a, b: _of(np.concatenate((_lanes(a, 32), _lanes(b, 32)), axis=1).reshape(-1, 4, 2).sum(2), 32)),
    "sxtl_s16": Row("sxtl {w0:v}.4s, {r0:v}.4h", _VECTOR, lambda a: _of(_half(a, 16, high=False), 32)),
    "sxtl2_s16": Row("sxtl2 {w0:v}.4s, {r0:v}.8h", _VECTOR, lambda a: _of(_half(a, 16, high=True), 32)),
    "sqxtn_s32": Row("sqxtn {w0:v}.4h, {r0:v}.4s", _VECTOR, _narrow(16)),
    "sqxtn2_s32": Row("sqxtn2 {w0:v}.8h, {r1:v}.4s", _VECTOR, _narrow_high(16)),
    "sqxtn_s16": Row("sqxtn {w0:v}.8b, {r0:v}.8h", _VECTOR, _narrow(8)),
    "sqxtn2_s16": Row("sqxtn2 {w0:v}.16b, {r1:v}.8h", _VECTOR, _narrow_high(8)),
    "uzp1": Row("uzp1 {w0:v}.8h, {r0:v}.8h, {r1:v}.8h", _VECTOR, _unzipped(0)),
    "uzp2": Row("uzp2 {w0:v}.8h, {r0:v}.8h, {r1:v}.8h", _VECTOR, _unzipped(1)),
    "zip1": Row("zip1 {w0:v}.2d, {r0:v}.2d, {r1:v}.2d", _VECTOR,
                lambda a, b: np.concatenate((a[:, :2], b[:, :2]), axis=1)),
    "zip2": Row("zip2 {w0:v}.2d, {r0:v}.2d, {r1:v}.2d", _VECTOR,
                lambda a, b: np.concatenate((a[:, 2:], b[:, 2:]), axis=1)),
    "zip1_s32": Row("zip1 {w0:v}.4s, {r0:v}.4s, {r1:v}.4s", _VECTOR,
                    lambda a, b: np.stack((a[:, 0], b[:, 0], a[:, 1], b[:, 1]), axis=1)),
    "add_s32": Row("add {w0:v}.4s, {r0:v}.4s, {r1:v}.4s", _VECTOR, lambda a, b: a + b),
    "add_s16": Row("add {w0:v}.8h, {r0:v}.8h, {r1:v}.8h", _VECTOR, lambda a, b: _sums16(a, b, saturated=False)),
    "sqadd_s16": Row("sqadd {w0:v}.8h, {r0:v}.8h, {r1:v}.8h", _VECTOR, lambda a, b: _sums16(a, b, saturated=True)),
    "smax": Row("smax {w0:v}.16b, {r0:v}.16b, {r1:v}.16b", _VECTOR,
                lambda a, b: _of(np.maximum(_lanes(a, 8), _lanes(b, 8)), 8)),
    "smin": Row("smin {w0:v}.16b, {r0:v}.16b, {r1:v}.16b", _VECTOR,
                lambda a, b: _of(np.minimum(_lanes(a, 8), _lanes(b, 8)), 8)),
    "mov_lane": Row("mov {w0:s}, {r0:v}.s[{i0}]", _VECTOR, lambda a, i: a[:, i : i + 1] * (np.arange(4) == 0)),
    "str_d": Row("str {r0:d}, [{r1}]", _STORE, _stored(8)),
    "str_s": Row("str {r0:s}, [{r1}]", _STORE, _stored(4)),
    "str_d_moving": Row("str {r0:d}, [{r1}], #{i0}", _STORE, _stored_moving(8)),
    "str_q_moving": Row("str {r0:q}, [{r1}], #{i0}", _STORE, _stored_moving(16)),
    "str_d_by": Row("str {r0:d}, [{r1}, {r2}]", _STORE, _stored(8)),
    "str_s_by": Row("str {r0:s}, [{r1}, {r2}]", _STORE, _stored(4)),
    "st1_d": Row("st1 {{{r0:v}.d}}[{i0}], [{r1}]", _STORE, _stored(8)),
    "st1_s": Row("st1 {{{r0:v}.s}}[{i0}], [{r1}]", _STORE, _stored(4)),
    "st1_h": Row("st1 {{{r0:v}.h}}[{i0}], [{r1}]", _STORE, _stored(2)),
}  # fmt: skip
