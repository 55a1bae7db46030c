"""float16 exports compute in float32: converted weights between casts, and models that are float16 throughout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.samples import read_arrays
from glowc.frontend import import_model, is_half
from glowc.graph.types import DType
from glowc.machine.validate import validate_model
from glowc.ops.interp import run_graph
from tests.unit.onnx_builders import model, node
from tests.unit.quirk_models import onnxruntime_outputs, optimised

RNG = np.random.default_rng(5)
HALF, FLOAT = int(onnx.TensorProto.FLOAT16), int(onnx.TensorProto.FLOAT)


def half(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * 0.3).astype(np.float16)


def network(*, casts: bool) -> onnx.ModelProto:
    """Return a small network in float16; with `casts` its input and output stay float32."""
    x, y = ("xh", "yh") if casts else ("x", "y")
    nodes = [
        *([node("Cast", "x", "xh", to=HALF, name="graph_input_cast0")] if casts else []),
        node("Conv", f"{x} w b", "c"), node("Relu", "c", "r"), node("ReduceMean", "r", "m", axes=[2, 3], keepdims=0),
        node("Constant", "", "k", value=numpy_helper.from_array(half(1, 6))), node("Add", "m k", "a"),
        node("LayerNormalization", "a g h", "n", axis=-1), node("Gemm", "n v", y),
        *([node("Cast", "yh", "y", to=FLOAT, name="graph_output_cast0")] if casts else []),
    ]  # fmt: skip
    consts = {"w": half(6, 3, 3, 3), "b": half(6), "g": half(6), "h": half(6), "v": half(6, 4)}
    kind = "f32" if casts else "f16"
    return model(nodes, {"x": f"{kind}[1,3,8,8]"}, {"y": kind}, consts, opset=17)


@pytest.mark.parametrize("casts", [True, False])
def test_half_floats_become_floats(casts: bool) -> None:
    proto = network(casts=casts)
    x = RNG.standard_normal((1, 3, 8, 8)).astype(np.float32)
    wanted = onnxruntime_outputs(proto, {"x": x if casts else x.astype(np.float16)})["y"].astype(np.float32)
    graph = optimised(proto)
    assert {t.dtype for t in graph.types.values()} <= {DType.F32, DType.S64}
    assert not any(n.op == "Cast" for n in graph.nodes)
    (y,) = run_graph(graph, {"x": x}).values()
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-2 * np.abs(wanted).max())


@pytest.mark.parametrize("held", [False, True])
def test_cast_to_half_and_back_rounds(held: bool) -> None:
    x = np.asarray([[126.7, -0.1, 1e-9, 70000.0, 3.0]], np.float32)
    nodes = [
        node("Cast", "c" if held else "x", "h", to=HALF),
        node("Cast", "h", "w", to=FLOAT),
        node("Mul", "w x", "y"),
    ]
    proto = model(nodes, {"x": "f32[1,5]"}, {"y": "f32"}, {"c": x})
    want = onnxruntime_outputs(proto, {"x": x})["y"]
    np.testing.assert_array_equal(run_graph(optimised(proto), {"x": x})["y"], want)


def test_half_model_is_valid_on_the_host(tmp_path: Path) -> None:
    """The reference rounds every step to float16, so the bound is wider; arrays come as float32."""
    path, inputs = tmp_path / "net.onnx", tmp_path / "in.npz"
    onnx.save(network(casts=False), path)
    np.savez(inputs, x=RNG.standard_normal((2, 1, 3, 8, 8)).astype(np.float32))
    assert is_half(path)
    result = validate_model(path, load_board("host", None), CompileOptions(), inputs)
    assert result["ok"], result
    assert "onnxruntime" in result["reference"]


def test_samples_in_float16_stand_for_float32(tmp_path: Path) -> None:
    x = half(2, 1, 3, 8, 8)
    np.savez(tmp_path / "in.npz", x=x)
    arrays = read_arrays(tmp_path / "in.npz", {"x": ((1, 3, 8, 8), np.dtype(np.float32))})
    np.testing.assert_array_equal(arrays["x"], x.astype(np.float32))
    assert arrays["x"].dtype == np.float32


def test_what_only_moves_half_floats_keeps_them() -> None:
    proto = model([node("Transpose", "x", "y")], {"x": "f16[2,3]"}, {"y": "f16"}, {})
    assert import_model(proto.SerializeToString()).types["y"].dtype == DType.F16
