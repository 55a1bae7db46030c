"""Limits of flash: smaller kernels where constants and code do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from glowc.board import Board, load_board
from glowc.compiler.flash import counted
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.errors import LimitError
from glowc.select.budgets import Price, shrunk
from tests.unit.conv_chain import conv_chain


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three equal convolutions of 16, 8 and 4 rows."""
    return conv_chain(tmp_path_factory.mktemp("flash") / "three.onnx", (16, 16), (16, 16, 16, 16), pooled=True)


def small_board(flash_bytes: int) -> Board:
    """A Cortex-M4 board with so much flash, in one region."""
    board = load_board("mps2-an386")
    kept = {n: r for n, r in board.memory.items() if r.kind != "flash" or n == board.weights_region}
    region = replace(kept[board.weights_region], size_bytes=flash_bytes)
    return replace(board, memory={**kept, board.weights_region: region})


def limited(model: Path, limit: int | None = None, board: Board | None = None, opt: str = "speed") -> Compiled:
    return compile_model(
        model, board or load_board("mps2-an386"), CompileOptions(opt=opt, flash_limit=limit, io_layout="nhwc")
    )


def flash(compiled: Compiled) -> int:
    """Bytes of constants and code: counted where there is a compiler, else predicted."""
    found = counted(compiled.printed, compiled.board).flash_bytes
    return (
        found
        if found is not None
        else int(str(compiled.report["weights_bytes"])) + compiled.selection.code_bytes(compiled.program)
    )


def test_smaller_kernels_are_taken_until_constants_and_code_fit(model: Path) -> None:
    whole = limited(model, opt="balanced")
    limit = flash(whole) - 1000
    compiled = limited(model, limit, opt="balanced")
    assert flash(compiled) <= limit
    assert {i.variant for i in compiled.program.instrs} != {i.variant for i in whole.program.instrs}
    assert int(str(compiled.report["insns_estimate"])) > int(str(whole.report["insns_estimate"]))


def test_the_boards_flash_is_such_a_limit(model: Path) -> None:
    limit = flash(limited(model, opt="balanced")) - 1000
    assert flash(limited(model, board=small_board(limit), opt="balanced")) <= limit


def test_a_model_is_refused_only_if_the_smallest_kernels_do_not_fit(model: Path) -> None:
    constants = int(str(limited(model, opt="balanced").report["weights_bytes"]))
    with pytest.raises(LimitError, match=r"bytes of flash for its constants and its code, --flash-limit") as caught:
        limited(model, constants + 500, opt="balanced")
    shown = "\n".join(caught.value.details)
    assert "with the smallest kernels there are" in shown
    sizes = [int(line.split()[0]) for line in caught.value.details[2:]]
    assert sizes == sorted(sizes, reverse=True)
    least = flash(limited(model, 1 << 20, opt="size"))
    for limit in range(least, constants, -600):
        try:
            compiled = limited(model, limit, opt="balanced")
        except LimitError:
            break
        assert flash(compiled) <= limit * (1.0 if compiled.printed.flash_bytes is not None else 1.12)
    else:
        pytest.fail("nothing was refused")


COSTS = {"a": {"fast": (100, 90), "lean": (108, 50)}, "b": {"fast": (400, 80), "lean": (401, 70)}}


@pytest.mark.parametrize(
    ("limit", "want"),
    [(170, ("fast", "fast")), (165, ("fast", "lean")), (125, ("lean", "lean")), (9, ("lean", "lean"))],
)
def test_what_costs_least_for_a_byte_gives_flash_back_first(limit: int, want: tuple[str, str]) -> None:
    def weigh(choice: Mapping[str, str]) -> Price:
        taken = [COSTS[name][isa] for name, isa in choice.items()]
        return Price(sum(t[0] for t in taken), 0, sum(t[1] for t in taken))

    def moves(choice: Mapping[str, str]) -> list[dict[str, str]]:
        return [{**choice, name: isa} for name in choice for isa in ("fast", "lean")]

    assert tuple(shrunk({"a": "fast", "b": "fast"}, limit, moves, weigh).values()) == want
