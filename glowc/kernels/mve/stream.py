"""The constants of dense layers as one stream that the kernels read once (runtime_c/mve/glow_mve_dot.h,
glow_mve_run.h).

The zero point of the input is folded into the biases: a kernel multiplies the codes as they are, and padding holds
the zero point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowc.kernels.common.factors import Ends, is_rectified
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.straight import Line, straight
from glowc.kernels.mve.shared import GROUP
from glowc.kernels.records import Records, equal_records
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

VECTOR = 16  # bytes


def in_vectors(segments: int, run: int) -> list[tuple[int, int]]:
    """Return begin and length of the vectors of inputs in segments of `run`; the last one of each may have fewer."""
    return [(s * run + k, min(VECTOR, run - k)) for s in range(segments) for k in range(0, run, VECTOR)]


def stream(
    weights: np.ndarray, bias: np.ndarray, ends: Ends | None, in_zp: int, lines_of: Instr | None = None,
    cuts: Sequence[tuple[int, int]] = (),
) -> np.ndarray:  # fmt: skip
    """Return the stream of weights[O, segments, K] as bytes; copies of the last channel fill the last group up.

    Without `ends` the channels share one, which is elsewhere. Groups of the layer `lines_of` may end by lines. The
    inputs are in the order of `cuts`, which are `in_vectors` if there are none.
    """
    out_n, segments, k = weights.shape
    groups = -(-out_n // GROUP)
    channels = np.minimum(np.arange(groups * GROUP), out_n - 1)
    w = weights[channels].reshape(groups, GROUP, -1)
    parts = (w[..., at : at + n].reshape(groups, -1) for at, n in cuts or in_vectors(segments, k))
    runs = np.concatenate([*parts], axis=1)
    biases = folded_bias(bias, weights.reshape(out_n, -1).astype(np.int64).sum(1), in_zp)
    numbers = [a[channels].reshape(groups, -1) for a in (biases, *end_arrays(ends))]
    if lines_of is not None and ends is not None and ends.shifts is None:
        numbers = _with_lines(numbers, lines(weights.reshape(out_n, -1), biases, ends, lines_of)[:, channels])
    return np.concatenate((runs.reshape(groups, -1), *(a.view(np.int8) for a in numbers)), axis=1).reshape(-1)


def lines(weights: np.ndarray, biases: np.ndarray, ends: Ends, instr: Instr) -> np.ndarray:
    """Return -offset and -mul, int32[2, O], of the line of each channel of weights[O, K] and inputs of -128 to 127
    (runtime_c/mve/glow_mve_run.h); 0 where a channel has none.
    """
    extremes = np.stack([weights.astype(np.int64) * x for x in (-128, 127)])
    sums = biases + extremes.min(0).sum(1), biases + extremes.max(0).sum(1)
    shift = header_number("glow_mve_run.h", "GLOW_MVE_LINE_SHIFT")
    bounds = instr.int_("out_min"), instr.int_("out_max")
    found = straight(Line(shift, 31, 16, added=False, halves=False), ends, sums, instr.int_("out_zp"), bounds)
    offset = biases.astype(np.int64) * (1 << shift) + found.offset
    return np.where(found.found, -np.stack((offset, found.mul)), 0).astype(np.int32)


def _with_lines(numbers: list[np.ndarray], found: np.ndarray) -> list[np.ndarray]:
    """Return biases and scales [groups, 4], replaced in the groups all of whose channels have a line."""
    by_group = found.reshape(2, -1, GROUP)
    whole = (by_group[1] < 0).all(1)[:, None]
    return [np.where(whole, line, number) for line, number in zip(by_group, numbers, strict=True)]


def group_records(instr: Instr, channels: int, *, shared: bool = False) -> Records | None:
    """Return where the weights of a stream lie: before biases and, unless `shared`, words of the ends, and shifts."""
    fixed = any(operand.role == "shift" for operand in instr.operands)
    return equal_records(instr, -(-channels // GROUP), tail=GROUP if shared else 2 * GROUP + fixed)


def end_arrays(ends: Ends | None) -> list[np.ndarray]:
    """Return the words of the ends, and the shifts where there are some."""
    if ends is None:
        return []
    return [ends.words] if ends.shifts is None else [ends.words, ends.shifts]


def end_of(ends: Ends, instr: Instr) -> str:
    """Tell by which functions sums become codes: scaled, or fixed, rectified (runtime_c/mve/glow_mve_dot.h)."""
    return "scaled" if ends.shifts is None else "rectified" if is_rectified(instr) else "fixed"


def end_bytes(end: str) -> int:
    """Return the bytes of the stream that are biases of four channels, and their ends."""
    return {"shared": 16, "scaled": 32}.get(end, 36)


def folded_bias(bias: np.ndarray, sums: np.ndarray, in_zp: int) -> np.ndarray:
    """Return bias - in_zp * sum of the weights, in the int32 arithmetic of the accumulators."""
    return np.asarray((bias.astype(np.int64) - in_zp * sums) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def streamed(constants: Arrays) -> Arrays:
    """Return the constants of a layer on codes as those of one that ends in a shift: its numbers are in the stream."""
    return {"weights": constants["weights"], "mul": np.zeros(1, np.int32), "offset": constants["bias"]}
