"""The constants of dense layers as one stream that the kernels read once (runtime_c/mve/glow_mve_dot.h,
glow_mve_run.h).

The zero point of the input is folded into the biases: a kernel multiplies the codes as they are, and padding holds
the zero point.
"""

from __future__ import annotations

import numpy as np

from glowc.kernels.common.factors import Ends, is_rectified
from glowc.kernels.mve.shared import is_clamped
from glowc.kernels.records import Records, equal_records
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

GROUP = 4  # output channels
VECTOR = 16  # bytes


def stream(weights: np.ndarray, bias: np.ndarray, ends: Ends | None, in_zp: int) -> np.ndarray:
    """Return the stream of weights[O, segments, K] as bytes; copies of the last channel fill the last group up.

    Without `ends` the channels share one, which is elsewhere.
    """
    out_n, segments, k = weights.shape
    groups, whole = -(-out_n // GROUP), k // VECTOR * VECTOR
    channels = np.minimum(np.arange(groups * GROUP), out_n - 1)
    w = weights[channels].reshape(groups, GROUP, segments, k)
    blocks = w[..., :whole].reshape(groups, GROUP, segments, -1, VECTOR).transpose(0, 2, 3, 1, 4)
    tails = w[..., whole:].transpose(0, 2, 1, 3)
    runs = np.concatenate((blocks.reshape(groups, segments, -1), tails.reshape(groups, segments, -1)), axis=2)
    biases = folded_bias(bias, weights.reshape(out_n, -1).astype(np.int64).sum(1), in_zp)[channels]
    numbers = (a.view(np.int8).reshape(groups, -1) for a in (biases, *(end[channels] for end in end_arrays(ends))))
    return np.concatenate((runs.reshape(groups, -1), *numbers), axis=1).reshape(-1)


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
    """Tell by which functions sums become codes: scaled, or fixed, rectified (runtime_c/mve/glow_mve_dot_q31.h)."""
    return "scaled" if ends.shifts is None else "rectified" if is_rectified(instr) else "fixed"


def end_bytes(end: str) -> int:
    """Return the bytes of the stream that are biases of four channels, and their ends."""
    return {"shared": 16, "scaled": 32}.get(end, 36)


def suffix_of(end: str, instr: Instr) -> str:
    """Return the end of the name of a function that computes pixels in place."""
    return ("" if end == "scaled" else f"_{end}") + ("_clamped" if is_clamped(instr) else "")


def folded_bias(bias: np.ndarray, sums: np.ndarray, in_zp: int) -> np.ndarray:
    """Return bias - in_zp * sum of the weights, in the int32 arithmetic of the accumulators."""
    return np.asarray((bias.astype(np.int64) - in_zp * sums) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def streamed(constants: Arrays) -> Arrays:
    """Return the constants of a layer on codes as those of one that ends in a shift: its numbers are in the stream."""
    return {"weights": constants["weights"], "mul": np.zeros(1, np.int32), "offset": constants["bias"]}
