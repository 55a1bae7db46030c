"""How any operator on codes ends: what makes codes of exact int32 sums, by the rounding that its node asks for."""

from __future__ import annotations

from glowc.graph.fixed_point import multiplier
from glowc.graph.graph import Node
from glowc.graph.numerics import F32
from glowc.ops.base import LowerCtx, Ref
from glowc.ops.fixed_rescale import FixedScale
from glowc.ops.integer import code_bounds, codes_of, is_tflite
from glowc.ops.params import OutCodes
from glowc.ops.row_sum import RequantSums


def emit_codes(node: Node, ctx: LowerCtx, sums: Ref, unit: float, y: Ref) -> None:
    """Emit what makes codes y of as many sums, of which 1 is `unit` in real numbers, clamped to act_min and act_max.

    Attribute `rounding` "even": rne(float32(sum) * float32(unit / scale)) + zero point; "tflite": a multiplier of 31
    bits and a shift. OpError where y has no codes.
    """
    quant, n = codes_of(y.type), y.type.elements
    scale, zero_point = quant.scalar
    out, factor = OutCodes(zero_point, *code_bounds(node, quant, y.type.dtype)), unit / float(scale)
    if is_tflite(node):
        fixed = multiplier(factor)
        ctx.emit("rescale_q31", {"in": sums, "out": y}, FixedScale(n, 0, out, *fixed, *fixed))
    else:
        ctx.emit(f"requant_sums_{y.type.dtype.value}", {"in": sums, "out": y}, RequantSums(n, out, float(F32(factor))))
