"""Layers with inputs of 16 bits on A64 and A32 (runtime_c/simd/glow_neon_wide.h), sums and products on A64
(runtime_c/simd/glow_neon_reals16.h).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import UNFIT, KernelVariant, Prepared, plan_in
from glowc.kernels.base import prepare as prepare_variant
from glowc.kernels.common.constants import SHIFTED, WEIGHTED
from glowc.kernels.common.factors import FIXED, high_factors
from glowc.kernels.common.float_shift import columns
from glowc.kernels.common.float_shift import rows as conv_rows
from glowc.kernels.common.pairs16 import fixed_variants
from glowc.kernels.common.rows import are_centred
from glowc.kernels.common.sums import bias_around_zero, fit_words
from glowc.kernels.common.windows import TapsPlan, taps_plan
from glowc.kernels.records import plain_records
from glowc.kernels.shapes import Conv
from glowc.kernels.simd.conv import row_slots
from glowc.kernels.simd.core import both
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_CHANNELS = 8
_PIXELS = 4
_OUTPUTS = 4
_SCRATCH_BYTES = 16384
_LEAST_SCALE = 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True)
class SixteenPlan(Plan):
    """`shifts`: the layer ends in a multiplication and a shift; `sixteen` channels at a time. `fixed`: codes end in
    TensorFlow Lite's multiplier and shift, one by one; `high`: by upper words of products, which the multipliers are
    made for. `filled`: padding has the zero point of the inputs, which is in
    the biases. `partial`: the constants of fewer than eight channels are those of eight.

    `path`: direct, pixels of the tensor itself; rows, windows of `k_h` rows gathered from `slots` padded rows,
    `spread`: tap by tap; else from the tensor.
    """

    shifts: bool = False
    sixteen: bool = False
    fixed: bool = False
    filled: bool = False
    high: bool = False
    partial: bool = False
    k_h: int = 0
    slots: int = 0
    spread: bool = False

    @property
    def ends_alone(self) -> bool:
        """True when codes end one by one."""
        return self.fixed

    @property
    def outputs(self) -> int:
        """Channels that four pixels are computed of together."""
        return 2 * _CHANNELS if self.sixteen else _CHANNELS

    @property
    def span(self) -> bool:
        """True when four pixels may be of several rows."""
        return self.path != "direct"

    pixels, grain = _PIXELS, 1


def _path(s: Conv) -> str:
    """Choose where windows come from: those of few or not adjacent channels are gathered from padded rows."""
    one = s.k_h == s.k_w == 1 and s.pad_top == s.pad_left == 0
    inside = (s.out_h - 1) * s.stride_h < s.in_h and (s.out_w - 1) * s.stride_w < s.in_w
    if one and inside and s.in_ch == 1 and s.out_w >= _PIXELS:
        return "direct"
    few = s.in_c < _CHANNELS or s.in_ch != 1
    return "rows" if few and s.out_w >= _PIXELS and _rows_bytes(s) <= _SCRATCH_BYTES else ""


def _rows_bytes(s: Conv) -> int:
    """Bytes of four windows and the padded rows of one; a copy of eight may go beyond the end of each."""
    columns = (s.out_w - 1) * s.stride_w + (s.k_w - 1) * s.dil_w + 1
    return 2 * (_PIXELS * s.inputs + _CHANNELS + row_slots(s) * (columns * s.in_c + _CHANNELS))


def _scratch(instr: Instr) -> int:
    """Bytes of four windows, and of padded rows that they are gathered from."""
    s = Conv.of(instr)
    return {"direct": 0, "rows": _rows_bytes(s)}.get(_path(s), 2 * _PIXELS * s.inputs)


def _are_kinds(instr: Instr) -> bool:
    """Say whether weights have zero point 0."""
    kinds = [instr.operand(role).type.dtype for role in ("in", "weights")]
    return kinds == [DType.S16, DType.S8] and instr.int_("w_zp") == 0


def _is_plain(instr: Instr) -> bool:
    """Say whether inputs have zero point 0, too."""
    return _are_kinds(instr) and instr.int_("in_zp") == 0


def _is_scaled(instr: Instr) -> bool:
    """Say whether they have, or sums are scaled, whose biases may have their zero point."""
    return _is_plain(instr) or (_are_kinds(instr) and instr.kernel.endswith("conv_s16"))


def _is_fixed(instr: Instr) -> bool:
    return instr.kernel.endswith(("q15", "q31"))


def _accepts(instr: Instr) -> bool:
    """Accept one group."""
    return _is_scaled(instr) and instr.int_("groups") == 1 and _scratch(instr) <= _SCRATCH_BYTES


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Lay the weights of an input for all channels side by side, those of few channels as if there were eight."""
    s, filled = Conv.of(instr), instr.int_("in_zp") != 0
    weights, path = constants["weights"].reshape(s.out_c, -1), _path(s)
    plan = SixteenPlan(
        path=path, shifts=instr.kernel.endswith("rs"), fixed=_is_fixed(instr), filled=filled,
        partial=s.out_c < _CHANNELS,
    )  # fmt: skip
    if path == "rows":
        plan = replace(plan, k_h=s.k_h, slots=row_slots(s), spread=s.dil_w > 1)
    packed = {"weights": weights}
    if filled:
        bias = bias_around_zero(constants, weights, instr)
        if bias is None:
            return UNFIT
        packed["bias"] = bias
    if plan.partial:
        packed = {role: _as_eight(array, s.out_c) for role, array in {**constants, **packed}.items()}
    return Prepared({**packed, "weights": np.ascontiguousarray(packed["weights"].T).reshape(-1)}, plan)


def _as_eight(array: np.ndarray, count: int) -> np.ndarray:
    """Return an array of `count` channels with zeros for those up to eight; one that all channels share as it is."""
    more = [(0, _CHANNELS - count), *[(0, 0)] * (array.ndim - 1)]
    return np.pad(array, more) if len(array) == count else array


def prepare_a64(constants: Arrays, instr: Instr) -> Prepared:
    """The same; codes of 16 bits of many channels are computed by 16 of them."""
    done = prepare(constants, instr)
    if done is UNFIT:
        return done
    plan = plan_in(done, SixteenPlan)
    many = instr.int_("out_c") >= 2 * _CHANNELS and instr.operand("out").type.dtype is DType.S16
    return replace(done, plan=replace(plan, sixteen=many and not plan.shifts))


_A64 = KernelVariant(
    "a64", rank=20, header="glow_neon_wide.h", accepts=_accepts, prepare=prepare_a64,
    packs=WEIGHTED, scratch_bytes=_scratch, streams=True, row_block=_PIXELS, records=plain_records,
)  # fmt: skip
_BOTH = (_A64, replace(_A64, isa="a32", prepare=prepare))


def _accepts_depthwise(instr: Instr) -> bool:
    """Accept one output channel per adjacent input channel, eight or more, and results of 16 bits."""
    s = Conv.of(instr)
    alike = s.in_c == s.out_c == s.groups >= _CHANNELS and s.in_ch == 1
    return _is_scaled(instr) and alike and instr.operand("out").type.dtype is DType.S16


def _accepts_fc(instr: Instr) -> bool:
    """Accept four outputs or more, of 16 bits."""
    return _is_plain(instr) and instr.int_("out_n") >= _OUTPUTS and instr.operand("out").type.dtype is DType.S16


@dataclass(frozen=True, slots=True, kw_only=True)
class WideTapsPlan(TapsPlan):
    """The taps of a depthwise window. `fixed`, `high`, `filled`: as in SixteenPlan."""

    fixed: bool = False
    high: bool = False
    filled: bool = False

    @property
    def ends_alone(self) -> bool:
        """True when codes end one by one."""
        return self.fixed


def _prepare_depthwise(constants: Arrays, instr: Instr) -> Prepared:
    taps, filled = taps_plan(instr), instr.int_("in_zp") != 0
    plan = WideTapsPlan(k_h=taps.k_h, k_w=taps.k_w, fixed=_is_fixed(instr), filled=filled)
    if not filled:
        return Prepared(plan=plan)
    bias = bias_around_zero(constants, columns(constants["weights"]), instr)
    return UNFIT if bias is None else Prepared({"bias": bias}, plan)


def _prepare_ends(_: Arrays, instr: Instr) -> Prepared:
    return Prepared(plan=SixteenPlan(fixed=_is_fixed(instr)))


def _fixed(plain: KernelVariant, by_channel: Callable[[np.ndarray], np.ndarray]) -> KernelVariant:
    """Return a variant as `plain` for layers whose sums of products need no more than 32 bits, else UNFIT."""

    def prepare_fixed(constants: Arrays, instr: Instr) -> Prepared:
        if not fit_words(constants, by_channel(constants["weights"]), instr):
            return UNFIT
        done, channels = prepare_variant(plain, constants, instr), constants["bias"].size
        high = high_factors(constants, channels, 31) if instr.kernel.endswith("q15") else None
        if high is None:
            return done
        plan = done.plan
        assert isinstance(plan, (SixteenPlan, WideTapsPlan))
        if isinstance(plan, SixteenPlan) and plan.partial:
            high = {role: _as_eight(array, channels) for role, array in high.items()}
        return replace(done, constants={**done.constants, **high}, plan=replace(plan, fixed=False, high=True))

    return replace(plain, prepare=prepare_fixed, packs=FIXED, header="glow_neon_wide_q31.h")


def _are_adjacent(instr: Instr) -> bool:
    """Accept adjacent codes, and rows of them of which one may be the same for all of the output."""
    rank = instr.int_("rank")
    last = f"{rank - 1}"
    return rank in (1, 2) and instr.int_(f"a{last}") == instr.int_(f"b{last}") == 1


def _accepts_sums(instr: Instr) -> bool:
    """Accept such codes with scales of which no step of a quotient is denormal or infinite."""
    scales = (float(instr.params[name]) for name in ("a_scale", "b_scale", "out_scale"))
    return _are_adjacent(instr) and all(_LEAST_SCALE <= scale <= 1 / _LEAST_SCALE for scale in scales)


def _accepts_products(instr: Instr) -> bool:
    """Accept such codes with zero points 0."""
    return _are_adjacent(instr) and are_centred(instr)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsPlan(Plan):
    """Rank 1: adjacent codes; rank 2: rows of them that may be repeated."""

    rank: int


def _prepare_pairs(_: Arrays, instr: Instr) -> Prepared:
    return Prepared(plan=PairsPlan(rank=instr.int_("rank")))


_PLAIN = KernelVariant("a64", rank=20, header="glow_neon_wide.h")
_PAIRS = KernelVariant(
    "a64", rank=20, header="glow_neon_reals16.h", in_place=True, prepare=_prepare_pairs,
)  # fmt: skip

_DEPTHWISE = both(replace(_PLAIN, packs=WEIGHTED, accepts=_accepts_depthwise, prepare=_prepare_depthwise))
_FC = both(replace(_PLAIN, accepts=_accepts_fc, records=plain_records, prepare=_prepare_ends))
_FIXED: Mapping[str, tuple[KernelVariant, ...]] = {
    "conv_s16": tuple(_fixed(variant, conv_rows) for variant in _BOTH),
    "dwconv_s16": tuple(_fixed(variant, columns) for variant in _DEPTHWISE),
    "fc_s16": tuple(_fixed(variant, conv_rows) for variant in _FC),
}

VARIANTS = {
    **{
        f"{kernel}{end}": tuple(replace(variant, template=f"simd/{kernel}") for variant in variants)
        for kernel, variants in _FIXED.items()
        for end in ("q15", "q31")
    },
    "conv_s16": _BOTH,
    "conv_s16rs": tuple(replace(variant, packs=SHIFTED) for variant in _BOTH),
    "dwconv_s16": _DEPTHWISE,
    "fc_s16": _FC,
    **fixed_variants(("a64", "a32"), "neon", 20, sums=4, products=3),
    "add_s16": (replace(_PAIRS, accepts=_accepts_sums),),
    "mul_s16": (replace(_PAIRS, accepts=_accepts_products),),
}
