"""Lut: takes from its table; refuses what is not int8."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType, quant
from glowc.ops.base import OpError
from glowc.ops.registry import get_op
from tests.ops.one_node import check


def test_lut_takes_from_its_table() -> None:
    rng = np.random.default_rng(1)
    x, table = rng.integers(-128, 128, (3, 50)).astype(np.int8), rng.integers(-128, 128, 256).astype(np.int8)
    q = quant(0.1, 0)
    (y,) = check("Lut", [x, table], quants=[q], out_quants=[q], consts=(1,))
    np.testing.assert_array_equal(y, table[x.astype(int) + 128])


def test_lut_refuses_other_kinds() -> None:
    node = Node("n", "Lut", ("x", "t"), ("y",))
    with pytest.raises(OpError, match="table"):
        get_op("Lut").infer(node, (TensorType((3,), DType.U8), TensorType((256,), DType.S8)))
