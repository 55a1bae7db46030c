"""Winograd computes several rows at a time, and still its output may lie over input rows that are used up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import execute, load_bundle
from glowc.ops.interp import run_graph
from glowc.program.lifetimes import strip_markers
from tests.conftest import require_tool
from tests.unit.conv_chain import conv_chain

VARIANTS = {"mps2-an386": "dsp_winograd", "mps2-an500": "dsp_winograd_paired", "mps2-an505": "dsp_winograd"}


@pytest.mark.qemu
@pytest.mark.parametrize("board_name", VARIANTS)
@pytest.mark.parametrize("hw", [(16, 16), (15, 20)], ids=["even", "odd"])
def test_output_over_used_input_rows(board_name: str, hw: tuple[int, int], tmp_path: Path) -> None:
    board = load_board(board_name)
    require_tool(board.cpu.cc, board.run_argv[0])
    path = conv_chain(tmp_path / "chain.onnx", hw, (8, 16, 16, 16))
    options, wanted = CompileOptions(io_layout="nhwc"), VARIANTS[board_name]
    compiled = compile_model(path, board, options, order=lambda layers: {x.name: (wanted,) for x in layers})
    instrs, plan = strip_markers(compiled.program).instrs, compiled.plan
    assert [i.variant for i in instrs] == [wanted] * len(instrs)
    over = set()
    for instr in instrs:
        x, y = (plan.offsets_bytes[instr.operand(role).buffer] for role in ("in", "out"))
        if x < y + instr.operand("out").type.size_bytes and y < x + instr.operand("in").type.size_bytes:
            over.add(int(instr.params["descending"]))
    assert over == {0, 1}, "upwards and downwards"
    write_bundle(compiled, tmp_path / "bundle")
    info = load_bundle(tmp_path / "bundle")
    x = np.random.default_rng(1).integers(-128, 128, (2, *hw, 8), dtype=np.int8)
    got = execute(info, board, {"x_q": x}).outputs["y2_q"]
    for sample, output in zip(x, got, strict=True):
        want = run_graph(compiled.graph, {"x_q": sample[None]})["y2_q"]
        assert len(np.unique(want)) > 30
        assert (output.reshape(-1) == want.reshape(-1)).all()
