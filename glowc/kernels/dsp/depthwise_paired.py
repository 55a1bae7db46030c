"""dwconv_s8 with windows of 3 x 3, the next column loaded beside the products of the one before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from glowc.kernels.base import Prepared, plan_in
from glowc.kernels.dsp import depthwise
from glowc.kernels.dsp.depthwise_paired_tile import PairedTile
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_SIDE = 3
_FARTHEST = 4095  # bytes that a load may be away from its base


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedPlan(PairedTile):
    """`in_col`: bytes from column to column; `order`: which rows of the window come first, next and last."""

    in_col: int
    order: tuple[int, ...]


def _order(shape: Conv) -> tuple[int, ...] | None:
    """Return the rows of the window, one that lies inside of the input everywhere first; None where there is none."""
    tops = [y * shape.stride_h - shape.pad_top for y in range(shape.out_h)]
    inside = [ky for ky in range(_SIDE) if all(0 <= top + ky * shape.dil_h < shape.in_h for top in tops)]
    return tuple((inside[0] + i) % _SIDE for i in range(_SIDE)) if inside else None


def accepts(instr: Instr) -> bool:
    """Accept windows of 3 x 3 without dilated columns or zero points of weights, whose columns a load reaches."""
    if not depthwise.accepts(instr):
        return False
    shape = Conv.of(instr)
    window = (shape.k_h, shape.k_w, shape.dil_w) == (_SIDE, _SIDE, 1) and shape.stride_w <= 2
    alone = shape.in_c == shape.out_c and instr.int_("w_zp") == 0
    reached = shape.in_col * (2 * shape.stride_w + _SIDE - 1) <= _FARTHEST
    return window and alone and reached and _order(shape) is not None


def in_order(plain: Callable[[Arrays, Instr], Prepared]) -> Callable[[Arrays, Instr], Prepared]:
    """Return the preparation `plain` with the rows of the window in their order."""

    def prepare(constants: Arrays, instr: Instr) -> Prepared:
        shape = Conv.of(instr)
        order = _order(shape)
        assert order is not None
        rows = constants["weights"].reshape(_SIDE, _SIDE, -1)[list(order)]
        prepared = plain({**constants, "weights": rows}, instr)
        plan = plan_in(prepared, depthwise.DepthwisePlan)
        own = {field.name: getattr(plan, field.name) for field in fields(plan)}
        paired = PairedPlan(**own, in_col=shape.in_col, order=order)
        return replace(prepared, plan=paired)

    return prepare


prepare = in_order(depthwise.prepare)

PAIRED = replace(
    depthwise.DEPTHWISE, form="paired", also=FPU, rank=11, template="{}_paired", accepts=accepts,
    prepare=prepare, costs_of="dsp",
)  # fmt: skip

VARIANTS = {
    "dwconv_s8": (PAIRED,),
}
