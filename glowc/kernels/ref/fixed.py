"""The plain variants of kernels that compute as TensorFlow Lite does: their functions are in runtime_c/glow_q31.h."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN
from glowc.kernels.common.rows_of_weights import by_rows
from glowc.kernels.records import plain_records

_FIXED = replace(PLAIN, header="glow_q31.h")
_PACKED = replace(_FIXED, records=plain_records)
_BY_TABLE = replace(PLAIN, header="glow_q15.h")
_BY_ROOT = replace(PLAIN, header="glow_q31_root.h")
_ELEMENTWISE = (
    "rescale_q31", "quantize_away", "softmax_s8q31", "add_s8q31", "add_s16q31", "mul_s8q31", "mul_s16q31",
    "squared_difference_s8q31", "squared_difference_s16q31", "div_s8q31", "prelu_s8q31", "total_q31",
)  # fmt: skip

_LAYERS = tuple(f"{base}_{end}" for base in ("conv", "dwconv", "fc") for end in ("s8q31", "s16q31", "s16q15"))
_OTHERS = (
    "reduce_mean_s8q31", "reduce_mean_s16q31", "conv_transpose_s8q31", "conv_transpose_s16q15",
    "compare_s8q31", "matmul_s8q31", "matmul_s16q15",
)  # fmt: skip

VARIANTS = {
    **{kernel: (replace(_FIXED, in_place=True),) for kernel in _ELEMENTWISE},
    **dict.fromkeys((*_LAYERS, *_OTHERS), (_FIXED,)),
    **{f"{base}_{end}": (_PACKED,) for base in ("conv", "fc") for end in ("s8q31", "s16q31", "s16q15")},
    "lstm_s16q15": (by_rows(_BY_TABLE, ""),),
    **dict.fromkeys(("lstm_s8q31", "svdf_s8q31"), (by_rows(replace(PLAIN, header="glow_rows.h"), "glow_rows_s8"),)),
    **dict.fromkeys(("saturating_s16", "softmax_s16"), (replace(_BY_TABLE, in_place=True),)),
    **dict.fromkeys(("log_softmax_s8q31", "l2_norm_s8q31", "rsqrt_s16q31"), (replace(_BY_ROOT, in_place=True),)),
}
