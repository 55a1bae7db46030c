"""The computed worst case of the stack holds on boards: never below the painted mark, at most three tenths above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import bundle_entry, execute, load_bundle, random_inputs, stack_report
from glowc.machine.listing import read_functions
from glowc.machine.stack import Bounds
from tests.conftest import ROOT, require_tool
from tests.e2e.models import board_tools
from tests.golden.nets import NETS

DIGITS = ROOT / "examples/digits/digits.onnx"

TIGHT = 1.3
"""Most of a bound to what random inputs take: they seldom come near a tie, which a function of its own rounds."""


@pytest.mark.qemu
@pytest.mark.parametrize("name", ["microbit", "mps2-an385", "mps2-an386", "mps3-an547"])
def test_bound_of_the_stack_is_true_and_tight(name: str, tmp_path: Path) -> None:
    """`make stack` does the same with all sample models. Frames of plain C are those that gcc reports."""
    board_tools(name)
    board = load_board(name)
    write_bundle(compile_model(DIGITS, board), tmp_path / "bundle")
    info, work = load_bundle(tmp_path / "bundle"), tmp_path / "work"
    work.mkdir()
    done = execute(info, board, random_inputs(info), keep=work, extra_flags=["-fstack-usage"])
    report = stack_report(info, board, done.elf)
    bounds = {point["name"]: point["stack_bound_bytes"] for point in report["entry_points"]}
    assert done.stack_bytes <= bounds[bundle_entry(info)] <= TIGHT * done.stack_bytes
    functions = read_functions(done.elf.path, board)
    frames = dict(line.rsplit(":", 1)[-1].split("\t")[:2] for line in _usage(work))
    compared = 0
    for function, insns in functions.items():
        if function not in frames or any(i.is_call or (i.is_branch and i.target[1] != function) for i in insns.insns):
            continue
        own = Bounds(functions, [bundle_entry(info)]).of(function)
        assert own >= int(frames[function]), function  # more where inline assembly pushes
        compared += own == int(frames[function])
    assert compared


def _usage(work: Path) -> list[str]:
    return [line for path in (work / "model.obj").glob("digits*.su") for line in path.read_text().splitlines()]


def test_stack_on_the_host_is_the_models_alone(tmp_path: Path) -> None:
    """The dynamic linker would take 3 KB of it, and not always the same, for the first call of a function of libm."""
    require_tool("gcc")
    (tmp_path / "net.onnx").write_bytes(NETS["float_mlp"]().SerializeToString())
    write_bundle(compile_model(tmp_path / "net.onnx", load_board("host")), tmp_path / "bundle")
    info = load_bundle(tmp_path / "bundle")
    assert any("expf" in path.read_text() for path in info.sources)
    assert execute(info, load_board("host"), random_inputs(info)).stack_bytes < 1024
