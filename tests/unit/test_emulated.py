"""Boards that cannot be run from here: an emulated one of the same core runs and counts their code, and is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from glowc.board import Board, board_names, emulated, load_board
from glowc.errors import ToolError
from glowc.machine import execute
from glowc.machine.tune import counter_of
from tests.unit.cli_calls import DIGITS, GOOD, Glowc, images


@pytest.mark.parametrize("name", board_names())
def test_every_board_has_one_that_runs_its_code(name: str) -> None:
    board = load_board(name)
    other = emulated(board)
    assert other is not None
    assert other.runs
    assert other.cpu.name == board.cpu.name
    assert (other.name == name) == board.runs
    assert other.counts_insns or name == "host"


def test_board_without_a_chip_and_a_core_of_ones_own_have_one() -> None:
    mine = replace(load_board("nucleo-f446re"), name="mine", chips=())
    assert emulated(mine).name == "mps2-an386"  # type: ignore[union-attr]
    tiny = replace(load_board("rpi-pico"), name="mine", chips=())
    assert emulated(tiny).cpu.name == "cortex-m0plus"  # type: ignore[union-attr]
    soft = replace(mine.cpu, name="m4-soft", cflags=("-mcpu=cortex-m4+nofp", "-mfloat-abi=soft", "-ffp-contract=off"))
    other = emulated(replace(mine, cpu=soft))
    assert other is not None
    assert (other.name, other.cpu.name) == ("mps2-an386", "m4-soft")
    unknown = replace(mine.cpu, name="m85", cflags=("-mcpu=cortex-m85",))
    assert emulated(replace(mine, cpu=unknown)) is None


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Board and core of every program that would be run."""
    seen: list[tuple[str, str]] = []

    def run(info: execute.BundleInfo, board: Board, inputs: dict[str, np.ndarray], **_: object) -> SimpleNamespace:
        seen.append((board.name, board.cpu.name))
        outputs = {p.name: np.zeros((len(GOOD), *p.shape), p.dtype.numpy) for p in info.outputs}
        return SimpleNamespace(outputs=outputs, stack_bytes=1)

    monkeypatch.setattr("glowc.machine.execute.execute", run)
    monkeypatch.setattr("glowc.machine.validate.execute", run)
    return seen


@pytest.mark.parametrize("command", ["run", "validate"])
def test_own_board_runs_on_the_emulated_one_which_is_named(
    glowc: Glowc, ran: list[tuple[str, str]], command: str
) -> None:
    images(image=GOOD)
    more = ("--output", "o.npz") if command == "run" else ()
    result = glowc(command, DIGITS, "--board", "rpi-pico", "--input", "in.npz", *more)
    assert ran == [("mps2-an385", "cortex-m0plus")]
    assert "note: rpi-pico cannot be run from here; mps2-an385 runs its code, for cortex-m0plus" in result.err


def test_kit_for_an_own_board_is_one_for_the_emulated_board(glowc: Glowc) -> None:
    images(image=GOOD)
    result = glowc("test-kit", DIGITS, "kit", "--board", "nucleo-f446re", "--input", "in.npz")
    assert result.status == 0, result.err
    assert "on mps2-an386: make -C kit check" in result.out
    assert "nucleo-f446re cannot be run from here" in result.err
    assert "mps2-an386" in Path("kit/Makefile").read_text()


def test_bench_without_an_emulator_keeps_the_sizes_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ToolError("qemu-system-arm is not installed")

    monkeypatch.setattr(execute, "bench", fail)
    report = {"insns": None, "text_bytes": 8}
    said = execute.add_emulated(report, SimpleNamespace(), load_board("teensy41"))  # type: ignore[arg-type]
    assert said == "nothing is counted on mps2-an500: qemu-system-arm is not installed"
    assert report == {"insns": None, "text_bytes": 8}


def test_tune_counts_for_an_own_board_on_its_own_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glowc.machine.tune._version", lambda _: "cc 1")
    monkeypatch.setattr("glowc.machine.tune.missing_tool", lambda _: "")
    counter = counter_of(load_board("nucleo-f446re"), lambda _: None)
    assert counter.chip is not None
    assert (counter.board.name, counter.machine.name, counter.chip.name) == ("nucleo-f446re", "mps2-an386", "stm32f446")


@pytest.mark.qemu
def test_bench_of_an_own_board_has_instructions_and_the_first_chips_milliseconds(glowc: Glowc) -> None:
    result = glowc("bench", DIGITS, "--board", "nucleo-l4r5zi", "--json")
    assert result.status == 0, result.err
    report = json.loads(result.out)
    assert (report["board"], report["emulated_on"], report["chip"]["name"]) == (
        "nucleo-l4r5zi",
        "mps2-an386",
        "stm32l4r5",
    )
    assert report["insns"] > 0
    assert report["ms"] > 0
    assert all(layer["insns"] for layer in report["layers"])
