"""Constants of int8 layers on A64 and A32 as one stream of bytes for each block of outputs: biases, ends, weights.

The end of an output is a float32 scale or, as TensorFlow Lite rounds, the words of multipliers and a byte of a shift.

The input's zero point is in the biases. The last block of outputs ends with the last output: where they do not divide,
some outputs stand in two blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.kernels.common.factors import Ends
from glowc.kernels.common.sums import in_blocks
from glowc.kernels.records import Records
from glowc.kernels.simd.ending import Ending
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

CHUNK = 16
Parts = list[tuple[int, int]]
"""First output and outputs of each block."""


def _end_bytes(ends: Ends, part: slice, width: int) -> bytes:
    """Return the words of a block of `width` outputs, then its shifts."""
    words = np.zeros(width, np.int32)
    words[: len(ends.words[part])] = ends.words[part]
    if ends.shifts is None:
        return words.tobytes()
    shifts = np.zeros(width, np.int8)
    shifts[: len(ends.shifts[part])] = ends.shifts[part]
    return words.tobytes() + shifts.tobytes()


def folded(weights: np.ndarray, constants: Arrays, in_zp: int) -> np.ndarray:
    """Return the biases of weights[O, ...] with the zero point of inputs."""
    sums = weights.reshape(weights.shape[0], -1).sum(axis=1, dtype=np.int64)
    return np.asarray(constants["bias"].astype(np.int64) - in_zp * sums).astype(np.int32)


def ending_of(weights: np.ndarray, bias: np.ndarray, ends: Ends, instr: Instr) -> Ending:
    """Return the end of a layer with weights[O, ...] and biases as `folded` returns them."""
    return Ending.of(instr, bounded=is_bounded(weights, bias, ends.factors), fixed=ends.shifts is not None)


def is_bounded(weights: np.ndarray, bias: np.ndarray, factors: np.ndarray) -> bool:
    """Prove that no product of a sum of weights[O, ...] and its factor leaves +-32000, whatever the inputs.

    The rounded value plus a zero point then fits 16 bits and needs no saturation on the way to 8.
    """
    rows = weights.reshape(weights.shape[0], -1)
    positive = np.maximum(rows, 0).sum(axis=1, dtype=np.int64)
    sums = 2 * positive - rows.sum(axis=1, dtype=np.int64)  # of magnitudes
    largest = np.abs(bias.astype(np.int64)) + 128 * sums
    return bool(np.all(largest.astype(np.float64) * np.abs(factors) <= 32000.0))


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


def stream(weights: np.ndarray, bias: np.ndarray, ends: Ends, parts: Parts, grain: int, spare: int = 0) -> np.ndarray:
    """Return the stream of weights[O, K] in blocks `parts`, whole words long.

    A block holds its biases and ends, then its steps: `grain` weights of each output; then what is left of each
    output. Vectors may read `spare` bytes after the last block.
    """
    whole, pieces = weights.shape[1] // grain * grain, []
    for begin, width in parts:
        rows, biases = np.zeros((width, weights.shape[1]), weights.dtype), np.zeros(width, np.int32)
        part = slice(begin, begin + width)
        left = len(weights[part])
        rows[:left], biases[:left] = weights[part], bias[part]
        steps = rows[:, :whole].reshape(width, -1, grain).transpose(1, 0, 2)
        pieces += [biases.tobytes(), _end_bytes(ends, part, width), steps.tobytes(), rows[:, whole:].tobytes()]
    data = b"".join(pieces) + bytes(spare)
    return np.frombuffer(data + bytes(-len(data) % 4), np.int8)


def block_records(instr: Instr, parts: Parts, outputs: int, columns: int) -> Records:
    """Return where the weights of whole blocks of `outputs` lie, a row of `columns` each, behind biases and ends."""
    count = sum(width == outputs for _, width in parts)
    shifts = outputs // 4 if any(operand.role == "shift" for operand in instr.operands) else 0
    return Records(columns * outputs // 4, count, head=2 * outputs + shifts)


@dataclass(frozen=True, slots=True)
class Packed:
    """Constants as streams, the end of a block, and what was proved: `has_pairs` where the kernel asks for it."""

    constants: Arrays
    ending: Ending
    pairs: bool


def pack_rows(
    constants: Arrays, coded: tuple[np.ndarray, np.ndarray], rows: np.ndarray, instr: Instr, parts: Parts,
    grain: int, spare: int = 0, *, in_pairs: bool,
) -> Packed:  # fmt: skip
    """Pack rows[O, K], the codes in the order of the kernel; the shifts of the codes are in place of the biases.

    `in_pairs`: the kernel has a form that adds two products in 16 bits.
    """
    codes, shift = coded
    weights = codes.reshape(len(codes), -1)
    weights = weights + shift[:, None] if shift.any() else weights
    bias, ends = folded(weights, constants, instr.int_("in_zp")), Ends.of(constants, len(codes))
    data = stream(rows, bias, ends, parts, grain, spare)
    shifts = {"bias": in_blocks(shift, parts)} if instr.int_("w_zp") else {}
    ending, pairs = ending_of(weights, bias, ends, instr), in_pairs and has_pairs(codes)
    return Packed({"weights": data, **ends.empty, **shifts}, ending, pairs)
