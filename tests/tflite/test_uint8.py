"""Layers of uint8 as TensorFlow Lite has them, which its runtime for microcontrollers lacks: how their sums end.

Evidence: 0 of the codes of random layers, and of two image classifiers, differ from LiteRT's reference kernels.
"""

from __future__ import annotations

import numpy as np
import pytest

from glowc.graph.fixed_point import multiplier, scaled
from tests.conftest import require_tflite
from tests.tflite.compare import lowered
from tests.tflite.writer import Build, Tensor, quant

require_tflite()
F32 = np.float32
_IN, _WEIGHTS, _OUT, _ZERO = 0.0123, 0.0000456, 0.431, 100


def _near_halves(factor: float) -> np.ndarray:
    """Return sums that lie beside the middle of two codes."""
    middle = np.floor((np.arange(-90, 120) + 0.5) / factor)
    return np.concatenate([middle + i for i in range(-1, 3)]).astype(np.int32)


def _codes(code: str, sums: np.ndarray) -> np.ndarray:
    """Return what a layer makes of its biases."""
    build, n = Build(), sums.size
    shape = {"FULLY_CONNECTED": (n, 1), "CONV_2D": (n, 1, 1, 1), "DEPTHWISE_CONV_2D": (1, 1, 1, n)}[code]
    rank = len(shape)
    x = build.input((1,) * rank, "uint8", quant(_IN, 3))
    weights = build.const(np.full(shape, 7, np.uint8), quant(_WEIGHTS, 7))
    bias = build.const(sums, quant(float(F32(_IN) * F32(_WEIGHTS))))
    steps = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1, "padding": 1}
    options = {"FULLY_CONNECTED": {}, "CONV_2D": steps, "DEPTHWISE_CONV_2D": {**steps, "depthMultiplier": n}}[code]
    build.op(code, [x, weights, bias], Tensor((*(1,) * (rank - 1), n), "uint8", quant(_OUT, _ZERO)), **options)
    return lowered(build.bytes(), [(np.full((1,) * rank, 9, np.uint8),)])[0][0].reshape(-1)


@pytest.mark.parametrize("code", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_the_factor_of_a_uint8_convolution_is_of_a_float32_product(code: str) -> None:
    exact, single = float(F32(_IN)) * float(F32(_WEIGHTS)), float(F32(_IN) * F32(_WEIGHTS))
    sums = _near_halves(exact / float(F32(_OUT)))
    both = [scaled(sums, *multiplier(product / float(F32(_OUT)))) + _ZERO for product in (exact, single)]
    assert (both[0] != both[1]).any()
    assert np.array_equal(_codes(code, sums), np.clip(both[1], 0, 255))


def test_a_fully_connected_layer_of_uint8_rounds_once() -> None:
    factor = float(F32(_IN)) * float(F32(_WEIGHTS)) / float(F32(_OUT))
    sums = _near_halves(factor)
    mul, shift = multiplier(factor)
    want = [((int(v) * mul + (1 << (30 - shift))) >> (31 - shift)) + _ZERO for v in sums]
    assert np.array_equal(_codes("FULLY_CONNECTED", sums), np.clip(want, 0, 255))
