"""The plain variants of kernels that need more than the definition says: a header, scratch, a plan.

Those that compute as TensorFlow Lite does have their functions in runtime_c/glow_q31.h. What kernels take that move
single elements by index, or cast codes of few bits, is not measured. Layers say where weights of few bits lie in what
they read.
"""

from __future__ import annotations

from dataclasses import replace

from glowc.graph.few_codes import NARROW_BITS
from glowc.kernels.base import PLAIN, Prepared
from glowc.kernels.common.narrow import by_lanes, indexed_by, unpacking
from glowc.kernels.common.products import by_rows
from glowc.kernels.common.recurrent import (
    CODED_LAYERS,
    LayerPlan,
    coded_scratch,
    dynamic_scratch,
    layer_scratch,
    resets_first,
)
from glowc.kernels.features import Stated
from glowc.kernels.records import plain_records
from glowc.program.ir import Instr

_FLOAT_BYTES = 4
_ENDS = ("s8q31", "s16q31", "s16q15")
_ELEMENTWISE = (
    "rescale_q31", "quantize_away", "softmax_s8q31", "add_s8q31", "add_s16q31", "mul_s8q31", "mul_s16q31",
    "squared_difference_s8q31", "squared_difference_s16q31", "div_s8q31", "prelu_s8q31", "total_q31",
)  # fmt: skip
_OTHERS = (
    "reduce_mean_s8q31", "reduce_mean_s16q31", "conv_transpose_s8q31", "conv_transpose_s16q15",
    "compare_s8q31", "matmul_s8q31", "matmul_s16q15", "matmul_s16s8q15", *(f"dwconv_{end}" for end in _ENDS),
)  # fmt: skip
_FUNCTIONS = {"lstm": 600, "gru": 360, "rnn": 130}
"""Instructions of the functions of a cell and step, where there is an FPU."""


def coded_layer_scratch(instr: Instr) -> int:
    """Return the bytes of cells and, where a GRU resets before it multiplies, of a gate and of the codes left."""
    return coded_scratch(instr) + (3 * instr.int_("hidden") if resets_first(instr) else 0)


def _a_float_each(instr: Instr) -> int:
    return _FLOAT_BYTES * instr.int_("n")


def _two_floats_each(instr: Instr) -> int:
    return 2 * _a_float_each(instr)


_FIXED = replace(PLAIN, header="glow_q31.h")
_BY_TABLE = replace(PLAIN, header="glow_q15.h")
_BY_ROOT = replace(PLAIN, header="glow_q31_root.h")
_FFT = replace(PLAIN, header="glow_fft.h")
_SIGNAL = replace(PLAIN, header="glow_signal.h")
_PALETTE = replace(PLAIN, header="glow_palette.h")
_CODED = replace(PLAIN, header="glow_gates.h", scratch_bytes=coded_layer_scratch)
_RECURRENT = replace(PLAIN, scratch_bytes=layer_scratch, prepare=lambda _, __: Prepared(plan=LayerPlan()))

VARIANTS = {
    **{kernel: (replace(_FIXED, in_place=True),) for kernel in _ELEMENTWISE},
    **dict.fromkeys(_OTHERS, (_FIXED,)),
    **{f"{base}_{end}": (replace(_FIXED, records=plain_records),) for base in ("conv", "fc") for end in _ENDS},
    "lstm_s16q15": (by_rows(_BY_TABLE, ""),),
    **dict.fromkeys(("lstm_s8q31", "svdf_s8q31"), (by_rows(replace(PLAIN, header="glow_rows.h"), "glow_rows_s8"),)),
    **dict.fromkeys(("saturating_s16", "softmax_s16"), (replace(_BY_TABLE, in_place=True),)),
    **dict.fromkeys(("log_softmax_s8q31", "l2_norm_s8q31", "rsqrt_s16q31"), (replace(_BY_ROOT, in_place=True),)),
    "tanh_s16": (replace(PLAIN, header="glow_tanh16.h", in_place=True),),
    # layers and weights of few bits
    **dict.fromkeys(("conv_s8", "fc_s8", "conv_s16", "fc_s16"), (replace(PLAIN, records=plain_records),)),
    **unpacking(PLAIN, 1, ""),
    **{f"unpack_p{bits}": (indexed_by(_PALETTE, bits, by_lanes(1), 1),) for bits in NARROW_BITS},
    "matmul_s16": (replace(PLAIN, header="glow_products.h"),),  # sums have 64 bits
    # recurrent layers; cells of those on codes lie in scratch
    **dict.fromkeys(CODED_LAYERS, (_CODED,)),
    "lstm_dynamic": (replace(PLAIN, scratch_bytes=dynamic_scratch),),
    **{
        f"{kind}_{dtype}": (replace(_RECURRENT, stated=Stated(macs=25, outputs=insns)),)
        for kind, insns in _FUNCTIONS.items()
        for dtype in ("f32", "f64")
    },
    # boxes: scratch notes which are left
    "best_boxes": (replace(PLAIN, scratch_bytes=_two_floats_each),),
    "class_boxes": (replace(PLAIN, scratch_bytes=_a_float_each),),
    "cast_few": (replace(PLAIN, header="glow_few_bits.h", stated=Stated(outputs=30)),),
    "scatter": (replace(PLAIN, stated=Stated(inputs=20)),),
    **{f"gather_b{size}": (replace(PLAIN, stated=Stated(outputs=42)),) for size in (1, 2, 4, 8)},
    **dict.fromkeys(("fft", "rfft", "irfft"), (_FFT,)),
    **dict.fromkeys(("signal_scale_bits", "signal_square_root", "signal_log"), (_SIGNAL,)),
    "signal_pcan": (replace(_SIGNAL, in_place=True),),
}
