"""Constants, paths and scratch of the A64 variants `neon`, `dot` and `i8mm` (runtime_c/simd/glow_a64.h has the blocks).

A block is `pixels` x `outputs`. Its inputs come in steps of 64 bytes: `grain` inputs of each of its pixels. A block of
outputs is one stream of words: biases with the input's zero point folded in, scales, then 64 bytes of weights a step:

    neon   grain 16: for each of 4 outputs its 16 weights
    dot    grain 8: inputs 0..3 of outputs 0..3, of outputs 4..7, then inputs 4..7 of both
    i8mm   grain 8: outputs (0,1), (2,3), (4,5), (6,7), 8 weights of each

The last block of outputs ends with the last output: where they do not divide, some outputs stand in two blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.common.constants import EMPTY
from glowc.kernels.common.shifted import in_blocks, shifted
from glowc.kernels.common.singles import with_singles
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays

CHUNK = 16
HEADER = "glow_a64.h"
_ROW_OUTPUTS = {"neon": 8, "dot": 16, "a32": 8}
_NARROW = {"neon": 0, "dot": 2, "i8mm": 4, "a32": 0}  # outputs of the blocks behind whole ones, for up to four


@dataclass(frozen=True, slots=True)
class Block:
    """What one block computes, and inputs of a pixel in one step."""

    pixels: int
    outputs: int
    grain: int


BLOCKS = {"neon": Block(4, 4, 16), "dot": Block(8, 8, 8), "i8mm": Block(8, 8, 8), "a32": Block(2, 4, 16)}


def padded(count: int, grain: int) -> int:
    """Return `count` rounded up to a multiple of `grain`."""
    return -(-count // grain) * grain


def folded(weights: np.ndarray, constants: Arrays, in_zp: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (bias, scale) of weights[O, ...]: the zero point in the bias, a scale for every output."""
    sums = weights.reshape(weights.shape[0], -1).astype(np.int64).sum(axis=1)
    bias = (constants["bias"].astype(np.int64) - in_zp * sums).astype(np.int32)
    return bias, np.broadcast_to(constants["scale"].reshape(-1), (weights.shape[0],)).astype(np.float32)


def is_bounded(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray) -> bool:
    """Prove that no product float32(acc) * scale of weights[O, ...] leaves +-32000, whatever the inputs.

    The rounded value plus a zero point then fits 16 bits and needs no saturation on the way to 8.
    """
    sums = np.abs(weights.reshape(weights.shape[0], -1).astype(np.int64)).sum(axis=1)
    largest = np.abs(bias.astype(np.int64)) + 128 * sums
    return bool(np.all(largest.astype(np.float64) * np.abs(scale.astype(np.float64)) <= 32000.0))


def blocks(out_n: int, outputs: int, last: int = 0) -> list[tuple[int, int]]:
    """Return (first output, outputs) of each block: whole ones, and one of `last` (or `outputs`) for what is left.

    It ends with the last output, where there are so many.
    """
    rest, last = out_n % outputs, last or outputs
    full = [(begin, outputs) for begin in range(0, out_n - rest, outputs)]
    return [*full, (max(out_n - last, 0), last)] if rest else full


def stream(
    weights: np.ndarray, bias: np.ndarray, scale: np.ndarray, parts: list[tuple[int, int]], grain: int, spare: int = 0
) -> np.ndarray:
    """Return the stream of weights[O, K] in blocks `parts`, as int32 words.

    A block holds its steps: `grain` weights of each output; then what is left of each output. Vectors may read `spare`
    bytes behind the last block.
    """
    whole, pieces = weights.shape[1] // grain * grain, []
    for begin, width in parts:
        rows = np.zeros((width, weights.shape[1]), weights.dtype)
        words = np.zeros((2, width), np.int32)
        part = slice(begin, begin + width)
        left = len(weights[part])
        rows[:left], words[0, :left], words[1, :left] = weights[part], bias[part], scale[part].view(np.int32)
        steps = rows[:, :whole].reshape(width, -1, grain).transpose(1, 0, 2)
        pieces += [words.tobytes(), steps.tobytes(), rows[:, whole:].tobytes()]
    data = b"".join(pieces) + bytes(spare)
    return np.frombuffer(data + bytes(-len(data) % 4), np.int32)


def marked(words: np.ndarray, *, bounded: bool, pairs: bool) -> np.ndarray:
    """Mark a stream by its element type: unsigned if bounded, 16 bits if two products fit 16 bits."""
    return words.view(("i", "u")[bounded] + ("4", "2")[pairs])


def is_dense_point(instr: Instr) -> bool:
    """Say whether a window is one pixel, of at least eight adjacent channels, and none is padding."""
    p = {key: int(value) for key, value in instr.params.items() if not isinstance(value, str)}
    one = p["k_h"] == p["k_w"] == 1 and p["pad_top"] == p["pad_left"] == 0
    inside = (p["out_h"] - 1) * p["stride_h"] < p["in_h"] and (p["out_w"] - 1) * p["stride_w"] < p["in_w"]
    return one and inside and p["in_ch"] == 1 and p["in_c"] >= 8


def is_spread(instr: Instr) -> bool:
    """Say whether the columns of a window lie apart."""
    return instr.int_("dil_w") > 1 and instr.int_("k_w") > 1


def _reach(instr: Instr) -> int:
    """Return the columns from the first of a window to its last."""
    return (instr.int_("k_w") - 1) * instr.int_("dil_w")


def path(isa: str, instr: Instr) -> str:
    """Choose where a block of pixels reads its inputs.

    direct: the tensor itself (8 inputs are half a step of grain 16); point: gathered from the tensor; rows: padded
    rows in scratch, one plane for each `grain` channels; pixels: windows gathered from padded rows.
    """
    p = {key: int(value) for key, value in instr.params.items() if not isinstance(value, str)}
    block = BLOCKS[isa]
    dense = p["in_ch"] == 1 and p["in_c"] >= 8
    if is_dense_point(instr):
        adjacent = p["in_c"] == p["in_col"] * p["stride_w"] and p["in_c"] in (8, block.grain)
        return "direct" if adjacent and not _spans(isa, instr) else "point"
    waste = padded(p["in_c"], block.grain) - p["in_c"]
    planes = dense and waste * 5 <= p["in_c"] and p["k_w"] <= 7 and p["stride_w"] <= (1 if is_spread(instr) else 4)
    return "rows" if planes and p["out_w"] >= block.pixels else "pixels"


def _spans(isa: str, instr: Instr) -> bool:
    """Say whether a block may hold pixels of several rows: where whole blocks do not fill a row well."""
    pixels, out_w = BLOCKS[isa].pixels, instr.int_("out_w")
    return out_w < pixels or (padded(out_w, pixels) - out_w) * 10 > out_w


def _grain(isa: str, instr: Instr) -> int:
    """Return the inputs of a pixel in one step."""
    return min(BLOCKS[isa].grain, instr.int_("in_c")) if path(isa, instr) == "direct" else BLOCKS[isa].grain


def _steps(isa: str, instr: Instr) -> int:
    grain, chosen = _grain(isa, instr), path(isa, instr)
    taps, in_c = instr.int_("k_h") * instr.int_("k_w"), instr.int_("in_c")
    return taps * padded(in_c, grain) // grain if chosen == "rows" else padded(taps * in_c, grain) // grain


def _conv_blocks(isa: str, instr: Instr) -> list[tuple[int, int]]:
    """Return whole blocks, and narrow ones where up to four outputs are left that they can end with."""
    out_c, outputs, narrow = instr.int_("out_c"), BLOCKS[isa].outputs, _NARROW[isa]
    left = padded(out_c % outputs, narrow) if narrow else 0
    if not 0 < left <= min(4, out_c):
        return blocks(out_c, outputs)
    whole = out_c - out_c % outputs
    return [*blocks(whole, outputs), *((begin, narrow) for begin in range(out_c - left, out_c, narrow))]


def _rest(isa: str, instr: Instr, *, tight: bool) -> int:
    """Return the inputs behind the last whole step, where a gathered block ends with zeros; of windows if `tight`."""
    chosen = path(isa, instr)
    if chosen == "pixels" and tight:
        return instr.int_("k_h") * instr.int_("k_w") * instr.int_("in_c") % BLOCKS[isa].grain
    return instr.int_("in_c") % BLOCKS[isa].grain if chosen == "point" else 0


def _accepts_tight(isa: str, instr: Instr) -> bool:
    """Accept windows whose inputs do not fill the last step."""
    return accepts(instr) and path(isa, instr) == "pixels" and _rest(isa, instr, tight=True) > 0


def row_slots(instr: Instr) -> int:
    """Padded rows held at a time: those of one window."""
    return (instr.int_("k_h") - 1) * instr.int_("dil_h") + 1


def limits(instr: Instr) -> Mapping[str, ParamValue]:
    """Return what the end of a block needs: is the zero point odd, is the range narrower than int8."""
    return {
        "odd": instr.int_("out_zp") % 2,
        "low": int(instr.int_("out_min") > -128),
        "high": int(instr.int_("out_max") < 127),
    }


def conv_plan(isa: str, instr: Instr, *, tight: bool = False) -> Mapping[str, ParamValue]:
    """Return what the template prints with."""
    block, chosen, rest = BLOCKS[isa], path(isa, instr), _rest(isa, instr, tight=tight)
    width = _conv_blocks(isa, instr)[-1][1]
    narrow = width < block.outputs
    k_h, k_w, in_c, stride = (instr.int_(key) for key in ("k_h", "k_w", "in_c", "stride_w"))
    inputs = in_c if chosen == "point" else k_h * k_w * in_c
    whole = inputs // block.grain if rest else _steps(isa, instr)
    plan: dict[str, ParamValue] = {
        "path": chosen, "isa": isa, "pixels": block.pixels, "outputs": block.outputs, "grain": _grain(isa, instr),
        "span": int(chosen in ("point", "pixels") and _spans(isa, instr)), **limits(instr),
        "few": int(instr.int_("out_c") < width), "narrow": _NARROW[isa] if narrow or rest else 0,
        "rest": int(rest > 0 or (narrow and chosen == "point")),
        "twice": int(isa == "a32" and chosen in ("point", "pixels") and whole % 2 == 0),
        "shifted": int(instr.int_("w_zp") != 0),
    }  # fmt: skip
    if chosen in ("rows", "pixels"):
        plan |= {"k_w": k_w, "k_h": k_h, "slots": row_slots(instr), "reach": _reach(instr)}
    if chosen == "rows":
        groups = padded(in_c, block.grain) // block.grain
        plan |= {"stride": stride, "groups": groups, "twice": int(isa in ("dot", "i8mm") and k_h * groups % 2 == 0),
                 "apart": (instr.int_("dil_w") if is_spread(instr) else 1) * block.grain}  # fmt: skip
    if chosen == "pixels":
        plan |= {"pieces": k_w if is_spread(instr) else 1, "piece": in_c if is_spread(instr) else k_w * in_c,
                 "width": padded(k_h * k_w * in_c, CHUNK), "steps": _steps(isa, instr)}  # fmt: skip
    return plan


def row_bytes(isa: str, instr: Instr) -> int:
    """Bytes of one padded row in scratch; a copy of 16 bytes may read behind the last window."""
    grain, stride = BLOCKS[isa].grain, instr.int_("stride_w")
    if path(isa, instr) == "rows":
        columns = instr.int_("out_w") + _reach(instr) // stride
        return columns * stride * padded(instr.int_("in_c"), grain)
    columns = (instr.int_("out_w") - 1) * stride + _reach(instr) + 1
    return padded(columns * instr.int_("in_c") + CHUNK, CHUNK)


def conv_scratch(isa: str, instr: Instr) -> int:
    """Bytes: a block of outputs, of inputs, the windows of a block, padded rows, their sums; in this order."""
    plan, block = conv_plan(isa, instr), BLOCKS[isa]
    size = padded(block.pixels * instr.int_("out_c"), CHUNK) if plan["span"] else 0
    if plan["path"] in ("point", "pixels"):
        size += _steps(isa, instr) * block.grain * block.pixels
    if plan["path"] == "pixels":
        size += block.pixels * int(plan["width"]) + CHUNK
    if plan["path"] == "rows" and plan["shifted"]:
        size += 4 * row_slots(instr) * ((instr.int_("out_w") - 1) * instr.int_("stride_w") + _reach(instr) + 1)
    return size + (row_slots(instr) * row_bytes(isa, instr) if plan["path"] in ("rows", "pixels") else 0)


def _columns(instr: Instr) -> list[int]:
    """Return the columns of a window in the order of the inner loop: those of one phase of the stride are adjacent."""
    return sorted(range(instr.int_("k_w")), key=lambda kx: kx % instr.int_("stride_w"))


def pack_conv(isa: str, constants: Arrays, instr: Instr, *, tight: bool = False) -> Arrays:
    """Pack the constants of conv_s8."""
    out_c, k_h, k_w, in_c = (instr.int_(key) for key in ("out_c", "k_h", "k_w", "in_c"))
    grain, rest = _grain(isa, instr), _rest(isa, instr, tight=tight)
    weights, shift = shifted(constants["weights"].reshape(out_c, k_h, k_w, in_c), instr.int_("w_zp"))
    if path(isa, instr) == "rows":
        planes = np.zeros((out_c, k_h, k_w, padded(in_c, grain)), np.int8)
        planes[..., :in_c] = weights
        taps = planes.reshape(out_c, k_h, k_w, -1, grain)[:, :, _columns(instr)]
        rows = taps.transpose(0, 1, 3, 2, 4).reshape(out_c, -1)
    else:
        inputs, unit = k_h * k_w * in_c, 4 if isa == "dot" else 1
        rows = np.zeros((out_c, padded(inputs, unit if rest else grain)), np.int8)
        rows[:, :inputs] = weights.reshape(out_c, -1)
    parts = _conv_blocks(isa, instr)
    spare = -rows.shape[1] % grain * (parts[-1][1] if isa == "dot" else 1)
    return _pack(isa, constants, (weights, shift), rows, instr, parts, 4 if isa == "dot" else grain, spare)


def _fc_blocks(isa: str, instr: Instr) -> list[tuple[int, int]]:
    out_n, outputs = instr.int_("out_n"), _ROW_OUTPUTS[isa]
    return blocks(out_n, outputs, padded(out_n % outputs, 4))


def pack_fc(isa: str, constants: Arrays, instr: Instr) -> Arrays:
    """Pack the constants of fc_s8: whole steps of 16 inputs, then what is left (dot: always steps of 4)."""
    out_n, in_k = instr.int_("out_n"), instr.int_("in_k")
    weights, shift = shifted(constants["weights"].reshape(out_n, in_k), instr.int_("w_zp"))
    columns, grain = (padded(in_k, 4), 4) if isa == "dot" else (in_k, CHUNK)
    rows = np.zeros((out_n, columns), np.int8)
    rows[:, :in_k] = weights
    return _pack(isa, constants, (weights, shift), rows, instr, _fc_blocks(isa, instr), grain, -columns % grain)


def _pack(
    isa: str, constants: Arrays, coded: tuple[np.ndarray, np.ndarray], rows: np.ndarray, instr: Instr,
    parts: list[tuple[int, int]], grain: int, spare: int = 0,
) -> Arrays:  # fmt: skip
    """Return the stream of rows[O, K], the codes in the order of the kernel; the shifts of the codes as `bias`."""
    codes, shift = coded
    weights = codes.reshape(len(codes), -1) + shift[:, None]
    bias, scale = folded(weights, constants, instr.int_("in_zp"))
    words = stream(rows, bias, scale, parts, grain, spare)
    pairs = isa in ("neon", "a32") and int(codes.min(initial=0)) > -128
    packed = {"weights": marked(words, bounded=is_bounded(weights, bias, scale), pairs=pairs), **EMPTY}
    return packed | ({"bias": in_blocks(shift, parts)} if instr.int_("w_zp") else {})


def accepts(instr: Instr) -> bool:
    """Accept int8 layers without groups."""
    if any(instr.operand(role).type.dtype is not DType.S8 for role in ("in", "weights", "out")):
        return False
    return int(instr.params.get("groups", 1)) == 1


def fc_plan(isa: str, instr: Instr) -> Mapping[str, ParamValue]:
    """Return what the template prints with."""
    outputs, out_n, rest = _ROW_OUTPUTS[isa], instr.int_("out_n"), instr.int_("in_k") % CHUNK
    width = _fc_blocks(isa, instr)[-1][1]
    return {
        "isa": isa, "outputs": outputs, "whole": int(out_n >= outputs), "few": int(out_n < width),
        "narrow": width if out_n % outputs else 0, "steps": int(instr.int_("in_k") >= CHUNK),
        "rest": -(-rest // 4) if isa == "dot" else int(rest > 0), **limits(instr),
        "shifted": int(instr.int_("w_zp") != 0),
    }  # fmt: skip


def conv_variant(isa: str, needs: set[str], rank: int, header: str = HEADER) -> KernelVariant:
    """Return a variant of conv_s8."""
    return KernelVariant(
        isa, frozenset(needs), rank=rank, accepts=accepts, header=header,
        pack=lambda constants, instr: pack_conv(isa, constants, instr),
        scratch_bytes=lambda instr: conv_scratch(isa, instr), plan=lambda instr: conv_plan(isa, instr), streams=True,
        row_block=BLOCKS[isa].pixels,
    )  # fmt: skip


def tight_variant(plain: KernelVariant) -> KernelVariant:
    """Return `plain` for windows whose weights fill no whole step with zeros."""
    isa = plain.isa
    return replace(
        plain, isa=f"{isa}_tight", rank=plain.rank - 4, like=isa, accepts=lambda instr: _accepts_tight(isa, instr),
        pack=lambda constants, instr: pack_conv(isa, constants, instr, tight=True),
        plan=lambda instr: conv_plan(isa, instr, tight=True),
    )  # fmt: skip


def fc_variant(isa: str, needs: set[str], rank: int, header: str = HEADER) -> KernelVariant:
    """Return a variant of fc_s8."""
    return KernelVariant(
        isa, frozenset(needs), rank=rank, accepts=accepts, header=header,
        pack=lambda constants, instr: pack_fc(isa, constants, instr), plan=lambda instr: fc_plan(isa, instr),
    )  # fmt: skip


CONV = (
    conv_variant("neon", {"a64", "neon"}, 30),
    conv_variant("dot", {"a64", "neon", "dot"}, 32),
    conv_variant("i8mm", {"a64", "neon", "dot", "i8mm"}, 33),
)
CONV_TIGHT = tuple(tight_variant(variant) for variant in CONV[:2])
FC = (fc_variant("neon", {"a64", "neon"}, 30), fc_variant("dot", {"a64", "neon", "dot"}, 32))
FC_SINGLE = tuple(with_singles(variant, "glow_neon_dot_s8", "glow_a64_single.h") for variant in FC)

VARIANTS = {
    "conv_s8": (*CONV, *CONV_TIGHT),
    "fc_s8": (*FC, *FC_SINGLE),
}
