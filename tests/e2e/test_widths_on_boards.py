"""Networks with codes of 8 and of 16 bits on machines: the bytes of the interpreter, and no float but at the edge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.ops.interp import run_graph
from glowc.quant import Activations, Precision, QuantizeOptions, quantize_model
from glowc.quant.emit import edge_params
from tests.e2e.models import assert_same_bytes, outputs_on
from tests.unit.mixed_nets import conversions, mixed_net
from tests.unit.quantize_nets import conv_net, images

MACHINES = ("host", "microbit", "mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64", "linux-armhf")
BOARDS = [pytest.param(board, marks=[] if board == "host" else [pytest.mark.qemu]) for board in MACHINES]


def same_on(board: str, model: onnx.ModelProto, inputs: dict[str, np.ndarray], folder: Path) -> None:
    """Compile, run the samples, and compare with the interpreter."""
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    done = compile_model(path, load_board(board), CompileOptions())
    wanted = [
        run_graph(done.graph, {k: a[i] for k, a in inputs.items()}) for i in range(len(next(iter(inputs.values()))))
    ]
    assert_same_bytes(outputs_on(done, inputs), {k: np.stack([w[k] for w in wanted]) for k in wanted[0]})


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("zero", [0, 500])
def test_pairs_between_widths(board: str, zero: int, tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(0, 1, (2, 1, 3, 8, 8)).astype(np.float32)
    same_on(board, mixed_net(zero), {"x": x}, tmp_path)


@pytest.mark.parametrize("board", BOARDS)
def test_ties_that_need_float(board: str, tmp_path: Path) -> None:
    """A scale that is 128 times the other one rounds every 128th code half to even."""
    model = conversions([np.int16, np.int8, np.int16], [0, 3, 0])
    for tensor in model.graph.initializer:
        if tensor.name in ("c0_s", "c1_s"):
            tensor.CopyFrom(
                onnx.numpy_helper.from_array(np.float32(2.0**-12 if tensor.name == "c0_s" else 2.0**-5), tensor.name)
            )
    x = np.linspace(-5, 5, 1000, dtype=np.float32)[None]
    same_on(board, model, {"x": x}, tmp_path)


@pytest.mark.parametrize("board", BOARDS)
def test_quantised_with_single_layers_on_int16(board: str, tmp_path: Path) -> None:
    wishes = dict.fromkeys(("depthwise", "pointwise", "add", "softmax"), Activations.INT16)
    model = quantize_model(conv_net(), images(), QuantizeOptions(precision=Precision(activations_of=wishes))).model
    codes = np.stack([edge_params(model)["x"].codes(s["x"]) for s in images(2)])
    same_on(board, model, {"x": codes}, tmp_path)
