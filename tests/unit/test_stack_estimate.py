"""The stack that `glowc compile` predicts; tests/e2e/test_budgets.py compares it with what programs take."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model
from glowc.select.code import WAYS
from glowc.select.cost import Costs, load_costs
from glowc.select.stack import parse_stacks, stack_bytes
from tests.conftest import ROOT
from tests.unit.cli_calls import DIGITS, Glowc

STACKS = parse_stacks({
    "base": [[16, 32], [24, 48]],
    "kernels": {
        "conv_s8.dsp.rows.s32": [500, 300, 520, 320, 400, 200, 420, 220],
        "conv_s8.dsp.point.s32": [100, 150, 200, 250],
        "add_s8.dsp..": [60],
        "add_s8.ref..": [10],
    },
})  # fmt: skip


@pytest.fixture
def fitting(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """scripts/fit_stack.py as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import fit_stack

    yield fit_stack
    scripts = "fit_stack fit_code fit_costs count_costs drawn_layers"
    costs = "layers models sample forms small_chips tflite"
    for name in (*scripts.split(), *(f"cost_{name}" for name in costs.split())):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("key", "way", "alone", "bytes_"),
    [
        ("conv_s8.dsp.rows.s32", "literal", False, 500),
        ("conv_s8.dsp.rows.s32", "literal", True, 400),  # what it calls is a part of it
        ("conv_s8.dsp.point.s32", "shared_size", True, 250),
        ("add_s8.dsp..", "shared_size", True, 60),
        ("conv_s8rs.dsp.rows.s32", "literal", False, 500),  # the kernel without the shift at its end
        ("conv_s8.dsp.planar.s32", "literal", False, 300),  # the median of the same kernel and variant
        ("mul_s8.dsp..", "literal", False, 100),  # of the same variant
        ("mul_s8.mve..", "literal", False, 80),  # of all
    ],
)
def test_kernel_that_was_not_measured_takes_what_the_nearest_do(key: str, way: str, alone: bool, bytes_: int) -> None:
    assert STACKS.typical((key, WAYS.index(way), alone)) == bytes_


def test_program_has_more_besides_where_it_has_several_layers() -> None:
    found = [STACKS.besides(opt, several=several) for opt in ("balanced", "size") for several in (False, True)]
    assert found == [16, 32, 24, 48]


def test_cpu_without_measured_programs_has_no_estimate() -> None:
    compiled = compile_model(DIGITS, load_board("mps2-an386"))
    assert stack_bytes(Costs(), compiled.program, "balanced") is None
    assert compiled.report["stack_bytes_estimate"] == stack_bytes(
        load_costs(compiled.board.cpu), compiled.program, "balanced"
    )
    assert compile_model(DIGITS, load_board("host")).report["stack_bytes_estimate"] is None


def test_summary_says_the_estimate_and_what_computes_the_most(glowc: Glowc) -> None:
    said = glowc("compile", DIGITS, "--board", "mps2-an386", "-o", "a").out
    assert "\n  stack             " in said
    assert " bytes, estimated; worst case: `glowc bench`\n" in said
    assert "\n  stack      worst case: `glowc bench`" in glowc("compile", DIGITS, "-o", "b").out


def test_base_is_what_few_programs_exceed_and_each_is_judged_by_the_others(fitting: ModuleType) -> None:
    programs = [fitting.Taken(f"m{n}", "balanced", True, 100, 100 + 10 * n) for n in range(11)]
    programs.append(fitting.Taken("large", "size", False, 100, 1000))
    assert fitting.base_of(programs, 0.9) == [[0, 90], [900, 0]]
    assert list(fitting.off(programs, [[0, 90], [0, 0]])) == [
        ("m0", "balanced", 190, 100), ("m1", "balanced", 190, 110), ("m2", "balanced", 190, 120),
        ("large", "size", 100, 1000),
    ]  # fmt: skip
    assert ("large", "size", 100, 1000) in fitting.left_out(programs, 0.9)


def test_near_bytes_are_written_once(fitting: ModuleType) -> None:
    kernels = {"a": [9, 16, 9, 9] * 2, "b": [8, 80, 8, 80] * 2, "c": [8, 80, 8, 80, 8, 40, 8, 40]}
    written = {"a": [16], "b": [8, 80, 8, 80], "c": [8, 80, 8, 80, 8, 40, 8, 40]}
    assert fitting.written(kernels) == written


@pytest.mark.parametrize(
    "board",
    [
        "microbit",
        "mps2-an385",
        "mps2-an386",
        "mps2-an500",
        "mps2-an505",
        "mps3-an547",
        "linux-aarch64",
        "linux-armhf",
    ],
)
def test_files_of_costs_have_stacks(board: str) -> None:
    stacks = parse_stacks(load_costs(load_board(board).cpu).stack)
    assert len(stacks.kernels) > 30
    assert all(0 <= taken < 4096 for ways in stacks.kernels.values() for taken in ways)
    assert all(0 <= taken < 256 for taken in sum(stacks.base, ()))
