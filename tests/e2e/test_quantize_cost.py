"""A model that glowc quantised takes no more memory and no more instructions than onnxruntime's int8 file of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import bench, load_bundle
from glowc.quant import quantize_model
from tests.conftest import require_module, require_tool
from tests.unit.quantize_nets import Arrays, branch_net, conv_net, images

BOARD = "mps2-an386"
LUCK = 1.02
"""Whether sums of a channel become codes by a line (kernels/common/straight.py) hangs on the last bits of its scale."""


def cost(folder: Path, model: onnx.ModelProto, sample: Arrays, io_type: str) -> tuple[int, int]:
    """Arena bytes and instructions of one sample."""
    folder.mkdir()
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    board = load_board(BOARD)
    write_bundle(compile_model(folder / "net.onnx", board, CompileOptions(io_type=io_type)), folder / "out")
    info = load_bundle(folder / "out")
    report = bench(info, board, {p.name: p.to_bundle(sample[p.name][None]) for p in info.inputs})
    return int(report["arena_bytes"]), int(report["insns"] or 0)


def onnxruntime_model(folder: Path, model: Path, samples: list[Arrays]) -> onnx.ModelProto:
    """The int8 file of onnxruntime's quantiser: QDQ, weights per channel, min-max."""
    theirs = require_module("onnxruntime.quantization")

    class Reader(theirs.CalibrationDataReader):  # type: ignore[misc, name-defined]
        left = iter(samples)

        def get_next(self) -> Arrays | None:
            return next(self.left, None)

    theirs.quantize_static(str(model), str(folder / "q.onnx"), Reader(), per_channel=True)
    return onnx.load(folder / "q.onnx")


def compare(folder: Path, model: Path, samples: list[Arrays]) -> None:
    """Both with codes as inputs and outputs."""
    require_tool("arm-none-eabi-gcc", "qemu-system-arm")
    theirs = cost(folder / "theirs", onnxruntime_model(folder, model, samples), samples[0], "int8")
    ours = cost(folder / "ours", quantize_model(model, samples).model, samples[0], "model")
    assert ours[0] <= theirs[0]
    assert 0 < ours[1] <= LUCK * theirs[1]


@pytest.mark.parametrize("net", [branch_net, conv_net])
def test_network_costs_no_more(tmp_path: Path, net: Callable[[], onnx.ModelProto]) -> None:
    onnx.save(net(), tmp_path / "float.onnx")
    compare(tmp_path, tmp_path / "float.onnx", images(4))


@pytest.mark.shared
def test_shared_model_costs_no_more(tmp_path: Path, shared_models: Path) -> None:
    folder = shared_models / "torch_simplecnn_fp32"
    with np.load(folder / "inputs.npz") as file:
        samples = [
            {n: file[n][i] for n in file.files} for i in range(12)
        ]  # with 4, loading a zero point takes one more
    compare(tmp_path, folder / "model.onnx", samples)
