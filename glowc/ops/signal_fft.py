"""SignalRfft, SignalIrfft: the spectrum of real samples and back, of int16, int32 or float, as TensorFlow Lite Micro's.

x[..., n] (fewer samples: zeros follow) -> y[..., n + 2], real and imaginary part of the n/2 + 1 frequencies in turn;
the inverse the other way round. The samples are n/2 complex numbers: even ones real, odd ones imaginary. These are
sorted by the digits of their index and go through stages of 5, 3, 2 and then 4 points; a last step makes the halves of
the spectrum from sums and differences.
Of integers with b = 15 or 31 fractional bits: factors are floor(cos * (2^b - 1) + 1/2); products and shares are
rounded half up, (x * w + 2^(b-1)) >> b; every stage of p points first takes each number's share floor((2^b - 1) / p);
sums wrap. Of floats nothing is shared; the inverse is divided by n at its end.
Evidence: seeded cases of all three kinds (tests/tflite), 0 differ, the floats' bits included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

KINDS = (DType.S16, DType.S32, DType.F32)
MOST_POINTS = 1 << 16
_WORK = {DType.S16: np.int64, DType.S32: np.int64, DType.F32: np.float32}
Complex = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class FftParams(Params):
    """Lines of `n` complex points, of which `in_n` real numbers are given; how many stages there are of each size."""

    batch: int
    in_n: int
    n: int
    fives: Printed
    threes: Printed
    twos: Printed
    fours: Printed

    @property
    def radices(self) -> tuple[int, ...]:
        """Points of each stage in the order of their work."""
        return (5,) * self.fives + (3,) * self.threes + (2,) * self.twos + (4,) * self.fours


def fft_params(batch: int, in_n: int, points: int) -> FftParams:
    """Return the stages of a transform of `points` complex numbers. Raises OpError."""
    counts, rest = {}, points
    for radix in (4, 2, 3, 5):
        counts[radix] = 0
        while rest % radix == 0:
            counts[radix], rest = counts[radix] + 1, rest // radix
    if rest != 1 or not 2 <= points <= MOST_POINTS:
        raise OpError(
            f"a transform of {2 * points} samples: half of them must be a product of 2, 3 and 5, and at least 2"
        )
    return FftParams(batch, in_n, points, counts[5], counts[3], counts[2], counts[4])


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Sums, products and shares of an element kind."""

    dtype: DType

    @property
    def one(self) -> int:
        """The largest number of a fixed-point kind."""
        return self.dtype.qmax

    def wrapped(self, x: np.ndarray) -> np.ndarray:
        """Return what is stored of a sum."""
        return x.astype(self.dtype.numpy).astype(_WORK[self.dtype])

    def rounded(self, x: np.ndarray) -> np.ndarray:
        """Return what is stored of a product."""
        if self.dtype.is_float:
            return x
        bits = self.dtype.bits - 1
        return self.wrapped((x + (1 << (bits - 1))) >> bits)

    def share(self, x: Complex, parts: int) -> Complex:
        """Return one of so many parts of a fixed-point number; floats as they are."""
        if self.dtype.is_float:
            return x
        return self.rounded(x[0] * (self.one // parts)), self.rounded(x[1] * (self.one // parts))

    def add(self, a: Complex, b: Complex) -> Complex:
        """Return a + b."""
        return self.wrapped(a[0] + b[0]), self.wrapped(a[1] + b[1])

    def sub(self, a: Complex, b: Complex) -> Complex:
        """Return a - b."""
        return self.wrapped(a[0] - b[0]), self.wrapped(a[1] - b[1])

    def product(self, a: Complex, b: Complex) -> Complex:
        """Return a * b."""
        return self.rounded(a[0] * b[0] - a[1] * b[1]), self.rounded(a[0] * b[1] + a[1] * b[0])

    def half(self, x: np.ndarray) -> np.ndarray:
        """Return x / 2; downwards of a fixed-point number."""
        return np.asarray(x * np.float32(0.5)) if self.dtype.is_float else x >> 1

    def stored(self, x: np.ndarray) -> np.ndarray:
        """Return numbers as work is done on them."""
        return x.astype(_WORK[self.dtype])


def circle(phases: np.ndarray, dtype: DType) -> np.ndarray:
    """Return cosine and sine of phases in turn."""
    both = np.array([[math.cos(p), math.sin(p)] for p in phases.tolist()]).reshape(-1)
    if dtype.is_float:
        return both.astype(np.float32)
    return np.asarray(np.floor(0.5 + dtype.qmax * both).astype(dtype.numpy))


def twiddles(p: FftParams, dtype: DType, *, inverse: bool) -> np.ndarray:
    """Return exp(-2 pi i k / n) of all k."""
    turn = 2 * math.pi if inverse else -2 * math.pi
    return circle(turn * np.arange(p.n) / p.n, dtype)


def end_twiddles(p: FftParams, dtype: DType, *, inverse: bool) -> np.ndarray:
    """Return the factors of the step that splits two real spectra, of frequencies 1 to n / 2."""
    turn = math.pi if inverse else -math.pi
    return circle(turn * (np.arange(1, p.n // 2 + 1) / p.n + 0.5), dtype)


def order(p: FftParams) -> np.ndarray:
    """Return which point stands at each place before the first stage."""
    places, rest, left, stride = np.zeros(p.n, np.int64), np.arange(p.n), p.n, 1
    for radix in reversed(p.radices):
        left //= radix
        places += rest // left * stride
        rest, stride = rest % left, stride * radix
    return places.astype(np.uint16)


def _five(a: Arithmetic, x: Sequence[Complex], ya: Complex, yb: Complex) -> list[Complex]:
    def scaled(value: np.ndarray, factor: np.ndarray) -> np.ndarray:
        return a.rounded(value * factor)

    s7, s10, s8, s9 = a.add(x[1], x[4]), a.sub(x[1], x[4]), a.add(x[2], x[3]), a.sub(x[2], x[3])
    first = tuple(a.wrapped(x[0][c] + (s7[c] + s8[c])) for c in (0, 1))
    s5 = tuple(a.wrapped(x[0][c] + scaled(s7[c], ya[0]) + scaled(s8[c], yb[0])) for c in (0, 1))
    s11 = tuple(a.wrapped(x[0][c] + scaled(s7[c], yb[0]) + scaled(s8[c], ya[0])) for c in (0, 1))
    s6 = (a.wrapped(scaled(s10[1], ya[1]) + scaled(s9[1], yb[1])),
          a.wrapped(-scaled(s10[0], ya[1]) - scaled(s9[0], yb[1])))  # fmt: skip
    s12 = (a.wrapped(-scaled(s10[1], yb[1]) + scaled(s9[1], ya[1])),
           a.wrapped(scaled(s10[0], yb[1]) - scaled(s9[0], ya[1])))  # fmt: skip
    e5, e11 = (s5[0], s5[1]), (s11[0], s11[1])
    return [(first[0], first[1]), a.sub(e5, s6), a.add(e11, s12), a.sub(e11, s12), a.add(e5, s6)]


def _three(a: Arithmetic, x: Sequence[Complex], third: Complex) -> list[Complex]:
    both, gap = a.add(x[1], x[2]), a.sub(x[1], x[2])
    near = a.sub(x[0], (a.half(both[0]), a.half(both[1])))
    turned = a.rounded(gap[0] * third[1]), a.rounded(gap[1] * third[1])
    side = (-turned[1], turned[0])
    return [a.add(x[0], both), a.add(near, side), a.sub(near, side)]


def _four(a: Arithmetic, x: Sequence[Complex], inverse: bool) -> list[Complex]:
    gap, even = a.sub(x[0], x[2]), a.add(x[0], x[2])
    odd, cross = a.add(x[1], x[3]), a.sub(x[1], x[3])
    side = (cross[1], -cross[0])
    up, down = a.add(gap, side), a.sub(gap, side)
    return [a.add(even, odd), down if inverse else up, a.sub(even, odd), up if inverse else down]


def transform(work: Complex, tw: np.ndarray, p: FftParams, dtype: DType, *, inverse: bool) -> Complex:
    """Return the stages' result [batch, n] of points that stand in `order`."""
    a, m = Arithmetic(dtype), 1
    factors = a.stored(tw[0::2]), a.stored(tw[1::2])
    for radix in p.radices:
        stride = p.n // (m * radix)
        x = [a.share((work[0].reshape(-1, radix, m)[:, q], work[1].reshape(-1, radix, m)[:, q]), radix)
             for q in range(radix)]  # fmt: skip
        at = np.arange(m) * stride
        x[1:] = [a.product(x[q], (factors[0][q * at], factors[1][q * at])) for q in range(1, radix)]
        turn = [(factors[0][q * m * stride], factors[1][q * m * stride]) for q in range(radix)]
        if radix == 2:
            y = [a.add(x[0], x[1]), a.sub(x[0], x[1])]
        elif radix == 3:
            y = _three(a, x, turn[1])
        else:
            y = _four(a, x, inverse) if radix == 4 else _five(a, x, turn[1], turn[2])
        work = (
            np.stack([v[0] for v in y], 1).reshape(p.batch, -1),
            np.stack([v[1] for v in y], 1).reshape(p.batch, -1),
        )
        m *= radix
    return work


def rfft(x: np.ndarray, tables: Sequence[np.ndarray], p: FftParams, dtype: DType) -> np.ndarray:
    """Return the spectrum [batch, 2 * n + 2] of samples [batch, in_n]; tables: factors, those of the end, order."""
    a, padded = Arithmetic(dtype), np.zeros((p.batch, 2 * p.n), dtype.numpy)
    padded[:, : p.in_n] = x
    work = a.stored(padded[:, 0::2][:, tables[2]]), a.stored(padded[:, 1::2][:, tables[2]])
    re, im = transform(work, tables[0], p, dtype, inverse=False)
    y = np.zeros((p.batch, 2 * p.n + 2), _WORK[dtype])
    first = a.share((re[:, 0], im[:, 0]), 2)
    y[:, 0], y[:, 2 * p.n] = first[0] + first[1], first[0] - first[1]
    k = np.arange(1, p.n // 2 + 1)
    low, high = a.share((re[:, k], im[:, k]), 2), a.share((re[:, p.n - k], a.wrapped(-im[:, p.n - k])), 2)
    even = a.add(low, high)
    odd = a.product(a.sub(low, high), (a.stored(tables[1][0::2]), a.stored(tables[1][1::2])))
    y[:, 2 * k], y[:, 2 * k + 1] = a.half(even[0] + odd[0]), a.half(even[1] + odd[1])
    y[:, 2 * (p.n - k)], y[:, 2 * (p.n - k) + 1] = a.half(even[0] - odd[0]), a.half(odd[1] - even[1])
    return np.asarray(y.astype(dtype.numpy))


def irfft(x: np.ndarray, tables: Sequence[np.ndarray], p: FftParams, dtype: DType) -> np.ndarray:
    """Return the samples [batch, 2 * n] of a spectrum [batch, 2 * n + 2]."""
    a = Arithmetic(dtype)
    re, im = a.stored(x[:, 0::2]), a.stored(x[:, 1::2])
    work = np.zeros((2, p.batch, p.n), _WORK[dtype])
    work[0, :, 0], work[1, :, 0] = a.share((a.wrapped(re[:, 0] + re[:, p.n]), a.wrapped(re[:, 0] - re[:, p.n])), 2)
    k = np.arange(1, p.n // 2 + 1)
    low, high = a.share((re[:, k], im[:, k]), 2), a.share((re[:, p.n - k], a.wrapped(-im[:, p.n - k])), 2)
    even = a.add(low, high)
    odd = a.product(a.sub(low, high), (a.stored(tables[1][0::2]), a.stored(tables[1][1::2])))
    work[0][:, k], work[1][:, k] = a.add(even, odd)
    gap = a.sub(even, odd)
    work[0][:, p.n - k], work[1][:, p.n - k] = gap[0], a.wrapped(-gap[1])
    sorted_ = work[0][:, tables[2]], work[1][:, tables[2]]
    y = np.stack(transform(sorted_, tables[0], p, dtype, inverse=True), -1).reshape(p.batch, 2 * p.n)
    return np.asarray((y / np.float32(2 * p.n) if dtype.is_float else y).astype(dtype.numpy))


def _params(node: Node, types: MaybeTypes) -> FftParams:
    (x,) = present(types[:1])
    length = node.int_("fft_length")
    wanted = length + 2 if node.op == "SignalIrfft" else 0
    if x.dtype not in KINDS or x.rank < 1 or length % 2 or x.shape[-1] > (wanted or length):
        raise OpError(f"{node.op} of {x} with {length} samples")
    if wanted and x.shape[-1] != wanted:
        raise OpError(f"a spectrum of {x.shape[-1]} numbers; {length} samples have {wanted}")
    return fft_params(x.elements // x.shape[-1], x.shape[-1], length // 2)


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Lines of frequencies, or of samples."""
    p = _params(node, in_types)
    (x,) = present(in_types[:1])
    width = 2 * p.n if node.op == "SignalIrfft" else 2 * p.n + 2
    return (TensorType((*x.shape[:-1], width), x.dtype),)


def tables_of(p: FftParams, dtype: DType, *, inverse: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the constants of a transform."""
    return twiddles(p, dtype, inverse=inverse), end_twiddles(p, dtype, inverse=inverse), order(p)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `rfft` or `irfft` with its tables."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    p, inverse = _params(node, (x.type,)), node.op == "SignalIrfft"
    factors, ends, places = tables_of(p, x.type.dtype, inverse=inverse)
    if inverse:
        places = np.argsort(places).astype(np.uint16)  # where each point goes
    operands = {
        "in": x, "twiddles": ctx.const(factors, "twiddles"), "ends": ctx.const(ends, "ends"),
        "order": ctx.const(places, "order"), "out": y,
    }  # fmt: skip
    ctx.emit("irfft" if inverse else "rfft", operands, p)


def _interpret(a: Arrays, p: FftParams) -> None:
    dtype = DType(f"{'f' if a['out'].dtype.kind == 'f' else 's'}{8 * a['out'].itemsize}")
    tables = a["twiddles"].reshape(-1), a["ends"].reshape(-1), a["order"].reshape(-1)
    a["out"].reshape(-1)[:] = rfft(a["in"].reshape(p.batch, p.in_n), tables, p, dtype).reshape(-1)


def _interpret_inverse(a: Arrays, p: FftParams) -> None:
    dtype = DType(f"{'f' if a['out'].dtype.kind == 'f' else 's'}{8 * a['out'].itemsize}")
    tables = a["twiddles"].reshape(-1), a["ends"].reshape(-1), np.argsort(a["order"].reshape(-1))
    a["out"].reshape(-1)[:] = irfft(a["in"].reshape(p.batch, p.in_n), tables, p, dtype).reshape(-1)


_OPERANDS = ("in in", "in twiddles", "in ends", "in order:u16", "out out")
KERNELS = (
    KernelDef("rfft", _OPERANDS, FftParams, _interpret, kind="s16|s32|f32", doc="spectrum of real samples"),
    KernelDef("irfft", _OPERANDS, FftParams, _interpret_inverse, kind="s16|s32|f32", doc="real samples of a spectrum"),
)

OPS = (
    OpDef("SignalRfft", infer, derived, lower, {"fft_length": Int()}, doc="spectrum of real samples (internal)"),
    OpDef("SignalIrfft", infer, derived, lower, {"fft_length": Int()}, doc="samples of a spectrum (internal)"),
)
