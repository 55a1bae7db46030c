"""The estimate of accesses against what QEMU counts: bytes read and written in each region during one inference.

When a kernel variant reads its inputs in another way than `glowc/place/rewrite/accesses.py` says, this test fails: the
tables `_AT_ONCE`, `_SCRATCH_BYTES` and `_IN_PLACE` there have to follow.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board, require_tool
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.machine.elf import symbols
from glowc.machine.execute import build_bundle, load_bundle, random_inputs
from glowc.machine.qemu import run_argv
from tests.e2e.models import board_tools, model_path

FLAGS = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
CASES = [
    ("mlperf_ic_resnet8", 17_000),
    ("mlperf_kws_dscnn", 8_200),
    ("mlperf_vww_mobilenetv1", 19_000),
    ("mlperf_ad_autoencoder", 300),
]
SHARE_OFF, TOTAL_OFF = 0.05, 0.20


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("plugin") / "access_counter.so"
    source = Path(__file__).with_name("access_counter.c")
    subprocess.run([require_tool("gcc"), *FLAGS, source, "-o", library], check=True)
    return library


def counted(result: Compiled, counter: Path, folder: Path) -> list[int]:
    """Return the bytes that one inference reads and writes in each region."""
    write_bundle(result, folder)
    info, work = load_bundle(folder), folder / "work"
    work.mkdir()
    elf = build_bundle(info, result.board, work).path
    one = random_inputs(info)
    parts = [np.uint32(1).tobytes(), *(np.ascontiguousarray(one[port.name][0]).tobytes() for port in info.inputs)]
    (work / "in.bin").write_bytes(b"".join(parts))
    found = symbols(elf)
    argument = f"{counter},mark={found['glow_mark'].address:#x},out={work / 'counts.txt'}"
    for region in result.plan.regions:
        array = found[f"net_arena_{region.name}"]
        argument += f",range={array.address:#x}:{array.size}"
    argv = run_argv(elf, result.board, ("-plugin", argument))
    argv[0] = str(require_tool(argv[0]))
    subprocess.run(argv, cwd=work, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    lines = [[int(n) for n in line.split()] for line in (work / "counts.txt").read_text().splitlines()]
    return [after - before for before, after in zip(lines[2], lines[3], strict=True)]


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
def test_estimated_shares_are_those_that_qemu_counts(
    name: str, bytes_: int, board: str, counter: Path, tmp_path: Path
) -> None:
    board_tools(board)
    result = split(name, board, bytes_, "overlap")
    counts = counted(result, counter, tmp_path)
    estimates = [region.accesses for region in result.plan.regions]
    assert estimates[0] / sum(estimates) == pytest.approx(counts[0] / sum(counts), abs=SHARE_OFF)
    assert sum(estimates) == pytest.approx(sum(counts), rel=TOTAL_OFF)


@pytest.mark.qemu
@pytest.mark.shared
def test_estimated_shares_hold_for_layers_that_run_row_by_row(counter: Path, tmp_path: Path) -> None:
    board_tools("mps3-an547")
    result = split("mlperf_ic_resnet8", "mps3-an547", 5_000, "stream")
    assert result.planned.program.segments
    counts = counted(result, counter, tmp_path)
    estimates = [region.accesses for region in result.plan.regions]
    assert estimates[0] / sum(estimates) == pytest.approx(counts[0] / sum(counts), abs=SHARE_OFF)
