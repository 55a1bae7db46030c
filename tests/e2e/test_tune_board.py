"""`glowc tune` on a board: every variant is counted, the file is used and reused, code keeps its size limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.kernels.registry import variants_of
from glowc.machine.execute import bench, load_bundle
from glowc.machine.tune import tune_model
from tests.conftest import require_tool
from tests.e2e.models import DIGITS, MLPERF, board_tools, model_path

BOARD = "mps2-an386"
LIMITS = {"size": 12 * 1024, "balanced": 24 * 1024}


@pytest.mark.qemu
def test_tuned_layers_are_those_that_were_measured_fastest_but_for_constants(tmp_path: Path) -> None:
    board_tools(BOARD)
    require_tool("gcc")
    board, path = load_board(BOARD), tmp_path / "tune.json"
    choices = tune_model(model_path(DIGITS), board, CompileOptions(), path, lambda _: None)
    assert choices
    fastest = 0
    for choice in choices:
        assert len(choice.cycles) > 1
        assert choice.measured
        spends_ram = {v.name for v in variants_of(choice.kernel) if v.speed_only}
        fastest += min(n for variant, n in choice.cycles.items() if variant not in spends_ram)
    percent = 1.01  # of the cycles may go for constants over their bound
    assert fastest <= sum(choice.cycles[choice.chosen] for choice in choices) <= percent * fastest
    again = tune_model(model_path(DIGITS), board, CompileOptions(), path, lambda _: None)
    assert not any(c.measured for c in again)
    assert [(c.chosen, c.insns, c.cycles) for c in again] == [(c.chosen, c.insns, c.cycles) for c in choices]


@pytest.mark.qemu
@pytest.mark.shared
@pytest.mark.parametrize("opt", sorted(LIMITS))
@pytest.mark.parametrize("name", MLPERF)
def test_code_of_the_benchmark_models_stays_small(name: str, opt: str, tmp_path: Path, shared_models: Path) -> None:
    board_tools(BOARD)
    write_bundle(compile_model(model_path(name), load_board(BOARD), CompileOptions(opt=opt)), tmp_path)
    report = bench(load_bundle(tmp_path), load_board(BOARD))
    assert report["text_bytes"] <= LIMITS[opt]
    assert report["insns_estimate"] == pytest.approx(report["insns"], rel=0.15)
