"""--chain joins models to one bundle, --state keeps inputs between calls."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from glowc.app.cli import app
from glowc.errors import GlowcError
from tests.conftest import require_module, require_tflite, require_tool
from tests.tflite.writer import Build, Tensor, quant

FLOAT = TensorProto.FLOAT


def _onnx(path: Path, inputs: dict[str, list[int]], outputs: dict[str, list[int]], nodes: list[onnx.NodeProto]) -> Path:
    def values(of: dict[str, list[int]]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in of.items()]

    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def _mean(folder: Path) -> Path:
    """y = x - h and two states that are sums of inputs: h' = h + x, c' = c + h."""
    nodes = [
        helper.make_node("Sub", ["x", "h"], ["d"]), helper.make_node("Add", ["d", "c"], ["y"]),
        helper.make_node("Add", ["h", "x"], ["hn"]), helper.make_node("Add", ["c", "h"], ["cn"]),
    ]  # fmt: skip
    shape = [1, 3]
    return _onnx(
        folder / "cell.onnx", dict.fromkeys(("x", "h", "c"), shape), dict.fromkeys(("y", "hn", "cn"), shape), nodes
    )


def _glowc(*args: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in args])
    error = result.exception
    if isinstance(error, GlowcError):
        return f"1\n{error} {' '.join(error.details)} {error.hint}"
    return f"{result.exit_code}\n{result.output}"


def _run(bundle: Path, folder: Path, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    np.savez(folder / "in.npz", **inputs)
    assert _glowc("run", bundle, "--input", folder / "in.npz", "--output", folder / "out.npz").startswith("0\n")
    return dict(np.load(folder / "out.npz"))


def test_states_are_what_outputs_were_at_the_call_before(tmp_path: Path) -> None:
    require_tool("cc")
    model, bundle = _mean(tmp_path), tmp_path / "cell"
    said = _glowc("compile", model, "--state", "h=hn", "--state", "c=cn", "-o", bundle)
    assert said.startswith("0\n"), said
    assert "cell_reset(void)" in (bundle / "cell.h").read_text()
    x = np.arange(12, dtype=np.float32).reshape(4, 1, 3)
    want, h, c = [], np.zeros((1, 3)), np.zeros((1, 3))
    for row in x:
        want.append(row - h + c)
        h, c = h + row, c + h
    found = _run(bundle, tmp_path, x=x)
    assert list(found) == ["y"]
    np.testing.assert_array_equal(found["y"], np.array(want, np.float32))


def test_validation_keeps_states_too(tmp_path: Path) -> None:
    require_tool("cc")
    require_module("onnxruntime")
    x = np.random.default_rng(0).normal(0, 1, (5, 1, 3)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    flags = ("--state", "h=hn", "--state", "c=cn", "--input", tmp_path / "in.npz")
    said = _glowc("validate", _mean(tmp_path), *flags)
    assert said.startswith("0\n"), said
    assert "against onnxruntime" in said


def test_test_vectors_are_of_calls_in_order(tmp_path: Path) -> None:
    require_tool("cc")
    np.savez(tmp_path / "in.npz", x=np.array([[[1, 2, 3]], [[10, 20, 30]], [[0.5, 0.5, 0.5]]], np.float32))
    bundle = tmp_path / "cell"
    flags = ("--state", "h=hn", "--state", "c=cn", "--golden", tmp_path / "in.npz", "-o", bundle)
    assert _glowc("compile", _mean(tmp_path), *flags).startswith("0\n")
    numbers = "".join((bundle / "cell_golden.c").read_text().split())
    assert "{9.0e+00f,1.8e+01f,2.7e+01f,},{-9.5e+00f,-1.95e+01f,-2.95e+01f,}" in numbers
    main = tmp_path / "main.c"
    main.write_text(
        '#include "cell_golden.h"\n'
        "int main(void) { return cell_golden_failures() + cell_golden_failures() == 0u ? 0 : 1; }\n"
    )
    sources = [main, *(bundle / f"cell{end}.c" for end in ("", "_weights", "_golden"))]
    argv = ["cc", "-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{bundle}", "-lm", "-o", tmp_path / "a"]
    subprocess.run([*map(str, argv), *map(str, sources)], check=True)
    assert subprocess.run([str(tmp_path / "a")], check=False).returncode == 0


@pytest.mark.parametrize(
    ("states", "text"),
    [
        (["z=hn"], '"z" is no input'), (["h=z"], '"z" is no output'), (["h"], "--state h"),
        (["h=hn", "c=hn"], 'output "hn" feeds several inputs'), (["h=hn", "h=cn"], "each input once"),
        (["h=hn", "c=cn", "x=y"], "every output is a state"),
    ],
)  # fmt: skip
def test_pairs_that_do_not_fit_are_told(tmp_path: Path, states: list[str], text: str) -> None:
    flags = [part for state in states for part in ("--state", state)]
    said = _glowc("compile", _mean(tmp_path), *flags, "-o", tmp_path / "cell")
    assert said.startswith("1\n")
    assert text in said


def _scaled(folder: Path) -> Path:
    build = Build()
    q = quant(0.05, 3)
    x = build.input((1, 4), "int8", q)
    build.op("ADD", (x, build.const(np.array([[1, -2, 3, 100]], np.int8), q)), Tensor((1, 4), "int8", quant(0.1, -5)))
    path = folder / "pre.tflite"
    path.write_bytes(build.bytes())
    return path


def _moved(folder: Path, q: float = 0.1, width: int = 4, name: str = "net.tflite") -> Path:
    build = Build()
    x = build.input((width,), "int8", quant(q, -5))
    build.op(
        "SUB", (x, build.const(np.full((width,), 7, np.int8), quant(0.1, 0))), Tensor((width,), "int8", quant(0.2))
    )
    path = folder / name
    path.write_bytes(build.bytes())
    return path


def test_a_chain_answers_as_one_model_after_the_other(tmp_path: Path) -> None:
    require_tflite()
    require_tool("cc")
    pre, net, both = _scaled(tmp_path), _moved(tmp_path), tmp_path / "both"
    x = np.arange(-12, 12, dtype=np.int8).reshape(6, 1, 4)
    said = _glowc("compile", pre, net, "--chain", "--name", "kws", "-o", both)
    assert said.startswith("0\n"), said
    for model in (pre, net):
        assert _glowc("compile", model, "-o", tmp_path / model.stem).startswith("0\n")
    (middle,) = _run(tmp_path / "pre", tmp_path, t0=x).values()
    (want,) = _run(tmp_path / "net", tmp_path, t0=middle.reshape(6, 4)).values()
    (found,) = _run(both, tmp_path, t0=x).values()
    np.testing.assert_array_equal(found, want)


def test_a_chain_of_models_in_both_formats_keeps_names_apart(tmp_path: Path) -> None:
    require_tool("cc")
    first = _onnx(tmp_path / "a.onnx", {"x": [1, 3]}, {"y": [1, 3], "other": [2]},
                  [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Slice", ["x", "s", "e", "a"], ["o"]),
                   helper.make_node("Reshape", ["o", "n"], ["other"])])  # fmt: skip
    model = onnx.load(first)
    for name, value in (("s", [0]), ("e", [2]), ("a", [1]), ("n", [2])):
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [1], value))
    onnx.save(model, first)
    second = _onnx(tmp_path / "b.onnx", {"x": [3], "k": [3]}, {"y": [3]}, [helper.make_node("Mul", ["x", "k"], ["y"])])
    both = tmp_path / "both"
    said = _glowc("compile", first, second, "--chain", "-o", both)
    assert 'output "other" is f32[2], input "k" is f32[3]' in said
    third = _onnx(tmp_path / "c.onnx", {"x": [3]}, {"y": [3]}, [helper.make_node("Mul", ["x", "x"], ["y"])])
    said = _glowc("compile", first, third, "--chain", "-o", both)
    assert said.startswith("0\n"), said
    found = _run(both, tmp_path, x=np.array([[[1, -2, 3]]], np.float32))
    np.testing.assert_array_equal(found["other"], [[1, -2]])
    np.testing.assert_array_equal(found["y.1"], [[1, 4, 9]])


def test_everything_that_does_not_fit_is_told_at_once(tmp_path: Path) -> None:
    require_tflite()
    models = (_scaled(tmp_path), _moved(tmp_path, q=0.3), _moved(tmp_path, width=5, name="wide.tflite"))
    said = _glowc("compile", *models, "--chain", "-o", tmp_path / "x")
    assert "pre.tflite -> net.tflite: " in said
    assert "scale 0.1 and zero point -5" in said
    assert "scale 0.3 and zero point -5" in said
    assert "net.tflite -> wide.tflite: " in said


def test_several_models_need_chain_and_chain_needs_several(tmp_path: Path) -> None:
    model = _mean(tmp_path)
    assert "add --chain" in _glowc("compile", model, model, "-o", tmp_path / "x")
    assert "at least two models" in _glowc("compile", model, "--chain", "-o", tmp_path / "x")
