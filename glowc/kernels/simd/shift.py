"""int8 layers that end in a multiplication and a shift on A64 and A32, as those with a float32 scale."""

from __future__ import annotations

import numpy as np

from glowc.kernels.common.float_shift import columns, rows, with_scales
from glowc.kernels.simd import conv, depthwise, fully_connected
from glowc.program.kernel import Arrays


def _as_bits(constants: Arrays) -> Arrays:
    """Return the constants with the bits of the scales as multipliers."""
    scale = np.ascontiguousarray(constants["scale"], np.float32).view(np.int32)
    return {"weights": constants["weights"].reshape(-1), "mul": scale, "offset": constants["bias"]}


VARIANTS = {
    "conv_s8rs": tuple(with_scales(v, rows, _as_bits) for v in (conv.A32, *conv.A64)),
    "dwconv_s8rs": tuple(with_scales(v, columns, _as_bits) for v in (depthwise.A32, depthwise.A64, depthwise.DOT)),
    "fc_s8rs": tuple(with_scales(v, rows, _as_bits) for v in (fully_connected.A32, *fully_connected.A64)),
}
