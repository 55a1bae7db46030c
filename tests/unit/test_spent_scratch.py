"""Scratch that an arena has room for is spent on fewer passes over a layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.kernels.dsp.winograd import WinogradPlan
from glowc.place import planning
from tests.unit.conv_chain import conv_chain


def passes(compiled: Compiled) -> list[tuple[int, int]]:
    """Channels of a pass and rows of a group of each layer that has them."""
    plans = [i.plan for i in compiled.program.instrs if isinstance(i.plan, WinogradPlan)]
    return [(plan.channels, plan.rows) for plan in plans]


def test_layers_beside_which_the_arena_has_room_take_fewer_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = conv_chain(tmp_path / "chain.onnx", (24, 24), (32, 16, 16))
    board, options = load_board("mps2-an386"), CompileOptions(io_layout="nhwc")

    def compiled() -> Compiled:
        return compile_model(path, board, options, order=lambda layers: {x.name: ("dsp_winograd",) for x in layers})

    spent = compiled()
    monkeypatch.setattr(planning, "_MOST_SPENDING", 0)
    usual = compiled()
    assert spent.plan.arena_bytes == usual.plan.arena_bytes
    assert passes(usual)[-1] == (8, 6)
    assert passes(spent)[-1] == (16, 2)  # its output lies over its input


def test_a_limit_takes_scratch_away_before_it_streams(tmp_path: Path) -> None:
    path, board = conv_chain(tmp_path / "chain.onnx", (24, 24), (8, 16, 16)), load_board("mps2-an386")
    usual = compile_model(path, board, CompileOptions(io_layout="nhwc"))
    limit = usual.plan.arena_bytes - 1000
    limited = compile_model(path, board, CompileOptions(io_layout="nhwc", ram_limit=limit))
    assert passes(usual)
    assert limited.plan.arena_bytes <= limit
    assert limited.planned.kind == "overlap"
