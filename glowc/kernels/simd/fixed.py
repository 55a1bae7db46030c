"""int8 layers that end in fixed point, as those with a float32 scale with another ending.

As TensorFlow Lite does, on A64 (glow_a64_q31.h); in a multiplication and a shift, on A64 and A32.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from glowc.kernels.common.factors import with_factors
from glowc.kernels.common.float_shift import columns, rows, with_scales
from glowc.kernels.simd import conv, conv_lane, depthwise, depthwise_taps, fully_connected
from glowc.program.kernel import Arrays


def _as_bits(constants: Arrays) -> Arrays:
    """Return the constants with the bits of the scales as multipliers."""
    scale = np.ascontiguousarray(constants["scale"], np.float32).view(np.int32)
    return {"weights": constants["weights"].reshape(-1), "mul": scale, "offset": constants["bias"]}


_fixed = partial(with_factors, header="glow_a64_q31.h")
_LANE = tuple(with_factors(v, "glow_a64_lane_q31.h") for v in conv_lane.LANE if v.isa != "a32")
_TIGHT = tuple(_fixed(v) for v in conv.TIGHT if v.isa != "a32")

VARIANTS = {
    "conv_s8q31": (*(_fixed(v) for v in conv.A64), *_TIGHT, *_LANE, *(_fixed(v) for v in fully_connected.ROW)),
    "conv_s8rs": tuple(with_scales(v, rows, _as_bits) for v in (conv.A32, *conv.A64)),
    "dwconv_s8q31": tuple(_fixed(v) for v in (depthwise.A64, depthwise.DOT, depthwise_taps.TAPS[1])),
    "dwconv_s8rs": tuple(with_scales(v, columns, _as_bits) for v in (depthwise.A32, depthwise.A64, depthwise.DOT)),
    "fc_s8q31": tuple(_fixed(v) for v in fully_connected.A64),
    "fc_s8rs": tuple(with_scales(v, rows, _as_bits) for v in (fully_connected.A32, *fully_connected.A64)),
}
