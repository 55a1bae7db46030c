"""The command line of Glow: the classic small network from one line to C that computes as onnxruntime does."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from glowc.app import glow
from glowc.app.glow import translated
from glowc.errors import InputError
from tests.conftest import require_module, require_tool

LINE = (
    "-emit-bundle simple_cnn.onnx -model-output-path compiled_model -main-function main -target cpu -batch-size=1 "
    "-optimize"
)


def simple_cnn() -> onnx.ModelProto:
    """Conv 3 -> 16, ReLU, MaxPool, Linear 16 * 14 * 14 -> 10, with a symbolic batch."""
    rng = np.random.default_rng(0)
    shapes = {"w": (16, 3, 3, 3), "b": (16,), "v": (10, 16 * 14 * 14), "c": (10,)}
    nodes = [
        helper.make_node("Conv", ["input", "w", "b"], ["conv"], pads=[1] * 4),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("MaxPool", ["relu"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pool"], ["flat"]),
        helper.make_node("Gemm", ["flat", "v", "c"], ["output"], transB=1),
    ]
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("input", ["N", 3, 28, 28]), ("output", ["N", 10]))
    ]
    weights = [numpy_helper.from_array(rng.normal(0, 0.05, s).astype(np.float32), n) for n, s in shapes.items()]
    graph = helper.make_graph(nodes, "simple_cnn", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_the_line_of_the_how_tos_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require_tool("gcc")
    ort = require_module("onnxruntime")
    monkeypatch.chdir(tmp_path)
    proto = simple_cnn()
    onnx.save(proto, "simple_cnn.onnx")
    monkeypatch.setattr(sys, "argv", ["glow", *LINE.split()])
    with pytest.raises(SystemExit) as stop:
        glow.main()
    assert not stop.value.code
    import glowc

    x = np.random.default_rng(1).random((1, 3, 28, 28), np.float32)
    wanted = ort.InferenceSession(proto.SerializeToString()).run(None, {"input": x})[0]
    np.testing.assert_allclose(glowc.load(tmp_path / "compiled_model")(x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("-model=net.onnx -emit-bundle=out -main-entry-name=classify -network-name=net",
         "compile net.onnx -o out --board host --name net --entry-name classify"),
        ("net.tflite --target=cortex-m55", "compile net.tflite -o net_bundle --board mps3-an547 --cpu cortex-m55"),
        ("-m net.onnx -backend nucleo-f446re -onnx-define-symbol=N,1",
         "compile net.onnx -o net_bundle --board nucleo-f446re --define-symbol N=1"),
    ],
)  # fmt: skip
def test_options_stand_for_those_of_glowc(line: str, argv: str) -> None:
    assert translated(line.split()) == argv.split()


def test_help_and_what_is_wrong() -> None:
    assert translated([]) is None
    assert translated(["-h"]) is None
    with pytest.raises(InputError, match="does not know -opencl, what"):
        translated(["-opencl", "what", "-m=net.onnx"])
    with pytest.raises(InputError, match="0 models and 1 output folders"):
        translated(["-emit-bundle=out"])
    with pytest.raises(InputError, match="is no board and no CPU"):
        translated(["-m=net.onnx", "-target=gpu"])
