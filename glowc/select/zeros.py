"""How many of the floats that calls read are not zero: what a ReLU leaves, by the weights and biases before it.

Functions of floats in software are faster at zeros, and deep layers of trained networks read mostly zeros. The mean and
the variance of each channel go through a program call by call, products as sums of independent numbers and ReLUs as
those of a normal distribution (moment matching, as in Frey and Hinton, Variational learning in nonlinear Gaussian
belief networks, 1999). What the caller's numbers are is not known: what holds for several guesses is averaged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from glowc.program.ir import Access, Instr, Operand, Program
from glowc.program.lifetimes import strip_markers

_GUESSES = np.array([(0.5, 0.06), (0.0, 1.0), (128.0, 4000.0)])  # mean and variance of inputs: 0 to 1, signed, bytes
_ALIKE = 0.5  # correlation of the pixels of a window
_KEEP_CHANNELS = ("max_pool", "avg_pool", "copy", "transpose", "pad")
_erf = np.vectorize(math.erf)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Mean, variance and share of zeros of each channel: [guess, channel]."""

    mean: np.ndarray
    variance: np.ndarray
    zeros: np.ndarray

    @property
    def channels(self) -> int:
        return int(self.mean.shape[1])

    def tiled(self, channels: int) -> _Spread | None:
        """Return it for pixels of channels in a row, None where they do not fit."""
        if channels % self.channels:
            return None
        parts = (np.tile(x, channels // self.channels) for x in (self.mean, self.variance, self.zeros))
        return _Spread(*parts)


def nonzero_shares(program: Program) -> list[float]:
    """Return of each call, markers left out, the share of its first operand that is not zero; 1 of what is no float."""
    known, found = dict[str, _Spread](), list[float]()
    for instr in strip_markers(program).instrs:
        read = instr.operands[0]
        x = known.get(program.root(read.buffer)[0]) or _guessed(read)
        found.append(1 - float(x.zeros.mean()) if read.type.dtype.is_float else 1.0)
        for operand in instr.operands:
            if operand.access is not Access.IN and operand.role != "scratch":
                known[program.root(operand.buffer)[0]] = _after(instr, operand, x, program, known)
    return found


def _after(instr: Instr, out: Operand, x: _Spread, program: Program, known: dict[str, _Spread]) -> _Spread:
    channels = out.type.shape[-1] if out.type.shape else 1
    found = _products(instr, x, program)
    if found is None and instr.kernel.startswith(_KEEP_CHANNELS):
        found = x.tiled(channels)
        side = math.sqrt(int(instr.params.get("k_h", 1)) * int(instr.params.get("k_w", 1)))
        found = found and replace(found, zeros=found.zeros**side)  # as many pixels of a window are on their own
    elif found is None and instr.params.get("op") == "add" and len(instr.operands) > 1:
        other = known.get(program.root(instr.operands[1].buffer)[0]) or _guessed(instr.operands[1])
        if x.channels == other.channels:
            found = _Spread(x.mean + other.mean, x.variance + other.variance, x.zeros * other.zeros)
    elif found is None and instr.params.get("op") == "relu":
        found = x
    if found is None or found.channels != channels:
        found = _plain(channels)
    is_relu = instr.params.get("act_min") == 0 or instr.params.get("op") == "relu"
    return _rectified(found) if is_relu else found


def _guessed(operand: Operand) -> _Spread:
    channels = operand.type.shape[-1] if operand.type.shape else 1
    mean, variance = (np.tile(column[:, None], channels) for column in _GUESSES.T)
    return _Spread(mean, variance, np.zeros_like(mean))


def _plain(channels: int) -> _Spread:
    """Return what nothing is known of: numbers around 0."""
    zeros = np.zeros((len(_GUESSES), channels))
    return _Spread(zeros, zeros + 1, zeros)


def _products(instr: Instr, x: _Spread, program: Program) -> _Spread | None:
    """Return the sums of products of a layer with constant weights as portable C has them, None of another one."""
    arrays = {o.role: program.consts.get(o.buffer) for o in instr.operands}
    weights = arrays.get("weights")
    scale, bias = arrays.get("scale"), arrays.get("bias")
    if weights is None or not instr.operands[0].type.dtype.is_float or (scale is not None and scale.ndim > 1):
        return None  # scales of blocks belong to packed codes, several to a byte
    if instr.kernel.startswith("conv_f32") and weights.ndim == 4 and weights.shape[-1] == x.channels:
        found = _dense(weights.reshape(len(weights), -1, x.channels), x)
    elif instr.kernel.startswith("dwconv_f32") and weights.ndim == 3 and weights.shape[-1] == x.channels:
        total, squares = _window(weights.reshape(-1, x.channels).astype(np.float32), 0)
        found = replace(x, mean=x.mean * total, variance=x.variance * squares)
    elif instr.kernel.startswith("fc_f32") and weights.ndim == 2 and (tiled := x.tiled(weights.shape[1])) is not None:
        found = _dense(weights[:, None], tiled)
    else:
        return None
    if scale is not None:
        found = replace(found, mean=found.mean * scale, variance=found.variance * scale**2)
    mean = found.mean if bias is None else found.mean + bias
    return _Spread(mean, found.variance, np.zeros_like(mean))


def _dense(weights: np.ndarray, x: _Spread) -> _Spread:
    """Return sums over weights [output, tap, channel]."""
    total, squares = _window(weights.astype(np.float32), 1)
    return _Spread(x.mean @ total.T, x.variance @ squares.T, x.zeros)


def _window(weights: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what the taps of a window multiply means and variances by."""
    total = weights.sum(axis)
    return total, (1 - _ALIKE) * (weights**2).sum(axis) + _ALIKE * total**2


def _rectified(x: _Spread) -> _Spread:
    """Return the moments of max(x, 0) for normal x."""
    deviation = np.sqrt(x.variance) + 1e-30
    ratio = np.clip(x.mean / deviation, -30, 30)
    above = 0.5 * (1 + _erf(ratio / math.sqrt(2)))
    density = np.exp(-0.5 * ratio**2) / math.sqrt(2 * math.pi)
    mean = x.mean * above + deviation * density
    square = (x.mean**2 + x.variance) * above + x.mean * deviation * density
    return _Spread(mean, np.maximum(square - mean**2, 0), np.maximum(x.zeros, 1 - above))
