"""Variants of fc_dynamic, conv_integer and dynamic_quantize on SMLAD and VCVTR: zero points known at run time.

The weights' zero points of fc_dynamic are constants and go into the weights, of which two outputs share a halfword
where that is proved to fit (forms.py, glow_dsp_quad.h).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared, Reads
from glowc.kernels.dsp.forms import dual_pairs, joined
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.dsp.quad_tile import QuadTile
from glowc.kernels.dsp.stream import quad_steps, quad_stream
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_OUTPUTS = 16  # whose sums are in scratch at a time
_SUM_BYTES = 16 * _OUTPUTS
_ROW_BYTES = 4096  # of scratch for four rows
_MOST = 255  # a code less its zero point


def _row_bytes(instr: Instr) -> int:
    """Four rows of inputs as int16."""
    return 32 * -(-instr.int_("in_k") // 4)


def _accepts(instr: Instr) -> bool:
    """Accept at least three rows."""
    return instr.int_("rows") >= 3 and _row_bytes(instr) <= _ROW_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicPlan(Plan):
    """`outputs` whose sums are in scratch at a time; `limited`: results have bounds; the `form` of the stream."""

    outputs: int
    limited: bool
    form: str

    @property
    def product(self) -> QuadTile:
        """The products of four rows and pairs of outputs."""
        return QuadTile(self.form, "sums")


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream, all pairs of outputs in one form: dual where every proof holds, wide beyond int8.

    Where a stream has scales, this one has the biases, which are added when a sum is a float.
    """
    k, n = instr.int_("in_k"), instr.int_("out_n")
    weights = constants["weights"].reshape(n, k).astype(np.int64) - constants["w_zp"].astype(np.int64).reshape(n, 1)
    padded = np.pad(weights, ((0, n % 2), (0, -k % 4)))
    most = _MOST * np.abs(padded[0::2]).sum(1)
    narrow = padded.min() >= -128 and padded.max() <= 127
    form = "wide" if not narrow else "dual" if dual_pairs(padded, -most, most).all() else "bytes"
    pairs = quad_steps(padded, k)
    steps = pairs.shape[1]
    wide = pairs.reshape(-1, 2, steps, 2).transpose(0, 2, 1, 3)
    none = np.zeros((len(padded) // 2, 2), np.int32)
    dual = np.full(len(none), form == "dual")
    halves = wide if form == "wide" else joined(pairs[0::2], pairs[1::2], dual)
    bias = np.zeros(len(padded), np.float32)
    bias[:n] = constants["bias"]
    stream = quad_stream(bias.view(np.int32).reshape(-1, 2), none.astype(np.int64), halves, steps)
    words = stream.view(np.int16) if form == "wide" else stream
    empty = {"w_zp": np.zeros(1, np.int32), "bias": np.zeros(1, np.float32)}
    limited = any(abs(float(instr.params[key])) < math.inf for key in ("act_min", "act_max"))
    plan = DynamicPlan(outputs=_OUTPUTS, limited=limited, form=form)
    return Prepared({"weights": words, **empty}, plan)


def _accepts_conv(instr: Instr) -> bool:
    """Accept NHWC without groups, two outputs or more, at least a word of adjacent inputs."""
    plain = instr.int_("nhwc") == instr.int_("groups") == 1 and instr.int_("out_c") >= 2
    adjacent = instr.int_("dil_w") == 1 and instr.int_("k_w") * instr.int_("in_c") >= 4
    return plain and adjacent


FC = KernelVariant(
    "dsp", also=FPU, reads=Reads(value_bytes=2), rank=11, header="glow_dsp_dynamic.h", accepts=_accepts,
    prepare=prepare, packs=frozenset({"weights", "scale", "w_zp", "bias"}),
    scratch_bytes=lambda instr: _row_bytes(instr) + _SUM_BYTES,
)  # fmt: skip
QUANTIZE = KernelVariant("dsp", also=FPU, rank=10, header="glow_dsp_codes.h")
CONV = KernelVariant("dsp", rank=10, header="glow_dsp_integer.h", accepts=_accepts_conv)

VARIANTS = {
    "conv_integer": (CONV,),
    "dynamic_quantize": (QUANTIZE,),
    "fc_dynamic": (FC,),
}
