"""Helium variants of depthwise int8 convolutions (runtime_c/mve/glow_mve_dw.h)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from glowc.asm.write import quoted
from glowc.kernels.base import Prepared, plan_of
from glowc.kernels.common.constants import WEIGHTED, LayerPlan
from glowc.kernels.common.factors import Ends, with_factors
from glowc.kernels.common.float_shift import columns, with_scales
from glowc.kernels.common.straight import straight
from glowc.kernels.features import numbers
from glowc.kernels.mve import window_tile
from glowc.kernels.mve.shared import FAST, has_codes, is_clamped
from glowc.kernels.mve.stream import VECTOR, end_arrays, folded_bias, streamed
from glowc.kernels.shapes import Conv
from glowc.kernels.tile_features import inside
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_ROWS = 16  # of a window, whose addresses are on the stack
_OUTSIDE = 112  # bytes: layers of more than a vector and up to as many channels share the pixel outside of the image
_PART = 8  # taps of a long row that are printed
_MOST_TAPS = 255  # whose weights fit 16 bits when they are summed
_MOST_STEP = 508  # bytes
_COPIED_BYTES = 4096
_PER_ROW, _PER_RESULT, _PER_COLUMN, _PER_COPY, _PER_CALL, _PER_TAP = 3, 45, 5, 30, 100, 6  # instructions
_PER_REPEAT, _PER_VISIT, _PER_RUN, _PER_NINE_ROW = 150, 20, 60, 60  # of nine taps
_ORDER = [*range(0, 16, 4), *range(2, 16, 4), *range(1, 16, 4), *range(3, 16, 4)]


@dataclass(frozen=True, slots=True)
class Code:
    """The assembly of the taps of a row of the window, or of one of `turns` parts of its only row, which is long.

    `rest`: of the taps that are left then. `part`: taps of a part. `ends`: the macro that makes codes. `block`: the
    bytes of the constants of 16 channels.
    """

    taps: tuple[str, ...]
    rest: tuple[str, ...]
    turns: int
    part: int
    ends: str
    block: int


@dataclass(frozen=True, slots=True)
class Nine:
    """The assembly of nine taps of 16 channels, and of channels that are `left`, which layers without share.

    `clamped`: it reads limits. `number`: what r11 holds, 0: the zero point of the output.
    """

    block: tuple[str, ...]
    left: tuple[str, ...]
    clamped: bool
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthwisePlan(LayerPlan):
    """Windows of `k_h` rows: of nine taps (path "nine"), for which `nine` is printed; any (path "any"), which the C
    function `run` multiplies.

    Of others (path "window") `code` is printed, and columns of as many `pixels` of a row are copied to the scratch at a
    time.

    `merged`: so many pixels are taken as one of as many channels. The constants of so many `blocks` of 16 channels are
    in the scratch: all of merged pixels, and after them a pixel outside of the image, which is else the operand
    `biases`; or of channels that are left. `offset`: weights have a zero point. Biases and scales are in the stream of
    weights.
    """

    numbers: ClassVar[tuple[str, ...]] = ("pixels",)
    quoted: ClassVar[Callable[[Iterable[str]], str]] = staticmethod(quoted)

    k_h: int
    run: str = ""
    nine: Nine | None = None
    merged: int = 1
    blocks: int = 0
    offset: bool = False
    code: Code | None = None
    pixels: int = 0

    def work(self, instr: Instr) -> Mapping[str, float]:
        """Count the instructions of windows, and of the copies of their columns; nothing on the path "any"."""
        shape = Conv.of(instr)
        if self.nine is not None:
            row, around = self._nine_row(self.nine, instr)
            rows = shape.batch * shape.out_h
            return {"window_insns": rows * row, "plane_insns": rows * around + self.blocks * _PER_REPEAT}
        if self.code is None:
            return {}
        rows = shape.batch * int(inside(numbers(instr), "h").sum())
        outside = shape.batch * shape.out_h * shape.k_h - rows
        whole, left = divmod(shape.out_c, VECTOR)
        halves = 0 < left <= VECTOR // 2
        blocks, parts = whole + (left > 0), -(-shape.out_w // self.pixels)
        turns = whole * shape.out_w + (-(-shape.out_w // (1 + halves)) if left else 0)
        taps = (self.code.turns or 1) * (len(self.code.taps) + _PER_ROW) + len(self.code.rest)
        columns = (shape.out_w - parts) * shape.stride_w + parts * ((shape.k_w - 1) * shape.dil_w + 1)
        copies = rows * (whole + (left > 0) * (1 + halves)) * (columns * _PER_COLUMN + parts * _PER_COPY)
        sums = blocks * outside * shape.k_w * _PER_TAP
        return {
            "window_insns": turns * (rows * taps + shape.batch * shape.out_h * _PER_RESULT),
            "plane_insns": copies + sums + shape.batch * shape.out_h * blocks * parts * _PER_CALL,
        }

    def row_waste(self, instr: Instr) -> float:
        """Each call makes the constants that are in the scratch."""
        if self.nine is None:
            return 1.0
        rows, row, again = instr.int_("out_h"), sum(self._nine_row(self.nine, instr)), self.blocks * _PER_REPEAT
        return rows * (row + again) / (rows * row + again)

    def _nine_row(self, nine: Nine, instr: Instr) -> tuple[int, int]:
        """Return the instructions of the windows of a row, and those around them."""
        shape = Conv.of(instr)
        middle = int((inside(numbers(instr), "w") == shape.k_w).sum())
        rest = middle % self.merged
        insns, runs = 0, shape.out_w - middle + (middle >= self.merged) + (rest > 0)
        for visits, pixels in ((shape.out_w - middle, 1), (middle // self.merged, self.merged), (rest > 0, rest)):
            whole, left = divmod(pixels * shape.out_c, VECTOR)
            insns += visits * (whole * len(nine.block) + (left > 0) * len(nine.left) + _PER_VISIT)
        return insns, _PER_NINE_ROW + runs * _PER_RUN


def accepts(instr: Instr) -> bool:
    """Accept int8 layers whose input channels are adjacent; fewer than output channels if a byte can number them.

    Of fewer channels than half a vector products of pairs take fewer cycles.
    """
    shape = Conv.of(instr)
    plain = shape.in_c == shape.groups and (shape.in_c == shape.out_c or shape.in_c <= 1 << 8) and shape.in_ch == 1
    full = shape.out_c >= VECTOR // 2 or (_is_nine(instr, shape) and _merged(shape) > 1)
    return has_codes(instr) and plain and shape.k_h <= _ROWS and full


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the constants of a kernel of nine taps, or any."""
    shape, in_zp = Conv.of(instr), instr.int_("in_zp")
    weights = constants["weights"].reshape(-1, shape.out_c)
    bias = folded_bias(constants["bias"], (weights.astype(np.int64) - instr.int_("w_zp")).sum(0), in_zp)
    ends = Ends.of(constants, shape.out_c)
    made = _nine(instr, weights, bias, ends) if _is_nine(instr, shape) and pairs_fit(weights) else None
    packed, plan = made or _any(instr, weights, bias, ends)
    if plan.merged > 1:
        return Prepared({**ends.empty, "weights": packed, "bias": np.zeros(0, np.int8)}, plan)
    step = VECTOR if shape.in_c <= VECTOR else _OUTSIDE
    outside = np.full(-(-shape.in_c // step) * step, in_zp, np.int8)
    return Prepared({**ends.empty, "weights": packed, "bias": outside}, plan)


def _nine(instr: Instr, weights: np.ndarray, bias: np.ndarray, ends: Ends) -> tuple[np.ndarray, DepthwisePlan] | None:
    """Return the constants of nine taps; None where there are multipliers, and no single one gives the codes."""
    fixed = straight_form(weights, bias, ends, instr)
    if fixed is None and ends.shifts is not None:
        return None
    merged, numbers, left = _merged(Conv.of(instr)), fixed or (bias, ends.words), bias.size % VECTOR > 0
    clamped, end = is_clamped(instr), "line" if fixed else "scale"
    block, rest = (window_tile.nine_lines(end, clamped=clamped, some=some) for some in (False, True))
    nine = Nine(block, rest, clamped, 1 << window_tile.LINE.shift if fixed else 0)
    whole = bias.size // VECTOR * VECTOR if merged == 1 else 0
    blocks = -(-merged * bias.size // VECTOR) if merged > 1 else int(left)
    plan = DepthwisePlan(path="nine", k_h=3, nine=nine, merged=merged, blocks=blocks)
    return nine_taps(weights, *numbers, whole), plan


def straight_form(
    weights: np.ndarray, bias: np.ndarray, ends: Ends, instr: Instr
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return what sums begin with and mul, int32[C], of weights[taps, C] and inputs of -128 to 127: window_tile.LINE.

    None when a channel has none.
    """
    extremes = np.stack([weights.astype(np.int64) * x for x in (-128, 127)])
    sums = bias + extremes.min(0).sum(0), bias + extremes.max(0).sum(0)
    bounds = instr.int_("out_min"), instr.int_("out_max")
    found = straight(window_tile.LINE, ends, sums, instr.int_("out_zp"), bounds)
    if not found.found.all():
        return None
    return (bias.astype(np.int64) * (1 << window_tile.LINE.shift) + found.offset).astype(np.int32), found.mul.astype(
        np.int32
    )


def _any(instr: Instr, weights: np.ndarray, bias: np.ndarray, ends: Ends) -> tuple[np.ndarray, DepthwisePlan]:
    shape, offset = Conv.of(instr), instr.int_("w_zp") != 0
    gathered = shape.in_c != shape.out_c
    if not gathered and not offset and _is_printed(shape) and pairs_fit(_in_pairs(weights, shape)):
        packed = any_taps(weights, bias, ends, shape.in_c, halves=True)
        code = _code(shape, "SCALED" if ends.shifts is None else "FACTORS", packed.shape[1])
        return packed, DepthwisePlan(path="window", k_h=shape.k_h, code=code, pixels=_pixels(shape))
    forms = "_gathered" if gathered else "", "_offset" if offset else ""
    run = "glow_mve_dw" + "".join(forms) + ("" if ends.shifts is None else "_factors")
    packed = any_taps(weights, bias, ends, shape.in_c)
    return packed, DepthwisePlan(path="any", k_h=shape.k_h, run=run, offset=offset)


def _is_printed(shape: Conv) -> bool:
    """Say whether the taps of a row are printed: not of distances that no load moves on by."""
    few = shape.k_w <= window_tile.MOST or shape.k_h == 1
    return few and shape.k_h * shape.k_w <= _MOST_TAPS and VECTOR * shape.dil_w <= _MOST_STEP


def _code(shape: Conv, ends: str, block: int) -> Code:
    turns = shape.k_w // _PART if shape.k_w > window_tile.MOST else 0
    part = _PART if turns else shape.k_w
    left = shape.k_w - turns * part if turns else 0
    taps, rest = (window_tile.lines(count, VECTOR * shape.dil_w) for count in (part, left))
    return Code(taps, rest, turns, part, f"GLOW_MVE_DW_{ends}", block)


def _pixels(shape: Conv) -> int:
    """Return the pixels of a row whose columns are copied at a time: about as many each time."""
    columns = _COPIED_BYTES // (VECTOR * shape.k_h)
    most = max((columns - (shape.k_w - 1) * shape.dil_w - 1) // shape.stride_w + 1, 1)
    return -(-shape.out_w // -(-shape.out_w // most))


def _in_pairs(weights: np.ndarray, shape: Conv) -> np.ndarray:
    """Return weights[taps, C] without the last of each row of an odd number."""
    return weights.reshape(shape.k_h, shape.k_w, -1)[:, : shape.k_w // 2 * 2].reshape(-1, shape.out_c)


def _is_nine(instr: Instr, shape: Conv) -> bool:
    return shape.k_h == shape.k_w == 3 and shape.in_c == shape.out_c and instr.int_("w_zp") == 0


def _merged(shape: Conv) -> int:
    """Return how many adjacent pixels fill vectors best when they are one: 1 where they are apart."""
    if shape.in_col != shape.out_c or shape.stride_w != 1:
        return 1
    whole = max(shape.in_w - 2 * shape.dil_w, 1)  # pixels whose window is in the image

    def vectors(pixels: int) -> int:
        sizes = [pixels] * (whole // pixels) + [whole % pixels]
        return sum(-(-size * shape.out_c // VECTOR) for size in sizes)

    return min(range(1, max(_OUTSIDE // shape.out_c, 1) + 1), key=vectors)


def pairs_fit(weights: np.ndarray) -> bool:
    """Say whether the products of two taps of weights[taps, C] always fit 16 bits: not those of two weights -128."""
    pairs = weights[: weights.shape[0] // 2 * 2].reshape(-1, 2, weights.shape[1])
    return not (pairs == -128).all(1).any()


def nine_taps(weights: np.ndarray, begins: np.ndarray, ends: np.ndarray, whole: int) -> np.ndarray:
    """Return the constants of glow_mve_dw9 for weights[9, C]: of `whole` channels in blocks, of others as they are."""
    parts: list[np.ndarray] = []
    for c in range(0, whole, VECTOR):
        of = slice(c, c + VECTOR)
        parts += [weights[:, of], begins[of][_ORDER], ends[of][_ORDER]]
    parts += [begins[whole:], ends[whole:], weights[:, whole:]]
    return np.concatenate([np.ascontiguousarray(part).reshape(-1).view(np.int8) for part in parts])


def any_taps(weights: np.ndarray, bias: np.ndarray, ends: Ends, in_c: int, *, halves: bool = False) -> np.ndarray:
    """Return the constants of glow_mve_dw, or glow_mve_dw_gathered, for weights[taps, C]; by block of channels.

    With `halves`, up to 8 channels that are left stand twice, for two pixels.
    """
    taps, channels = weights.shape
    blocks = -(-channels // VECTOR)
    w = np.zeros((taps, blocks * VECTOR), np.int8)
    w[:, :channels] = weights
    source = np.arange(blocks * VECTOR)
    if halves and channels % VECTOR in range(1, VECTOR // 2 + 1):
        source[-(VECTOR // 2) :] -= VECTOR // 2
    filled = [np.pad(numbers, (0, blocks * VECTOR - channels))[source] for numbers in (bias, *end_arrays(ends))]
    parts = [a.reshape(blocks, VECTOR)[:, _ORDER].copy().view(np.int8).reshape(blocks, -1) for a in filled]
    rows = w[:, source].reshape(taps, blocks, VECTOR).transpose(1, 0, 2).reshape(blocks, -1)
    sources = np.arange(blocks * VECTOR) * in_c // channels
    gathered = [sources.astype(np.uint8).view(np.int8).reshape(blocks, -1)] if in_c != channels else []
    return np.concatenate((parts[0], *gathered, rows, *parts[1:]), axis=1)


def scratch_bytes(instr: Instr) -> int:
    """Return the bytes of constants, and of a pixel outside of the image if pixels are merged; or of copied columns."""
    plan, shape = plan_of(instr, DepthwisePlan), Conv.of(instr)
    if plan.pixels:
        columns = (plan.pixels - 1) * shape.stride_w + (shape.k_w - 1) * shape.dil_w + 1
        return 4 * VECTOR + VECTOR * shape.k_h * columns
    return (window_tile.NINE_BYTES + VECTOR * (plan.merged > 1)) * plan.blocks


LAYER = replace(
    FAST, accepts=accepts, prepare=prepare, packs=WEIGHTED, scratch_bytes=scratch_bytes, streams=True,
    header="glow_mve_dw.h",
)  # fmt: skip

VARIANTS = {
    "dwconv_s8": (LAYER,),
    "dwconv_s8q31": (with_factors(LAYER, "glow_mve_dw_q31.h"),),
    "dwconv_s8rs": (with_scales(LAYER, columns, streamed),),
}
