"""The models of the end-to-end tests: found, compiled once per worker, fed with their own samples.

A model that is not there skips its test, naming it: the sample models are data beside the repository, no tool.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.machine.execute import BundleInfo, execute, load_bundle
from tests.conftest import ROOT, SHARED_MODELS, SHARED_TFLITE, require_tool

DIGITS = "digits"
MLPERF = ("mlperf_ic_resnet8", "mlperf_kws_dscnn", "mlperf_vww_mobilenetv1", "mlperf_ad_autoencoder")
TFLITE = ("mlperf_ic_int8", "mlperf_kws_int8", "mlperf_vww_int8", "mlperf_ad_int8", "microwakeword_okay_nabu")
TINYMAIX = ("tinymaix_cifar10", "tinymaix_mnist_dw")


@dataclass(frozen=True)
class Sample:
    """A model file with inputs and the bytes that each output must have, all with a leading sample axis."""

    name: str
    path: Path
    inputs: Mapping[str, np.ndarray]
    golden: Mapping[str, np.ndarray]

    def first(self, count: int) -> Mapping[str, np.ndarray]:
        """Return the inputs of the first `count` samples."""
        return {name: array[:count] for name, array in self.inputs.items()}

    def first_on(self, info: BundleInfo) -> dict[str, np.ndarray]:
        """Return the inputs of the first sample as a bundle takes them; those of .tflite files go by their places."""
        names = [f"input_{i}" if self.name in TFLITE else port.name for i, port in enumerate(info.inputs)]
        return {port.name: port.to_bundle(self.inputs[n][:1]) for port, n in zip(info.inputs, names, strict=True)}


@cache
def model_path(name: str) -> Path:
    """Return the file of a model, or skip the test."""
    path = ROOT / "examples/digits/digits.onnx" if name == DIGITS else SHARED_MODELS / name / "model.onnx"
    path = SHARED_TFLITE / name / "model.tflite" if name in TFLITE else path
    if not path.is_file():
        pytest.skip(f"model {name} is not in {path.parent}")
    return path


@cache
def sample(name: str) -> Sample:
    """Return a model with its samples; the golden arrays are onnxruntime's integer kernels' (`__ort_int`)."""
    path = model_path(name)
    if name == DIGITS:
        with np.load(path.with_name("digits_test.npz")) as data:
            return Sample(name, path, {"image": data["image"]}, {"logits": data["golden"]})
    with np.load(path.with_name("inputs.npz")) as data:
        inputs = dict(data)
    with np.load(path.with_name("golden.npz")) as data:
        golden = {key: data[key] for key in data.files if "__" not in key}  # models that onnxruntime cannot run
        golden |= {key.removesuffix("__ort_int"): data[key] for key in data.files if key.endswith("__ort_int")}
    return Sample(name, path, inputs, golden)


@cache
def compiled(name: str, board: str, cpu: str | None = None, opt: str = "balanced") -> Compiled:
    """Return a model compiled for a board; its C prefix is the model's name."""
    return compile_model(model_path(name), load_board(board, cpu), CompileOptions(name=name, opt=opt))


def board_tools(board: str) -> None:
    """Skip when a program that builds or runs for `board` is missing."""
    target = load_board(board)
    require_tool(target.cpu.cc, *(argv for argv in target.run_argv[:1] if argv != "{elf}"))


def outputs_on(result: Compiled, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what a compiled model gives on its board, in the model's exported form."""
    board_tools(result.board.name)
    with tempfile.TemporaryDirectory(prefix="glowc-test-") as folder:
        write_bundle(result, Path(folder))
        info = load_bundle(Path(folder))
        return exported_outputs(info, result.board.name, result.board.cpu.name, inputs)


def exported_outputs(
    info: BundleInfo, board: str, cpu: str | None, inputs: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return what a bundle gives on a board, in the model's exported form."""
    fed = {port.name: port.to_bundle(inputs[port.name]) for port in info.inputs}
    done = execute(info, load_board(board, cpu), fed)
    return {port.name: port.to_exported(done.outputs[port.name]) for port in info.outputs}


def assert_same_bytes(got: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> None:
    """Fail naming the first difference of each output that is not byte for byte equal."""
    assert set(got) == set(wanted)
    for name, expected in wanted.items():
        actual = got[name]
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        if actual.tobytes() != expected.tobytes():
            different = actual.view(np.uint8) != expected.view(np.uint8)
            at = tuple(int(i) for i in np.argwhere(actual != expected)[0]) if (actual != expected).any() else ()
            pytest.fail(
                f"{name}: {different.sum()} of {different.size} bytes differ; first at {list(at)}: "
                f"{actual[at]!r}, expected {expected[at]!r}"
            )
