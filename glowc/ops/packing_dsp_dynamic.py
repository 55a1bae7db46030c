"""Variants of fc_dynamic, conv_integer and dynamic_quantize on SMLAD and VCVTR: zero points known at run time.

The weights' zero points of fc_dynamic are constants and go into the weights, of which two outputs share a halfword
where that is proved to fit (runtime_c/glow_dsp_quad.h).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from glowc.instr.ir import Instr, ParamValue
from glowc.ops.base import Arrays, KernelVariant
from glowc.ops.packing_dsp import NEEDS
from glowc.ops.packing_dsp_quad import quad_steps, quad_stream

_OUTPUTS = 16  # whose sums are in scratch at a time
_SUM_BYTES = 16 * _OUTPUTS
_ROW_BYTES = 4096  # of scratch for four rows
_MAX_EVEN_SUM = 1 << 23
_MOST = 255  # a code less its zero point


def _row_bytes(instr: Instr) -> int:
    """Four rows of inputs as int16."""
    return 32 * -(-instr.int_("in_k") // 4)


def _accepts(instr: Instr) -> bool:
    """Accept at least three rows."""
    return instr.int_("rows") >= 3 and _row_bytes(instr) <= _ROW_BYTES


def _plan(instr: Instr) -> Mapping[str, ParamValue]:
    limited = any(abs(float(instr.params[key])) < math.inf for key in ("act_min", "act_max"))
    return {"outputs": _OUTPUTS, "limited": int(limited)}


def _pack(constants: Arrays, instr: Instr) -> Arrays:
    """Return the stream; the element type of the weights tells whether two outputs share a halfword."""
    k, n = instr.int_("in_k"), instr.int_("out_n")
    weights = constants["weights"].reshape(n, k).astype(np.int64) - constants["w_zp"].astype(np.int64).reshape(n, 1)
    padded = np.pad(weights, ((0, n % 2), (0, -k % 4)))
    even, odd = padded[0::2], padded[1::2]
    joined = 256 * even + odd
    fits = joined.min() >= -(1 << 15) and joined.max() < 1 << 15 and odd.min() >= -128 and odd.max() <= 127
    dual = bool(fits and _MOST * np.abs(even).sum(1).max() < _MAX_EVEN_SUM)
    pairs = quad_steps(padded, k)
    steps = pairs.shape[1]
    halves = 256 * pairs[0::2] + pairs[1::2] if dual else pairs.reshape(-1, 2, steps, 2).transpose(0, 2, 1, 3)
    none = np.zeros((len(even), 2), np.int32)
    stream = quad_stream(none, none.astype(np.int64), halves, steps)
    return {"weights": stream if dual else stream.view(np.int16), "w_zp": np.zeros(1, np.int32)}


def _accepts_conv(instr: Instr) -> bool:
    """Accept NHWC without groups, two outputs or more, at least a word of adjacent inputs."""
    plain = instr.int_("nhwc") == instr.int_("groups") == 1 and instr.int_("out_c") >= 2
    adjacent = instr.int_("dil_w") == 1 and instr.int_("k_w") * instr.int_("in_c") >= 4
    return plain and adjacent


FC = KernelVariant(
    "dsp4", NEEDS, rank=11, header="glow_dsp_dynamic.h", accepts=_accepts, pack=_pack, plan=_plan,
    scratch_bytes=lambda instr: _row_bytes(instr) + _SUM_BYTES,
)  # fmt: skip
QUANTIZE = KernelVariant("dsp", NEEDS, rank=10, header="glow_dsp_codes.h")
CONV = KernelVariant("dsp", NEEDS, rank=10, header="glow_dsp_integer.h", accepts=_accepts_conv)
