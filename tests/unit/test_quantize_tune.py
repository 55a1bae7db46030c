"""`glowc quantize --target-accuracy`: layers stay float until accuracy is near enough, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from glowc.quant.engine import Engine, run_net
from glowc.quant.load import load_float
from tests.unit.cli_calls import Glowc, refused
from tests.unit.quantize_nets import uneven_net


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> Path:
    """A model that int8 spoils, samples, and what float says of them."""
    (tmp_path / "net.onnx").write_bytes(uneven_net().SerializeToString())
    x = np.random.default_rng(1).normal(size=(200, 1, 6)).astype(np.float32)
    engine = Engine()
    outputs = run_net(engine, load_float(uneven_net()), {"x": x})["y"]
    np.savez(tmp_path / "in.npz", x=x)
    np.save(tmp_path / "labels.npy", outputs.reshape(200, -1).argmax(axis=1))
    return tmp_path


def test_layers_stay_float_until_the_target_is_met(glowc: Glowc, files: Path) -> None:
    argv = ("--data", files / "in.npz", "--labels", files / "labels.npy", "--no-equalize", "-o", "q.onnx", "--json")
    done = glowc("quantize", files / "net.onnx", "--target-accuracy", "8", *argv)
    assert (done.status, done.err) == (0, "")
    report = json.loads(done.out)
    first, *others = report["trials"]
    assert report["float_score"] == 1
    assert (first["keep_float"], first["extra_bytes"]) == ([], 0)
    assert first["drop_points"] > 30
    good = [t for t in others if t["drop_points"] <= 8]
    assert good
    assert all(t["extra_bytes"] > 0 for t in others if not t["wide"])
    kept = {f["name"] for f in report["float"] if f["reason"] == "--keep-float"}
    assert kept == {n.replace("h", "layer") for n in good[-1]["keep_float"]}
    assert kept == {"layer1", "layer2"}  # the tensor between them is what loses it


def test_int16_is_tried_before_float(glowc: Glowc, files: Path) -> None:
    argv = ("--data", files / "in.npz", "--labels", files / "labels.npy", "--no-equalize", "-o", "q.onnx", "--json")
    report = json.loads(glowc("quantize", files / "net.onnx", "--target-accuracy", "45", *argv).out)
    first, whole, *fewer = report["trials"]
    assert (first["wide"], whole["wide"]) == ([], ["h0", "h1", "h2", "h3"])
    assert not report["float"]
    good = [t["wide"] for t in (whole, *fewer) if t["drop_points"] <= 45]
    assert report["int16"] == [name.replace("h", "layer") for name in sorted(min(good, key=len))]


def test_int8_that_is_good_enough_is_the_only_trial(glowc: Glowc, files: Path) -> None:
    argv = ("--data", files / "in.npz", "--labels", files / "labels.npy", "-o", "q.onnx")
    done = glowc("quantize", files / "net.onnx", "--target-accuracy", "100", *argv)
    assert done.status == 0
    assert "  float: 100.00 %" in done.out
    assert done.out.count("points below float") == 1


def test_own_metric_is_the_score(glowc: Glowc, files: Path) -> None:
    (files / "m.py").write_text("def f(outputs, labels):\n    return (outputs[:, 0].argmax(1) == labels).mean() / 2\n")
    argv = ("--data", files / "in.npz", "--labels", files / "labels.npy", "-o", "q.onnx", "--json")
    done = glowc("quantize", files / "net.onnx", "--target-accuracy", "100", "--metric", f"{files / 'm.py'}:f", *argv)
    assert json.loads(done.out)["float_score"] == 0.5


def test_target_out_of_reach(glowc: Glowc, files: Path) -> None:
    np.savez(files / "some.npz", x=np.random.default_rng(1).normal(size=(8, 1, 6)).astype(np.float32))
    (files / "c.py").write_text(
        "calls = []\ndef f(outputs, labels):\n    calls.append(0)\n    return 1.0 / len(calls)\n"
    )
    np.save(files / "few.npy", np.zeros(8, np.int64))
    argv = ("--data", files / "some.npz", "--labels", files / "few.npy", "-o", "q.onnx")
    says = ["with 3 layers float the drop is", "all int8: "]
    metric = f"{files / 'c.py'}:f"
    refused(glowc, "quantize", files / "net.onnx", "--target-accuracy", "1", "--metric", metric, *argv, says=says)


def test_labels_that_do_not_fit(glowc: Glowc, files: Path) -> None:
    net, data = files / "net.onnx", ("--data", files / "in.npz", "-o", "q.onnx")
    np.save(files / "few.npy", np.zeros(3, np.int64))
    refused(glowc, "quantize", net, *data, "--target-accuracy", "1", says=["needs the class of each sample"])
    refused(glowc, "quantize", net, *data, "--labels", files / "labels.npy", says=["no use without a target"])
    argv = ("--target-accuracy", "1", "--labels", files / "few.npy")
    refused(glowc, "quantize", net, *data, *argv, says=["has 3 labels, the data has 200 samples"])
