"""A64 and A32 variants of int8 layers and sums that end in a multiplication and a shift (RequantShift).

Layers are as packing_float_shift has them; sums of two tensors are those in fixed point (packing_neon_add), or the
definition where there are no such numbers: packing leaves the constants as they are, and the plan sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.common.float_shift import as_scaled, columns, rows
from glowc.kernels.simd import a32 as packing_a32
from glowc.kernels.simd import add as packing_neon_add
from glowc.kernels.simd import layers as packing_a64
from glowc.kernels.simd import shared as packing_neon
from glowc.kernels.simd.mul import accepts_long_rows, row_plan
from glowc.program.ir import Instr, ParamValue
from glowc.program.kernel import Arrays


def _with_bits(packed: Arrays) -> Arrays:
    """The bits of the scales are the multipliers."""
    scale = np.ascontiguousarray(packed["scale"], np.float32).view(np.int32)
    return {"weights": packed["weights"].reshape(-1), "mul": scale, "offset": packed["bias"]}


CONV = tuple(as_scaled(v, 4, rows, _with_bits) for v in (packing_a32.CONV, *packing_a64.CONV))
DEPTHWISE = tuple(
    as_scaled(v, 3, columns, _with_bits)
    for v in (packing_a32.DEPTHWISE, packing_neon.DEPTHWISE, packing_neon.DEPTHWISE_DOT)
)
FC = tuple(as_scaled(v, 2, rows, _with_bits) for v in (packing_a32.FC, *packing_a64.FC))


def _pack_add(isa: str, constants: Arrays, instr: Instr) -> Arrays:
    """Return `mul` as the factors and the start of the fixed sum, or nothing when it is not the same function."""
    mul, offset, shift = int(constants["mul"][0]), int(constants["offset"][0]), instr.int_("shift")
    sign = 1 if instr.params["sign"] == "+" else -1
    a, b = (np.arange(-128, 128, dtype=object) - instr.int_(key) for key in ("a_zp", "b_zp"))
    exact = (((a[:, None] + sign * b[None, :]) * mul + offset) >> shift) + instr.int_("out_zp")
    wanted = np.clip(exact, -128, 127).astype(np.float64)
    ratio = mul / 2.0**shift
    fixed = packing_neon_add.fixed_terms(wanted, (ratio, sign * ratio), packing_neon_add.POINTS[isa])
    return {} if fixed is None else {"mul": np.asarray(fixed, np.int32)}


def _plan_add(instr: Instr) -> Mapping[str, ParamValue]:
    if instr.operand("mul").type.elements != 3:
        return {"form": "ref"}
    limits = {"low": int(instr.int_("out_min") > -128), "high": int(instr.int_("out_max") < 127)}
    return {"form": "fixed", "a_factor": "mul[0]", "b_factor": "mul[1]", "start": "mul[2]", **row_plan(instr), **limits}


def _accepts_add(instr: Instr) -> bool:
    return accepts_long_rows(instr) and all(
        instr.operand(role).type.dtype is DType.S8 for role in ("a", "b", "out")
    )  # fmt: skip


_ADD = replace(packing_neon_add.ADD, accepts=_accepts_add, plan=_plan_add)
ADD = (
    replace(_ADD, pack=lambda constants, instr: _pack_add("neon", constants, instr)),
    replace(
        _ADD, isa="a32", needs=frozenset({"a32", "neon"}), header=packing_a32.HEADER, template="{}_a32",
        pack=lambda constants, instr: _pack_add("a32", constants, instr),
    ),
)  # fmt: skip

VARIANTS = {
    "add_s8rs": ADD,
    "conv_s8rs": CONV,
    "dwconv_s8rs": DEPTHWISE,
    "fc_s8rs": FC,
}
