"""Some kernels compute several rows, or all, at a time, and still their output may lie over inputs that are used up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.kernels.choice import variant_of
from glowc.kernels.mve.conv_plans import RunPlan
from glowc.machine.execute import bench, execute, load_bundle, random_inputs
from glowc.ops.interp import run_graph
from glowc.place.rewrite import row_overlap
from glowc.program.lifetimes import strip_markers
from tests.conftest import require_tool
from tests.unit.conv_chain import conv_chain

WINOGRAD = {"mps2-an386": "dsp_winograd", "mps2-an500": "dsp_winograd_paired", "mps2-an505": "dsp_winograd"}
PLANAR = {"mps2-an386": "dsp", "mps2-an500": "dsp_paired", "mps2-an505": "dsp"}


def over_inputs(compiled: Compiled) -> list[tuple[int, int]]:
    """Return, of each output that lies over its input, the direction of its rows and how far away it is."""
    found = []
    for instr in strip_markers(compiled.program).instrs:
        x, y = (compiled.plan.offsets_bytes[instr.operand(role).buffer] for role in ("in", "out"))
        if x < y + instr.operand("out").type.size_bytes and y < x + instr.operand("in").type.size_bytes:
            found.append((int(instr.params["descending"]), y - x))
    return found


def compiled_chain(path: Path, board_name: str, variant: str, opt: str = "balanced") -> Compiled:
    """Compile a chain with one variant for all layers."""
    board = load_board(board_name)
    require_tool(board.cpu.cc, board.run_argv[0])
    options = CompileOptions(io_layout="nhwc", opt=opt)
    compiled = compile_model(path, board, options, order=lambda layers: {x.name: (variant,) for x in layers})
    assert {i.variant for i in strip_markers(compiled.program).instrs} == {variant}
    return compiled


def check(compiled: Compiled, board_name: str, shape: Sequence[int], folder: Path) -> None:
    """Compare the outputs of two samples with those of the graph."""
    write_bundle(compiled, folder)
    x = np.random.default_rng(1).integers(-128, 128, (2, *shape), dtype=np.int8)
    (got,) = execute(load_bundle(folder), load_board(board_name), {"x_q": x}).outputs.values()
    for sample, output in zip(x, got, strict=True):
        (want,) = run_graph(compiled.graph, {"x_q": sample[None]}).values()
        assert len(np.unique(want)) > 30
        assert (output.reshape(-1) == want.reshape(-1)).all()


@pytest.mark.qemu
@pytest.mark.parametrize("board_name", WINOGRAD)
@pytest.mark.parametrize("hw", [(16, 16), (15, 20)], ids=["even", "odd"])
def test_winograd(board_name: str, hw: tuple[int, int], tmp_path: Path) -> None:
    path = conv_chain(tmp_path / "chain.onnx", hw, (8, 16, 16, 16))
    compiled = compiled_chain(path, board_name, WINOGRAD[board_name])
    assert {down for down, _ in over_inputs(compiled)} == {0, 1}, "upwards and downwards"
    check(compiled, board_name, (*hw, 8), tmp_path / "bundle")


@pytest.mark.qemu
@pytest.mark.parametrize("board_name", PLANAR)
@pytest.mark.parametrize(
    ("hw", "channels", "own"),
    [((17, 15), 8, True), ((17, 15), 12, True), ((17, 15), 11, True), ((17, 15), 11, False), ((25, 5), 11, False)],
)
def test_planar(
    board_name: str, hw: tuple[int, int], channels: int, *, own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    if not own:  # outputs over inputs of other channels: row after row
        monkeypatch.setattr(row_overlap, "variant_of", lambda i: replace(variant_of(i), overlap_bytes=lambda _: 1))
    path = conv_chain(tmp_path / "chain.onnx", hw, (channels,) * 4, depthwise=True)
    compiled = compiled_chain(path, board_name, PLANAR[board_name])
    over = over_inputs(compiled)
    assert {down for down, _ in over} == {0, 1}, "upwards and downwards"
    assert all(distance % channels == 0 for _, distance in over) == own
    check(compiled, board_name, (*hw, channels), tmp_path / "bundle")


@pytest.mark.qemu
def test_channels_in_blocks(tmp_path: Path) -> None:
    """Some channels of all pixels are computed before the next ones only where nothing lies over inputs."""
    path = conv_chain(tmp_path / "chain.onnx", (8, 8), (64, 64, 64, 64))
    compiled = compiled_chain(path, "mps3-an547", "mve", "size")  # over inputs though weights are read again
    over = over_inputs(compiled)
    assert {down for down, _ in over} == {0, 1}, "upwards and downwards"
    check(compiled, "mps3-an547", (8, 8, 64), tmp_path / "bundle")


@pytest.mark.qemu
def test_rows_of_points_together(tmp_path: Path) -> None:
    """As many rows are one as have outputs apart from their inputs."""
    path = conv_chain(tmp_path / "chain.onnx", (15, 9), (8, 16, 32, 16, 8), kernel=1)
    compiled = compiled_chain(path, "mps3-an547", "mve")
    plans = [instr.plan for instr in strip_markers(compiled.program).instrs]
    merged = {plan.merged for plan in plans if isinstance(plan, RunPlan)}
    assert merged == {True, False}, "upwards and downwards"
    assert any(down == 0 for down, _ in over_inputs(compiled))
    check(compiled, "mps3-an547", (15, 9, 8), tmp_path / "bundle")


@pytest.mark.qemu
def test_planar_layers_above_and_below_their_inputs_take_as_long(tmp_path: Path) -> None:
    """Channels go one after the other where outputs lie whole pixels away, also below, whatever their number is."""
    path = conv_chain(tmp_path / "chain.onnx", (17, 15), (11,) * 4, depthwise=True)
    compiled = compiled_chain(path, "mps2-an386", "dsp")
    over = over_inputs(compiled)
    assert {distance < 0 for _, distance in over} == {True, False}
    write_bundle(compiled, tmp_path / "bundle")
    info = load_bundle(tmp_path / "bundle")
    report = bench(info, load_board("mps2-an386"), random_inputs(info))
    insns = [int(layer["insns"] or 0) for layer in report["layers"]]
    assert len(insns) == 3
    assert 0 < max(insns) <= 1.1 * min(insns)
