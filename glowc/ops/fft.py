"""Fft: the transform of complex floats x[..., m, 2] -> y[..., n, 2], of m <= n points with zeros behind (internal).

`fft_length` is n, a product of 2, 3 and 5; `inverse` turns the other way and divides by n. The stages are those of
SignalRfft.
Tolerance: 1e-5 of the largest magnitude, sums of n products in stages, each rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.signal_fft import Arithmetic, FftParams, fft_params, order, transform, twiddles
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Printed


@dataclass(frozen=True, slots=True)
class ComplexParams(FftParams):
    """Of `fft`: `in_n` are the complex points that are given."""

    inverse: Printed


def _params(node: Node, types: MaybeTypes) -> ComplexParams:
    (x,) = present(types[:1])
    length = node.int_("fft_length")
    if x.dtype is not DType.F32 or x.rank < 2 or x.shape[-1] != 2 or x.shape[-2] > length:
        raise OpError(f"{length} complex points of {x}")
    p = fft_params(x.elements // (2 * x.shape[-2]), x.shape[-2], length)
    return ComplexParams(p.batch, p.in_n, p.n, p.fives, p.threes, p.twos, p.fours, node.int_("inverse"))


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """As many points as asked for."""
    p = _params(node, in_types)
    (x,) = present(in_types[:1])
    return (TensorType((*x.shape[:-2], p.n, 2), x.dtype),)


def fft(x: np.ndarray, factors: np.ndarray, places: np.ndarray, p: ComplexParams) -> np.ndarray:
    """Return the transforms [batch, n, 2] of points [batch, in_n, 2]."""
    padded = np.zeros((p.batch, p.n, 2), np.float32)
    padded[:, : p.in_n] = x
    a = Arithmetic(DType.F32)
    work = a.stored(padded[:, places, 0]), a.stored(padded[:, places, 1])
    y = np.stack(transform(work, factors, p, DType.F32, inverse=p.inverse == 1), -1)
    return np.asarray(y / np.float32(p.n) if p.inverse else y)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `fft` with its tables."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    p = _params(node, (x.type,))
    factors = twiddles(p, DType.F32, inverse=p.inverse == 1)
    operands = {"in": x, "twiddles": ctx.const(factors, "twiddles"), "order": ctx.const(order(p), "order"), "out": y}
    ctx.emit("fft", operands, p)


def _interpret(a: Arrays, p: ComplexParams) -> None:
    y = fft(a["in"].reshape(p.batch, p.in_n, 2), a["twiddles"].reshape(-1), a["order"].reshape(-1), p)
    a["out"].reshape(-1)[:] = y.reshape(-1)


KERNELS = (
    KernelDef("fft", ("in in", "in twiddles", "in order:u16", "out out"), ComplexParams, _interpret, kind="f32",
              doc="transform of complex numbers"),
)  # fmt: skip
OP = OpDef("Fft", infer, derived, lower, {"fft_length": Int(), "inverse": Int(0)},
           doc="transform of complex numbers (internal)")  # fmt: skip
