"""Chips as their files describe them, traces as the plugin writes them, and what `bench` refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_subprocess import FakeProcess

from glowc.board import board_names, chip_names, cpu_names, default_chip, load_board, load_chip, machine_of
from glowc.board.chips import Cache, Memory
from glowc.errors import BoardError, ToolError
from glowc.machine.cycles.mca import MODELS, block_cycles
from glowc.machine.cycles.measure import count_segment
from glowc.machine.cycles.pipeline import Pipeline, known_cores, read_pipeline
from glowc.machine.cycles.rules import Cycles
from glowc.machine.cycles.trace import AreaCounts, Block, Segment, joined, read_trace
from tests.unit.cli_calls import DIGITS, Glowc, refused


@pytest.mark.parametrize("name", chip_names())
def test_chip_is_complete(name: str) -> None:
    chip = load_chip(name)
    assert chip.cpu in cpu_names()
    assert chip.core in known_cores()
    assert machine_of(chip).counts_insns
    assert machine_of(chip).cpu.name == chip.cpu
    assert chip.milliseconds(chip.clock_mhz * 1000) == 1


@pytest.mark.parametrize("name", board_names())
def test_chips_of_a_board_are_known(name: str) -> None:
    board = load_board(name)
    assert all(load_chip(chip).cpu in board.cpus for chip in board.chips)
    assert (default_chip(board) is None) == (not board.chips)


def test_small_flash_cache_is_read() -> None:
    flash = load_chip("stm32l4r5").flash
    assert flash.instruction_cache == Cache(line_bytes=8, ways=128, sets=1)
    assert flash.instruction_cache.size_bytes == 1024


def test_one_bank_of_flash_differs_in_its_lines_alone() -> None:
    """Reads of 128 bits instead of 64; the caches keep their bytes."""
    two, one = (load_chip(name) for name in ("stm32l4r5", "stm32l4r5-dbank0"))
    for cache, other in (
        (two.flash.instruction_cache, one.flash.instruction_cache), (two.flash.data_cache, one.flash.data_cache),
    ):  # fmt: skip
        assert cache is not None
        assert other == replace(cache, line_bytes=2 * cache.line_bytes, ways=cache.ways // 2)
    same = replace(two.flash, instruction_cache=None, data_cache=None, fetch_sequential_cycles=1)
    assert replace(one.flash, instruction_cache=None, data_cache=None) == same
    assert (one.cpu, one.machine, one.clock_mhz) == (two.cpu, two.machine, two.clock_mhz)


def test_every_problem_of_a_chip_is_named(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'summary = "x"\nurl = "y"\ncpu = "cortex-m5"\nmachine = 3\nclock_mhz = 0\nclok = 1\n[flash]\nunified = 1\n'
        "fetch_miss_cycles = 1\nfetch_sequential_cycles = -1\ndata_cache = { line_bytes = 8, ways = 1 }\n"
        "[memory]\nsequential_cycles = 1\n"
    )
    with pytest.raises(BoardError) as caught:
        load_chip(str(mine))
    found = "\n".join(caught.value.details)
    for text in (
        'cpu: "cortex-m5" is not one of', "machine", "clock_mhz", "clok: unknown field",
        "flash.unified: must be true or false", "flash.fetch_sequential_cycles", "flash.data_miss_cycles: missing",
        "flash.data_cache.sets", "memory.miss_cycles: missing", "memory.cache: missing",
    ):  # fmt: skip
        assert text in found


def test_unknown_chip_is_refused_with_the_nearest(glowc: Glowc) -> None:
    refused(
        glowc, "bench", DIGITS, "--chip", "stm32l4r6", says=['unknown chip "stm32l4r6"', 'did you mean "stm32l4r5"?']
    )


def test_chip_with_another_cpu_than_the_bundle_is_refused(glowc: Glowc) -> None:
    says = ['chip "stm32u575" runs code for cortex-m33, the bundle is made for host']
    refused(glowc, "bench", DIGITS, "--board", "host", "--chip", "stm32u575", says=says, hint="glowc chips")


@pytest.mark.qemu
def test_bundle_for_another_core_is_counted_without_the_chip_of_the_board(glowc: Glowc) -> None:
    assert glowc("compile", DIGITS, "--board", "mps2-an386", "-o", "m4").status == 0
    result = glowc("bench", "m4", "--board", "mps2-an505", "--json")
    assert result.status == 0, result.err
    report = json.loads(result.out)
    assert report["run_cpu"] == "cortex-m33"
    assert "chip" not in report


def test_trace_is_read_by_segments() -> None:
    first, second = read_trace("B 16 8 3 2 1 0\nA 0 5 20 1 4 2\nU 1\nM\nU 0\nM\n")
    assert first.blocks == (Block(begin=16, end=24, runs=3, taken=2, misses=1, sequential=0),)
    assert first.areas == (AreaCounts(reads=5, read_bytes=20, writes=1, written_bytes=4, misses=2),)
    assert first.unaligned == 1
    assert second.blocks == ()


def test_lines_of_slow_memory_that_come_ahead_wait_for_what_the_core_does_not_hide() -> None:
    chip = replace(load_chip("rpi-zero2"), memory=Memory(Cache(64, 16, 512), miss_cycles=150, sequential_cycles=32))
    area = AreaCounts(reads=999, misses=100, ahead=20, far=5, far_ahead=60)

    def data(cycles: float) -> float:
        pipeline = Pipeline({(0, 4): Cycles(issue=cycles)}, {(0, 4): 1}, taken=0, unaligned=0)
        segment = Segment((Block(0, 4, 1, 0, 0, 0),), (area, AreaCounts()), 0)
        return count_segment(segment, pipeline, chip).data

    near = 15 * chip.flash.data_miss_cycles + 5 * 150
    assert [data(1000), data(5000)] == [near + 60 * 32 - 1000, near]


def test_block_that_runs_on_into_the_next_is_one_with_it() -> None:
    def block(begin: int, end: int, runs: int, taken: int = 0, misses: int = 0) -> Block:
        return Block(begin, end, runs, taken, misses, sequential=0)

    cut = (block(0, 8, 10, misses=1), block(8, 16, 10, misses=2), block(16, 24, 12, taken=11))
    assert set(joined(cut)) == {block(0, 24, 10, taken=10, misses=3), block(16, 24, 2, taken=1)}
    left = (block(0, 8, 10, taken=1), block(8, 16, 9))
    assert set(joined(left)) == set(left)
    assert joined((*cut[2:], *cut[2:])) == cut[2:] * 2


def test_broken_trace_is_an_error() -> None:
    with pytest.raises(ToolError, match="trace of the run"):
        read_trace("B 16 x\n")


def test_core_without_rules_is_an_error() -> None:
    with pytest.raises(BoardError, match="no rules for the cycles of cortex-m9"):
        read_pipeline(Path("x.elf"), load_board("host"), "cortex-m9", [])


def test_missing_llvm_mca_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glowc.machine.cycles.pipeline.find_tool", lambda name: None)
    with pytest.raises(ToolError, match="needs llvm-mca-19") as caught:
        read_pipeline(Path("x.elf"), load_board("mps2-an500"), "cortex-m7", [])
    assert caught.value.hint is not None
    assert "apt-get install llvm-19" in caught.value.hint


@pytest.fixture
def mca(fp: FakeProcess, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    monkeypatch.setattr("glowc.machine.cycles.mca.require_tool", lambda name: Path("/tools") / name)

    def answer(cycles: int) -> None:
        text = f'{{"CodeRegions": [{{"Name": "7", "SummaryView": {{"TotalCycles": {cycles}}}}}]}}'
        fp.register(["/tools/llvm-mca-19", fp.any()], stdout=text)

    return answer


def test_loads_of_several_registers_and_calls_are_added_to_what_llvm_mca_says(mca: Callable[[int], None]) -> None:
    mca(300)  # of 100 iterations
    body = ["ldm.w\tr0!, {r4, r5, r6, r7}", "smlad\tr1, r4, r5, r1", "bl\t#-4"]
    assert block_cycles({7: body}, MODELS["cortex-m7"]) == {7: 3 + 1 + 2}


def test_failing_llvm_mca_is_an_error(fp: FakeProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glowc.machine.cycles.mca.require_tool", lambda name: Path("/tools") / name)
    fp.register(["/tools/llvm-mca-19", fp.any()], returncode=1, stderr="unknown core\n")
    with pytest.raises(ToolError, match="llvm-mca-19 failed"):
        block_cycles({1: ["nop"]}, MODELS["cortex-m7"])
