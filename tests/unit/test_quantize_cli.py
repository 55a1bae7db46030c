"""`glowc profile`, `glowc quantize` and `glowc compile --quantize-data`, as they are typed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.quant.profile import Profiler, read_profile
from tests.conftest import require_module
from tests.unit.cli_calls import Glowc, refused
from tests.unit.quantize_nets import conv_net, dense_net, images


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> Path:
    """A folder with a model and its data."""
    (tmp_path / "net.onnx").write_bytes(conv_net().SerializeToString())
    (tmp_path / "other.onnx").write_bytes(dense_net().SerializeToString())
    np.savez(tmp_path / "in.npz", x=np.stack([s["x"] for s in images()]))
    return tmp_path


def test_profile_then_quantize(glowc: Glowc, files: Path) -> None:
    done = glowc("profile", files / "net.onnx", "--data", files / "in.npz", "-o", "p.yaml")
    assert (done.status, done.err) == (0, "")
    assert read_profile(files / "p.yaml").samples == 8
    done = glowc("quantize", files / "net.onnx", "--profile", "p.yaml", "-o", "q.onnx")
    assert done.status == 0
    assert "a profile has no samples" in done.out
    onnx.checker.check_model(onnx.load(files / "q.onnx"), full_check=True)


def test_profile_of_another_model(glowc: Glowc, files: Path) -> None:
    glowc("profile", files / "net.onnx", "--data", files / "in.npz", "-o", "p.yaml")
    done = glowc("quantize", files / "other.onnx", "--profile", "p.yaml", "-o", "q.onnx")
    assert done.status == 1
    assert "p.yaml is the profile of another graph" in done.err
    assert not (files / "q.onnx").exists()


def test_interrupt_keeps_what_was_profiled(glowc: Glowc, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = Profiler.add

    def interrupted(self: Profiler, sample: dict[str, np.ndarray]) -> None:
        if self.samples == 3:
            raise KeyboardInterrupt
        add(self, sample)

    monkeypatch.setattr(Profiler, "add", interrupted)
    done = glowc("profile", files / "net.onnx", "--data", files / "in.npz", "-o", "p.yaml")
    assert done.status == 130
    assert "p.yaml holds the 3 samples until then" in done.err
    assert read_profile(files / "p.yaml").samples == 3


def test_quantize_json(glowc: Glowc, files: Path) -> None:
    done = glowc(
        "quantize", files / "net.onnx", "--data", files / "in.npz", "-o", "q.onnx", "--json", "--keep-float", "Softmax"
    )
    report = json.loads(done.out)
    assert report["layers"] == 4
    assert report["rmse_over_largest"] < 0.01
    assert report["float"] == [{"name": "softmax", "op": "Softmax", "reason": "--keep-float"}]


def test_compile_quantises_first(glowc: Glowc, files: Path) -> None:
    done = glowc("compile", files / "net.onnx", "-b", "mps2-an386", "--quantize-data", files / "in.npz", "-o", "out")
    assert (done.status, done.err) == (0, "")
    header = (files / "out" / "net.h").read_text()
    assert "int net_invoke(const int8_t *" in header
    assert "NET_X_SCALE" in header or "NET_INPUT_SCALE" in header


def test_compile_reads_images_as_quantize_does(glowc: Glowc, files: Path) -> None:
    argv = ("-b", "mps2-an386", "--quantize-data", files / "in.npz", "-o", "out")
    refused(glowc, "compile", files / "net.onnx", *argv, "--std", "0", says=["--std 0: pixels are divided by it"])
    require_module("PIL.Image").new("RGB", (12, 12), (255, 0, 0)).save(files / "red.png")
    argv = ("-b", "mps2-an386", "--quantize-data", files / "red.png", "--mean", "0", "--layout", "nchw")
    scales = [_input_scale(glowc, files, *argv, "--std", std) for std in ("255", "2.55")]
    assert scales[1] == pytest.approx(100 * scales[0], rel=1e-3)


def _input_scale(glowc: Glowc, files: Path, *argv: str | Path) -> float:
    done = glowc("compile", files / "net.onnx", *argv, "-o", "out", "--force")
    assert done.status == 0, done.err
    header = (files / "out" / "net.h").read_text()
    return float(re.findall(r"define NET_(?:X|INPUT)_SCALE\s+(\S+?)f?\s", header)[0])


def test_float_model_on_a_microcontroller_is_told_of_int8(glowc: Glowc, files: Path) -> None:
    done = glowc("compile", files / "net.onnx", "-b", "mps2-an386", "-o", "out")
    assert done.status == 0
    line = next(line for line in done.out.splitlines() if "note: float" in line)
    assert "--quantize-data" in line
    assert "note: float" not in glowc("compile", files / "net.onnx", "-b", "host", "-o", "out2").out


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("--schema", "odd"), "no schema 'odd'"),
        (("--calibration", "best"), "no calibration 'best'"),
        (("--io-type", "int4"), "--io-type int4"),
        (("--std", "0"), "pixels are divided by it"),
        (("--mean", "a"), "--mean a: not a number"),
        (("--layout", "chw"), "--layout chw"),
    ],
)
def test_wrong_option(glowc: Glowc, files: Path, argv: tuple[str, str], text: str) -> None:
    done = glowc("quantize", files / "net.onnx", "--data", files / "in.npz", "-o", "q.onnx", *argv)
    assert done.status == 1
    assert text in done.err


def test_no_data(glowc: Glowc, files: Path) -> None:
    done = glowc("profile", files / "net.onnx", "-o", "p.yaml")
    assert done.status == 1
    assert "no data is given" in done.err
