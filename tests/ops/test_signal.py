"""Kernels of the signal operators: cases over whole ranges of their numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.types import DType
from glowc.ops.signal_bank import log_table, pcan_gain, root
from tests.kernels.case import Case, make_case


def _wide(rng: np.random.Generator, n: int, bits: int) -> np.ndarray:
    whole = rng.integers(0, 1 << bits, n, dtype=np.uint64)
    found = (whole >> rng.integers(0, bits, n).astype(np.uint64)).astype(f"uint{bits}")
    found[: min(n, 4)] = (np.array([0, 1, (1 << bits) - 1, 2], np.uint64)[:n]).astype(found.dtype)
    return found


def _samples(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-32768, 32767, shape, endpoint=True).astype(np.int16)


def kernel_cases() -> Iterator[Case]:
    """Every kernel."""
    rng = np.random.default_rng(5)
    yield from _frames(rng)
    yield from _channels(rng)


def _frames(rng: np.random.Generator) -> Iterator[Case]:
    for outer, n, shift in ((1, 7, 0), (2, 33, 12), (3, 4, 15)):
        params = {"outer": outer, "n": n, "shift": shift}
        out = {"out": ((outer, n), DType.S16)}
        yield make_case("signal_window", {"in": _samples(rng, outer, n), "window": _samples(rng, n)}, params, out=out)
    for top in (0, 1, 3, 255, 16383, 16384, 32768):
        x = rng.integers(-top, min(top, 32767), 9, endpoint=True).astype(np.int16)
        x[3] = -top
        yield make_case("signal_scale_bits", {"in": x}, {"n": 9}, out={"out": ((), DType.S32)})
    for bits in (0, 3, 15):
        operands = {"in": _samples(rng, 9), "bits": np.array(bits, np.int32)}
        yield make_case("signal_scale", operands, {"n": 9}, out={"out": ((9,), DType.S16)})
    x = _samples(rng, 12, 2)
    x[2] = -32768
    for start, end in ((0, 12), (1, 5), (4, 4)):
        params = {"n": 12, "start": start, "end": end}
        yield make_case("signal_energy", {"in": x}, params, out={"out": ((12,), DType.U32)})
    for outer, frames, n, step in ((1, 1, 5, 2), (2, 3, 8, 3), (1, 2, 4, 3)):
        line = {"outer": outer, "frames": frames, "n": n, "step": step}
        tail = _samples(rng, outer, n - step)
        shape = (outer, frames * step + n - step)
        x = _samples(rng, outer, frames, n)
        yield make_case("overlap_add", {"in": x, "tail": tail}, line, out={"out": (shape, DType.S16)})
        reals = {"in": x.astype(np.float32) / 7, "tail": tail.astype(np.float32) / 7}
        yield make_case("overlap_add", reals, line, out={"out": (shape, DType.F32)})


def _channels(rng: np.random.Generator) -> Iterator[Case]:
    starts, widths = np.array([0, 3, 3, 9], np.int16), np.array([4, 0, 8, 5], np.int16)
    weight_starts = np.array([0, 4, 4, 12], np.int16)
    operands = {
        "in": _wide(rng, 14, 32), "weights": _samples(rng, 17), "complements": _samples(rng, 17), "starts": starts,
        "weight_starts": weight_starts, "widths": widths,
    }  # fmt: skip
    yield make_case("signal_filter_bank", operands, {"channels": 3}, out={"out": ((3,), DType.U64)})
    squares = (rng.integers(0, 1 << 32, 40, dtype=np.uint64)) ** np.uint64(2)
    for x in (_wide(rng, 40, 64), _wide(rng, 40, 32).astype(np.uint64), squares, squares - np.uint64(1)):
        roots = {"in": x, "shift": np.array(int(rng.integers(5)), np.int32)}
        yield make_case("signal_square_root", roots, {"n": 40}, out={"out": ((40,), DType.U32)})
    pair = {"in": _wide(rng, 41, 32), "noise": _wide(rng, 41, 32)[::-1]}
    channels = {"out": ((41,), DType.U32)}
    for clamping in (0, 1):
        factors = {
            "n": 41, "smoothing": 409, "one_minus": 15975, "odd_smoothing": 983, "odd_one_minus": 15401,
            "smoothing_bits": 10, "bits": 14, "clamping": clamping,
        }  # fmt: skip
        yield make_case("signal_noise", pair, factors, out=channels)
    least = {"n": 41, "smoothing_bits": 10, "bits": 14, "min_remaining": 819}
    yield make_case("signal_subtract_noise", pair, least, out=channels)
    for shift in (0, 6, 40):
        yield make_case("signal_pcan", {**pair, "gains": _samples(rng, 125)}, {"n": 41, "shift": shift}, out=channels)
    for bits, scale in ((0, 65536), (3, 64), (31, 3000)):
        params = {"n": 41, "correction_bits": bits, "scale": scale}
        operands = {"in": pair["in"], "table": log_table()}
        yield make_case("signal_log", operands, params, out={"out": ((41,), DType.S16)})


@pytest.mark.parametrize(
    ("x", "want"),
    [(0, 0), (2, 1), (3, 2), (6, 2), (7, 3), ((1 << 32) - 1, 65535), (1 << 32, 65536), ((1 << 64) - 1, (1 << 32) - 1)],
)
def test_roots_are_rounded_and_saturated(x: int, want: int) -> None:
    assert root(x) == want


def test_gains_of_small_noises_are_given() -> None:
    gains = [5, 6, -7, *range(122)]
    assert [pcan_gain(x, gains) for x in (0, 1, 2)] == [5, 6, (1 << 32) - 7]
