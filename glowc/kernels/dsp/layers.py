"""Constants of the `dsp` variants: weights, biases and scales as one stream (glow_dsp_gemm.h tells its form).

The forms of its blocks, and when two channels share a halfword, are told in packing_dsp_forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Packed, facts_of
from glowc.kernels.common.constants import EMPTY
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.singles import with_singles
from glowc.kernels.common.windows import is_point
from glowc.kernels.dsp.forms import GROUP, dual_blocks, form_of, joined, padded_layer, run_table, runs
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays

NEEDS = frozenset({"dsp", "fpu", "unaligned"})
_BYTES_COST = 3  # instructions that a block in bytes takes more for two inputs of two pixels
_MAX_EXPANDED = 1024  # inputs of a fully connected layer that may take two bytes of scratch each
_MAX_TAPS = 36  # of a depthwise window, for the size of code
_MAX_PLANAR_ROWS = 16  # channels x kernel rows of a planar input that are printed one by one
_MAX_KINDS, _MAX_COLUMNS = 6, 24


def halfwords(weights: np.ndarray) -> np.ndarray:
    """Return weights[O, K] as [O, K / 2, 2] in the order of SXTB16: of four inputs 0 and 2, then 1 and 3."""
    pairs = weights.reshape(len(weights), -1, GROUP)[..., (0, 2, 1, 3)]
    return pairs.reshape(len(weights), -1, 2)


def stream(weights: np.ndarray, constants: Arrays, instr: Instr, unit: int = 1) -> Packed:
    """Return the stream of weights[O, K], K filled up to units of groups: int16 when wide, else int32."""
    layer = padded_layer(weights, constants, instr, GROUP, unit)
    blocks, steps = len(layer.weights) // GROUP, layer.weights.shape[1] // 2
    whole = np.asarray(layer.dual.reshape(blocks, 2).all(1))
    found = runs(whole, _BYTES_COST * steps, rest=len(weights) % GROUP != 0)
    kind, dual = form_of(layer.narrow, found), dual_blocks(found) & layer.narrow
    layer = layer.negated(dual)
    pairs = halfwords(layer.weights).reshape(blocks, GROUP, -1, 2).transpose(0, 2, 1, 3)
    first = layer.biases.reshape(blocks, GROUP)[:, (0, 2, 1, 3)]
    first[dual, :2] = 256 * first[dual, :2] + first[dual, 2:]
    first = ((first + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int32)  # as the sums, modulo 2^32
    halves = pairs if kind == "wide" else joined(pairs[:, :, 0::2], pairs[:, :, 1::2], dual)
    parts = np.concatenate((first, _words(halves), layer.scales.view(np.int32).reshape(blocks, GROUP)), axis=1)
    words = np.concatenate((run_table(kind, found), parts.reshape(-1)))
    return Packed({"weights": words.view(np.int16) if kind == "wide" else words, **EMPTY}, {"form": kind})


def form(instr: Instr) -> str:
    """Return the form that packing found for a layer's weights: dual, mixed or wide."""
    return str(facts_of(instr).get("form", "dual"))


def _words(halves: np.ndarray) -> np.ndarray:
    """Return pairs of halfwords along the last axis as int32 words, one row per block."""
    return np.ascontiguousarray(halves.astype(np.int16)).view(np.int32).reshape(len(halves), -1)


def pack_fc(constants: Arrays, instr: Instr, groups: int = 1) -> Packed:
    """Pack the constants of fc_s8; a unit are so many groups of inputs."""
    weights = constants["weights"].reshape(instr.int_("out_n"), instr.int_("in_k"))
    return stream(weights, constants, instr, groups)


def direct_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Print fc_s8 with inputs that are expanded again for every block."""
    return {"path": "direct", "end": "", "form": form(instr)}


def units_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Print fc_s8 with inputs that are expanded once, in units of eight."""
    return {"path": "units", "end": ending(instr), "form": form(instr)}


def accepts_units(instr: Instr) -> bool:
    """Accept what is more than one block, of inputs that may take two bytes of scratch each."""
    return accepts_any_zero(instr) and instr.int_("in_k") <= _MAX_EXPANDED and instr.int_("out_n") > GROUP


def units_scratch(instr: Instr) -> int:
    """A row of inputs as int16."""
    return -(-instr.int_("in_k") // 8) * 16


def ending(instr: Instr) -> str:
    """Tell how codes are ended: u8, v8: zero point -128; u8, n8: without limits; v8: with an upper one only."""
    limits = instr.int_("out_min") > -128, instr.int_("out_max") < 127
    if instr.int_("out_zp") == -128 and not limits[0]:
        return "v8" if limits[1] else "u8"
    return "s8" if any(limits) else "n8"


def pack_conv(constants: Arrays, instr: Instr) -> Packed:
    """Pack the constants of conv_s8."""
    return stream(collected(constants["weights"], instr), constants, instr)


def pairs_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """How the inputs of a pixel are collected, and the form of the weights."""
    return {**conv_plan(instr), "form": form(instr)}


def collected(weights: np.ndarray, instr: Instr) -> np.ndarray:
    """Return conv_s8's weights[O, K] in the order in which the inputs are collected."""
    weights = weights.reshape([instr.int_(key) for key in ("out_c", "k_h", "k_w", "in_c")])
    path = conv_plan(instr)["path"]
    if path == "three":
        return _three(weights.transpose(0, 1, 3, 2))
    return (weights.transpose(0, 3, 1, 2) if path == "planar" else weights).reshape(len(weights), -1)


def _three(weights: np.ndarray) -> np.ndarray:
    """Reorder weights[O, kH, C, 3]: columns 0 and 2 of every row as pairs, then columns 1, two rows a pair."""
    rows = weights.reshape(len(weights), -1, 3)
    count = rows.shape[1]
    middle = np.pad(rows[:, :, 1], ((0, 0), (0, count % 2))).reshape(len(weights), -1, 2)
    pairs = np.concatenate((rows[:, :, 0::2], middle), axis=1)
    pairs = np.pad(pairs, ((0, 0), (0, pairs.shape[1] % 2), (0, 0)))
    return np.ascontiguousarray(pairs.reshape(len(weights), -1, 2, 2).transpose(0, 1, 3, 2)).reshape(len(weights), -1)


def accepts_matrix(instr: Instr) -> bool:
    """Accept int8 layers without groups whose weights have zero point 0."""
    return accepts_any_zero(instr) and instr.int_("w_zp") == 0


def accepts_any_zero(instr: Instr) -> bool:
    """Accept int8 layers without groups; weights less their zero point may need a halfword each."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    return int(instr.params.get("groups", 1)) == 1


def conv_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Choose how the inputs of a pixel are collected.

    point: a 1x1 kernel reads one pixel; rows: whole groups in every kernel row; three: a planar input and a kernel
    three columns wide; gather, planar: byte by byte.
    """
    p = {key: int(value) for key, value in instr.params.items() if not isinstance(value, str)}
    run = p["k_w"] * p["in_c"]
    if is_point(instr):
        return {"path": "point", "tail": int(p["in_c"] % GROUP != 0)}
    dense = p["in_ch"] == 1 and p["in_col"] == p["in_c"] and (p["dil_w"] == 1 or p["k_w"] == 1)
    if dense and run % GROUP == 0:
        return {"path": "rows", "words": int(p["in_c"] % GROUP == 0), "run": GROUP if run == GROUP else 0}
    planar = p["in_ch"] != 1 or p["in_c"] == 1
    if planar and p["k_w"] == 3 and p["dil_w"] == p["in_col"] == 1 and p["stride_w"] in (1, 2):
        rows = p["in_c"] * p["k_h"]
        if rows <= _MAX_PLANAR_ROWS:
            return {"path": "three", "k_h": p["k_h"], "in_c": p["in_c"], "rows": rows, "stride_w": p["stride_w"]}
    if p["in_ch"] != 1 and p["in_c"] > 1:
        return {"path": "planar"}
    return {"path": "gather", "run": run if dense else 0}


def conv_scratch(instr: Instr) -> int:
    """Two pixels of inputs as int16, and as bytes where they are gathered."""
    plan = conv_plan(instr)
    groups = -(-instr.int_("k_h") * instr.int_("k_w") * instr.int_("in_c") // GROUP)
    if plan["path"] == "three":
        groups = -(-(int(plan["rows"]) + -(-int(plan["rows"]) // 2)) // 2)
    return groups * (24 if plan["path"] in ("gather", "planar") else 16)


def tile_outputs(k_w: int) -> int:
    """Outputs of a depthwise tile: nine registers hold the weights of a row and two sums per output."""
    return min(3, (9 - held_columns(k_w)) // 2)


def held_columns(k_w: int) -> int:
    """Return how many columns of a row's weights the registers hold."""
    return k_w if k_w <= 7 else 3


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of an output row: (outputs, first, end) with the columns [first, end) that exist."""

    kinds: tuple[tuple[int, int, int], ...]
    middle: int  # index of the kind that is repeated, -1: none
    left: int  # outputs before it
    right: int  # outputs behind it


def plan_tiles(in_w: int, out_w: int, k_w: int, stride: int, dilation: int, pad: int) -> Tiles:
    """Cut a row into tiles: in the middle those without padding, which are all alike."""
    most, span = tile_outputs(k_w), (k_w - 1) * dilation + 1
    inside = [x for x in range(out_w) if x * stride >= pad and x * stride - pad + span <= in_w]

    def kind(x: int, outputs: int) -> tuple[int, int, int]:
        begin = x * stride - pad
        return outputs, max(0, -begin), min((outputs - 1) * stride + span, in_w - begin)

    def cut(begin: int, end: int) -> list[tuple[int, int, int]]:
        return [kind(x, min(most, end - x)) for x in range(begin, end, most)]

    left = -(-inside[0] // most) * most if inside else out_w
    count = (inside[-1] + 1 - left) // most if inside else 0
    if count < 1:
        return Tiles(tuple(cut(0, out_w)), -1, 0, 0)
    right = left + count * most
    kinds = (*cut(0, left), kind(left, most), *cut(right, out_w))
    return Tiles(kinds, left // most, left, out_w - right)


def _tiles(instr: Instr) -> Tiles:
    return plan_tiles(*(instr.int_(key) for key in ("in_w", "out_w", "k_w", "stride_w", "dil_w", "pad_left")))


def depthwise_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """What the tiles are printed for."""
    tiles = _tiles(instr)
    plan: dict[str, ParamValue] = {key: instr.int_(key) for key in ("k_h", "k_w", "stride_w", "dil_w")}
    plain = (instr.int_("out_zp"), instr.int_("out_min"), instr.int_("out_max")) == (-128, -128, 127)
    texts = (",".join(map(str, (*kind, int(_begins_late(kind, instr))))) for kind in tiles.kinds)
    return plan | {
        "tiles": ";".join(texts), "middle": tiles.middle,
        "left": tiles.left, "right": tiles.right, "u8": int(plain), "offset": int(instr.int_("w_zp") != 0),
        "mult": depthwise_multiplier(instr), "held": held_columns(instr.int_("k_w")),
    }  # fmt: skip


def _begins_late(kind: tuple[int, int, int], instr: Instr) -> bool:
    """Say whether in a row of the window the first output's sums change after those of all others.

    The columns come in the order of the template: of those that are 0, 1, 2, 4 or 8 behind a base the last one first,
    then the base moves by one; of a column the last output first.
    """
    outputs, first, end = kind
    if held_columns(instr.int_("k_w")) < instr.int_("k_w"):
        return False
    stride, dilation = instr.int_("stride_w"), instr.int_("dil_w")
    uses = [(x * stride + kx * dilation, x) for x in range(outputs) for kx in range(instr.int_("k_w"))]
    left, order = sorted({column for column, _ in uses if first <= column < end}), list[int]()
    for base in range(first, end):
        now = [column for column in left if column - base in (0, 1, 2, 4, 8)]
        order += [x for column in reversed(now) for x in range(outputs - 1, -1, -1) if (column, x) in uses]
        left = [column for column in left if column not in now]
    return set(order[: order.index(0)] if 0 in order else ()) == set(range(1, outputs))


def accepts_depthwise(instr: Instr) -> bool:
    """Accept channels of their own, at least four of them, and windows that fit the registers."""
    p = {key: int(value) for key, value in instr.params.items() if not isinstance(value, str)}
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    rows = header_number("glow_dsp_dw.h", "GLOW_DSP_MAX_ROWS")
    if p["in_c"] < GROUP or p["in_ch"] != 1 or p["k_h"] > rows or p["k_h"] * p["k_w"] > _MAX_TAPS:
        return False
    kinds = _tiles(instr).kinds
    return len(kinds) <= _MAX_KINDS and all(first < end <= first + _MAX_COLUMNS for _, first, end in kinds)


def pack_depthwise(constants: Arrays, instr: Instr) -> Arrays:
    """Pack the constants of dwconv_s8: a stream of the first output channels of all inputs, then of the second"""
    out_c, mult = instr.int_("out_c"), depthwise_multiplier(instr)
    weights = constants["weights"].reshape(-1, out_c).astype(np.int8)
    scale = np.broadcast_to(constants["scale"].reshape(-1).astype(np.float32), out_c)
    bias = constants["bias"].reshape(-1).astype(np.int32)
    parts = [_depthwise_stream(weights[:, j::mult], bias[j::mult], scale[j::mult]) for j in range(mult)]
    return {"weights": np.concatenate(parts), **EMPTY}


def depthwise_multiplier(instr: Instr) -> int:
    """Return how many output channels an input channel has."""
    return instr.int_("out_c") // instr.int_("in_c")


def _depthwise_stream(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return, per four channels, bias, weights[taps, C] and scale in the order they are read."""
    channels = bias.size
    starts = [*range(0, channels - 3, GROUP), *([channels - GROUP] if channels % GROUP else [])]
    parts = []
    for c in starts:
        word = np.ascontiguousarray(weights[:, c : c + GROUP]).view(np.int32).reshape(-1)
        b, s = bias[c : c + GROUP], np.ascontiguousarray(scale[c : c + GROUP]).view(np.int32)
        parts += [b[0::2], b[1::2], word, s[0::2], s[1::2]]
    return np.concatenate(parts)


def accepts_add(instr: Instr) -> bool:
    """Accept operands without broadcasting."""
    return int(instr.params["rank"]) == 1 and instr.int_("a0") == instr.int_("b0") == 1


def accepts_add_rows(instr: Instr) -> bool:
    """Accept operands without broadcasting, or with adjacent elements in rows of at least eight."""
    dense = int(instr.params["rank"]) == 2 and instr.int_("a1") == instr.int_("b1") == 1
    return accepts_add(instr) or (dense and instr.int_("d1") >= 8)


def accepts_average(instr: Instr) -> bool:
    """Accept windows whose sums fit halfwords, and adjacent channels."""
    return instr.int_("k_h") * instr.int_("k_w") <= 255 and instr.int_("in_ch") == 1 and instr.int_("in_c") >= GROUP


ADD = KernelVariant("dsp", NEEDS, rank=10, header="glow_dsp_add.h", in_place=True, accepts=accepts_add_rows)
AVERAGE = KernelVariant("dsp", NEEDS, rank=10, header="glow_dsp.h", accepts=accepts_average)
DEPTHWISE = KernelVariant(
    "dsp", NEEDS, rank=10, header="glow_dsp_dw.h", accepts=accepts_depthwise, pack=pack_depthwise, plan=depthwise_plan
)
FC = (
    KernelVariant(
        "dsp", NEEDS, rank=10, header="glow_dsp_fc.h", accepts=accepts_any_zero, pack=pack_fc, plan=direct_plan,
    ),
    KernelVariant(
        "dsp_units", NEEDS, rank=11, header="glow_dsp_fc.h", speed_only=True, accepts=accepts_units,
        pack=lambda constants, instr: pack_fc(constants, instr, 2), scratch_bytes=units_scratch, plan=units_plan,
    ),
)  # fmt: skip
FC_SINGLE = with_singles(FC[0], "glow_dsp_dot_s8", "glow_dsp_single.h")
CONV = KernelVariant(
    "dsp",
    NEEDS,
    rank=10,
    header="glow_dsp_gemm.h",
    accepts=accepts_any_zero,
    pack=pack_conv,
    scratch_bytes=conv_scratch,
    plan=pairs_plan,
    streams=True,
    row_block=2,
)

VARIANTS = {
    "add_s8": (ADD,),
    "add_s8f": (ADD,),
    "avg_pool_s8": (AVERAGE,),
    "conv_s8": (CONV,),
    "dwconv_s8": (DEPTHWISE,),
    "fc_s8": (*FC, FC_SINGLE),
}
