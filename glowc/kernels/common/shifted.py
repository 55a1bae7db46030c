"""Weights less their zero point that leave int8, as int8 plus a shift for each output (glow_window_sums.h).

sum x * (w - w_zp) = sum x * codes + shift * sum x, where x are the codes of the inputs, padding included.
"""

from __future__ import annotations

import numpy as np


def shifted(weights: np.ndarray, w_zp: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (codes, shift) of int8 weights[O, ...]: int8 codes, without -128 where possible, and int32 shift[O]."""
    if w_zp == 0:
        return weights, np.zeros(len(weights), np.int32)
    wide = weights.reshape(weights.shape[0], -1).astype(np.int32) - w_zp
    least, most = wide.max(axis=1) - 127, wide.min(axis=1) + 127
    shift = np.where(least > most, least, np.clip(0, least, np.maximum(least, most))).astype(np.int32)
    return (wide - shift[:, None]).astype(np.int8).reshape(weights.shape), shift


def in_blocks(shift: np.ndarray, parts: list[tuple[int, int]]) -> np.ndarray:
    """Return the shifts of each block (first output, outputs) after those of the one before, int16."""
    found = np.concatenate([np.resize(shift[begin : begin + width], width) for begin, width in parts])
    return np.ascontiguousarray(found, np.int16)
