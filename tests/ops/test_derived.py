"""What an operator means where only its lowering says it: layouts, left-out operands, buffers that kernels share."""

from __future__ import annotations

import numpy as np
import pytest

from glowc.errors import InternalError
from glowc.graph.attrs import AttrValue
from glowc.graph.graph import Node
from glowc.graph.scope import scope
from glowc.graph.types import DType, TensorType, type_of
from glowc.ops.base import Call, LowerCtx, OpDef
from glowc.ops.derived import derived
from glowc.ops.registry import all_ops, get_op, register
from glowc.passes.base import PassCtx
from glowc.passes.fold.constants import FoldConstants
from tests.conftest import ROOT
from tests.ops.one_node import graph_of, onnx_run

RNG = np.random.default_rng(3)
WINDOW: dict[str, AttrValue] = {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)}


def run(op: str, inputs: list[np.ndarray | None], attrs: dict[str, AttrValue], outputs: int = 1) -> list[np.ndarray]:
    names = tuple("" if x is None else f"x{i}" for i, x in enumerate(inputs))
    types = tuple(None if x is None else type_of(x) for x in inputs)
    node = Node("node", op, names, tuple(f"y{i}" for i in range(outputs)), attrs)
    return list(get_op(op).reference(Call(node, tuple(inputs), types, get_op(op).infer(node, types))))


@pytest.mark.parametrize("op", ["Conv", "AveragePool", "MaxPool"])
def test_images_in_planes_equal_onnx(op: str) -> None:
    x, w = (RNG.normal(size=s).astype(np.float32) for s in ((2, 4, 7, 5), (6, 2, 3, 2)))
    given, attrs = ([x, w], {**WINDOW, "group": 2}) if op == "Conv" else ([x], WINDOW)
    (y,) = run(op, [*given], attrs)
    np.testing.assert_allclose(y, onnx_run(op, given, attrs)[0], rtol=1e-5, atol=1e-6)
    if op == "Conv":
        b = RNG.normal(size=6).astype(np.float32)
        np.testing.assert_allclose(run(op, [x, w, b], attrs)[0], y + b[:, None, None], rtol=1e-5, atol=1e-6)


def test_inputs_stay_where_kernels_write_over_them() -> None:
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    kept = x.copy()
    (y,) = run("Relu", [x], {})
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(y, np.maximum(kept, 0))


def test_an_output_that_the_node_leaves_out_has_no_elements() -> None:
    x = np.asarray([3, 1, 2], np.float32)
    node = Node("node", "TopK", ("x",), ("", "i"), {"k": 2, "axis": 0})
    call = Call(node, (x,), (type_of(x),), (TensorType((2,), DType.S64),))
    values, where = derived(call)
    assert values.size == 0
    assert where.tolist() == [0, 2]


def test_a_lowering_that_asks_for_the_cpu_is_named() -> None:
    def lower(_: Node, ctx: LowerCtx) -> None:
        assert "dsp" in ctx.cpu.features

    asks = OpDef("AsksForCpu", get_op("Relu").infer, derived, lower)
    with scope():
        register((asks,), (), ROOT, "test")
        with pytest.raises(InternalError, match="asks for the CPU"):
            run("AsksForCpu", [np.zeros(1, np.float32)], {})


def test_operators_that_constants_alone_have_say_themselves_what_they_mean() -> None:
    own = {name for name, op in all_ops().items() if getattr(op.reference, "__wrapped__", None) is not derived}
    assert {name for name in own if not name.startswith("Reduce")} == {"DequantizeBlocks"}


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_reductions_of_whole_numbers_fold_though_no_kernel_has_them(dtype: str) -> None:
    x = RNG.integers(1, 5, (2, 3, 4)).astype(dtype)
    for op, function in (("ReduceProd", np.prod), ("ReduceSum", np.sum), ("ReduceMax", np.max), ("ReduceL1", np.sum)):
        (y,) = run(op, [x], {"axes": (0, 2), "keepdims": 0})
        np.testing.assert_array_equal(y, function(x, (0, 2)).astype(dtype))
    assert run("ReduceProd", [np.asarray(7, dtype)], {})[0] == 7


def test_constants_that_no_kernel_computes_stay_until_the_lowering_tells() -> None:
    graph = graph_of("MatMul", [np.ones((2, 2), np.int64)] * 2, consts=(0, 1))
    assert [node.op for node in FoldConstants().run(graph, PassCtx()).nodes] == ["MatMul"]
