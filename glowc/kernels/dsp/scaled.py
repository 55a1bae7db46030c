"""int8 layers that end in a multiplication and a shift on SMLAD, as those with a float32 scale.

Biases and scales lie in the stream of the weights: eight bytes a channel, where those that end in a shift have twelve
and more. They are for layers where a scale gives the same codes (common/float_shift.py).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.float_shift import columns, rows, scaled
from glowc.kernels.dsp import conv, depthwise, paired


def _in_stream(prepared: Prepared) -> Prepared:
    """Return what a layer with a scale has in its stream, for the operands of one that ends in a shift."""
    weights, none = prepared.constants["weights"], np.zeros(1, np.int64)
    return Prepared({"weights": weights, "mul": none.astype(np.int32), "offset": none}, prepared.plan)


def _conv(plain: KernelVariant, rank: int) -> KernelVariant:
    return replace(scaled(plain, rows, _in_stream), rank=rank, template="dsp/conv_s8", stated=None)


CONV, PAIRED = _conv(conv.CONV, 8), _conv(paired.PAIRED, 9)
DEPTHWISE, DEPTHWISE_PAIRED = (scaled(v, columns, _in_stream) for v in (depthwise.DEPTHWISE, depthwise.PAIRED))

VARIANTS = {
    "conv_s8rs": (CONV, PAIRED),
    "dwconv_s8rs": (DEPTHWISE, DEPTHWISE_PAIRED),
}
