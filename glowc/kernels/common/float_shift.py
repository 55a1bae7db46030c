"""int8 layers that end in a multiplication and a shift (RequantShift) as ordinary layers with a float32 scale.

A bias and a scale per channel are searched that give every code for every sum that the layer can have. Where a channel
has no such pair the variant is not for the layer: UNFIT.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from glowc.kernels.base import UNFIT, KernelVariant, Prepared, prepare
from glowc.kernels.common.constants import SHIFTED, LayerPlan
from glowc.kernels.common.sums import sums
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_LEAST = 2.0**-40  # of a scale


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


def scaled(
    plain: KernelVariant,
    by_channel: Callable[[np.ndarray], np.ndarray],
    renamed: Callable[[Prepared], Prepared],
) -> KernelVariant:
    """Return a variant that prepares layers as `plain` does those with a float32 scale, else UNFIT.

    `by_channel` turns weights into [channels, inputs of a sum]; `renamed` turns what `plain` prepared into weights, mul
    and offset, and a plan that says so.
    """

    def prepare_scaled(constants: Arrays, instr: Instr) -> Prepared:
        weights = constants["weights"]
        low, high = sums(by_channel(weights).astype(np.int64), instr)
        form = float_form(constants["mul"], constants["offset"], low, high, instr)
        if form is None:
            return UNFIT
        return renamed(prepare(plain, {"weights": weights, "bias": form[0], "scale": form[1]}, instr))

    return replace(plain, prepare=prepare_scaled, packs=SHIFTED)


def with_scales(
    plain: KernelVariant, by_channel: Callable[[np.ndarray], np.ndarray], converted: Callable[[Arrays], Arrays]
) -> KernelVariant:
    """Return a variant as `scaled`, of one whose plan names the operands that its biases and scales are.

    `converted` turns the constants of `plain` into weights, mul and offset.
    """

    def renamed(prepared: Prepared) -> Prepared:
        plan = prepared.plan
        assert isinstance(plan, LayerPlan)
        shifted = replace(plan, path=plan.path or "stream", biases="offset", scales="mul")
        return Prepared(converted(prepared.constants), shifted)

    return scaled(plain, by_channel, renamed)


def rows(weights: np.ndarray) -> np.ndarray:
    """Return the weights of a convolution or a fully connected layer, [channels, ...], as [channels, inputs]."""
    return weights.reshape(len(weights), -1)


def columns(weights: np.ndarray) -> np.ndarray:
    """Return depthwise weights, [..., channels], as [channels, inputs]."""
    return weights.reshape(-1, weights.shape[-1]).T
