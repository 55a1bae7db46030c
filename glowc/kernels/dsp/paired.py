"""conv_s8 and fc_s8 of `dsp` in the order that a CPU issues two at a time (pixel_tile.py).

Where the weights of a convolution are more than a cache keeps, several pairs of pixels are collected before the
product: a piece of the weights is then read from flash once for all of them. Dense layers are computed in rounds of
steps that divide theirs (row_tile.py).
"""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import UNFIT, Columns, Prepared, plan_in, plan_of
from glowc.kernels.dsp import fully_connected, row_tile
from glowc.kernels.dsp.conv import CONV, ConvPlan, collecting, groups_of, prepare, scratch
from glowc.kernels.dsp.forms import GROUP
from glowc.kernels.dsp.fully_connected import FC, FcPlan
from glowc.kernels.dsp.needs import DUAL_ISSUE, FPU
from glowc.kernels.dsp.pixel_tile import steps_of
from glowc.kernels.features import Stated
from glowc.kernels.shapes import Conv, FullyConnected
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_KEPT = 15 << 10  # bytes of weights that stay in a cache of 16 KB, which few other constants share
_CHUNK = 8192  # bytes of weights that are read for several pairs of pixels
_LEAST_PAIRS, _PAIRS = 2, 4  # that are collected: of large windows, usually
_ROOMY_PAIRS = (16, 8, 4, 2, 1)  # that may be collected where there is room: few numbers, for layers that share code
_FROM_FLASH = 1.6  # of the cycles of a layer whose weights no cache keeps to those predicted
_CROSSED_STEPS = 4  # of a round with crossed sums, at least
_MANY = 1024  # weights for which a function is printed
_SCRATCH = 16384  # bytes of inputs of these pairs


def _stream_bytes(shape: Conv, groups: int) -> tuple[int, int]:
    """Return the bytes of a block of four channels in the stream, and those of all."""
    block = 4 * (GROUP + 2 * 2 * groups + GROUP)  # biases, words of two channels by two inputs, scales
    return block, block * -(-shape.out_c // GROUP)


def prepare_paired(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare conv_s8 as the plain variant does."""
    prepared, shape = prepare(constants, instr), Conv.of(instr)
    plan = prepared.plan
    assert isinstance(plan, ConvPlan)
    shared = plan.path == "rows" and plan.words and (shape.k_w, shape.stride_w, shape.dil_w) == (3, 1, 1)
    steps = steps_of(groups_of(plan, shape)) if plan.form != "wide" else 0
    return replace(prepared, plan=replace(plan, steps=steps, shared=shared))


def prepare_batch(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare conv_s8 by several pairs of pixels; where channels are in several runs, one pair is all there is."""
    prepared, shape = prepare_paired(constants, instr), Conv.of(instr)
    plan = prepared.plan
    assert isinstance(plan, ConvPlan)
    groups = groups_of(plan, shape)
    if plan.form != "dual":
        return prepared
    return replace(prepared, plan=replace(plan, pairs=_pairs(groups), near=_CHUNK // 4))


def _pairs(groups: int) -> int:
    return min(max(_SCRATCH // (16 * groups), _LEAST_PAIRS), _PAIRS)


def accepts_batch(instr: Instr) -> bool:
    """Accept blocks of channels whose weights no cache keeps, and as many pixels as are collected."""
    if not CONV.accepts(instr):
        return False
    shape = Conv.of(instr)
    plan = collecting(shape)
    groups = groups_of(plan, shape)
    enough = shape.out_h * shape.out_w >= 2 * _pairs(groups) and shape.out_c >= GROUP
    return enough and plan.path in ("point", "rows", "gather") and _stream_bytes(shape, groups)[1] > _KEPT


def spend(instr: Instr, scratch_bytes: int) -> ConvPlan:
    """Collect more pairs in so many bytes of scratch: there are then fewer passes over the weights."""
    plan = plan_of(instr, ConvPlan)
    if plan.near == 0:
        return plan
    pair = 16 * groups_of(plan, Conv.of(instr))
    more = (scratch_bytes - scratch(instr)) // pair
    return replace(plan, pairs=next((n for n in _ROOMY_PAIRS if n <= more + 1), 1))


def _doubt(instr: Instr) -> float:
    """Return more where a cache does not keep the weights, which every pair of pixels reads."""
    shape, plan = Conv.of(instr), plan_of(instr, ConvPlan)
    kept = plan.pairs > 1 or _stream_bytes(shape, groups_of(plan, shape))[1] <= _KEPT
    return 1.0 if kept else _FROM_FLASH


def batch_scratch(instr: Instr) -> int:
    """The inputs of all pairs as int16, and of one as bytes where they are gathered."""
    plan = plan_of(instr, ConvPlan)
    return scratch(instr) + 16 * groups_of(plan, Conv.of(instr)) * (plan.pairs - 1)


def _batch_pixels(instr: Instr) -> int:
    """Return the pixels that are collected before they are computed."""
    return 2 * plan_of(instr, ConvPlan).pairs


def accepts_crossed(instr: Instr) -> bool:
    """Accept whole blocks of outputs, inputs in rounds of several steps, and weights that are worth a function."""
    shape = FullyConnected.of(instr)
    whole = shape.out_n % GROUP == 0 and shape.in_k % row_tile.INPUTS == 0 and shape.out_n * shape.in_k >= _MANY
    return whole and FC.accepts(instr) and row_tile.steps_of(shape.in_k) >= _CROSSED_STEPS


def prepare_crossed(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare fc_s8 in rounds of so many steps, where all outputs are dual."""
    prepared = fully_connected.prepare(constants, instr)
    plan = plan_in(prepared, FcPlan)
    if plan.form != "dual" or plan.summed:
        return UNFIT
    return replace(prepared, plan=replace(plan, steps=row_tile.steps_of(instr.int_("in_k"))))


PAIRED = replace(
    CONV, form="paired", also=FPU | DUAL_ISSUE, template="{}", rank=11, prepare=prepare_paired,
    stated=Stated(macs=0.74, outputs=9), doubt=_doubt,
)  # fmt: skip
BATCH = replace(
    PAIRED, form="paired_batch", rank=12, accepts=accepts_batch, prepare=prepare_batch, scratch_bytes=batch_scratch,
    spends=spend, columns=Columns(2, whole=_batch_pixels), stated=Stated(macs=0.73, outputs=9),
)  # fmt: skip
CROSSED_FC = replace(
    FC, form="crossed", also=FPU | DUAL_ISSUE, rank=12, accepts=accepts_crossed, prepare=prepare_crossed,
)  # fmt: skip

VARIANTS = {
    "conv_s8": (PAIRED, BATCH),
    "fc_s8": (CROSSED_FC,),
}
