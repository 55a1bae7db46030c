"""The stack that `glowc compile` predicts; tests/e2e/test_budgets.py compares it with what programs take."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model
from glowc.select.cost import MODES, Costs, load_costs
from glowc.select.stack import stack_bytes, typical
from tests.conftest import ROOT
from tests.unit.cli_calls import DIGITS, Glowc

STACKS = {
    "conv_s8.dsp.rows.s32": {"shared": 300, "literal": 500},
    "conv_s8.dsp.point.s32": {"size": 200},
    "add_s8.dsp..": {"literal": 60},
    "add_s8.ref..": {"literal": 10},
}


@pytest.fixture
def fitting(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """scripts/fit_stack.py as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import fit_stack

    yield fit_stack
    scripts = "fit_stack fit_costs cost_layers cost_models cost_sample cost_forms cost_small_chips"
    for name in scripts.split():
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("key", "mode", "bytes_"),
    [
        ("conv_s8.dsp.rows.s32", "literal", 500),
        ("conv_s8.dsp.rows.s32", "size", 300),  # another way of printing
        ("conv_s8rs.dsp.rows.s32", "literal", 500),  # the kernel without the shift at its end
        ("conv_s8.dsp.planar.s32", "literal", 350),  # the median of the same kernel and variant
        ("mul_s8.dsp..", "literal", 200),  # of the same variant
        ("mul_s8.mve..", "literal", 130),  # of all
    ],
)
def test_kernel_that_was_not_measured_takes_what_the_nearest_do(key: str, mode: str, bytes_: int) -> None:
    assert typical(STACKS, key, mode) == bytes_


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


def test_kernel_takes_no_more_than_any_program_that_has_it(fitting: ModuleType) -> None:
    a, b = ("conv_s8.ref..s8", "size"), ("add_s8.ref..", "literal")
    programs = [
        fitting.Taken("x", frozenset({a, b}), 500), fitting.Taken("y", frozenset({a}), 400),
        fitting.Taken("z", frozenset({b}), 900),
    ]  # fmt: skip
    stacks = fitting.fit(programs)
    assert stacks == {"add_s8.ref..": {"literal": 500}, "conv_s8.ref..s8": {"size": 400}}
    assert list(fitting.off(programs, stacks)) == [("z", 500, 900)]


@pytest.mark.parametrize(
    "board", ["mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547", "linux-aarch64", "linux-armhf"]
)
def test_files_of_costs_have_stacks(board: str) -> None:
    stacks = load_costs(load_board(board).cpu).stack
    assert len(stacks) > 30
    for modes in stacks.values():
        assert set(modes) <= set(MODES)
        assert all(0 <= taken < 4096 for taken in modes.values())
