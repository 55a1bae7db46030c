"""`glowc debug` knows layouts and the names of the file, and looks at a bundle's own C."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT, require_module, require_tool
from tests.unit.cli_calls import DIGITS, Glowc, refused
from tests.unit.onnx_builders import model as onnx_model
from tests.unit.onnx_builders import node

SIDE = 4


@pytest.fixture(autouse=True)
def _files(glowc: Glowc) -> None:
    require_tool("gcc")
    require_module("onnxruntime")
    with np.load(ROOT / "examples/digits/digits_test.npz") as data:
        np.savez("in.npz", image=data["image"][:2])
    Path("digits.onnx").write_bytes(DIGITS.read_bytes())


@pytest.fixture(name="cube")
def _cube() -> np.ndarray:
    """A network whose images have as many channels as rows and columns; returns a sample of it."""
    rng = np.random.default_rng(3)
    weights = {n: rng.standard_normal((SIDE, SIDE, 3, 3)).astype(np.float32) for n in ("w", "v")}
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
        node("Relu", "a", "b"),
        node("Conv", "b v", "c", pads=[1, 1, 1, 1]),
        node("Transpose", "c", "d", perm=[0, 1, 3, 2]),
        node("Sigmoid", "d", "e"),
        node("Flatten", "e", "y"),
    ]
    net = onnx_model(nodes, {"x": f"f32[1,{SIDE},{SIDE},{SIDE}]"}, "y", consts=weights)
    Path("cube.onnx").write_bytes(net.SerializeToString())
    sample = rng.standard_normal((1, 1, SIDE, SIDE, SIDE)).astype(np.float32)
    np.savez("cube.npz", x=sample)
    return sample


def test_no_layer_is_accused_where_channels_are_as_many_as_rows_and_columns(glowc: Glowc, cube: np.ndarray) -> None:
    done = glowc("debug", "cube.onnx", "--input", "cube.npz", "--json")
    assert done.status == 0, done.err
    rows = [row for row in json.loads(done.out)["layers"] if row["onnxruntime"] is not None]
    assert len(rows) >= 3
    assert all(row["onnxruntime"]["max_abs"] < 1e-4 for row in rows), rows


def test_taps_take_the_names_of_the_file_and_have_its_layout(glowc: Glowc, cube: np.ndarray) -> None:
    onnxruntime = require_module("onnxruntime")
    import onnx

    assert glowc("debug", "cube.onnx", "--input", "cube.npz", "--tap", "b", "-o", "taps.npz").status == 0
    proto = onnx.load("cube.onnx")
    proto.graph.output.append(onnx.ValueInfoProto(name="b"))
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (want,) = session.run(["b"], {"x": cube[0]})
    np.testing.assert_allclose(np.load("taps.npz")["b"][0], want, atol=1e-4)
    argv = ("debug", "cube.onnx", "--input", "cube.npz", "--tap", "none", "-o", "new.npz")
    refused(glowc, *argv, says=['no layer leaves a value "none"'], hint="known: b")


def test_codes_of_a_float_value_have_their_name_in_the_file(glowc: Glowc) -> None:
    done = glowc("debug", "digits.onnx", "--input", "in.npz", "--json")
    rows = json.loads(done.out)["layers"]
    assert all(row["onnxruntime"] is not None for row in rows if row["op"] in ("Conv", "MaxPool")), rows


def break_weights(folder: Path) -> None:
    """Change the last constants of a bundle's C."""
    path = folder / "digits_weights.c"
    head, begin, rest = path.read_text().rpartition("int8_t digits_w_")
    path.write_text(head + begin + re.sub(r"(= \{\s*)-?\d+", r"\g<1>-99", rest, count=1))


@pytest.mark.parametrize("more", [(), ("--weights", "blob"), ("--io-type", "float")])
def test_a_bundle_is_looked_at_as_it_is(glowc: Glowc, more: tuple[str, ...]) -> None:
    assert glowc("compile", "digits.onnx", "--board", "host", "-o", "out", *more).status == 0
    done = glowc("debug", "out", "--input", "in.npz", "--json")  # the model is found beside it
    assert done.status == 0, done.err
    assert len(json.loads(done.out)["layers"]) >= 5
    if not more:
        break_weights(Path("out"))
        wrong = glowc("debug", "out", "--model", "digits.onnx", "--input", "in.npz")
        assert wrong.status == 3, wrong.out
        assert "first wrong: layer " in wrong.out
        assert glowc("debug", "digits.onnx", "--input", "in.npz").status == 0


def test_validate_names_the_layer_of_a_bundle_that_is_wrong(glowc: Glowc) -> None:
    assert glowc("compile", "digits.onnx", "--board", "host", "-o", "out").status == 0
    break_weights(Path("out"))
    done = glowc("validate", "out", "--model", "digits.onnx", "--input", "in.npz", "--layers")
    assert done.status == 3
    assert re.search(r"first instruction that differs: layer \d+, ", done.out), done.out


def test_what_a_bundle_cannot_show_is_said(glowc: Glowc) -> None:
    assert glowc("compile", "digits.onnx", "--board", "host", "-o", "out").status == 0
    Path("digits.onnx").rename("other.onnx")
    says = ["out is a bundle: it holds no model to compare with"]
    refused(glowc, "debug", "out", "--input", "in.npz", says=says, hint="--model")
    argv = ("compile", "other.onnx", "--board", "host", "-o")
    for flags, what in ((("--plan", "stream"), "row by row"), (("--io-buffers", "caller"), "caller's buffers")):
        assert glowc(*argv, flags[1], *flags).status == 0
        refused(glowc, "debug", flags[1], "--input", "in.npz", says=[what], hint="glowc debug MODEL")
