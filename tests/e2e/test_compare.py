"""`glowc compare`: outputs, RAM and instructions next to those of TensorFlow Lite Micro.

Its sources are no part of the tests: a stand-in with the same interface is built in their place.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shutil import copytree, rmtree

import numpy as np
import pytest

from tests.conftest import require_tflite, require_tool
from tests.tflite.writer import Build, Tensor
from tests.unit.cli_calls import Glowc, accepted, refused
from tests.unit.test_schemas import holds

TREE = Path(__file__).parent / "tflm_tree"
ON_HOST = ("compare", "net.tflite", "--board", "host")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a model of one operator, RESHAPE of 16 codes."""
    require_tflite()
    monkeypatch.chdir(tmp_path)
    build = Build()
    x = build.input((1, 4, 4))
    build.op("RESHAPE", [x, build.const(np.array([1, 16], np.int32))], Tensor((1, 16), "int8", name="y"))
    Path("net.tflite").write_bytes(build.bytes())


def test_outputs_are_those_of_the_runtime(glowc: Glowc) -> None:
    require_tool("cc")
    np.savez("in.npz", np.arange(48, dtype=np.int8).reshape(3, 1, 4, 4))
    result = holds("compare", accepted(glowc, *ON_HOST, "-i", "in.npz", "--json"))
    ours, theirs = result["engines"]
    assert (result["ok"], result["samples"], result["operators"]) == (True, 3, {"RESHAPE": 1})
    assert theirs["outputs"][0]["equal_share"] == 1
    assert 0 < ours["arena_bytes"] < theirs["arena_bytes"]
    assert "8 of 8 samples equal" in accepted(glowc, *ON_HOST)


@pytest.mark.qemu
def test_tree_is_built_and_counted(glowc: Glowc) -> None:
    require_tool("arm-none-eabi-gcc", "qemu-system-arm")
    ours, _, theirs = json.loads(accepted(glowc, "compare", "net.tflite", "--tflm", TREE, "--json"))["engines"]
    assert theirs["outputs"][0]["equal_share"] == 1
    assert theirs["arena_bytes"] == 32
    assert 16 < theirs["insns"] < 1000
    assert theirs["insns"] / 200 < 1000 * theirs["ms"]  # of a chip at 120 MHz
    assert min(ours["flash_bytes"], theirs["flash_bytes"]) > 1000


def test_what_is_no_tree_is_refused(glowc: Glowc) -> None:
    copytree(TREE, "checkout")
    make = Path("checkout/tensorflow/lite/micro/tools/make")
    make.mkdir(parents=True)
    (make / "Makefile").touch()
    argv = ("compare", "net.tflite", "--tflm")
    refused(glowc, *argv, "checkout", says=["is a checkout of"], hint="create_tflm_tree.py")
    refused(glowc, *argv, "nowhere", says=["nowhere: the folder has no tensorflow/lite/micro"])
    copytree(TREE, "plain")
    rmtree("plain/third_party")
    refused(glowc, *argv, "plain", says=["has no CMSIS-NN"], hint="OPTIMIZED_KERNEL_DIR=cmsis_nn")
    build = Build()
    build.op("ABS", [build.input((1, 4), "float32")], Tensor((1, 4), "float32"))
    Path("net.tflite").write_bytes(build.bytes())
    refused(glowc, *argv, TREE, says=["has no ABS"], hint="without --tflm")


def test_inputs_that_only_the_file_has_are_refused(glowc: Glowc) -> None:
    build = Build()
    both = [build.input((4,), "float32"), build.input((4,), "float32")]
    for code in ("ADD", "SUB"):
        build.op(code, both, Tensor((4,), "float32"))
    build.outputs = [2, 3]
    Path("net.tflite").write_bytes(build.bytes())
    refused(glowc, *ON_HOST, "--state", "t1=t3", says=["takes all inputs of the file"], hint="without --state")


def test_another_format_and_a_missing_package(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("net.onnx").write_bytes(b"")
    refused(glowc, "compare", "net.onnx", "--board", "host", says=["is no TensorFlow Lite file"], hint="glowc validate")
    require_tool("cc")
    monkeypatch.setitem(sys.modules, "tflite_micro", None)
    refused(glowc, *ON_HOST, says=["package tflite-micro"], hint="pip install tflite-micro")
