"""The functions of depthwise planes against numpy, before and after they are ordered and registers have places."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from glowc.asm.isa import Memory
from glowc.graph.numerics import requantize
from glowc.kernels.dsp.ends import Factors
from glowc.kernels.dsp.pixel_tile import CORTEX_M7
from glowc.kernels.dsp.planar_tile import Window, pairs, rows, singles
from tests.asm.test_winograd_tile import CASES, ran, words
from tests.asm.test_winograd_tile import limited as limited_by

CHANNELS, PIXELS, LINES, BLOCKS = 3, 32, 2, 2
"""Channels and rows of a call, bytes of a row of outputs, blocks of a row."""


def called(fields: list[int]) -> np.ndarray:
    """Return the memory of a call, the same for all cases."""
    return np.tile(np.asarray([*fields, *[0] * (32 - len(fields))], np.int64).astype(np.uint32), (CASES, 1))


def planes(width: int, pitch: int, plane: int) -> tuple[dict[str, np.ndarray], np.ndarray, list[int]]:
    """Return the memories of a call, columns [case, channel, row, column] less a zero point, and the last fields."""
    height, channels, zero = 3, 8, 7
    x = np.random.default_rng(3).integers(-128, 128, (CASES, height, width, channels)).astype(np.int8)
    memories = {f"planes {c}": np.full((CASES, 4 * plane), 0xABABABAB, np.uint32) for c in range(4)}
    columns = x.transpose(0, 3, 1, 2)[:, :4].astype(np.int16) + zero
    fields = [4 * plane, zero | zero << 16, 4 * pitch, width * channels]
    return memories | {"from": words(x)}, columns, fields


def written(found: Mapping[str, Memory], channel: int, pitch: int, plane: int, count: int) -> np.ndarray:
    """Return the halfwords of a channel [case, row, column] of `count` words; those between rows are as before."""
    rows_ = found[f"planes {channel}"].words[:, plane * channel : plane * channel + 3 * pitch].reshape(CASES, 3, pitch)
    assert (rows_[:, :, count:] == 0xABABABAB).all()
    return np.ascontiguousarray(rows_[:, :, :count]).view(np.int16)


@pytest.mark.parametrize("core", ["", CORTEX_M7])
def test_two_columns_a_word(core: str) -> None:
    pitch, plane, count = 6, 32, 4
    memories, columns, fields = planes(2 * count, pitch, plane)
    memories["call"] = called([0, 0, 8, 16, *fields, 4 * count, 12 * pitch])
    found = ran(pairs(), {}, memories, core)
    for c in range(4):
        assert np.array_equal(written(found, c, pitch, plane, count), columns[:, c])


@pytest.mark.parametrize("high", [False, True])
def test_one_column_a_word(*, high: bool) -> None:
    pitch, plane = 3, 32
    memories, columns, fields = planes(1, pitch, plane)
    memories["call"] = called([0, 0, *((0, 16) if high else (16, 0)), *fields, 0, 12 * pitch])
    found = ran(singles(), {}, memories)
    for c in range(4):
        got = written(found, c, pitch, plane, 1)
        assert np.array_equal(got[..., int(high)], columns[:, c, :, 0])
        assert (got[..., int(not high)] == 0).all()


def memories_of(window: Window, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the memories of a call but for the endings, and the sums of each case without biases."""
    width = BLOCKS * window.outputs
    pitch = (BLOCKS - 1) * window.advance + window.words + 1
    plane_rows = LINES * window.stride + window.k_h
    x = rng.integers(-255, 256, (CASES, CHANNELS, plane_rows, 2 * pitch)).astype(np.int16)
    w = rng.integers(-255, 256, (CASES, CHANNELS, window.k_h, window.k_w))
    x[:2], w[:2] = 255, -255
    pairs = np.stack((w[..., :-1], w[..., 1:]), axis=-1).astype(np.int16)
    taps = np.zeros((CASES, CHANNELS, LINES, width), np.int64)
    for y, ky in np.ndindex(LINES, window.k_h):
        for kx in range(window.k_w):
            columns = x[:, :, y * window.stride + ky, kx : kx + width * window.stride : window.stride]
            taps[:, :, y] += columns[..., :width] * w[:, :, ky, kx, None].astype(np.int64)
    moved = 4 * BLOCKS * window.advance
    step, row = CHANNELS, PIXELS * CHANNELS
    fields = [
        0, 4 * plane_rows * pitch, 4 * pitch, 4 * pitch * window.stride - moved, moved, 0, 0, 8 * CHANNELS, 0, 0, 1,
        step, row - width * step, LINES * row, 5, 0xE0E0E0E0, 0x40404040,
    ]  # fmt: skip
    memories = {"call": called(fields), "x": words(x), "weights": words(pairs)}
    return memories | {"out": np.zeros((CASES, LINES * row // 4), np.uint32)}, taps


def codes(found: Mapping[str, Memory], window: Window) -> np.ndarray:
    """Return the codes that were written: case, channel, row, pixel; all other bytes stay."""
    out = found["out"].words.view(np.int8).reshape(CASES, LINES, PIXELS, CHANNELS)
    width = BLOCKS * window.outputs
    assert (out[:, :, width:] == 0).all()
    return np.asarray(out[:, :, :width].transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    "window",
    [
        Window(k_h=k_h, k_w=k_w, stride=stride, outputs=outputs)
        for k_h, k_w, stride, outputs in (
            (3, 3, 1, 4), (3, 3, 1, 2), (3, 3, 2, 4), (3, 3, 2, 2), (1, 7, 1, 4), (2, 4, 3, 2), (5, 5, 1, 4),
            (5, 5, 2, 2), (7, 7, 1, 4), (4, 9, 2, 2), (1, 12, 2, 4), (3, 5, 4, 2),
        )
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("by", ["scale", "multiplier", "line"])
@pytest.mark.parametrize("limited", [False, True])
def test_rows(window: Window, by: str, *, limited: bool) -> None:
    rng = np.random.default_rng(9)
    memories, taps = memories_of(window, rng)
    bias = rng.integers(-(2**16), 2**16, (CASES, CHANNELS)).astype(np.int32)
    sums, zero = bias[:, :, None, None] + taps, 5
    if by == "multiplier":
        mul, shift = rng.integers(1 << 30, 1 << 31, CHANNELS), rng.integers(-16, -9, CHANNELS)
        factors = Factors(mul, shift)
        last = np.tile(factors.muls.astype(np.int32), (CASES, 1))
        memories["shifts"] = words(np.tile(np.append(factors.places, 0).astype(np.int8), (CASES, 1)))
        memories["call"][:, 14] = 1 + 2 * zero
        high = ((sums * mul[:, None, None] >> 30) + 1) >> 1
        places = -shift[:, None, None]
        want = (high + (1 << (places - 1)) - (high < 0) >> places) + zero  # a half away from zero
        want = np.clip(want, -128, 127)
    elif by == "line":
        mul = rng.integers(1 << 29, 1 << 31, CHANNELS)
        last = np.tile(mul.astype(np.int32), (CASES, 1))
        memories["call"][:, 14] = start = (zero << 10) + (1 << 9)
        want = np.clip(((sums * mul[:, None, None] >> 32) + start) >> 10, -128, 127)
    else:
        scale = np.exp(rng.uniform(-9, -6, CHANNELS)).astype(np.float32)
        last = np.tile(scale.view(np.int32), (CASES, 1))
        want = requantize(sums.transpose(0, 2, 3, 1), scale, zero, -128, 127).transpose(0, 3, 1, 2)
    memories["ends"] = words(np.stack((bias, last), axis=2))
    found = ran(rows(window, by, limited=limited), {}, memories, CORTEX_M7)
    assert len(np.unique(want)) > 50
    assert np.array_equal(codes(found, window), limited_by(want, "s8" if limited else "n8"))
