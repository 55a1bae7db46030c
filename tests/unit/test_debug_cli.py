"""`glowc debug` finds the layer whose C is wrong, says by how much, and writes it as a model of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.compiler.pipeline import Compiled, write_bundle
from glowc.machine import taps
from glowc.machine.debug import histogram
from tests.conftest import ROOT, require_module, require_tool
from tests.unit.cli_calls import DIGITS, Glowc, refused
from tests.unit.onnx_builders import model as onnx_model
from tests.unit.onnx_builders import node
from tests.unit.quantize_nets import conv_net, images


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> Path:
    require_tool("gcc")
    require_module("onnxruntime")
    with np.load(ROOT / "examples/digits/digits_test.npz") as data:
        np.savez(tmp_path / "in.npz", image=data["image"][:3])
    return tmp_path


@pytest.fixture(name="broken")
def _broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The biases of the second convolution are wrong in the C that is written."""

    def write(compiled: Compiled, out_dir: Path) -> None:
        write_bundle(compiled, out_dir)
        weights = next(out_dir.glob("*_weights.c"))
        head, second, rest = re.split(
            r"(bias[^=]*= \{[^;]*;(?:(?!bias).)*bias[^=]*= \{)", weights.read_text(), maxsplit=1, flags=re.S
        )
        weights.write_text(head + second + re.sub(r"-?\d+", "90000", rest, count=1))

    monkeypatch.setattr(taps, "write_bundle", write)


def test_a_sound_model_is_equal_in_every_layer(files: Path, glowc: Glowc) -> None:
    done = glowc("debug", DIGITS, "--input", files / "in.npz", "--samples", 2, "--json")
    found = json.loads(done.out)
    assert (done.status, found["first_difference"], found["samples"]) == (0, None, 2)
    assert [row["interpreter"]["equal_share"] for row in found["layers"]] == [1.0] * len(found["layers"])
    assert sum(row["onnxruntime"] is not None for row in found["layers"]) >= 3
    assert "every layer gives what the interpreter says" in glowc("debug", DIGITS, "--input", files / "in.npz").out


def test_float_models_hold_their_tolerance_and_streamed_ones_run_whole(files: Path, glowc: Glowc) -> None:
    (files / "net.onnx").write_bytes(conv_net().SerializeToString())
    np.savez(files / "x.npz", x=np.stack([sample["x"] for sample in images(2)]))
    done = glowc("debug", files / "net.onnx", "--input", files / "x.npz", "--plan", "stream", "--json")
    assert done.status == 0, done.err
    assert len(json.loads(done.out)["layers"]) > 5


@pytest.mark.usefixtures("broken")
def test_the_first_wrong_layer_is_named_and_written(files: Path, glowc: Glowc) -> None:
    done = glowc("debug", DIGITS, "--input", files / "in.npz", "--repro", files / "one")
    assert done.status == 3
    assert re.search(r"first wrong: layer 1, \w+ ", done.out)
    assert "elements off by " in done.out
    part = onnx.load(files / "one/model.onnx")
    onnx.checker.check_model(part)
    assert 0 < len(part.graph.node) < len(onnx.load(DIGITS).graph.node)
    assert np.load(files / "one/results.npz")["board"].shape[0] == 1


def test_the_written_layer_runs_and_is_right_by_itself(
    files: Path, glowc: Glowc, monkeypatch: pytest.MonkeyPatch
) -> None:
    from glowc.board import load_board
    from glowc.compiler.options import CompileOptions
    from glowc.machine.debug import debug_model, write_repro

    host = load_board("host")
    debugged = debug_model(DIGITS, host, host, CompileOptions(), files / "in.npz", 1, lambda _: None)
    for layer in {t.tap.layer for t in debugged.layers}:
        write_repro(debugged, layer, files / str(layer))
        done = glowc("debug", files / str(layer) / "model.onnx", "--input", files / str(layer) / "in.npz")
        assert done.status == 0, done.out + done.err


def test_taps_are_written_by_value_and_by_node(files: Path, glowc: Glowc) -> None:
    value = json.loads(glowc("debug", DIGITS, "--input", files / "in.npz", "--json").out)["layers"][1]
    out = files / "taps.npz"
    for name in (value["value"], value["nodes"][0]):
        assert glowc("debug", DIGITS, "--input", files / "in.npz", "--samples", 3, "--tap", name, "-o", out).status == 0
        assert np.load(out)[value["value"]].shape[0] == 3
    refused(glowc, "debug", DIGITS, "--input", files / "in.npz", "--tap", "none", "-o", files / "new.npz",
            says=['no layer leaves a value "none"'], hint="known: ")  # fmt: skip
    refused(glowc, "debug", DIGITS, "--input", files / "in.npz", "--tap", "x", says=["give both"], hint="")


def test_steps_are_counted_and_the_largest_together() -> None:
    got, want = np.int8([5, 5, 5, 100, -100, 5]), np.int8([5, 4, 6, 0, 100, 4])
    assert histogram(got, want) == {"-9 and beyond": 1, "-1": 1, "+1": 2, "+9 and beyond": 1}
    assert histogram(np.float32([1.5, 2]), np.float32([1, 2])) == {"1e-1": 1}


def test_a_depthwise_layer_whose_weights_are_an_input_is_equal(files: Path, glowc: Glowc) -> None:
    net = onnx_model([node("Conv", "x w", "y", group=4)], {"x": "f32[1,4,5,5]", "w": "f32[4,1,3,3]"}, "y")
    (files / "net.onnx").write_bytes(net.SerializeToString())
    rng = np.random.default_rng(0)
    np.savez(files / "x.npz", x=rng.random((1, 1, 4, 5, 5), np.float32), w=rng.random((1, 4, 1, 3, 3), np.float32))
    done = glowc("debug", files / "net.onnx", "--input", files / "x.npz")
    assert done.status == 0, done.out + done.err


def test_the_commands_of_the_page_work(files: Path, glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("arm-none-eabi-gcc", "qemu-system-arm")
    monkeypatch.chdir(files)
    (files / "digits.onnx").write_bytes(DIGITS.read_bytes())
    (commands,) = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/DEBUG.md").read_text(encoding="utf-8"), re.M | re.S)
    assert [glowc(*line.split()[1:]).status for line in commands.splitlines()] == [0, 0]
