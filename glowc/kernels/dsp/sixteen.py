"""Variants of layers with inputs of 16 bits, which are SMLAD's own.

Convolutions take four pixels at a time; their weights take a halfword each, run after run of adjacent inputs (a kernel
row, a tap of a dilated one; of a planar input one per channel), in the stream of glow_dsp_quad.h. Sums are ended as
their kernel defines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import UNFIT, KernelVariant, Prepared, plan_in
from glowc.kernels.common.constants import SHIFTED, WEIGHTED
from glowc.kernels.common.factors import high_factors
from glowc.kernels.common.float_shift import columns, rows
from glowc.kernels.common.sums import bias_around_zero, fit_words, sums
from glowc.kernels.common.windows import TapsPlan, taps_plan
from glowc.kernels.dsp.forms import joined
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.dsp.quad_tile import QuadTile
from glowc.kernels.dsp.shift import short_offset
from glowc.kernels.dsp.stream import quad_stream, words_before
from glowc.kernels.records import Records, equal_records, plain_records
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_PIXELS = 4
_CHANNELS = 16  # whose sums are in scratch at a time
_SCRATCH_BYTES = 32768


def _is_planar(instr: Instr) -> bool:
    return instr.int_("in_ch") != 1 and instr.int_("in_c") > 1


def _columns(instr: Instr) -> int:
    """Runs of a kernel row."""
    return instr.int_("k_w") if instr.int_("dil_w") > 1 else 1


def _run(instr: Instr) -> int:
    """Adjacent inputs under a window."""
    return instr.int_("k_w") // _columns(instr) * (1 if _is_planar(instr) else instr.int_("in_c"))


def _inputs(instr: Instr) -> int:
    """Inputs of a pixel, in whole steps, at least two."""
    return max(4, -(-instr.int_("k_h") * instr.int_("k_w") * instr.int_("in_c") // 2) * 2)


def _scratch(instr: Instr) -> int:
    """Four pixels of inputs, and sums of some channels."""
    return 2 * _PIXELS * _inputs(instr) + 4 * _PIXELS * _CHANNELS


@dataclass(frozen=True, slots=True, kw_only=True)
class WidePlan(TapsPlan):
    """`channels` whose sums are in scratch at a time; `full`: all int8 codes are allowed.

    path: "rows", the inputs of a kernel row are adjacent; "planar", those of a kernel row and channel; `spread`: not of
    a row, but of each of its taps. `shifts`: the layer ends in a multiplication and a shift, in 32 bits where `short`;
    `fixed`: in TensorFlow Lite's, `high`: by upper words of products. `narrow`: weights are bytes, and scales in their
    stream. `end`: how scaled sums become codes (templates/kernels/dsp/_sixteen.j2). `filled`: padding has the zero
    point of the inputs, which is in the biases.
    Depthwise layers have the taps of whole windows.
    """

    full: bool = False
    channels: int = 0
    shifts: bool = False
    short: bool = False
    fixed: bool = False
    high: bool = False
    narrow: bool = False
    end: str = ""
    filled: bool = False
    spread: bool = False
    odd: bool = False

    @property
    def cost_path(self) -> str:
        """The path; of taps that lie apart another one."""
        return f"{self.path}_spread" if self.spread else self.path

    @property
    def product(self) -> QuadTile:
        """The products of four pixels and pairs of channels."""
        return QuadTile("bytes" if self.narrow else "wide", "sums")

    def work(self, instr: Instr) -> Mapping[str, float]:
        """Count the outputs that end in products of 64 bits, and the runs of inputs that a convolution collects."""
        found = {"long_ends": float(instr.operand("out").type.elements)} if self.fixed and not self.high else {}
        if not self.path:
            return found
        runs = instr.int_("k_h") * _columns(instr) * (instr.int_("in_c") if self.path == "planar" else 1)
        return found | {"window_runs": float(instr.int_("batch") * instr.int_("out_h") * instr.int_("out_w") * runs)}


def _plan(instr: Instr) -> WidePlan:
    full = (instr.int_("out_min"), instr.int_("out_max")) == (-128, 127)
    shifts, path = instr.kernel.endswith("rs"), "planar" if _is_planar(instr) else "rows"
    plan = WidePlan(path=path, full=full, channels=_CHANNELS, shifts=shifts, fixed=_is_fixed(instr), end=_end(instr))
    return replace(plan, filled=instr.int_("in_zp") != 0, spread=_columns(instr) > 1, odd=_run(instr) % 2 == 1)


def _end(instr: Instr) -> str:
    """Return which codes there are around a zero point 0, of a layer whose sums are scaled."""
    if _is_fixed(instr) or instr.kernel.endswith("rs"):
        return ""
    limits = instr.int_("out_zp"), instr.int_("out_min"), instr.int_("out_max")
    return {(0, -32768, 32767): "s16", (0, 0, 32767): "u15"}.get(limits, "")


def _is_fixed(instr: Instr) -> bool:
    return any(operand.role == "mul" for operand in instr.operands) and not instr.kernel.endswith("rs")


def prepare_ends(constants: Arrays, instr: Instr) -> Prepared:
    """Constants stay, but for factors by upper words; say how sums end."""
    plan = WidePlan(shifts=instr.kernel.endswith("rs"), fixed=_is_fixed(instr), end=_end(instr))
    high = high_factors(constants, constants["bias"].size, 32) if instr.kernel.endswith("q15") else None
    return Prepared(high or {}, replace(plan, high=high is not None))


def prepare_depthwise(constants: Arrays, instr: Instr) -> Prepared:
    """The same; whole windows have their taps one by one, biases the zero point of the inputs where it is not 0."""
    done, taps, filled = prepare_ends(constants, instr), taps_plan(instr), instr.int_("in_zp") != 0
    plan = replace(plan_in(done, WidePlan), k_h=taps.k_h, k_w=taps.k_w, filled=filled)
    if not filled:
        return replace(done, plan=plan)
    bias = bias_around_zero(constants, columns(constants["weights"]).astype(np.int64) - instr.int_("w_zp"), instr)
    return UNFIT if bias is None else Prepared({"bias": bias}, plan)


def _are_kinds(instr: Instr) -> bool:
    """Say whether weights less their zero point fit a halfword."""
    return [instr.operand(role).type.dtype for role in ("in", "weights")] == [DType.S16, DType.S8]


def _is_possible(instr: Instr) -> bool:
    """Say whether inputs have zero point 0 besides."""
    return _are_kinds(instr) and instr.int_("in_zp") == 0


def _accepts_fc(instr: Instr) -> bool:
    """Accept two outputs or more."""
    return _is_possible(instr) and instr.int_("out_n") >= 2


def _accepts_depthwise(instr: Instr) -> bool:
    """Accept one output channel per input channel, at least four adjacent ones."""
    alike = instr.int_("in_c") == instr.int_("out_c") == instr.int_("groups") >= 4
    possible = _is_possible(instr) or (_are_kinds(instr) and instr.kernel == "dwconv_s16")
    return possible and alike and instr.int_("in_ch") == 1


def _accepts(instr: Instr) -> bool:
    """Accept inputs that are adjacent under the window; only scaled sums of codes that are not around 0."""
    around_zero = instr.int_("in_zp") == 0 or instr.kernel == "conv_s16"
    if not (around_zero and _are_kinds(instr)) or instr.int_("groups") != 1:
        return False
    adjacent = instr.int_("in_col") == (1 if _is_planar(instr) else instr.int_("in_c"))
    return adjacent and instr.int_("out_c") >= 2 and _scratch(instr) <= _SCRATCH_BYTES


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of weights and biases; of a shift the short offset, too."""
    channels = instr.int_("out_c")
    weights = constants["weights"].reshape([instr.int_(key) for key in ("out_c", "k_h", "k_w", "in_c")])
    weights = weights.astype(np.int64) - instr.int_("w_zp")
    flat = weights.reshape(channels, -1)
    bias = bias_around_zero(constants, flat, instr) if "bias" in constants else 0
    if bias is None:
        return UNFIT
    if _is_planar(instr):
        weights = weights.transpose(0, 1, 3, 2)
    inputs = weights.reshape(channels, -1)
    padded = np.pad(inputs, ((0, channels % 2), (0, _inputs(instr) - inputs.shape[1])))
    steps = padded.shape[1] // 2
    pairs, plan = padded.reshape(-1, 2, steps, 2), _plan(instr)
    biases = np.zeros(len(padded), np.int64)
    biases[:channels] = bias
    if plan.fixed:
        high = high_factors(constants, channels, 32) if instr.kernel.endswith("q15") else None
        plan = replace(plan, high=high is not None)
        return _prepare_fixed(pairs, biases.reshape(-1, 2), {**constants, **(high or {})}, plan)
    if not plan.shifts and _are_bytes(pairs):
        return _prepare_scaled(pairs, biases.reshape(-1, 2), constants, plan)
    halves, none = pairs.transpose(0, 2, 1, 3), np.zeros((len(pairs), 2), np.int32)
    packed: dict[str, np.ndarray] = {"weights": quad_stream(none, biases.reshape(-1, 2), halves, steps).view(np.int16)}
    if not plan.shifts:
        return Prepared({**packed, "bias": np.zeros(1, np.int32)}, plan)
    byte_codes = instr.operand("out").type.dtype.bits == 8  # as those of the short ending
    offset = short_offset(*sums(flat, instr), constants, instr) if byte_codes else None
    if offset is None:
        return Prepared(packed, plan)
    return Prepared({**packed, "offset": offset}, replace(plan, short=True))


def _are_bytes(pairs: np.ndarray) -> bool:
    return bool((pairs == pairs.astype(np.int8)).all())


def _joined(pairs: np.ndarray) -> np.ndarray:
    """Return the weights of pairs of channels, each in a byte."""
    return joined(pairs[:, 0], pairs[:, 1], np.zeros(len(pairs), bool))


def _prepare_scaled(pairs: np.ndarray, biases: np.ndarray, constants: Arrays, plan: WidePlan) -> Prepared:
    """Return the stream of weights[B, 2, S, 2] in bytes, with the scales."""
    scales, channels = np.zeros(biases.shape, np.float32), constants["bias"].size
    scales.reshape(-1)[:channels] = np.broadcast_to(constants["scale"], channels)
    words = quad_stream(scales.view(np.int32), biases, _joined(pairs), pairs.shape[2])
    found = {"weights": words, "bias": np.zeros(1, np.int32), "scale": np.zeros(1, np.float32)}
    return Prepared(found, replace(plan, narrow=True))


def _prepare_fixed(pairs: np.ndarray, biases: np.ndarray, constants: Arrays, plan: WidePlan) -> Prepared:
    """Return the stream of weights[B, 2, S, 2], in bytes where they fit, with the multipliers where scales would be."""
    steps, narrow = pairs.shape[2], _are_bytes(pairs)
    mul = np.zeros(biases.shape, np.int32)
    channels = constants["bias"].size
    mul.reshape(-1)[:channels] = np.broadcast_to(constants["mul"], channels)
    halves = _joined(pairs) if narrow else pairs.transpose(0, 2, 1, 3)
    words = quad_stream(mul, biases, halves, steps)
    found = {"weights": words if narrow else words.view(np.int16), "mul": np.zeros(1, np.int32)}
    return Prepared({**found, "bias": np.zeros(1, constants["bias"].dtype)}, replace(plan, narrow=narrow))


def _records(instr: Instr) -> Records | None:
    """Return where weights of bytes lie: behind the multipliers or scales and the biases of two channels."""
    if not isinstance(instr.plan, WidePlan) or not instr.plan.narrow:
        return None
    lead = words_before(_inputs(instr) // 2, 1)
    return equal_records(instr, -(-instr.int_("out_c") // 2), head=4, lead=lead)


CONV = KernelVariant(
    "dsp", also=FPU, rank=11, header="glow_dsp_shift.h", accepts=_accepts, prepare=prepare, packs=WEIGHTED,
    scratch_bytes=_scratch, streams=True, row_block=4, records=_records,
)  # fmt: skip
DEPTHWISE = KernelVariant(
    "dsp", rank=11, header="glow_dsp_sixteen.h", accepts=_accepts_depthwise, prepare=prepare_depthwise
)
FC = replace(DEPTHWISE, accepts=_accepts_fc, prepare=prepare_ends, records=plain_records)


def _fixed(plain: KernelVariant, by_channel: Callable[[np.ndarray], np.ndarray], template: str) -> KernelVariant:
    """Return a variant as `plain` for layers whose sums of products need no more than 32 bits, else UNFIT."""
    assert plain.prepare is not None
    prepare_plain = plain.prepare

    def prepare_fixed(constants: Arrays, instr: Instr) -> Prepared:
        fits = fit_words(constants, by_channel(constants["weights"]), instr)
        return prepare_plain(constants, instr) if fits else UNFIT

    return replace(
        plain, prepare=prepare_fixed, packs=frozenset({"weights", "bias", "mul"}), header="glow_dsp_sixteen_q31.h",
        template=template,
    )  # fmt: skip


FIXED = {
    "conv": _fixed(CONV, rows, "conv_s16"),
    "dwconv": _fixed(DEPTHWISE, columns, "dwconv_s16"),
    "fc": _fixed(FC, rows, "fc_s16"),
}

VARIANTS = {
    **{f"{base}_s16{end}": (variant,) for base, variant in FIXED.items() for end in ("q15", "q31")},
    "conv_s16": (CONV,),
    "conv_s16rs": (replace(CONV, packs=SHIFTED),),
    "dwconv_s16": (replace(DEPTHWISE, packs=WEIGHTED),),
    "dwconv_s16rs": (DEPTHWISE,),
    "fc_s16": (FC,),
    "fc_s16rs": (FC,),
}
