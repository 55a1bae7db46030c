"""Helium variants of int8 layers that end in a multiplication and a shift (RequantShift): the kernels of the ordinary
layers, with a bias and a float32 scale per channel that give every code for every sum that the layer can have.

Where a channel has no such pair the template prints the definition: packing leaves the constants as they are, and the
plan tells it by the dimensions of the weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from glowc.graph.types import DType
from glowc.instr.ir import Instr, ParamValue
from glowc.ops import packing_mve
from glowc.ops.base import Arrays, KernelVariant
from glowc.ops.packing_dsp_shift import sums

_LEAST = 2.0**-40  # of a scale

Plan = Callable[[Instr], Mapping[str, ParamValue]]
Pack = Callable[[Arrays, Instr], Arrays]


def float_form(
    mul: np.ndarray, offset: np.ndarray, low: np.ndarray, high: np.ndarray, instr: Instr
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (bias int32[C], scale float32[C]) for sums between low[C] and high[C]; None when a channel has none.

    rne(float32(sum + bias) * scale) rises with the sum as the definition does, so that both agree everywhere when they
    agree at the ends and on both sides of each sum where the code of the definition changes.
    """
    shift, zp = instr.int_("shift"), instr.int_("out_zp")
    bounds = instr.int_("out_min"), instr.int_("out_max")
    mul, offset = (np.broadcast_to(v, low.shape).astype(np.int64)[:, None] for v in (mul, offset))
    if shift < 1 or mul.min() < 1 or mul.min() / 2.0**shift < _LEAST:
        return None
    codes = np.arange(bounds[0] + 1, bounds[1] + 1)
    changes = -((offset - ((codes - zp) << shift)) // mul)
    at = np.concatenate((changes - 1, changes, low[:, None], high[:, None]), axis=1)
    at = np.clip(at, low[:, None], high[:, None]).astype(np.int64)
    want = np.clip(((at * mul + offset) >> shift) + zp, *bounds)
    exact = (mul / 2.0**shift).astype(np.float32)
    whole = (offset - (1 << shift >> 1)) // mul
    bias, scale, found = whole.copy(), exact.copy(), np.zeros(low.size, bool)
    for more, steps in itertools.product((0, 1), (0, 1, -1)):
        factor, acc = exact + np.float32(steps) * np.spacing(exact), at + whole + more
        got = np.clip(np.rint((acc.astype(np.float32) * factor).astype(np.float64)) + zp, *bounds)
        fits = ((got == want) & (np.abs(acc) < 1 << 31)).all(1) & ~found
        bias[fits], scale[fits], found = (whole + more)[fits], factor[fits], found | fits
    return (bias[:, 0].astype(np.int32), scale[:, 0]) if found.all() else None


def _packed(by_channel: Callable[[np.ndarray], np.ndarray], pack: Pack) -> Pack:
    """Pack as an ordinary layer; `by_channel` turns its weights into [channels, inputs of a sum]."""

    def convert(constants: Arrays, instr: Instr) -> Arrays:
        weights = constants["weights"]
        low, high = sums(by_channel(weights).astype(np.int64), instr)
        form = float_form(constants["mul"], constants["offset"], low, high, instr)
        if form is None:
            return {}
        plain = pack({"weights": weights, "bias": form[0], "scale": form[1]}, instr)
        return {"weights": plain["weights"], "mul": np.zeros(1, np.int32), "offset": plain["bias"]}

    return convert


def _planned(rank: int, plan: Plan) -> Plan:
    """Plan as an ordinary layer when the weights were packed: when they have not their `rank` any more."""
    return lambda instr: (
        {"path": "ref"} if instr.operand("weights").type.rank == rank else {"path": "stream", **plan(instr)}
    )


def _variant(plain: KernelVariant, rank: int, by_channel: Callable[[np.ndarray], np.ndarray]) -> KernelVariant:
    assert plain.pack is not None
    return replace(plain, pack=_packed(by_channel, plain.pack), plan=_planned(rank, plain.plan))


def _rows(weights: np.ndarray) -> np.ndarray:
    return weights.reshape(len(weights), -1)


def _columns(weights: np.ndarray) -> np.ndarray:
    return weights.reshape(-1, weights.shape[-1]).T


CONV = _variant(packing_mve.CONV, 4, _rows)
DEPTHWISE = _variant(packing_mve.DEPTHWISE, 3, _columns)
FC = _variant(packing_mve.FC, 2, _rows)


def _pack_add(constants: Arrays, instr: Instr) -> Arrays:
    """Return `mul` as the bits of float32 (v, start): a * v + (b * v + start), half to even, is the code less the zero
    point, or nothing when that is not so for all pairs of codes."""
    shift, mul, offset = instr.int_("shift"), int(constants["mul"][0]), int(constants["offset"][0])
    a_zp, b_zp, zp, low, high = (instr.int_(key) for key in ("a_zp", "b_zp", "out_zp", "out_min", "out_max"))
    sign = 1 if instr.params["sign"] == "+" else -1
    a, b = (v.reshape(-1) for v in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    want = np.clip(((((a - a_zp) + sign * (b - b_zp)) * mul + offset) >> shift) + zp, low, high)
    factor = np.float32(mul / 2.0**shift)
    exact = (offset - (1 << shift >> 1)) / 2.0**shift - (a_zp + sign * b_zp) * float(factor)
    for steps in range(4):
        start = np.float32(exact) + np.float32(steps) * np.spacing(np.float32(abs(exact) + 1))
        inner = np.float32(sign * b.astype(np.float64) * factor + start).astype(np.float64)
        sums = np.float32(a.astype(np.float64) * factor + inner).astype(np.float64)
        if np.array_equal(np.clip(np.rint(sums) + zp, low, high), want):
            return {"mul": np.asarray([factor, start], np.float32).view(np.int32)}
    return {}


def _plan_add(instr: Instr) -> Mapping[str, ParamValue]:
    packed = instr.operand("mul").type.elements == 2
    return {"path": "fused" if packed else "ref", "rank": instr.int_("rank")}


def _accepts_add(instr: Instr) -> bool:
    return packing_mve.accepts_add(instr) and instr.operand("out").type.dtype is DType.S8


ADD = replace(packing_mve.ADD, accepts=_accepts_add, pack=_pack_add, plan=_plan_add)
