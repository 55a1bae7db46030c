"""Tables of functions that onnxruntime computes by a few float32 operations: the same codes, ties included."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.quirk_models import RNG, Net, same_as_onnxruntime


@pytest.mark.parametrize("op", ["HardSwish", "HardSigmoid"])
@pytest.mark.parametrize(("scale", "out_scale"), [(0.02, 0.03), (1 / 64, 1 / 128), (0.05, 0.05), (0.1, 1 / 256)])
def test_hard_functions_equal_onnxruntime_on_every_code(op: str, scale: float, out_scale: float) -> None:
    for zero, out_zero in RNG.integers(-128, 128, (4, 2)):
        net = Net()
        net.input("x", "s8[256]")
        net.op(op, net.dq("x", scale, np.int8(zero)), "h")
        net.q("h", out_scale, np.int8(out_zero), "y")
        same_as_onnxruntime(net.build({"y": "s8"}), {"x": np.arange(-128, 128).astype(np.int8)})
