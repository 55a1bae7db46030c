"""LSTM, GRU and RNN in numpy: one time step of each cell, and the loop over time and directions.

The kernels' meaning, on views of their flat operands. Gates lie in ONNX order: LSTM i o f c, GRU z r h.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glowc.graph.numerics import F32
from glowc.graph.types import DType

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Activation:
    """One activation: parameter names (of alpha, beta) with their ONNX defaults, in C over x and in numpy.

    In C, `F(` ends the name of a libm function, `K(c)` is a constant of the element type, A and B are the
    parameters. None stands where ONNX and onnxruntime read different defaults, or there is none.
    """

    c: str
    function: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    alpha: tuple[float | None, ...] = ()
    beta: tuple[float | None, ...] = ()

    @property
    def has_parameters(self) -> bool:
        """True when alpha or beta appear in it."""
        return bool(self.alpha or self.beta)


def _one(x: np.ndarray) -> np.ndarray:
    return np.asarray(1, x.dtype)


ACTIVATIONS: Mapping[str, Activation] = {
    "relu": Activation("x > 0 ? x : 0", lambda x, a, b: np.where(x > 0, x, 0)),
    "tanh": Activation("tanhF(x)", lambda x, a, b: np.tanh(x)),
    "sigmoid": Activation("K(1.0) / (K(1.0) + expF(-x))", lambda x, a, b: _one(x) / (_one(x) + np.exp(-x))),
    "affine": Activation("A * x + B", lambda x, a, b: a * x + b, (None,), (None,)),
    "leakyrelu": Activation("x < 0 ? A * x : x", lambda x, a, b: np.where(x < 0, a * x, x), (0.01,)),
    "thresholdedrelu": Activation("x > A ? x : 0", lambda x, a, b: np.where(x > a, x, 0), (None,)),
    "scaledtanh": Activation("A * tanhF(B * x)", lambda x, a, b: a * np.tanh(b * x), (None,), (None,)),
    "hardsigmoid": Activation(
        "fmaxF(K(0.0), fminF(K(1.0), A * x + B))", lambda x, a, b: np.clip(a * x + b, 0 * _one(x), _one(x)), (0.2,),
        (0.5,)),
    "elu": Activation(
        "x < 0 ? A * (expF(x) - K(1.0)) : x",
        lambda x, a, b: np.where(x < 0, a * (np.exp(np.minimum(x, 0 * _one(x))) - _one(x)), x), (1.0,)),
    "softsign": Activation("x / (K(1.0) + fabsF(x))", lambda x, a, b: x / (_one(x) + np.abs(x))),
    "softplus": Activation(
        "fmaxF(x, K(0.0)) + log1pF(expF(-fabsF(x)))",
        lambda x, a, b: np.maximum(x, 0 * _one(x)) + np.log1p(np.exp(-np.abs(x)))),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """An activation with its parameters; the text form `tanh` or `leakyrelu:0.1:0.0` stands in kernel parameters."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def text(self) -> str:
        """Name and parameters as one word."""
        return f"{self.name}:{self.alpha!r}:{self.beta!r}" if ACTIVATIONS[self.name].has_parameters else self.name

    def c(self, dtype: DType) -> str:
        """Return the C expression over x."""
        suffix, mark = ("f(", "f") if dtype is DType.F32 else ("(", "")
        text = re.sub(r"K\(([0-9.]+)\)", rf"\1{mark}", ACTIVATIONS[self.name].c.replace("F(", suffix))
        numbers = [F32(v) if dtype is DType.F32 else float(F32(v)) for v in (self.alpha, self.beta)]
        values = {name: f"({number!s}{mark})" for name, number in zip("AB", numbers, strict=True)}
        return re.sub(r"\b[AB]\b", lambda match: values[match[0]], text)

    def function(self, dtype: np.dtype[np.generic]) -> Function:
        """Return the function for arrays of that kind."""
        a, b = np.asarray(F32(self.alpha), dtype), np.asarray(F32(self.beta), dtype)
        entry = ACTIVATIONS[self.name].function

        def one(x: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore"):
                return np.asarray(entry(x, a, b), dtype)

        return one


def parse_chosen(text: str) -> Chosen:
    """Return what `Chosen.text` gave."""
    name, *numbers = text.split(":")
    return Chosen(name, *map(float, numbers))


@dataclass(frozen=True, slots=True)
class Cell:
    """What one layer computes: `functions` per direction (f g h of LSTM, f g of GRU, f of RNN).

    `clip` bounds what goes into the functions, `cell_clip` the cell state of an LSTM.
    """

    kind: str
    functions: tuple[tuple[Chosen, ...], ...]
    clip: float | None = None
    coupled: bool = False
    linear_before_reset: bool = False
    reverse: bool = False
    cell_clip: float | None = None

    @property
    def dirs(self) -> int:
        """Number of directions."""
        return len(self.functions)


@dataclass(frozen=True, slots=True)
class Weights:
    """Constants of one direction: w[G * H, I], r[G * H, H], bias[G * H] (GRU: and H more), peephole[3 * H]."""

    w: np.ndarray
    r: np.ndarray
    bias: np.ndarray
    peephole: np.ndarray | None = None


def fold_bias(cell: str, b: np.ndarray, linear_before_reset: bool) -> np.ndarray:
    """Return Wb + Rb of b[D, 2 * G * H]; with linear_before_reset Rbh stays apart: [D, 4 * H]."""
    half = b.shape[1] // 2
    wb, rb = b[:, :half], b[:, half:]
    if cell != "gru" or not linear_before_reset:
        return np.asarray(wb + rb)
    keep = 2 * half // 3
    return np.concatenate([wb[:, :keep] + rb[:, :keep], wb[:, keep:], rb[:, keep:]], axis=1)


Step = Callable[[np.ndarray, np.ndarray, "np.ndarray | None"], tuple[np.ndarray, ...]]
"""(x[B, I], h[B, H], c[B, H]) -> the next h (and c)."""


def steps_of(lens: np.ndarray | None, seq: int, batch: int) -> np.ndarray:
    """Return how many steps each sample has."""
    return np.full(batch, seq) if lens is None else np.clip(lens.reshape(-1)[:batch].astype(np.int64), 0, seq)


def run(
    cell: Cell,
    x: np.ndarray,
    functions: Sequence[Step],
    h: np.ndarray,
    c: np.ndarray | None = None,
    *,
    y: np.ndarray | None = None,
    lens: np.ndarray | None = None,
    clears: bool = False,
) -> None:
    """Advance h[D, B, H] (and c) over x[T, B, I] in place by one function per direction, and fill y[T, D, B, H].

    Sample b ends after lens[b] steps, at which the backward direction starts; y is 0 beyond. With `clears`, a
    sample of no steps ends with the state 0 (as onnxruntime has it).
    """
    seq, batch = x.shape[:2]
    steps = steps_of(lens, seq, batch)
    every = np.arange(batch)
    if y is not None:
        y[...] = 0
    for d, step in enumerate(functions):
        backward = cell.reverse or d == 1
        for s in range(int(steps.max(initial=0))):
            t = np.maximum(steps - 1 - s, 0) if backward else np.full(batch, s)
            state = step(x[t, every], h[d], c[d] if c is not None else None)
            on = s < steps
            h[d][on] = state[0][on]
            if c is not None:
                c[d][on] = state[1][on]
            if y is not None:
                y[t[on], d, every[on]] = state[0][on]
        for state_ in (h, c) if clears else ():
            if state_ is not None:
                state_[d][steps == 0] = 0


def _clipped(cell: Cell, x: np.ndarray) -> np.ndarray:
    return _within(x, cell.clip)


def _within(x: np.ndarray, bound: float | None) -> np.ndarray:
    if bound is None:
        return x
    limit = np.asarray(F32(bound), x.dtype)
    return np.asarray(np.clip(x, -limit, limit))


def _lstm(cell: Cell, d: int, k: Weights) -> Step:
    gates = lstm_gates(cell, d, k.peephole, k.bias.dtype)

    def step(x: np.ndarray, h: np.ndarray, c: np.ndarray | None) -> tuple[np.ndarray, ...]:
        assert c is not None
        return gates(x @ k.w.T + h @ k.r.T + k.bias, c)

    return step


def lstm_gates(
    cell: Cell, d: int, peephole: np.ndarray | None, dtype: np.dtype[np.generic]
) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the function of an LSTM's sums[B, 4 * H] and c that gives the next h and c."""
    f, g, out = (chosen.function(dtype) for chosen in cell.functions[d])
    peep_i, peep_o, peep_f = np.zeros((3, 1), dtype) if peephole is None else np.split(peephole, 3)

    def gates(sums: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        i, o, z, n = np.split(sums, 4, axis=1)
        i = f(_clipped(cell, i + peep_i * c))
        z = _one(i) - i if cell.coupled else f(_clipped(cell, z + peep_f * c))
        new_c = _within(z * c + i * g(_clipped(cell, n)), cell.cell_clip)
        return f(_clipped(cell, o + peep_o * new_c)) * out(new_c), new_c

    return gates


def _gru(cell: Cell, d: int, k: Weights) -> Step:
    f, g = (chosen.function(k.w.dtype) for chosen in cell.functions[d])
    hidden = k.r.shape[1]

    def step(x: np.ndarray, h: np.ndarray, _: np.ndarray | None) -> tuple[np.ndarray, ...]:
        z, r, n = np.split(x @ k.w.T + k.bias[: 3 * hidden], 3, axis=1)
        gates = h @ k.r[: 2 * hidden].T
        z, r = f(_clipped(cell, z + gates[:, :hidden])), f(_clipped(cell, r + gates[:, hidden:]))
        tail = k.r[2 * hidden :].T
        linear = r * (h @ tail + k.bias[3 * hidden :]) if cell.linear_before_reset else (r * h) @ tail
        return ((_one(z) - z) * g(_clipped(cell, n + linear)) + z * h,)

    return step


def _rnn(cell: Cell, d: int, k: Weights) -> Step:
    f = cell.functions[d][0].function(k.w.dtype)

    def step(x: np.ndarray, h: np.ndarray, _: np.ndarray | None) -> tuple[np.ndarray, ...]:
        return (f(_clipped(cell, x @ k.w.T + h @ k.r.T + k.bias)),)

    return step


def float_steps(cell: Cell, weights: Sequence[Weights]) -> list[Step]:
    """Return the step function of each direction for float weights."""
    return [_STEPS[cell.kind](cell, d, constants) for d, constants in enumerate(weights)]


_STEPS: Mapping[str, Callable[[Cell, int, Weights], Step]] = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}
