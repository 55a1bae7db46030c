"""Kernels that unpack weights: cases of bytes and of joined halfwords, of codes and of palettes; what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from glowc.graph.few_codes import NARROW_BITS, FewCodes, few_codes
from glowc.graph.types import DType, QuantParams
from glowc.kernels.common.narrow import by_lanes, in_order, narrowed, palette_of, unpack_kernel, words_of
from glowc.kernels.records import Records
from tests.kernels.case import Case, make_case
from tests.ops.dense import make_dense

BODIES = (*range(1, 21), 32, 37)
EDGES = ((0, 1, 0, 0, 0), (3, 2, 4, 0, 0), (0, 3, 0, 8, 0), (1, 3, 2, 1, 5))  # lead, count, head, tail, rest


def codes(rng: np.random.Generator, shape: tuple[int, ...], form: FewCodes, *, joined: bool) -> np.ndarray:
    """Return words [...] of four weights each, or of two joined ones in each halfword."""
    weights = rng.choice(form.codes, (*shape, 4))
    weights.reshape(-1)[:2] = form.codes[0], form.codes[-1]
    if joined:
        halves = 256 * weights[..., 0::2] + weights[..., 1::2]
        return np.ascontiguousarray(halves.astype(np.int16)).view(np.uint32)[..., 0]
    return np.ascontiguousarray(weights.astype(np.int8)).view(np.uint32)[..., 0]


def kernel_cases() -> Iterator[Case]:
    """All lengths around the words of a vector, beside words that are copied."""
    rng = np.random.default_rng(4)
    for number, body in enumerate(BODIES):
        for joined, bits, indexed in product((False, True), NARROW_BITS, (False, True)):
            form = palette_form(rng, bits, number) if indexed else FewCodes(bits)
            lead, count, head, tail, rest = EDGES[number % len(EDGES)]
            words = rng.integers(0, 1 << 32, (count, head + body + tail), dtype=np.uint32)
            words[:, head : head + body] = codes(rng, (count, body), form, joined=joined)
            around = [rng.integers(0, 1 << 32, n, dtype=np.uint32) for n in (lead, rest)]
            stream = np.concatenate((around[0], words.reshape(-1), around[1]))
            params = {"lead": lead, "count": count, "head": head, "body": body, "tail": tail, "rest": rest}
            out = {"out": (stream.shape, DType.U32)}
            read = {"packed": stream, "palette": palette_of(form)} if indexed else {"packed": stream}
            yield make_case(unpack_kernel(form), read, {**params, "joined": int(joined)}, out=out)
    shapes = ((1, 16, 1), (1, 16, 4), (3, 32, 8), (2, 48, 11), (2, 48, 16), (1, 160, 8), (1, 24, 8))
    for (rows, in_k, out_n), bits in product(shapes, NARROW_BITS):
        yield layer_case(rng, (rows, in_k, out_n), FewCodes(bits))
    for number, (shape, bits) in enumerate(product(shapes, NARROW_BITS)):
        form = palette_form(rng, bits, number)
        yield layer_case(rng, shape, form)
        yield layer_case(rng, shape, FewCodes(bits, tuple(max(code, -127) for code in form.palette)))


def palette_form(rng: np.random.Generator, bits: int, number: int) -> FewCodes:
    """Return a palette with both ends of int8, of all entries or of a few less."""
    count = (1 << bits) - number % 3 % ((1 << bits) - 2)
    inner = rng.choice(np.arange(-127, 127), count - 2, replace=False)
    return FewCodes(bits, tuple(sorted([-128, *inner.tolist(), 127])))


def layer_case(rng: np.random.Generator, shape: tuple[int, int, int], form: FewCodes) -> Case:
    """Return a fully connected layer with weights of few codes."""
    rows, in_k, out_n = shape
    weights = rng.choice(form.codes, (out_n, in_k)).astype(np.int8)
    weights.reshape(-1)[:2] = form.codes[0], form.codes[-1]
    arrays = {
        "in": rng.integers(-128, 128, (rows, in_k)).astype(np.int8), "weights": weights,
        "bias": rng.integers(-5000, 5000, out_n).astype(np.int32),
        "scale": (rng.uniform(0.005, 0.02, out_n) * min(1, 8 / form.codes[-1])).astype(np.float32),
    }  # fmt: skip
    codes = {"in_zp": -7, "w_zp": 0, "out_zp": 5, "out_min": -100, "out_max": 127, "scale_step": 1}
    case = make_dense("fc_s8", arrays, codes, out=DType.S8, name=unpack_kernel(form))
    quant = QuantParams((1.0,), (0,), bits=form.bits, palette=form.palette)
    operands = tuple(
        replace(o, type=replace(o.type, quant=quant)) if o.role == "weights" else o for o in case.instr.operands
    )
    return replace(case, instr=replace(case.instr, operands=operands))


def test_eight_words_take_four_or_two() -> None:
    rng = np.random.default_rng(0)
    for (bits, count), layout in product(((4, 4), (2, 2)), (by_lanes(1), by_lanes(4), in_order)):
        for form in (FewCodes(bits), palette_form(rng, bits, 0)):
            packed = narrowed(codes(rng, (8,), form, joined=False), Records(8), form, layout)
            assert packed is not None
            assert packed.size == count


def test_a_weight_beyond_four_bits_is_not_stored() -> None:
    for value in (-9, 8, 127, -128):
        weights = np.zeros(16, np.int8)
        weights[5] = value
        assert narrowed(words_of(weights), Records(4), FewCodes(4), by_lanes(1)) is None
    for value in (256 * 8, 256 * -9, 8, -9):
        halves = np.zeros(16, np.int16)
        halves[3] = value
        assert narrowed(words_of(halves), Records(8, joined=True), FewCodes(4), by_lanes(1)) is None


def test_weights_at_the_ends_of_four_bits_are_stored() -> None:
    for value in (-8, 7):
        assert narrowed(words_of(np.full(16, value, np.int8)), Records(4), FewCodes(4), by_lanes(1)) is not None
    for value in (256 * 7 + 7, 256 * 7 - 8, 256 * -8 - 8, 256 * -8 + 7):
        assert (
            narrowed(words_of(np.full(16, value, np.int16)), Records(8, joined=True), FewCodes(4), by_lanes(1))
            is not None
        )


def test_few_codes_are_numbers_before_a_palette_and_the_fewest_bits() -> None:
    for values, wanted in (
        ((-2, 1), FewCodes(2)), ((-7, 0, 7), FewCodes(2, (-7, 0, 7))), ((-8, -3, 0, 1, 7), FewCodes(4)),
        ((-90, -5, 0, 4, 127), FewCodes(4, (-90, -5, 0, 4, 127))), (range(-9, 8), None),
    ):  # fmt: skip
        assert few_codes(np.asarray([*values, *values], np.int8)) == wanted
    assert few_codes(np.zeros(0, np.int8)) is None
    assert few_codes(np.zeros(4, np.int16)) is None
