"""The constants of dense layers as one stream that the kernels read once (runtime_c/mve/glow_mve_dot.h,
glow_mve_run.h).

The zero point of the input is folded into the biases: a kernel multiplies the codes as they are, and padding holds
the zero point.
"""

from __future__ import annotations

import numpy as np

from glowc.program.kernel import Arrays

GROUP = 4  # output channels
VECTOR = 16  # bytes


def per_channel(values: np.ndarray, count: int) -> np.ndarray:
    """Return one value for each channel, of one for all or of as many."""
    return np.broadcast_to(values.reshape(-1), (count,))


def stream(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray, in_zp: int) -> np.ndarray:
    """Return the stream of weights[O, segments, K] as bytes; copies of the last channel fill the last group up."""
    out_n, segments, k = weights.shape
    groups, whole = -(-out_n // GROUP), k // VECTOR * VECTOR
    channels = np.minimum(np.arange(groups * GROUP), out_n - 1)
    w = weights[channels].reshape(groups, GROUP, segments, k)
    blocks = w[..., :whole].reshape(groups, GROUP, segments, -1, VECTOR).transpose(0, 2, 3, 1, 4)
    tails = w[..., whole:].transpose(0, 2, 1, 3)
    runs = np.concatenate((blocks.reshape(groups, segments, -1), tails.reshape(groups, segments, -1)), axis=2)
    biases = folded_bias(bias, weights.reshape(out_n, -1).astype(np.int64).sum(1), in_zp)[channels]
    scales = per_channel(scale, out_n)[channels].astype(np.float32)
    numbers = (a.view(np.int8).reshape(groups, -1) for a in (biases, scales))
    return np.concatenate((runs.reshape(groups, -1), *numbers), axis=1).reshape(-1)


def folded_bias(bias: np.ndarray, sums: np.ndarray, in_zp: int) -> np.ndarray:
    """Return bias - in_zp * sum of the weights, in the int32 arithmetic of the accumulators."""
    return np.asarray((bias.astype(np.int64) - in_zp * sums) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def streamed(constants: Arrays) -> Arrays:
    """Return the constants of a layer on codes as those of one that ends in a shift: its numbers are in the stream."""
    return {"weights": constants["weights"], "mul": np.zeros(1, np.int32), "offset": constants["bias"]}
