"""A model that was trained again becomes a blob for the firmware of the old one: `--like` and `--weights-for`."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from glowc.errors import InputError
from glowc.quant.like import read_like
from tests.conftest import ROOT, require_module
from tests.unit.cli_calls import DIGITS, Glowc, refused

EXAMPLE = ROOT / "examples/digits"
QUICK = ("--no-rounding", "--no-bias-correction", "--calibration", "minmax")


def trained_again(path: Path, share: float = 0.1) -> Path:
    """The example with other weights."""
    model, rng = onnx.load(EXAMPLE / "digits_fp32.onnx"), np.random.default_rng(1)
    for const in model.graph.initializer:
        array = numpy_helper.to_array(const)
        if array.dtype == np.float32 and array.size > 1:
            noise = share * array.std() * rng.standard_normal(array.shape)
            const.CopyFrom(numpy_helper.from_array((array + noise).astype(np.float32), const.name))
    onnx.save(model, path)
    return path


@pytest.fixture(name="old", scope="module")
def _old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quantised model with equalised channels, quantised again after another training, and a bundle of the first."""
    from glowc.board import load_board
    from glowc.compiler.options import CompileOptions
    from glowc.compiler.pipeline import compile_model, write_bundle
    from glowc.quant.calibrate import Calibration
    from glowc.quant.quantizer import QuantizeOptions, quantize_model

    require_module("onnxruntime")
    folder = tmp_path_factory.mktemp("like")
    with np.load(EXAMPLE / "digits_calibration.npz") as data:
        samples = [{"image": image} for image in data["image"][:24]]
    plain = QuantizeOptions(calibration=Calibration.MINMAX, rounding=False, bias_correction=False)
    for name, source, options in (
        ("old.onnx", EXAMPLE / "digits_fp32.onnx", plain),
        ("other.onnx", trained_again(folder / "new_fp32.onnx"), plain),
    ):
        (folder / name).write_bytes(quantize_model(source, samples, options).model.SerializeToString())
    np.savez(folder / "data.npz", image=np.stack([s["image"] for s in samples]))
    compiled = compile_model(folder / "old.onnx", load_board("mps2-an386"), CompileOptions(name="d", weights="blob"))
    write_bundle(compiled, folder / "bundle")
    return folder


def test_new_weights_fit_the_old_code(glowc: Glowc, old: Path) -> None:
    argv = ("quantize", old / "new_fp32.onnx", "--data", old / "data.npz", "--like", old / "old.onnx", *QUICK)
    done = glowc(*argv, "-o", "new.onnx")
    assert done.status == 0, done.err
    before, after = read_like(old / "old.onnx"), read_like(Path("new.onnx"))
    kept = {name: params for name, params in before.params.items() if not name.endswith("bias")}
    assert {name: after.params[name] for name in kept if name in after.params} == {
        name: params for name, params in kept.items() if name in after.params
    }
    assert {n: f.tolist() for n, f in after.factors.items()} == {n: f.tolist() for n, f in before.factors.items()}
    done = glowc("compile", "new.onnx", "--weights-for", old / "bundle", "-o", "out")
    assert done.status == 0, done.err
    assert "fit the code of" in done.out
    assert [path.name for path in Path("out").iterdir()] == ["d_weights.bin"]
    first, second = (folder / "d_weights.bin" for folder in (old / "bundle", Path("out")))
    assert first.read_bytes()[16:24] == second.read_bytes()[16:24]
    assert first.read_bytes() != second.read_bytes()


def test_what_does_not_fit_is_named(glowc: Glowc, old: Path) -> None:
    says = ["the weights of d do not fit the code of the bundle", "tensor '", "scale ", "the bundle has scale "]
    argv = ("compile", old / "other.onnx", "--weights-for", old / "bundle", "-o", "out")
    refused(glowc, *argv, says=says, hint="glowc quantize --like", status=3)


def test_a_bundle_without_a_blob_has_nothing_to_replace(glowc: Glowc, bundle: Path) -> None:
    says = ["are part of its code"]
    refused(glowc, "compile", DIGITS, "--weights-for", bundle, "-o", "out", says=says, hint="--weights blob")


def test_files_that_say_nothing_are_refused(glowc: Glowc, old: Path) -> None:
    shutil.copy(EXAMPLE / "digits_fp32.onnx", "float.onnx")
    with pytest.raises(InputError, match="nothing is quantized there"):
        read_like(Path("float.onnx"))
    argv = ("quantize", "float.onnx", "--data", old / "data.npz", "-o", "q.onnx", "--like", old / "old.onnx")
    refused(glowc, *argv, "--flash-limit", "9K", says=["--like keeps what a search would choose"], hint="limits")
    refused(glowc, *argv, "--activations", "int16", says=["has 8 bits there, 16 here"], hint="the options of that one")
