"""Constants of the `mve` variants, each as one stream that the kernel reads once (runtime_c/mve/glow_mve_dot.h,
glow_mve_run.h, glow_mve_dw.h).

The zero point of the input is folded into the biases: a kernel multiplies the codes as they are, and padding holds
the zero point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from glowc.graph.numerics import fma
from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, LoosePlan
from glowc.kernels.common.constants import EMPTY
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.singles import with_singles
from glowc.kernels.mve.fixed import fixed_form
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays

_GROUP = 4  # output channels
_VECTOR = 16  # bytes
_ROWS = 16  # of a depthwise window, whose addresses are on the stack
_OUTSIDE = 112  # bytes: layers of up to as many channels share the pixel outside of the image
_ORDER = [*range(0, 16, 4), *range(2, 16, 4), *range(1, 16, 4), *range(3, 16, 4)]
_HARD = 2.0**-8  # near enough to a rounding boundary for float32 to go wrong
_PADDING = 128  # bytes of zeros that a layer may spend on whole vectors
_GATHERED = 128  # inputs of a pixel that a table of offsets serves
_RUN_PIXELS = 8  # fewer in a row are not worth the start of glow_mve_run
_MOST_PIXELS = 32  # that are gathered before they are multiplied
_PACKED_PIXELS = 6  # fewer are multiplied faster as pairs


def _step_bytes() -> int:
    """Return the bytes of glow_mve_step_t."""
    return header_number("glow_mve_dot.h", "GLOW_MVE_STEP_BYTES")


def _segments() -> int:
    """Return the most kernel rows that are read in place."""
    return header_number("glow_mve_dot.h", "GLOW_MVE_SEGMENTS")


def _runs() -> range:
    """Return the inputs of a gathered pixel for which there is a glow_mve_run; that of the fewest is for others."""
    fewest, most = (header_number("glow_mve_run.h", f"GLOW_MVE_RUN_{name}") for name in ("FEWEST", "MOST"))
    return range(2 * fewest, most + 1, fewest)


def _codes(instr: Instr) -> bool:
    """Accept int8 layers whose weights have zero point 0."""
    return _bytes(instr) and instr.int_("w_zp") == 0


def _bytes(instr: Instr) -> bool:
    return all(instr.operand(role).type.dtype is DType.S8 for role in ("in", "weights", "out"))


def _per_channel(values: np.ndarray, count: int) -> np.ndarray:
    return np.broadcast_to(values.reshape(-1), (count,))


def stream(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray, in_zp: int) -> np.ndarray:
    """Return the stream of weights[O, segments, K] as bytes; copies of the last channel fill the last group up."""
    out_n, segments, k = weights.shape
    groups, whole = -(-out_n // _GROUP), k // _VECTOR * _VECTOR
    channels = np.minimum(np.arange(groups * _GROUP), out_n - 1)
    w = weights[channels].reshape(groups, _GROUP, segments, k)
    blocks = w[..., :whole].reshape(groups, _GROUP, segments, -1, _VECTOR).transpose(0, 2, 3, 1, 4)
    tails = w[..., whole:].transpose(0, 2, 1, 3)
    runs = np.concatenate((blocks.reshape(groups, segments, -1), tails.reshape(groups, segments, -1)), axis=2)
    biases = folded_bias(bias, weights.reshape(out_n, -1).astype(np.int64).sum(1), in_zp)[channels]
    scales = _per_channel(scale, out_n)[channels].astype(np.float32)
    numbers = (a.view(np.int8).reshape(groups, -1) for a in (biases, scales))
    return np.concatenate((runs.reshape(groups, -1), *numbers), axis=1).reshape(-1)


def folded_bias(bias: np.ndarray, sums: np.ndarray, in_zp: int) -> np.ndarray:
    """Return bias - in_zp * sum of the weights, in the int32 arithmetic of the accumulators."""
    return np.asarray((bias.astype(np.int64) - in_zp * sums) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def pack_fc(constants: Arrays, instr: Instr) -> Arrays:
    """Pack the constants of fc_s8."""
    weights = constants["weights"].reshape(instr.int_("out_n"), 1, instr.int_("in_k"))
    return {"weights": stream(weights, constants["bias"], constants["scale"], instr.int_("in_zp")), **EMPTY}


def fc_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Say whether there is one row: its function then takes no stack for pairs of rows."""
    return {"one_row": int(instr.int_("rows") == 1)}


def _numbers(instr: Instr) -> dict[str, int]:
    return {key: int(value) for key, value in instr.params.items() if not isinstance(value, str)}


def _room(p: Mapping[str, int]) -> int:
    """Bytes that a convolution may take of the arena: three rows of its input or the inputs of two pixels."""
    return max(3 * p["in_w"] * p["in_c"], 2 * _vectors(p["k_h"] * p["k_w"] * p["in_c"]))


def _vectors(count: int) -> int:
    return -(-count // _VECTOR) * _VECTOR


def conv_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Choose how the inputs of a pixel are read, and what is in the scratch.

    run, point: a pixel's inputs in place, for all pixels of a row per group of outputs or the other way round; rows:
    kernel rows in place, at the edges through the scratch; packed, gather: by a table of offsets, several pixels or
    two of them; any: byte by byte, two pixels.
    table: a table of offsets is in the scratch, else a constant; listed: steps are in the scratch, else on the stack.
    """
    p = _numbers(instr)
    dense = p["in_ch"] == 1 and p["in_col"] == p["in_c"] and (p["dil_w"] == 1 or p["k_w"] == 1)
    if dense and p["k_h"] <= _segments() and (p["k_w"] * p["in_c"] >= _VECTOR or p["k_h"] == 1):
        return _in_place_plan(p)
    return _copied_plan(p)


def _clamped(p: Mapping[str, int]) -> str:
    return "_clamped" if p["out_min"] > -128 or p["out_max"] < 127 else ""


def _with_steps(
    p: Mapping[str, int], plan: dict[str, ParamValue], steps: int, two: int, more: int = 0
) -> dict[str, ParamValue]:
    """Add the number of steps, the last `two` for pairs of copied pixels, and where they are."""
    held = 2 * _vectors(p["k_h"] * p["k_w"] * p["in_c"]) + more
    return plan | {"steps": steps, "two": two, "listed": int(held + _step_bytes() * steps <= _room(p))}


def _in_place_plan(p: Mapping[str, int]) -> dict[str, ParamValue]:
    inside = (p["out_h"] - 1) * p["stride_h"] < p["in_h"] and (p["out_w"] - 1) * p["stride_w"] < p["in_w"]
    if not (p["k_h"] == p["k_w"] == 1 and p["pad_top"] == p["pad_left"] == 0 and inside):
        if p["k_w"] * p["in_c"] % _VECTOR == 0:
            return _with_steps(p, {"path": "rows"}, 2 * p["k_h"] + 6, 4)
        return _with_steps(p, {"path": "rows"}, 6 * p["k_h"] + 4, 3 * p["k_h"] + 2)
    adjacent = p["stride_h"] == p["stride_w"] == 1 and p["in_col"] == p["in_c"]
    if adjacent and p["in_c"] in (8, 16, 32) and p["out_w"] >= _RUN_PIXELS:
        return {"path": "run", "run": f"glow_mve_run{p['in_c']}{_clamped(p)}", "held": p["in_c"]}
    whole = adjacent and p["in_row"] == p["in_w"] * p["in_c"] and p["out_row"] == p["out_w"] * p["out_c"]
    unrung = p["in_ring"] >= p["in_h"] and p["out_ring"] >= p["out_h"] and p["descending"] == 0
    # the last pixel of a row goes with the first of the next, whose output must not lie on the inputs of the other
    return {"path": "point", "merged": int(whole and unrung and p["out_c"] <= (p["in_w"] - 1) * p["in_c"])}


def _copied_plan(p: Mapping[str, int]) -> dict[str, ParamValue]:
    taps = p["k_h"] * p["k_w"] * p["in_c"]
    spans = (p["k_h"] - 1) * p["dil_h"], (p["k_w"] - 1) * p["dil_w"]
    reach = spans[0] * p["in_row"] + spans[1] * p["in_col"] + (p["in_c"] - 1) * p["in_ch"]
    if taps > _GATHERED or reach >= 1 << 16 or max(spans) >= 1 << 8 or max(p["in_h"], p["in_w"]) >= 1 << 15:
        return _with_steps(p, {"path": "any"}, 4, 4)
    table = _table_bytes(taps)
    for held in _runs():
        if taps <= held and (held - taps) * p["out_c"] <= _PADDING:
            pitch = _vectors(held)
            plan: dict[str, ParamValue] = {"path": "packed", "taps": taps, "held": held, "pitch": pitch}
            for rest in (table, 0):
                pixels = min((_room(p) - rest) // pitch, _MOST_PIXELS) // 2 * 2
                if pixels >= _PACKED_PIXELS:
                    return plan | {
                        "run": f"glow_mve_run{held}{_clamped(p)}", "pixels": pixels, "table": int(rest > 0),
                    }  # fmt: skip
    padding = -taps % _VECTOR
    held = taps + (padding if padding * p["out_c"] <= _PADDING else 0)
    in_scratch = 2 * _vectors(taps) + table <= _room(p)
    plan = {"path": "gather", "taps": taps, "held": held, "table": int(in_scratch)}
    return _with_steps(p, plan, 4, 4, table if in_scratch else 0)


def _table_bytes(taps: int) -> int:
    return -(-taps // 8) * 32


def gather_table(p: Mapping[str, int]) -> np.ndarray:
    """Return what glow_mve_gather_init would write, as int32."""
    ky, kx, c = (i.reshape(-1) for i in np.indices((p["k_h"], p["k_w"], p["in_c"])))
    offsets = ky * p["dil_h"] * p["in_row"] + kx * p["dil_w"] * p["in_col"] + c * p["in_ch"]
    whole = _table_bytes(ky.size) // 4
    columns = ((offsets, np.uint16), (ky * p["dil_h"], np.uint8), (kx * p["dil_w"], np.uint8))
    padded = (np.pad(values, (0, whole - ky.size)).astype(kind).view(np.int8) for values, kind in columns)
    return np.concatenate(list(padded)).view(np.int32)


def conv_scratch(instr: Instr) -> int:
    """Return the bytes of pixels, of a table and of steps."""
    p, plan = _numbers(instr), conv_plan(instr)
    if plan["path"] in ("run", "point"):
        return 0
    table = _table_bytes(int(plan["taps"])) if plan.get("table") else 0
    if plan["path"] == "packed":
        return int(plan["pixels"]) * int(plan["pitch"]) + table
    steps = int(plan["steps"]) if plan["listed"] else 0
    return 2 * _vectors(p["k_h"] * p["k_w"] * p["in_c"]) + table + _step_bytes() * steps


def accepts_conv(instr: Instr) -> bool:
    """Accept dense int8 convolutions whose rows the 16-bit offsets of a store reach."""
    return _codes(instr) and instr.int_("groups") == 1 and instr.int_("out_w") * instr.int_("out_c") < 1 << 16


def pack_conv(constants: Arrays, instr: Instr) -> Arrays:
    """Pack the constants of conv_s8."""
    plan = conv_plan(instr)
    segments = instr.int_("k_h") if plan["path"] in ("run", "point", "rows") else 1
    weights = constants["weights"].reshape(instr.int_("out_c"), segments, -1)
    if "held" in plan:
        weights = np.pad(weights, ((0, 0), (0, 0), (0, int(plan["held"]) - weights.shape[2])))
    packed = {**EMPTY, "weights": stream(weights, constants["bias"], constants["scale"], instr.int_("in_zp"))}
    return packed | ({"bias": gather_table(_numbers(instr))} if plan.get("table") == 0 else {})


def accepts_fc(instr: Instr) -> bool:
    """Accept int8 layers whose outputs the 16-bit offsets of a store reach."""
    return _codes(instr) and instr.int_("out_n") < 1 << 15


def accepts_depthwise(instr: Instr) -> bool:
    """Accept int8 layers whose input channels are adjacent; fewer than output channels if a byte can number them."""
    in_c, out_c, groups = (instr.int_(key) for key in ("in_c", "out_c", "groups"))
    plain = in_c == groups and (in_c == out_c or in_c <= 1 << 8) and instr.int_("in_ch") == 1
    return _bytes(instr) and plain and instr.int_("k_h") <= _ROWS


def _doubled(instr: Instr) -> bool:
    """Say whether two pixels of 8 channels fill a vector."""
    return instr.int_("out_c") == instr.int_("in_col") == _VECTOR // 2 and instr.int_("stride_w") == 1


def depthwise_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Choose the kernel for nine taps, or any; packed weights have two dimensions for that, by fixed_form four."""
    k_h, k_w = instr.int_("k_h"), instr.int_("k_w")
    one, offset = instr.int_("in_c") == instr.int_("out_c"), instr.int_("w_zp") != 0
    if not one or offset or k_h != 3 or k_w != 3 or instr.operand("weights").type.rank == 2:
        run = f"glow_mve_dw{'' if one else '_gathered'}{'_offset' if offset else ''}"
        return {"path": "any", "k_h": k_h, "run": run, "offset": int(offset)}
    clamped = "_clamped" if instr.int_("out_min") > -128 or instr.int_("out_max") < 127 else ""
    fixed = "_fixed" if instr.operand("weights").type.rank == 4 else ""
    return {"path": "nine", "k_h": k_h, "run": f"glow_mve_dw9{fixed}{clamped}", "doubled": int(_doubled(instr))}


def pack_depthwise(constants: Arrays, instr: Instr) -> Arrays:
    """Pack the constants of dwconv_s8; `bias` becomes a pixel outside of the image, of 112 bytes or a multiple."""
    channels, in_zp = instr.int_("out_c"), instr.int_("in_zp")
    weights = constants["weights"].reshape(-1, channels)
    bias = folded_bias(constants["bias"], (weights.astype(np.int64) - instr.int_("w_zp")).sum(0), in_zp)
    scale = _per_channel(constants["scale"], channels).astype(np.float32)
    outside = np.full(-(-instr.int_("in_c") // _OUTSIDE) * _OUTSIDE, in_zp, np.int8).view(np.int32)
    if depthwise_plan(instr)["path"] == "nine" and pairs_fit(weights):
        bounds = instr.int_("out_min"), instr.int_("out_max")
        fixed = fixed_form(weights, bias, scale, instr.int_("out_zp"), bounds)
        packed = nine_taps(weights, *(fixed or (bias, scale)), doubled=_doubled(instr))
        packed = packed.reshape(-1, 1, 1, 1) if fixed else packed
    else:
        packed = any_depthwise(weights, bias, scale, instr.int_("in_c"))
    return {**EMPTY, "weights": packed, "bias": outside}


def pairs_fit(weights: np.ndarray) -> bool:
    """Say whether the products of two taps of weights[9, C] always fit 16 bits: not those of two weights -128."""
    return not (weights[:8].reshape(4, 2, -1) == -128).all(1).any()


def nine_taps(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray, *, doubled: bool = False) -> np.ndarray:
    """Return the constants of glow_mve_dw9 for weights[9, C]."""
    if doubled:
        weights, bias, scale = np.tile(weights, 2), np.tile(bias, 2), np.tile(scale, 2)
    blocks = []
    for c in range(0, bias.size, _VECTOR):
        w = weights[:, c : c + _VECTOR]
        whole = -(-w.shape[1] // _GROUP) * _GROUP
        for numbers in (bias, scale):
            block = np.zeros(whole, numbers.dtype)
            block[: w.shape[1]] = numbers[c : c + _VECTOR]
            parts = block.reshape(-1, 4).T[[0, 2, 1, 3]].reshape(-1)
            blocks.append(parts[: whole // 4 * 3 + w.shape[1] // 4].view(np.int8))
        blocks.append(w.reshape(-1))
    if bias.size % _VECTOR == 1:
        blocks.append(np.zeros(7, np.int8))  # the last vector of scales is read as a whole
    return np.concatenate(blocks)


def any_depthwise(weights: np.ndarray, bias: np.ndarray, scale: np.ndarray, in_c: int) -> np.ndarray:
    """Return the constants of glow_mve_dw, or glow_mve_dw_gathered, for weights[taps, C]; by block of channels."""
    taps, channels = weights.shape
    blocks = -(-channels // _VECTOR)
    w = np.zeros((taps, blocks * _VECTOR), np.int8)
    w[:, :channels] = weights
    biases, scales = np.zeros(blocks * _VECTOR, np.int32), np.zeros(blocks * _VECTOR, np.float32)
    biases[:channels], scales[:channels] = bias, scale
    numbers = [a.reshape(blocks, _VECTOR)[:, _ORDER].copy().view(np.int8).reshape(blocks, -1) for a in (biases, scales)]
    rows = w.reshape(taps, blocks, _VECTOR).transpose(1, 0, 2).reshape(blocks, -1)
    sources = np.arange(blocks * _VECTOR) * in_c // channels
    gathered = [sources.astype(np.uint8).view(np.int8).reshape(blocks, -1)] if in_c != channels else []
    return np.concatenate((numbers[0], *gathered, rows, numbers[1]), axis=1)


def accepts_add(instr: Instr) -> bool:
    """Accept adjacent operands, and rows of them of which one may be the same for all rows of the output."""
    rank = instr.int_("rank")
    return rank in (1, 2) and instr.int_(f"a{rank - 1}") == instr.int_(f"b{rank - 1}") == 1


def add_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Return the factors of rne(a * va + (b * vb + vc)); short = 0 when no such form is exact."""
    scales = tuple(float(instr.params[key]) for key in ("a_scale", "b_scale", "out_scale"))
    codes = tuple(instr.int_(key) for key in ("a_zp", "b_zp", "out_zp", "out_min", "out_max"))
    form = short_sum(scales, codes, str(instr.params["sign"]))
    rank: dict[str, ParamValue] = {"rank": instr.int_("rank")}
    return rank | ({"short": 0} if form is None else {"short": 1, **dict(zip(("va", "vb", "vc"), form, strict=True))})


@cache
def short_sum(scales: tuple[float, ...], codes: tuple[int, ...], sign: str) -> tuple[float, float, float] | None:
    """Return float32 (va, vb, vc) so that two fused multiply-adds give every code of add_s8; None when none do.

    Candidates are tried on the pairs of codes near a rounding boundary; the first one that gets those right is
    compared on all 65536.
    """
    sa, sb, sy = (np.float32(s) for s in scales)
    a_zp, b_zp, *bounds = codes
    a, b = (v.reshape(-1).astype(np.float32) for v in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    left, right = (a - np.float32(a_zp)) * sa, (b - np.float32(b_zp)) * sb
    sums = left + right if sign == "+" else left - right
    want = _bounded(sums / sy, *bounds)
    va, vb = float(sa) / float(sy), (1 if sign == "+" else -1) * float(sb) / float(sy)
    exact = a.astype(np.float64) * va + b.astype(np.float64) * vb - (a_zp * va + b_zp * vb)
    hard = np.abs(exact - np.floor(exact) - 0.5) < _HARD
    steps = [
        np.asarray([_next(v, i) for i in sorted(range(-n, n + 1), key=abs)])
        for v, n in ((va, 2), (vb, 2), (-(a_zp * va + b_zp * vb), 12))
    ]
    grid = np.stack([g.reshape(-1, 1) for g in np.meshgrid(*steps, indexing="ij")])
    right_ones = (_bounded(_fused(a[hard], b[hard], *grid), *bounds) == want[hard]).all(1)
    for index in np.flatnonzero(right_ones)[:4]:
        form = (float(grid[0][index, 0]), float(grid[1][index, 0]), float(grid[2][index, 0]))
        if (_bounded(fma(a, form[0], fma(b, form[1], form[2])), *bounds) == want).all():
            return form
    return None


def _next(value: float, steps: int) -> np.float32:
    near = np.float32(value)
    return np.float32(near + steps * np.spacing(near))


def _fused(
    a: np.ndarray, b: np.ndarray, va: np.ndarray | float, vb: np.ndarray | float, vc: np.ndarray | float
) -> np.ndarray:
    """Two fused multiply-adds in float32, but for what float64 leaves out of a sum."""
    inner = np.asarray(b.astype(np.float64) * vb + vc).astype(np.float32).astype(np.float64)
    return np.asarray(a.astype(np.float64) * va + inner).astype(np.float32)


def _bounded(real: np.ndarray, zp: int, low: int, high: int) -> np.ndarray:
    return np.asarray(np.clip(np.rint(real.astype(np.float64)) + zp, low, high))


def accepts_pool(instr: Instr) -> bool:
    """Accept adjacent channels."""
    return instr.int_("in_ch") == 1


def accepts_average(instr: Instr) -> bool:
    """Accept windows whose sums fit 16 bits, and adjacent channels."""
    return accepts_pool(instr) and instr.int_("k_h") * instr.int_("k_w") <= 255


def accepts_bytes(instr: Instr) -> bool:
    """Accept inputs of one byte."""
    return instr.operand("in").type.dtype in (DType.S8, DType.U8)


def fused_plan(instr: Instr) -> Mapping[str, ParamValue]:
    """Print what is added to the codes."""
    return {"half": instr.int_("half"), "rank": instr.int_("rank")}


def accepts_mean(instr: Instr) -> bool:
    """Accept rows that fill half a vector."""
    return instr.int_("inner") >= 4


_FAST = KernelVariant("mve", frozenset({"mve", "mve-fp"}), rank=20, header="glow_mve_elementwise.h")
_IN_PLACE = replace(_FAST, in_place=True)
FC = replace(_FAST, accepts=accepts_fc, pack=pack_fc, plan=fc_plan, header="glow_mve_dot.h")
FC_SINGLE = with_singles(FC, "glow_mve_dot_s8", "glow_mve_single.h")
CONV = replace(
    _FAST, accepts=accepts_conv, pack=pack_conv, scratch_bytes=conv_scratch, plan=conv_plan, streams=True,
    placed=lambda instr: LoosePlan.of(conv_plan(instr), {}),
    header="glow_mve_gather.h",
)  # fmt: skip
DEPTHWISE = replace(_FAST, accepts=accepts_depthwise, pack=pack_depthwise, plan=depthwise_plan, header="glow_mve_dw.h")
ADD = replace(_IN_PLACE, accepts=accepts_add, plan=add_plan)
ADD_FUSED = replace(_IN_PLACE, accepts=accepts_add, plan=fused_plan)
MAXIMUM = replace(_FAST, accepts=accepts_pool)
AVERAGE = replace(_FAST, accepts=accepts_average)
MEAN = replace(_FAST, accepts=accepts_mean)
LUT = _IN_PLACE
FLIP = DEQUANTIZE = replace(_IN_PLACE, accepts=accepts_bytes)

VARIANTS = {
    "add_s8": (ADD,),
    "add_s8f": (ADD_FUSED,),
    "avg_pool_s8": (AVERAGE,),
    "conv_s8": (CONV,),
    "dequantize": (DEQUANTIZE,),
    "dwconv_s8": (DEPTHWISE,),
    "fc_s8": (FC, FC_SINGLE),
    "flip_sign": (FLIP,),
    "lut_s8": (LUT,),
    "max_pool_s8": (MAXIMUM,),
    "reduce_mean_s8": (MEAN,),
}
