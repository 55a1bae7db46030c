"""Models that onnxruntime saved after its optimiser: fused operators of its own domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.ops.interp import run_graph
from tests.unit.onnx_builders import model, node
from tests.unit.quirk_models import Net, codes, onnxruntime_outputs, optimised, same_as_onnxruntime

MS = "com.microsoft"
RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def check(fused: onnx.NodeProto, shapes: dict[str, tuple[int, ...]], consts: dict[str, np.ndarray]) -> None:
    inputs = {name: f"f32[{','.join(map(str, shape))}]" for name, shape in shapes.items()}
    proto = model([fused], inputs, "y", consts, opset=17, domains=(MS,))
    same_as_onnxruntime(proto, {name: normal(*shape) for name, shape in shapes.items()}, tolerance=1e-5)


@pytest.mark.parametrize(("activation", "parameters"), [
    ("Relu", ()), ("LeakyRelu", (0.1,)), ("Clip", (-0.5, 1.5)), ("HardSigmoid", (1 / 6, 0.5)), ("Sigmoid", ()),
    ("Tanh", ()),
])  # fmt: skip
@pytest.mark.parametrize("added", [False, True])
def test_fused_convolution(activation: str, parameters: tuple[float, ...], added: bool) -> None:
    attrs: dict[str, Any] = {"activation": activation, "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    attrs |= {"activation_params": parameters} if parameters else {}
    fused = node("FusedConv", "x w b z" if added else "x w b", "y", domain=MS, **attrs)
    shapes = {"x": (1, 3, 6, 5)} | ({"z": (1, 4, 6, 5)} if added else {})
    check(fused, shapes, {"w": normal(4, 3, 3, 3), "b": normal(4)})


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu"])
def test_fused_dense_layer(activation: str) -> None:
    attrs: dict[str, Any] = {"activation_alpha": 0.2} if activation == "LeakyRelu" else {}
    fused = node("FusedGemm", "x w b", "y", domain=MS, activation=activation, transB=1, alpha=0.5, **attrs)
    check(fused, {"x": (2, 7)}, {"w": normal(5, 7), "b": normal(5)})


@pytest.mark.parametrize(("a", "b", "attrs"), [
    ((2, 3, 4), (2, 4, 5), {"alpha": 0.25}),
    ((2, 4, 3), (2, 5, 4), {"transA": 1, "transB": 1, "alpha": 2.0}),
    ((6, 2, 3, 4), (5, 2, 3, 4), {"transBatchA": 1, "transBatchB": 1, "transB": 1, "alpha": 0.3535}),
    ((2, 3, 6, 4), (4, 2, 3, 5), {"transBatchB": 1}),
])  # fmt: skip
def test_fused_product(a: tuple[int, ...], b: tuple[int, ...], attrs: dict[str, Any]) -> None:
    check(node("FusedMatMul", "x z", "y", domain=MS, **attrs), {"x": a, "z": b}, {})


@pytest.mark.parametrize(("op", "attrs"), [
    ("FusedConv", {"activation": "Relu"}), ("FusedConv", {"activation": "Clip", "activation_params": [0.0, 6.0]}),
    ("FusedGemm", {"activation": "Relu"}), ("FusedGemm", {"activation": "Relu", "alpha": 0.5, "transB": 1}),
    ("FusedMatMul", {"alpha": 0.5}), ("FusedMatMul+Add", {"alpha": 0.5}), ("FusedMatMul+Add", {"transB": 1}),
    ("Gemm+Add", {}), ("MatMul+Add+Relu", {}),
])  # fmt: skip
def test_layer_that_onnxruntime_leaves_between_codes_keeps_its_float_weights(op: str, attrs: dict[str, Any]) -> None:
    """onnxruntime gives int8 weights to ONNX's operators only: they were up to 4 steps off."""
    net, conv = Net(), op == "FusedConv"
    shape = (1, 8, 26) if conv else (2, 8, 24) if op.endswith("Add+Relu") else (8, 24)
    net.input("x", f"s8[{','.join(map(str, shape))}]")
    net.dq("x", 0.05, np.int8(3))
    net.const("w", normal(16, 8, 1) if conv else normal(16, 24) if "transB" in attrs else normal(24, 16))
    net.const("b", normal(16))
    first, *rest = op.split("+")
    domain = MS if first.startswith("Fused") else ""
    y = net.op(first, "x_r w" if first.endswith("MatMul") else "x_r w b", "t", domain=domain, **attrs)
    for number, other in enumerate(rest):
        y = net.op(other, f"{y} b" if other == "Add" else y, f"u{number}")
    net.q(y, 0.13, np.int8(-100), "y")
    proto, feeds = net.build({"y": "s8"}, domains=(MS,)), {"x": codes(*shape)}
    (got,), (wanted,) = run_graph(optimised(proto), feeds).values(), onnxruntime_outputs(proto, feeds).values()
    steps = np.abs(got.astype(np.int64) - wanted)
    assert steps.max() <= 1
    assert (steps > 0).mean() < 0.01  # near-ties of sums in another order


def test_other_operators_of_the_optimiser_are_named_with_what_to_do() -> None:
    fused = node("NhwcMaxPool", "x", "y", domain=MS, name="pool7")
    proto = model([fused], {"x": "u8[1,4,4,3]"}, {"y": "u8"}, {}, domains=(MS,))
    with pytest.raises(ModelError, match=r'com.microsoft::NhwcMaxPool \(1 node\): "pool7"') as caught:
        import_model(proto.SerializeToString())
    assert "as it was exported" in str(caught.value.hint)
