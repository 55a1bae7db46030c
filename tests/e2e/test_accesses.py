"""The estimate of accesses against what QEMU counts: bytes read and written in each region during one inference.

When a kernel variant reads its inputs in another way than it says (`KernelVariant.reads`), this test fails.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.machine.cycles.trace import read_trace
from glowc.machine.elf import symbols
from glowc.machine.execute import build_bundle, load_bundle, random_inputs, write_samples
from glowc.machine.qemu import trace_elf
from tests.e2e.models import board_tools, model_path

CASES = [
    ("mlperf_ic_resnet8", 17_000),
    ("mlperf_kws_dscnn", 8_200),
    ("mlperf_vww_mobilenetv1", 19_000),
    ("mlperf_ad_autoencoder", 300),
]
SHARE_OFF, TOTAL_OFF = 0.05, 0.20


def counted(result: Compiled, folder: Path) -> list[int]:
    """Return the bytes that one inference reads and writes in each region."""
    write_bundle(result, folder)
    info, work = load_bundle(folder), folder / "work"
    work.mkdir()
    elf = build_bundle(info, result.board, work).path
    write_samples(work / "in.bin", info, random_inputs(info), 1)
    arrays = [symbols(elf)[f"net_arena_{region.name}"] for region in result.plan.regions]
    areas = [f"area={array.address:#x}:{array.size}:t" for array in arrays]
    inference = read_trace(trace_elf(elf, result.board, cwd=work, caches=areas))[3]
    return [area.read_bytes + area.written_bytes for area in inference.areas]


@cache
def split(name: str, board: str, bytes_: int, plan: str) -> Compiled:
    target = load_board(board)
    names = ("dtcm", "sram") if target.arena_regions else ("fast", "slow")
    regions = ((names[0], bytes_), (names[1], 1 << 20))
    return compile_model(model_path(name), target, CompileOptions(name="net", plan=plan, regions=regions))


@pytest.mark.qemu
@pytest.mark.shared
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an386", "mps3-an547"])
@pytest.mark.parametrize(("name", "bytes_"), CASES)
def test_estimated_shares_are_those_that_qemu_counts(name: str, bytes_: int, board: str, tmp_path: Path) -> None:
    board_tools(board)
    result = split(name, board, bytes_, "overlap")
    counts = counted(result, tmp_path)
    estimates = [region.accesses for region in result.plan.regions]
    assert estimates[0] / sum(estimates) == pytest.approx(counts[0] / sum(counts), abs=SHARE_OFF)
    assert sum(estimates) == pytest.approx(sum(counts), rel=TOTAL_OFF)


@pytest.mark.qemu
@pytest.mark.shared
def test_estimated_shares_hold_for_layers_that_run_row_by_row(tmp_path: Path) -> None:
    board_tools("mps3-an547")
    result = split("mlperf_ic_resnet8", "mps3-an547", 5_000, "stream")
    assert result.planned.program.segments
    counts = counted(result, tmp_path)
    estimates = [region.accesses for region in result.plan.regions]
    assert estimates[0] / sum(estimates) == pytest.approx(counts[0] / sum(counts), abs=SHARE_OFF)
