"""--code-section: what an inference executes lies in RAM, computes the same, waits for no flash, has a stack bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from glowc.app.options import parse_section
from glowc.board import load_board, load_chip
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import InputError
from glowc.machine.cycles.measure import measure_cycles
from glowc.machine.execute import BundleInfo, bundle_entry, execute, load_bundle, random_inputs, stack_report
from glowc.machine.listing import read_functions
from tests.conftest import ROOT
from tests.e2e.models import board_tools
from tests.e2e.test_stack import TIGHT

DIGITS = ROOT / "examples/digits/digits.onnx"


def bundle_of(folder: Path, board: str, section: str | None) -> BundleInfo:
    """Compile digits; without or with a section of its code."""
    write_bundle(compile_model(DIGITS, load_board(board), CompileOptions(code_section=section)), folder)
    return load_bundle(folder)


@pytest.mark.qemu
@pytest.mark.parametrize("name", ["mps2-an385", "mps2-an386", "mps3-an547"])
def test_code_of_an_inference_lies_in_ram_and_computes_the_same(name: str, tmp_path: Path) -> None:
    board_tools(name)
    board = load_board(name)
    plain, placed = bundle_of(tmp_path / "plain", name, None), bundle_of(tmp_path / "placed", name, ".itcm")
    inputs = random_inputs(plain)
    wanted, got = execute(plain, board, inputs), execute(placed, board, inputs, keep=tmp_path)
    assert all(np.array_equal(wanted.outputs[key], got.outputs[key]) for key in wanted.outputs)
    ram = [r for r in board.memory.values() if r.kind == "ram"]
    functions = read_functions(got.elf.path, board)
    own = {n: f.insns[0].address for n, f in functions.items() if n.startswith(("digits_", "glow_")) and f.insns}
    inside = {n for n, address in own.items() if any(r.origin <= address < r.end for r in ram)}
    assert {n for n in inside if "__" in n}, "no kernel in RAM"
    assert not {n for n in own if "__" in n and "veneer" not in n} - inside
    bounds = {p["name"]: p["stack_bound_bytes"] for p in stack_report(placed, board, got.elf)["entry_points"]}
    assert got.stack_bytes <= bounds[bundle_entry(placed)] <= TIGHT * got.stack_bytes


@pytest.mark.qemu
def test_code_in_ram_waits_for_no_flash(tmp_path: Path) -> None:
    board_tools("mps2-an386")
    chip = load_chip("stm32l4r5")
    plain = bundle_of(tmp_path / "plain", "mps2-an386", None)
    placed = bundle_of(tmp_path / "placed", "mps2-an386", ".ccmram")
    inputs = random_inputs(plain)
    slow, fast = (measure_cycles(info, chip, inputs).whole for info in (plain, placed))
    assert fast.fetch < 0.05 * slow.fetch
    assert fast.cycles < slow.cycles


@pytest.mark.parametrize("name", ["", "a b", '.x")))', "1st"])
def test_what_is_no_section_is_an_error_with_a_hint(name: str) -> None:
    with pytest.raises(InputError, match="no name of a section") as caught:
        parse_section(name)
    assert "--code-section .itcm" in str(caught.value.hint)


def test_options_in_the_header_tell_the_section() -> None:
    options = CompileOptions(code_section=".itcm")
    assert options.text() == "--opt balanced --code-section .itcm"
    assert replace(options, code_section=None).text() == "--opt balanced"
