"""Sums of codes by rows, or by parts: the last codes of a row are no whole vectors where those of the tensor are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.kernels.base import plan_of
from glowc.kernels.simd.add import AddPlan
from glowc.machine.execute import execute, load_bundle
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline
from tests.e2e.models import board_tools
from tests.unit.onnx_builders import f32, model, node

SHAPE = (1, 16, 14, 7)  # rows of 112 codes, 1568 in all
WAYS = {"rows": {"input_stream": "rows"}, "stream": {"plan": "stream", "io_layout": "nhwc"}}


def residual(folder: Path) -> Path:
    """Write a block: a convolution, another one of its results, their sum, and a third one with a stride."""
    rng = np.random.default_rng(5)
    consts = {"s": f32(0.02), "t": f32(0.035), "z": np.int8(-5), "ws": f32(0.01), "wz": np.int8(0)}
    nodes = []

    def conv(x: str, scale: str, out: str, k: int, **attrs: object) -> None:
        consts[f"{out}_w"] = rng.integers(-90, 91, (16, 16, k, k)).astype(np.int8)
        nodes.extend([
            node("DequantizeLinear", f"{x} {scale} z", f"{out}_x"),
            node("DequantizeLinear", f"{out}_w ws wz", f"{out}_r"),
            node("Conv", f"{out}_x {out}_r", f"{out}_f", pads=[k // 2] * 4, **attrs),
            node("QuantizeLinear", f"{out}_f s z", out),
        ])  # fmt: skip

    conv("x", "s", "a", 3)
    conv("a", "s", "b", 1)
    nodes += [
        node("DequantizeLinear", "a s z", "ar"), node("DequantizeLinear", "b s z", "br"), node("Add", "ar br", "sum_f"),
        node("QuantizeLinear", "sum_f t z", "sum"),
    ]  # fmt: skip
    conv("sum", "t", "y", 3, strides=[2, 2])
    proto = model(nodes, {"x": f"s8[{','.join(map(str, SHAPE))}]"}, {"y": "s8"}, consts)
    (folder / "net.onnx").write_bytes(proto.SerializeToString())
    return folder / "net.onnx"


@pytest.mark.qemu
@pytest.mark.parametrize("way", WAYS)
def test_sums_of_rows_that_are_no_whole_vectors(way: str, tmp_path: Path) -> None:
    board_tools("linux-aarch64")
    board = load_board("linux-aarch64")
    made = compile_model(residual(tmp_path), board, replace(CompileOptions(name="net"), **WAYS[way]))
    (add,) = (i for i in made.planned.program.instrs if i.kernel.startswith("add_s8"))
    assert add.int_("d0") % 32 != 0
    write_bundle(made, tmp_path / "out")
    info = load_bundle(tmp_path / "out")
    x = np.random.default_rng(6).integers(-128, 128, (2, *SHAPE)).astype(np.int8)
    (port,), (out,) = info.inputs, info.outputs
    got = out.to_exported(execute(info, board, {"x": port.to_bundle(x)}).outputs["y"])
    graph = run_pipeline(made.imported)
    np.testing.assert_array_equal(got, np.stack([run_graph(graph, {"x": one})["y"] for one in x]))


def test_parts_of_sums_that_are_no_whole_vectors(tmp_path: Path) -> None:
    consts = {"s": f32(0.02), "t": f32(0.035), "z": np.int8(-5)}
    nodes = [
        node("DequantizeLinear", "a s z", "ar"), node("DequantizeLinear", "b s z", "br"), node("Add", "ar br", "sum"),
        node("QuantizeLinear", "sum t z", "y"),
    ]  # fmt: skip
    proto = model(nodes, {"a": "s8[1,13056]", "b": "s8[1,13056]"}, {"y": "s8"}, consts)
    (tmp_path / "sum.onnx").write_bytes(proto.SerializeToString())
    for cycles, left in ((None, 0), ("3000", 16)):
        made = compile_model(tmp_path / "sum.onnx", load_board("linux-aarch64"), CompileOptions(slice=cycles))
        (add,) = made.planned.program.instrs
        assert add.int_("d0") % 32 == left
        assert plan_of(add, AddPlan).twos == (left == 0)
