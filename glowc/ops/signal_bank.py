"""Filter banks and what follows them, as TensorFlow Lite Micro's signal library computes them in whole numbers.

SignalFilterBank: energies u32 -> channels u64. Channel c takes `width` weights and as many complements of a stretch of
energies: its result is the sum with the weights plus the sum with the complements of the channel before; the channel
in front of the first is not given out. Sums are modulo 2^64.
SignalSquareRoot: floor(sqrt(x)), one more where x - root^2 > root, up to 2^16 - 1 of x < 2^32 and 2^32 - 1 of others;
then >> shift. SignalNoise: with up = x << smoothing_bits, noise' = (up * s + noise * t) >> bits, even and odd channels
with factors of their own; `clamping` keeps noise' <= up. SignalSubtractNoise:
max((up - min(noise, up)) >> smoothing_bits, (x * min_remaining) >> bits).
SignalPcan: gain = a table of parabolas by the noise's highest bit; snr = (x * gain) >> shift; the result is
snr^2 / 2^20 below 2^13, else snr / 64 - 64.
SignalLog: log2 of x << correction_bits as its highest bit, the bits below and a line of 128 segments that corrects
these; times 45426 / 2^16, times scale / 2^16, rounded; at most 32767.
Each result is modulo 2^32 where C would have it. Evidence: seeded cases over whole ranges (tests/tflite), 0 differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Attr, Int
from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Elements
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

LUT_ELEMENTS = 125
LOG_SEGMENTS = 128
_LOG_COEFFICIENT = 45426
_MASK32, _MASK64 = (1 << 32) - 1, (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class BankParams(Params):
    """Of `signal_filter_bank`: how many channels it gives out."""

    channels: int


@dataclass(frozen=True, slots=True)
class NoiseParams(Params):
    """Of `signal_noise`: factors of even and odd channels, bits, and whether the estimate stays below the signal."""

    n: int
    smoothing: int
    one_minus: int
    odd_smoothing: int
    odd_one_minus: int
    smoothing_bits: int
    bits: int
    clamping: int


@dataclass(frozen=True, slots=True)
class SubtractParams(Params):
    """Of `signal_subtract_noise`."""

    n: int
    smoothing_bits: int
    bits: int
    min_remaining: int


@dataclass(frozen=True, slots=True)
class PcanParams(Params):
    """Of `signal_pcan`."""

    n: int
    shift: int


@dataclass(frozen=True, slots=True)
class LogParams(Params):
    """Of `signal_log`."""

    n: int
    correction_bits: int
    scale: int


def bank(x: np.ndarray, tables: tuple[np.ndarray, ...], channels: int) -> np.ndarray:
    """Return the channels of energies; tables: weights, complements, where stretches begin, how long they are."""
    weights, complements, starts, weight_starts, widths = (t.reshape(-1).astype(np.int64).tolist() for t in tables)
    energies, found, before = [int(v) for v in x.reshape(-1)], [], 0
    for c in range(channels + 1):
        stretch = energies[starts[c] : starts[c] + widths[c]]
        at = weight_starts[c]
        found.append((before + sum(e * weights[at + j] for j, e in enumerate(stretch))) & _MASK64)
        before = sum(e * complements[at + j] for j, e in enumerate(stretch))
    return np.array(found[1:], np.uint64)


def root(x: int) -> int:
    """Return the rounded square root of a whole number of 64 bits."""
    floor = math.isqrt(x)
    return floor + (x - floor * floor > floor and floor != (_MASK32 if x > _MASK32 else 0xFFFF))


def noise_of(x: np.ndarray, noise: np.ndarray, p: NoiseParams) -> np.ndarray:
    """Return the next estimate of the noise."""
    up = (x.astype(np.uint64) << np.uint64(p.smoothing_bits)) & np.uint64(_MASK32)
    odd = np.arange(p.n) % 2 == 1
    factor = np.where(odd, p.odd_smoothing, p.smoothing).astype(np.uint64)
    other = np.where(odd, p.odd_one_minus, p.one_minus).astype(np.uint64)
    found = ((up * factor + noise.astype(np.uint64) * other) >> np.uint64(p.bits)) & np.uint64(_MASK32)
    return (np.minimum(found, up) if p.clamping else found).astype(np.uint32)


def without_noise(x: np.ndarray, noise: np.ndarray, p: SubtractParams) -> np.ndarray:
    """Return the signal less the noise, but at least a part of it."""
    wide, bits = x.astype(np.uint64), np.uint64(p.smoothing_bits)
    up = (wide << bits) & np.uint64(_MASK32)
    floor = (wide * np.uint64(p.min_remaining) >> np.uint64(p.bits)) & np.uint64(_MASK32)
    return np.asarray(np.maximum((up - np.minimum(noise.astype(np.uint64), up)) >> bits, floor).astype(np.uint32))


def _s32(x: int) -> int:
    return ((x + (1 << 31)) & _MASK32) - (1 << 31)


def pcan_gain(x: int, lut: list[int]) -> int:
    """Return the gain for a noise, modulo 2^32."""
    if x <= 2:
        return lut[x] & _MASK32
    interval = x.bit_length()
    first = 4 * interval - 6
    rest = (x << (11 - interval) if interval < 11 else x >> (interval - 11)) & 0x3FF
    curve = _s32(_s32(((lut[first + 2] * rest) >> 5) + (lut[first + 1] << 5)) * rest)
    gain = (_s32(curve + (1 << 14)) >> 15) + lut[first]
    return ((gain + (1 << 15)) & 0xFFFF) - (1 << 15) & _MASK32


def pcan(x: int, noise: int, lut: list[int], shift: int) -> int:
    """Return one channel with its gain."""
    snr = (x * pcan_gain(noise, lut) >> shift) & _MASK32
    return snr * snr >> 20 if snr < 1 << 13 else (snr >> 6) - 64


def log_table() -> np.ndarray:
    """Return 2^16 * (log2(1 + k / 128) - k / 128), rounded."""
    k = np.arange(LOG_SEGMENTS + 1) / LOG_SEGMENTS
    return np.round((np.log2(1 + k) - k) * 65536).astype(np.uint16)


def log_of(x: int, table: list[int], p: LogParams) -> int:
    """Return the scaled logarithm of one number."""
    shifted = (x << p.correction_bits) & _MASK32
    if shifted <= 1:
        return 0
    whole = shifted.bit_length() - 1
    rest = shifted - (1 << whole)
    fraction = rest << (16 - whole) if whole < 16 else rest >> (whole - 16)
    segment = fraction >> 9
    line = ((table[segment + 1] - table[segment]) * (fraction - (segment << 9))) >> 16
    log2 = (whole << 16) + fraction + table[segment] + line
    natural = (_LOG_COEFFICIENT * log2 + (1 << 15)) >> 16
    return min(((p.scale * natural + (1 << 15)) & _MASK32) >> 16, 32767)


def _table_problem(types: Types, channels: int) -> bool:
    weights, complements, *stretches = types
    return (
        any(t.dtype is not DType.S16 for t in types)
        or weights.elements != complements.elements
        or any(t.elements < channels + 1 for t in stretches)
    )


def infer_bank(node: Node, in_types: MaybeTypes) -> Types:
    """The channels."""
    x, *tables = present(in_types[:6])
    channels = node.int_("channels")
    if x.dtype is not DType.U32 or len(tables) != 5 or channels < 1 or _table_problem(tuple(tables), channels):
        raise OpError(f"energies {x}, {channels} channels, tables " + ", ".join(map(str, tables)))
    return (TensorType((channels,), DType.U64),)


def infer_root(_: Node, in_types: MaybeTypes) -> Types:
    """The roots in 32 bits."""
    x, shift = present(in_types[:2])
    if x.dtype is not DType.U64 or shift.dtype is not DType.S32 or shift.elements != 1:
        raise OpError(f"square roots of {x}, shift {shift}")
    return (TensorType(x.shape, DType.U32),)


def infer_channels(node: Node, in_types: MaybeTypes) -> Types:
    """As many numbers as channels."""
    types = present(in_types[: 1 if node.op == "SignalLog" else 2])
    if any(t.dtype is not DType.U32 or t.elements != types[0].elements for t in types):
        raise OpError(f"{node.op} of " + ", ".join(map(str, types)))
    if node.op == "SignalPcan":
        lut = present(in_types[2:3])[0]
        if lut.dtype is not DType.S16 or lut.elements < LUT_ELEMENTS:
            raise OpError(f"the table of gains is {lut}, not s16 of {LUT_ELEMENTS}")
    return (TensorType(types[0].shape, DType.S16 if node.op == "SignalLog" else DType.U32),)


def _noise_params(node: Node, n: int) -> NoiseParams:
    keys = ("smoothing", "one_minus", "odd_smoothing", "odd_one_minus", "smoothing_bits", "bits", "clamping")
    return NoiseParams(n, *map(node.int_, keys))


def _params(node: Node, n: int) -> Params:
    if node.op == "SignalNoise":
        return _noise_params(node, n)
    if node.op == "SignalSubtractNoise":
        return SubtractParams(n, node.int_("smoothing_bits"), node.int_("bits"), node.int_("min_remaining"))
    if node.op == "SignalPcan":
        return PcanParams(n, node.int_("shift"))
    if node.op == "SignalLog":
        return LogParams(n, node.int_("correction_bits"), node.int_("scale"))
    return BankParams(node.int_("channels")) if node.op == "SignalFilterBank" else Elements(n)


_KERNEL = {
    "SignalFilterBank": "signal_filter_bank", "SignalSquareRoot": "signal_square_root", "SignalNoise": "signal_noise",
    "SignalSubtractNoise": "signal_subtract_noise", "SignalPcan": "signal_pcan", "SignalLog": "signal_log",
}  # fmt: skip
_ROLES = {
    "SignalFilterBank": ("in", "weights", "complements", "starts", "weight_starts", "widths"),
    "SignalSquareRoot": ("in", "shift"), "SignalNoise": ("in", "noise"), "SignalSubtractNoise": ("in", "noise"),
    "SignalPcan": ("in", "noise", "gains"), "SignalLog": ("in",),
}  # fmt: skip


def lower(node: Node, ctx: LowerCtx) -> None:
    """One kernel for each."""
    operands = {role: ctx.read(name) for role, name in zip(_ROLES[node.op], node.inputs, strict=True)}
    if node.op == "SignalLog":
        operands["table"] = ctx.const(log_table(), "log_table")
    params = _params(node, operands["in"].type.elements)
    ctx.emit(_KERNEL[node.op], {**operands, "out": ctx.write(node.outputs[0])}, params)


def _bank(a: Arrays, p: BankParams) -> None:
    tables = tuple(a[role] for role in _ROLES["SignalFilterBank"][1:])
    a["out"].reshape(-1)[:] = bank(a["in"], tables, p.channels)


def _root(a: Arrays, _: Elements) -> None:
    shift = int(a["shift"].reshape(-1)[0])
    a["out"].reshape(-1)[:] = [root(int(x)) >> shift for x in a["in"].reshape(-1)]


def _noise(a: Arrays, p: NoiseParams) -> None:
    a["out"].reshape(-1)[:] = noise_of(a["in"].reshape(-1), a["noise"].reshape(-1), p)


def _subtract(a: Arrays, p: SubtractParams) -> None:
    a["out"].reshape(-1)[:] = without_noise(a["in"].reshape(-1), a["noise"].reshape(-1), p)


def _pcan(a: Arrays, p: PcanParams) -> None:
    gains = a["gains"].reshape(-1).tolist()
    pairs = zip(a["in"].reshape(-1).tolist(), a["noise"].reshape(-1).tolist(), strict=True)
    a["out"].reshape(-1)[:] = [pcan(x, noise, gains, p.shift) for x, noise in pairs]


def _log(a: Arrays, p: LogParams) -> None:
    table = a["table"].reshape(-1).tolist()
    a["out"].reshape(-1)[:] = [log_of(x, table, p) for x in a["in"].reshape(-1).tolist()]


KERNELS = (
    KernelDef("signal_filter_bank",
              ("in in:u32", "in weights", "in complements", "in starts", "in weight_starts", "in widths",
               "out out:u64"),
              BankParams, _bank, kind="s16", doc="energies of channels that overlap"),
    KernelDef("signal_square_root", ("in in:u64", "in shift:s32", "out out:u32"), Elements, _root,
              doc="rounded square roots"),
    KernelDef("signal_noise", ("in in", "in noise", "out out"), NoiseParams, _noise, in_place=("noise",), kind="u32",
              doc="an estimate of each channel's noise"),
    KernelDef("signal_subtract_noise", ("in in", "in noise", "out out"), SubtractParams, _subtract,
              in_place=("in", "noise"), kind="u32", doc="channels without their noise"),
    KernelDef("signal_pcan", ("in in", "in noise", "in gains:s16", "out out"), PcanParams, _pcan,
              in_place=("in", "noise"), kind="u32", doc="gain of each channel by its noise"),
    KernelDef("signal_log", ("in in:u32", "in table:u16", "out out:s16"), LogParams, _log, doc="scaled logarithms"),
)  # fmt: skip

_BITS: dict[str, Attr] = {"smoothing_bits": Int(), "bits": Int()}
OPS = (
    OpDef("SignalFilterBank", infer_bank, derived, lower, {"channels": Int()},
          doc="energies of channels that overlap (internal)"),
    OpDef("SignalSquareRoot", infer_root, derived, lower, doc="rounded square roots (internal)"),
    OpDef("SignalNoise", infer_channels, derived, lower,
          {**_BITS, "smoothing": Int(), "one_minus": Int(), "odd_smoothing": Int(), "odd_one_minus": Int(),
           "clamping": Int(0)}, doc="an estimate of each channel's noise (internal)"),
    OpDef("SignalSubtractNoise", infer_channels, derived, lower, {**_BITS, "min_remaining": Int()},
          doc="channels without their noise (internal)"),
    OpDef("SignalPcan", infer_channels, derived, lower, {"shift": Int()},
          doc="gain of each channel by its noise (internal)"),
    OpDef("SignalLog", infer_channels, derived, lower, {"correction_bits": Int(), "scale": Int()},
          doc="scaled logarithms (internal)"),
)  # fmt: skip
