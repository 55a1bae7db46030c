"""What the recurrent kernels of all instruction sets need besides their operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.features import Stated
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan(Plan):
    """`rows`: the function of the runtime that multiplies four rows of weights by a vector; "": plain C does.

    `fast`: what follows that name in the function which does activation f, g or that of the output for four cells; "":
    plain C does.
    """

    rows: str = ""
    fast: tuple[str, ...] = ()


FUNCTIONS: Mapping[str, float] = {"lstm_f32": 540, "gru_f32": 330, "rnn_f32": 120}
"""Instructions of the functions of a cell and step on Cortex-M: Sigmoid and Tanh take about a hundred each."""

_BY_TEXT = {"tanhf(x)": "tanh", "1.0f / (1.0f + expf(-x))": "sigmoid"}  # as Chosen.c prints them


def _fast(instr: Instr) -> tuple[str, ...]:
    return tuple(_BY_TEXT.get(str(instr.params.get(key)), "") for key in ("f", "g", "out"))


def in_fours(
    variant: KernelVariant, rows: str, macs: float, functions: Mapping[str, float] = FUNCTIONS
) -> Mapping[str, KernelVariant]:
    """Return `variant` for recurrent layers of floats of at least four cells, by kernel: four at a time.

    `rows` is LayerPlan's, `macs` the instructions of a product of weights, `functions` those of a cell and step.
    """
    shared = replace(
        variant, template="ref/{}", scratch_bytes=layer_scratch, accepts=lambda instr: instr.int_("hidden") >= FOUR,
        prepare=lambda _, instr: Prepared(plan=LayerPlan(rows=rows, fast=_fast(instr))), units=layer_steps,
    )  # fmt: skip
    return {kernel: replace(shared, stated=Stated(macs=macs, outputs=insns)) for kernel, insns in functions.items()}


def layer_steps(instr: Instr) -> int:
    """Return the steps of all directions and samples."""
    return instr.int_("dirs") * instr.int_("batch") * instr.int_("seq")


def layer_scratch(instr: Instr) -> int:
    """Return the bytes of the next state; a GRU that resets before it multiplies also keeps r * h."""
    twice = instr.kernel.startswith("gru") and not instr.params["linear_before_reset"]
    return (1 + twice) * instr.int_("hidden") * instr.operand("h").type.dtype.bytes


def dynamic_scratch(instr: Instr) -> int:
    """Return the bytes of the codes of input and state, 16 bits each."""
    return 2 * (instr.int_("in_k") + instr.int_("hidden"))


def coded_scratch(instr: Instr) -> int:
    """Return the bytes of the cells, 16 bits each."""
    return 2 * instr.int_("batch") * instr.int_("hidden")


def resets_first(instr: Instr) -> bool:
    """Say whether a GRU resets its state before it multiplies it by weights."""
    return instr.params.get("cell") == "gru" and not instr.params["linear_before_reset"]


PAIR, FOUR = 2, 4
"""Cells of a GRU whose gates are computed together: update and reset, then new where it resets first; else all."""

CODED_LAYERS = ("lstm_s8", "gru_s8", "lstm_state_s8", "gru_state_s8")
"""Kernels of layers of codes, those with initial states last."""
CONSTANTS = frozenset({"weights", "recurrent", "bias", "scale"})
"""The constants of a layer of codes that its variants put into one stream, in the place of the weights."""
IN_STREAM: Arrays = {
    "recurrent": np.zeros(1, np.int8), "bias": np.zeros(1, np.int32), "scale": np.zeros(1, np.float32),
}  # fmt: skip
"""What stands for the others."""
BLOCK = 16  # codes whose weights lie together, of vectors


@dataclass(frozen=True, slots=True)
class Part:
    """What the inputs, or the state, add to the G gates of each cell: w[H, G, K], bias[H, G], scale[H, G]."""

    weights: np.ndarray
    bias: np.ndarray
    scale: np.ndarray

    def gates(self, first: int, end: int) -> Part:
        """Return some of the gates."""
        return Part(self.weights[:, first:end], self.bias[:, first:end], self.scale[:, first:end])

    def together(self, count: int) -> Part:
        """Return the gates of so many cells in a row side by side, zeros beside the last: w[H / count, count G, K]."""
        return self._arranged(lambda array: array.reshape(-1, count * array.shape[1], *array.shape[2:]), count)

    def apart(self, count: int) -> Part:
        """Return gates of cells a part of all cells apart: one gate of so many cells side by side, then the next."""

        def arrange(array: np.ndarray) -> np.ndarray:
            parts = np.swapaxes(array.reshape(count, -1, *array.shape[1:]), 0, 1)  # [H / count, count, G, ...]
            return np.swapaxes(parts, 1, 2).reshape(len(parts), -1, *array.shape[2:])

        return self._arranged(arrange, count)

    def _arranged(self, arrange: Callable[[np.ndarray], np.ndarray], count: int) -> Part:
        """Return all arrays, filled up to whole `count`s of cells, in that arrangement."""

        def of(array: np.ndarray) -> np.ndarray:
            return arrange(np.pad(array, ((0, -len(array) % count), *((0, 0),) * (array.ndim - 1))))

        return Part(of(self.weights), of(self.bias), of(self.scale))


def by_cell(constants: Arrays, instr: Instr) -> list[tuple[Part, Part]]:
    """Return the constants of each direction, of inputs and of the state, cell by cell; integers have 64 bits."""
    dirs, hidden = instr.int_("dirs"), instr.int_("hidden")
    bias, scale = (constants[name].reshape(dirs, 2, -1, hidden).transpose(0, 1, 3, 2) for name in ("bias", "scale"))
    found: list[list[Part]] = []
    for role in ("weights", "recurrent"):
        weights = constants[role].reshape(dirs, bias.shape[3], hidden, -1).transpose(0, 2, 1, 3).astype(np.int64)
        index = len(found)
        found.append([Part(weights[d], bias[d, index].astype(np.int64), scale[d, index]) for d in range(dirs)])
    return list(zip(*found, strict=True))


def in_runs(count: int, most: int) -> tuple[int, int]:
    """Return how many of `count` are printed one after the other, at most so many, and how often that is run."""
    at_once = max((n for n in range(1, most + 1) if count % n == 0), default=0) if count else 0
    return at_once, count // at_once if at_once else 0


def in_blocks(count: int) -> int:
    """Return the least number of codes that fills blocks."""
    return -(-count // BLOCK) * BLOCK


def weight_bytes(weights: np.ndarray) -> np.ndarray:
    """Return [H, bytes] of w[H, G, K]: G x 16 weights for 16 codes, then G times those of the codes that are left."""
    cells, gates, codes = weights.shape
    whole = codes // BLOCK * BLOCK
    blocks = weights[:, :, :whole].reshape(cells, gates, -1, BLOCK).transpose(0, 2, 1, 3).reshape(cells, -1)
    return np.concatenate((blocks, weights[:, :, whole:].reshape(cells, -1)), axis=1).astype(np.int8)


def stream_bytes(*parts: np.ndarray) -> np.ndarray:
    """Return [H, bytes] of several arrays [H, ...]: bytes, integers, which take 32 bits, and float32."""

    def raw(array: np.ndarray) -> np.ndarray:
        words = array.astype(np.int32) if array.dtype == np.int64 else array
        return np.ascontiguousarray(words).view(np.int8).reshape(len(array), -1)

    return np.concatenate([raw(array) for array in parts], axis=1)
