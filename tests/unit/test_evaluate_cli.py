"""`glowc eval`: labelled data through the float model, the quantised one and its C, and what is said of wrong data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from glowc.compiler.options import CompileOptions
from glowc.machine.layer_error import layer_errors
from glowc.quant.engine import Engine, run_net
from glowc.quant.load import load_float
from glowc.quant.quantizer import QuantizeOptions, quantize_model
from tests.conftest import require_module, require_tool
from tests.unit.cli_calls import Glowc, refused
from tests.unit.quantize_nets import conv_net, images, model


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> Path:
    """A float model, two int8 models of it, 16 samples, and what the float model says of each as its label."""
    require_tool("gcc")
    net, samples = conv_net(), images(16)
    (tmp_path / "net.onnx").write_bytes(net.SerializeToString())
    for name, edge in (("int8.onnx", False), ("edge.onnx", True)):
        done = quantize_model(net, samples, QuantizeOptions(float_edge=edge))
        (tmp_path / name).write_bytes(done.model.SerializeToString())
    engine = Engine()
    x = np.stack([s["x"] for s in samples])
    labels = run_net(engine, load_float(net), {"x": x})["y"].reshape(16, -1).argmax(axis=1)
    np.savez(tmp_path / "in.npz", x=x)
    np.save(tmp_path / "labels.npy", labels)
    return tmp_path


def evaluated(glowc: Glowc, *argv: object) -> dict[str, Any]:
    done = glowc("eval", *argv, "--json")
    assert (done.status, done.err) == (0, "")
    return dict(json.loads(done.out))


@pytest.mark.parametrize("model", ["int8.onnx", "edge.onnx"])
def test_every_machine_is_scored(glowc: Glowc, files: Path, model: str) -> None:
    argv = ("--float", files / "net.onnx", "--data", files / "in.npz", "--labels", files / "labels.npy")
    found = evaluated(glowc, files / model, *argv)
    first, reference, own = found["scores"]
    assert first["machine"].startswith("float, ")
    assert (first["top1"], first["agree"], found["samples"]) == (1.0, None, 16)
    assert own["machine"] == "model, C on the host"
    assert own["rmse_over_largest"] == pytest.approx(reference["rmse_over_largest"], rel=1e-3)
    assert own["rmse_over_largest"] < 0.02
    assert found["drop_points"] == pytest.approx(100 * (1 - own["top1"]))
    assert np.sum(found["confusion"]) == 16
    assert np.trace(found["confusion"]) == 16 * own["top1"]
    assert found["worst"][0]["rmse_over_largest"] > 0


def test_layers_are_compared_in_units_of_the_float_model(glowc: Glowc, files: Path) -> None:
    found = evaluated(glowc, files / "int8.onnx", "--float", files / "net.onnx", "--data", files / "in.npz")
    layers = {row["value"]: row for row in found["layers"]}
    assert {"r1", "r2", "sum", "both", "logits", "y"} <= set(layers)
    assert all(row["sqnr_db"] > 20 for row in layers.values())
    assert found["layers"][0]["lost_db"] == 0


@pytest.mark.parametrize("model", ["int8.onnx", "net.onnx"])
def test_without_a_float_model_the_model_is_its_own_reference(glowc: Glowc, files: Path, model: str) -> None:
    found = evaluated(glowc, files / model, "--data", files / "in.npz", "--labels", files / "labels.npy")
    assert [s["machine"].split(",")[0] for s in found["scores"]] == ["model", "model"]
    assert found["scores"][1]["cosine"] == pytest.approx(1, abs=1e-6)
    assert found["layers"] == []


def test_without_onnxruntime(glowc: Glowc, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    found = evaluated(glowc, files / "int8.onnx", "--float", files / "net.onnx", "--data", files / "in.npz")
    assert [s["machine"] for s in found["scores"]] == [
        "float, interpreter",
        "model, interpreter",
        "model, C on the host",
    ]
    assert found["scores"][1]["rmse_over_largest"] == found["scores"][2]["rmse_over_largest"]
    assert {"r1", "y"} <= {row["value"] for row in found["layers"]}


def test_own_metric_and_names_of_classes(glowc: Glowc, files: Path) -> None:
    (files / "m.py").write_text(
        "def worst(outputs, labels):\n    return outputs.reshape(len(labels), -1).max(1).min()\n"
    )
    (files / "names.txt").write_text("a\nb\nc\nd\ne\n")
    argv = ("--data", files / "in.npz", "--labels", files / "labels.npy", "--classes", files / "names.txt")
    done = glowc("eval", files / "int8.onnx", "--metric", f"{files / 'm.py'}:worst", *argv)
    assert (done.status, done.err) == (0, "")
    assert "confusion matrix" in done.out
    assert "the C loses 0.00 points" in done.out
    found = evaluated(glowc, files / "int8.onnx", "--metric", f"{files / 'm.py'}:worst", *argv)
    assert 0 < found["scores"][0]["metric"] < 1


def test_folders_of_images_are_labels(glowc: Glowc, files: Path) -> None:
    image = require_module("PIL.Image")
    rng = np.random.default_rng(3)
    for name in ("0", "4"):
        (files / "photos" / name).mkdir(parents=True)
        for i in range(3):
            pixels = rng.integers(0, 256, (12, 12, 3), np.uint8)
            image.fromarray(pixels).save(files / "photos" / name / f"{i}.png")
    found = evaluated(glowc, files / "int8.onnx", "--float", files / "net.onnx", "--data", files / "photos")
    assert [sum(row) for row in found["confusion"]] == [3, 0, 0, 0, 3]
    assert found["worst"][0]["file"].endswith(".png")


@pytest.mark.qemu
def test_a_part_of_the_data_runs_on_a_board(glowc: Glowc, files: Path) -> None:
    require_tool("arm-none-eabi-gcc", "qemu-system-arm")
    argv = ("--data", files / "in.npz", "--board", "mps2-an386", "--board-samples", "3")
    found = evaluated(glowc, files / "int8.onnx", *argv)
    assert (found["scores"][2]["machine"], found["scores"][2]["samples"]) == ("model, mps2-an386", 3)
    assert found["scores"][2]["rmse_over_largest"] == 0


def test_data_that_does_not_fit(glowc: Glowc, files: Path) -> None:
    int8, data = files / "int8.onnx", files / "in.npz"
    np.save(files / "few.npy", np.zeros(3, np.int64))
    np.save(files / "high.npy", np.full(16, 9))
    refused(glowc, "eval", int8, says=["no data is given"])
    refused(glowc, "eval", int8, "--data", data, "--labels", files / "few.npy", says=["has 3 labels", "16 samples"])
    refused(glowc, "eval", int8, "--data", data, "--labels", files / "high.npy", says=["label 9", "classes 0 to 4"])
    refused(glowc, "eval", int8, "--data", data, "--metric", "none.py:f", says=["no such file"])
    (files / "void").mkdir()
    refused(glowc, "eval", int8, "--data", files / "void", says=["holds no data", "it is empty"])
    np.savez(files / "odd.npz", x=np.zeros((4, 1, 3, 9, 9), np.float32))
    refused(glowc, "eval", int8, "--data", files / "odd.npz", says=["has shape [4, 1, 3, 9, 9]", "does not fit"])


def test_float_model_with_other_inputs(glowc: Glowc, files: Path) -> None:
    proto = onnx.load(files / "net.onnx")
    proto.graph.input[0].name = "other"
    proto.graph.node[0].input[0] = "other"
    onnx.save(proto, files / "other.onnx")
    argv = ("--float", files / "other.onnx", "--data", files / "in.npz")
    refused(glowc, "eval", files / "int8.onnx", *argv, says=["the float model has other inputs"])


def test_a_layer_does_not_lose_what_codes_of_its_float_inputs_lose(tmp_path: Path) -> None:
    """The layer behind a Transpose in float has the first codes: their noise is no loss of its own."""
    make, consts = onnx.helper.make_node, {"scale": np.float32(0.1), "zero": np.int8(0)}
    turned = [make("Transpose", ["x"], ["t"], "t", perm=[0, 2, 1]), make("Abs", ["t"], ["u"], "u")]
    codes = [
        make("QuantizeLinear", ["u", "scale", "zero"], ["q"]),
        make("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
    ]
    for name, nodes in (
        ("net", [*turned, make("Relu", ["u"], ["y"], "y")]),
        ("int8", [*turned, *codes, make("Relu", ["d"], ["y"], "y")]),
    ):
        onnx.save(model(nodes, consts, {"x": [1, 4, 6]}, {"y": [1, 6, 4]}), tmp_path / f"{name}.onnx")
    given = {"x": np.random.default_rng(0).normal(size=(5, 1, 4, 6)).astype(np.float32)}
    rows = layer_errors(tmp_path / "net.onnx", given, tmp_path / "int8.onnx", given, CompileOptions())
    found = {row["node"]: row for row in rows}
    assert found["t"]["sqnr_db"] > 100 > 50 > found["u"]["sqnr_db"]
    assert found["u"]["lost_db"] == 0
