"""Models that fuzzing the importer found: each ends in a message, or in C that compiles."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.board import load_board
from glowc.codegen.kernels import c_float
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline
from tests.conftest import require_tool
from tests.unit.onnx_builders import model, node


def refusal(proto: onnx.ModelProto) -> str:
    with pytest.raises(ModelError) as caught:
        import_model(proto)
    return str(caught.value)


def test_branch_that_is_no_graph() -> None:
    proto = model([node("If", "c", "y", name="fork", else_branch=1.5)], {"x": "f32[4]"}, "y")
    proto.graph.initializer.append(helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    assert 'If "fork": attribute else_branch = 1.5 is not of the type graph' in refusal(proto)


def sparse(dims: list[int], indices: list[int]) -> onnx.ModelProto:
    proto = model([node("Add", "x w", "y")], {"x": "f32[4]"}, "y")
    values = helper.make_tensor("w", TensorProto.FLOAT, [len(indices)], [1.0] * len(indices))
    places = helper.make_tensor("w_at", TensorProto.INT64, [len(indices)], indices)
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, dims))
    return proto


@pytest.mark.parametrize(
    ("dims", "indices", "words"),
    [
        ([2**40], [0], "is no shape of at most"),
        ([-4], [0], "is no shape of at most"),
        ([4], [9], "its indices do not fit its shape [4]"),
    ],
)
def test_damaged_sparse_initialiser(dims: list[int], indices: list[int], words: str) -> None:
    text = refusal(sparse(dims, indices))
    assert 'sparse initializer "w"' in text
    assert words in text


def test_sparse_initialiser_is_read() -> None:
    graph = import_model(sparse([4], [2]))
    assert any(np.array_equal(c, [0, 0, 1, 0]) for c in graph.consts.values())


def compiles(proto: onnx.ModelProto, folder: Path) -> None:
    """Compile the model and its C without a warning."""
    require_tool("gcc")
    path = folder / "net.onnx"
    onnx.save(proto, path)
    write_bundle(compile_model(path, load_board("host")), folder / "out")
    files = [str(p) for p in (folder / "out").glob("*.c")]
    flags = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only"]
    done = subprocess.run(["gcc", *flags, *files], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 1e-45, 3.4e38])
def test_attribute_at_the_ends_of_float32_compiles(value: float, tmp_path: Path) -> None:
    compiles(model([node("Shrink", "x", "y", lambd=value)], {"x": "f32[4]"}, "y"), tmp_path)


@pytest.mark.parametrize("name", ["??/", "????/", "?????=", '"??!"', "\u65e5\u672c??/", "%s\\", "*/ /*"])
def test_name_of_a_node_that_c_could_misread(name: str, tmp_path: Path) -> None:
    compiles(model([node("Relu", "x", "y", name=name)], {"x": "f32[4]"}, "y"), tmp_path)


def test_nan_is_printed_as_c_has_it() -> None:
    assert c_float(float("nan")) == "NAN"


def test_tile_of_four_axes_at_once() -> None:
    graph = import_model(model([node("Tile", "x t", "y")], {"x": "f32[2,3,2,3]"}, "y", {"t": [2, 2, 2, 2]}))
    assert graph.types["y"].shape == (4, 6, 4, 6)


def test_output_that_the_operator_does_not_have() -> None:
    proto = model([node("ReduceSum", "x", "y z", name="sum"), node("Relu", "y", "out")], {"x": "f32[4]"}, "out")
    assert 'ReduceSum "sum": output z is one too many: ReduceSum has at most 1' in refusal(proto)


def test_second_output_of_what_is_known_at_once() -> None:
    proto = model([node("Size", "x", "y z", name="size")], {"x": "f32[4]"}, {"y": "s64", "z": "s64"})
    assert 'Size "size": output z is one too many: Size has at most 1' in refusal(proto)


def test_batch_normalisation_of_doubles() -> None:
    params = {"s": [0.1, 3], "b": [1 / 3, -2], "m": [0.7, 5], "v": [2, 1e-3]}
    consts = {name: np.array(values, np.float64) for name, values in params.items()}
    batch_norm = node("BatchNormalization", "x s b m v", "y", epsilon=0.5)
    graph = run_pipeline(import_model(model([batch_norm], {"x": "f64[1,2,3]"}, {"y": "f64"}, consts)))
    x = np.linspace(-4, 4, 6).reshape(1, 2, 3)
    s, b, m, v = (consts[name][:, None] for name in "sbmv")
    wanted = (x - m) / np.sqrt(v + 0.5) * s + b
    np.testing.assert_allclose(run_graph(graph, {"x": x})["y"], wanted, rtol=1e-13)


def test_number_where_an_integer_belongs() -> None:
    consts = {"s": np.float32(0.1), "z": np.int8(0)}
    quantize = node("QuantizeLinear", "x s z", "y", name="q", block_size=float("inf"))
    text = refusal(model([quantize], {"x": "f32[4]"}, {"y": "s8"}, consts, opset=23))
    assert 'QuantizeLinear "q": attribute block_size = inf is not an integer' in text
