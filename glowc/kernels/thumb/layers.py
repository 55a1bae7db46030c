"""Variants for cores without FPU and DSP: int8 layers, the zero point in the bias (glow_thumb.h, glow_m3.h).

A sum s becomes a code by one integer product with the scale, s * floor(scale * 2^32), whose lower half is the
fraction. What was cut off moves it by less than |s|, and the rounding of the definition to float32 moves codes, which
are below 512, by 2^-16 at most: only fractions that near to a tie need the definition itself. The bias carries that
distance as its last element; 2^31 (always) when float32(s) may round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.numerics import requantize
from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.windows import is_point
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays

NEEDS = frozenset({"thumb2"})
_HEADER = "glow_m3.h"
_REGISTERS = 8  # for the sums of a depthwise tile and the weights of a kernel row
_HELD = 3  # weights of a row that is too wide for them
_MAX_OUTPUTS, _USUAL_OUTPUTS = 5, 4  # of a tile; layers with tiles alike share a function
_ROWS_BYTES = {"m3": 4096, "m0": 1024}  # of scratch for four rows; Armv6-M comes with little RAM
_MAX_SPAN, _MAX_KINDS = 24, 8
_ALWAYS = 1 << 31
_EXACT_SUM = 1 << 24  # float32 holds every integer up to it


def near_tie(sums: int) -> int:
    """Return how near to a tie, in 2^-32, codes of sums up to `sums` in magnitude may be misjudged."""
    return sums + (1 << 16) + 1 if sums <= _EXACT_SUM else _ALWAYS


def fold(weights: np.ndarray, constants: Arrays, instr: Instr) -> np.ndarray:
    """Return the biases of weights[O, taps] with the zero point folded in (modulo 2^32), and `near_tie`."""
    weights = weights.astype(np.int64) - instr.int_("w_zp")
    bias = constants["bias"].astype(np.int64) - instr.int_("in_zp") * weights.sum(1)
    _shrink_constant_channels(weights, bias, constants["scale"], instr)
    most = int((np.abs(bias) + 128 * np.abs(weights).sum(1)).max(initial=0))
    return wrapped(np.append(bias, near_tie(most)))


def _shrink_constant_channels(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray, instr: Instr) -> None:
    """Replace, in place, the large bias of a channel without weights by a smaller one of the same code."""
    small = np.clip(bias, 1 - _EXACT_SUM, _EXACT_SUM - 1)
    args = np.broadcast_to(scale, bias.shape), instr.int_("out_zp"), instr.int_("out_min"), instr.int_("out_max")
    alike = ~weights.any(1) & (requantize(bias, *args) == requantize(small, *args))
    bias[alike] = small[alike]


def wrapped(values: np.ndarray) -> np.ndarray:
    """Return values modulo 2^32 as int32."""
    return ((values + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int32)


def pack_fc(constants: Arrays, instr: Instr) -> Arrays:
    """Return weights of eight outputs in turn, those of the last ones as rows; fold the zero point into the bias."""
    weights = constants["weights"].reshape(instr.int_("out_n"), instr.int_("in_k"))
    return {"weights": fc_order(weights), "bias": fold(weights, constants, instr)}


def fc_order(weights: np.ndarray) -> np.ndarray:
    """Return weights[O, K] of eight outputs in turn, those of the last ones as rows."""
    outputs = header_number("glow_thumb_base.h", "GLOW_THUMB_FC")
    blocks = len(weights) - len(weights) % outputs
    turns = weights[:blocks].reshape(-1, outputs, weights.shape[1]).transpose(0, 2, 1)
    return np.concatenate((turns.reshape(-1), weights[blocks:].reshape(-1)))


def pack_fc_rows(constants: Arrays, instr: Instr) -> Arrays:
    """Fold the zero point into the bias; the weights stay."""
    weights = constants["weights"].reshape(instr.int_("out_n"), instr.int_("in_k"))
    return {"bias": fold(weights, constants, instr)}


def rows_scratch(instr: Instr) -> int:
    """Two words per input of four rows."""
    return 8 * instr.int_("in_k")


def accepts_rows(instr: Instr) -> bool:
    """Accept at least three rows, of which at most one in four is computed in vain."""
    rows = instr.int_("rows")
    few = rows < 3 or -(-rows // 4) * 3 > rows
    return not few and accepts_matrix(instr) and rows_scratch(instr) <= _ROWS_BYTES["m3"]


def accepts_few_inputs(instr: Instr) -> bool:
    """Accept rows as `accepts_rows`, with less scratch."""
    return accepts_rows(instr) and rows_scratch(instr) <= _ROWS_BYTES["m0"]


def fc_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Tell whether all int8 codes are allowed; if the weights have a zero point."""
    full = (instr.int_("out_min"), instr.int_("out_max")) == (-128, 127)
    return {"full": int(full), "offset": int(instr.int_("w_zp") != 0)}


def accepts_matrix(instr: Instr) -> bool:
    """Accept int8 layers without groups; the zero point of weights takes part in sums of 32 bits."""
    bytes_only = all(instr.operand(role).type.dtype is DType.S8 for role in ("in", "weights", "out"))
    return bytes_only and int(instr.params.get("groups", 1)) == 1


def pack_conv(constants: Arrays, instr: Instr) -> Arrays:
    """Fold the zero point into the bias; weights of a planar input stand in the order kernel row, channel, column."""
    weights = conv_weights(constants["weights"], instr)
    bias = fold(weights.reshape(len(weights), -1), constants, instr)
    return {"bias": bias, **conv_order(weights, instr)}


def conv_weights(weights: np.ndarray, instr: Instr) -> np.ndarray:
    """Return the weights [O, kH, kW, I] of a convolution."""
    return weights.reshape([instr.int_(key) for key in ("out_c", "k_h", "k_w", "in_c")])


def conv_order(weights: np.ndarray, instr: Instr) -> Arrays:
    """Return the `weights` of a planar input in the order kernel row, channel, column."""
    return {"weights": np.ascontiguousarray(weights.transpose(0, 1, 3, 2))} if instr.int_("in_ch") != 1 else {}


def plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Tell whether pixels are read in place; if a row of a window is dense; if channels are planes."""
    point, planar = is_point(instr), instr.int_("in_ch") != 1
    dense = instr.int_("in_col") == (1 if planar else instr.int_("in_c")) and instr.int_("dil_w") == 1
    return {"point": 1} if point else {"point": 0, "dense": int(dense), "planar": int(planar)}


def scratch(instr: Instr) -> int:
    """Two words per tap for four pixels, and one run of zero points."""
    taps = instr.int_("k_h") * instr.int_("k_w") * instr.int_("in_c")
    return 8 * taps + (0 if plan(instr)["point"] else instr.int_("in_c"))


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of `outputs` outputs that cover a row: kinds (columns missing left, right), by place."""

    outputs: int
    kinds: tuple[tuple[int, int], ...]
    first: tuple[int, ...]  # kinds of the tiles before the complete ones
    middle: int  # kind of the complete ones, -1: none
    last: tuple[int, ...]


def held_weights(k_w: int) -> int:
    """Return how many columns of a kernel row are taken at a time."""
    return k_w if k_w < _REGISTERS else _HELD


def cut_row(in_w: int, out_w: int, k_w: int, stride: int, dilation: int, pad: int) -> Tiles:
    """Return the cheapest tiles of a row of out_w outputs; the last one ends with the row and may overlap others."""
    held = held_weights(k_w)
    most = min(_MAX_OUTPUTS, _REGISTERS - held, out_w)

    def cost(outputs: int) -> float:
        columns = (outputs - 1) * stride + (held - 1) * dilation + 1
        per_tile = k_w * (outputs * k_w + min(columns, k_w * outputs) + k_w + columns // 2 + 4) + 12 * outputs + 30
        return -(-out_w // outputs) * per_tile * (0.93 if outputs == _USUAL_OUTPUTS else 1.0)

    outputs = min(range(1, most + 1), key=cost)
    columns = (outputs - 1) * stride + (k_w - 1) * dilation + 1
    starts = [min(x, out_w - outputs) * stride - pad for x in range(0, out_w, outputs)]
    missing = [(min(max(-x, 0), columns), min(max(x + columns - in_w, 0), columns)) for x in starts]
    kinds = tuple(dict.fromkeys(missing))
    whole = [i for i, kind in enumerate(missing) if kind == (0, 0)]
    if not whole:
        return Tiles(outputs, kinds, tuple(map(kinds.index, missing)), -1, ())
    first, last = missing[: whole[0]], missing[whole[-1] + 1 :]
    places = tuple(map(kinds.index, first)), tuple(map(kinds.index, last))
    return Tiles(outputs, kinds, places[0], kinds.index((0, 0)), places[1])


def _cut(instr: Instr) -> Tiles:
    return cut_row(*(instr.int_(key) for key in ("in_w", "out_w", "k_w", "stride_w", "dil_w", "pad_left")))


def accepts_depthwise(instr: Instr) -> bool:
    """Accept what `accepts_small` does, and windows that unrolled code serves."""
    if not accepts_small(instr):
        return False
    span = (instr.int_("k_w") - 1) * instr.int_("dil_w") + 1
    return span <= _MAX_SPAN and len(_cut(instr).kinds) <= _MAX_KINDS


def accepts_small(instr: Instr) -> bool:
    """Accept int8, channels of their own, which are adjacent."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    return instr.int_("k_h") <= header_number("glow_thumb.h", "GLOW_THUMB_DW_ROWS") and instr.int_("in_ch") == 1


def pack_depthwise(constants: Arrays, instr: Instr) -> Arrays:
    """Return weights channel by channel, and the biases with the zero point folded in."""
    weights = depthwise_weights(constants["weights"], instr)
    return {"weights": weights, "bias": fold(weights, constants, instr)}


def depthwise_weights(weights: np.ndarray, instr: Instr) -> np.ndarray:
    """Return weights [channels, taps]."""
    return np.ascontiguousarray(weights.reshape(-1, instr.int_("out_c")).T)


def _window(instr: Instr) -> dict[str, ParamValue]:
    plan: dict[str, ParamValue] = {key: instr.int_(key) for key in ("k_h", "k_w", "stride_w", "dil_w")}
    return plan | {"offset": int(instr.int_("w_zp") != 0), "mult": instr.int_("out_c") // instr.int_("in_c")}


def small_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Nothing is printed for tiles."""
    return _window(instr) | {"small": 1, "n": 1, "kinds": "", "first": "", "middle": -1, "last": ""}


def depthwise_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """What the tiles are printed for; `thumb2`: their inner loops are assembly for Armv7-M."""
    tiles = _cut(instr)
    full = (instr.int_("out_min"), instr.int_("out_max")) == (-128, 127)
    return _window(instr) | {
        "small": 0, "n": tiles.outputs, "kinds": ";".join(f"{left},{right}" for left, right in tiles.kinds),
        "first": ",".join(map(str, tiles.first)), "middle": tiles.middle, "last": ",".join(map(str, tiles.last)),
        "full": int(full), "thumb2": int(instr.isa == "m3"), "held": held_weights(instr.int_("k_w")),
    }  # fmt: skip


def _both(variant: KernelVariant) -> tuple[KernelVariant, KernelVariant]:
    """Return a variant for Armv7-M and, from the same template, for Armv6-M."""
    isa, header = (text.replace("m3", "m0") for text in (variant.isa, variant.header))
    return variant, replace(variant, isa=isa, needs=frozenset({"thumb1"}), header=header)


CONV = _both(
    KernelVariant("m3", NEEDS, rank=5, header=_HEADER, accepts=accepts_matrix, pack=pack_conv, plan=plan,
                  scratch_bytes=scratch, streams=True, row_block=4)
)  # fmt: skip
DEPTHWISE = (
    *_both(KernelVariant("m3", NEEDS, rank=5, header=_HEADER, accepts=accepts_depthwise, pack=pack_depthwise,
                         plan=depthwise_plan)),
    *_both(KernelVariant("m3s", NEEDS, rank=4, header="glow_thumb_dw.h", accepts=accepts_small,
                         pack=pack_depthwise, plan=small_plan)),
)  # fmt: skip
_ROWS = _both(
    KernelVariant("m3_rows", NEEDS, rank=6, header=_HEADER, template="{}_rows", accepts=accepts_rows, pack=pack_fc_rows,
                  scratch_bytes=rows_scratch)
)  # fmt: skip
FC = (
    *_both(KernelVariant("m3", NEEDS, rank=5, header=_HEADER, accepts=accepts_matrix, pack=pack_fc, plan=fc_plan)),
    _ROWS[0],
    replace(_ROWS[1], accepts=accepts_few_inputs),
)

VARIANTS = {
    "conv_s8": CONV,
    "dwconv_s8": DEPTHWISE,
    "fc_s8": FC,
}
