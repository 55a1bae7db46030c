"""int8 layers that end in a multiplication and a shift on A64 and A32, as those with a float32 scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from glowc.kernels.base import Prepared
from glowc.kernels.common.float_shift import columns, rows, scaled
from glowc.kernels.simd import conv, depthwise, fully_connected
from glowc.kernels.simd.ending import BITS


def _with_bits(prepared: Prepared) -> Prepared:
    """The bits of the scales are the multipliers."""
    packed, plan = prepared.constants, prepared.plan
    scale = np.ascontiguousarray(packed["scale"], np.float32).view(np.int32)
    arrays = {"weights": packed["weights"].reshape(-1), "mul": scale, "offset": packed["bias"]}
    typed: Any = plan  # one that has the field `names`
    return Prepared(arrays, replace(typed, path=plan.path or "stream", names=BITS))


VARIANTS = {
    "conv_s8rs": tuple(scaled(v, rows, _with_bits) for v in (conv.A32, *conv.A64)),
    "dwconv_s8rs": tuple(scaled(v, columns, _with_bits) for v in (depthwise.A32, depthwise.A64, depthwise.DOT)),
    "fc_s8rs": tuple(scaled(v, rows, _with_bits) for v in (fully_connected.A32, *fully_connected.A64)),
}
