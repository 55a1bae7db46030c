"""Constants of int8 layers on A64 and A32 as one stream of bytes for each block of outputs: biases, scales, weights.

The input's zero point is in the biases. The last block of outputs ends with the last output: where they do not divide,
some outputs stand in two blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.kernels.common.constants import EMPTY
from glowc.kernels.common.shifted import in_blocks
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

CHUNK = 16
Parts = list[tuple[int, int]]
"""First output and outputs of each block."""


def padded(count: int, grain: int) -> int:
    """Return `count` rounded up to a multiple of `grain`."""
    return -(-count // grain) * grain


def folded(weights: np.ndarray, constants: Arrays, in_zp: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (bias, scale) of weights[O, ...]: the zero point in the bias, a scale for every output."""
    sums = weights.reshape(weights.shape[0], -1).astype(np.int64).sum(axis=1)
    bias = (constants["bias"].astype(np.int64) - in_zp * sums).astype(np.int32)
    return bias, np.broadcast_to(constants["scale"].reshape(-1), (weights.shape[0],)).astype(np.float32)


def is_bounded(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray) -> bool:
    """Prove that no product float32(acc) * scale of weights[O, ...] leaves +-32000, whatever the inputs.

    The rounded value plus a zero point then fits 16 bits and needs no saturation on the way to 8.
    """
    sums = np.abs(weights.reshape(weights.shape[0], -1).astype(np.int64)).sum(axis=1)
    largest = np.abs(bias.astype(np.int64)) + 128 * sums
    return bool(np.all(largest.astype(np.float64) * np.abs(scale.astype(np.float64)) <= 32000.0))


def has_pairs(codes: np.ndarray) -> bool:
    """Say whether two products of these weights fit 16 bits: where none is -128."""
    return int(codes.min(initial=0)) > -128


def blocks(out_n: int, outputs: int, last: int = 0) -> Parts:
    """Return (first output, outputs) of each block: whole ones, and one of `last` (or `outputs`) for what is left.

    It ends with the last output, where there are so many.
    """
    rest, last = out_n % outputs, last or outputs
    full = [(begin, outputs) for begin in range(0, out_n - rest, outputs)]
    return [*full, (max(out_n - last, 0), last)] if rest else full


def stream(
    weights: np.ndarray, bias: np.ndarray, scale: np.ndarray, parts: Parts, grain: int, spare: int = 0
) -> np.ndarray:
    """Return the stream of weights[O, K] in blocks `parts`, whole words long.

    A block holds its steps: `grain` weights of each output; then what is left of each output. Vectors may read `spare`
    bytes after the last block.
    """
    whole, pieces = weights.shape[1] // grain * grain, []
    for begin, width in parts:
        rows = np.zeros((width, weights.shape[1]), weights.dtype)
        words = np.zeros((2, width), np.int32)
        part = slice(begin, begin + width)
        left = len(weights[part])
        rows[:left], words[0, :left], words[1, :left] = weights[part], bias[part], scale[part].view(np.int32)
        steps = rows[:, :whole].reshape(width, -1, grain).transpose(1, 0, 2)
        pieces += [words.tobytes(), steps.tobytes(), rows[:, whole:].tobytes()]
    data = b"".join(pieces) + bytes(spare)
    return np.frombuffer(data + bytes(-len(data) % 4), np.int8)


@dataclass(frozen=True, slots=True)
class Packed:
    """Constants as streams, and what was proved of them: `is_bounded`, and `has_pairs` where the kernel asks for it."""

    constants: Arrays
    bounded: bool
    pairs: bool


def pack_rows(
    constants: Arrays, coded: tuple[np.ndarray, np.ndarray], rows: np.ndarray, instr: Instr, parts: Parts,
    grain: int, spare: int = 0, *, in_pairs: bool,
) -> Packed:  # fmt: skip
    """Pack rows[O, K], the codes in the order of the kernel; the shifts of the codes are in place of the biases.

    `in_pairs`: the kernel has a form that adds two products in 16 bits.
    """
    codes, shift = coded
    weights = codes.reshape(len(codes), -1) + shift[:, None]
    bias, scale = folded(weights, constants, instr.int_("in_zp"))
    data = stream(rows, bias, scale, parts, grain, spare)
    bounded, pairs = is_bounded(weights, bias, scale), in_pairs and has_pairs(codes)
    shifts = {"bias": in_blocks(shift, parts)} if instr.int_("w_zp") else {}
    return Packed({"weights": data, **EMPTY, **shifts}, bounded, pairs)
