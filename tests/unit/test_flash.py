"""Flash spent for speed: which layers have it, and that no limit is passed for it."""

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
from glowc.select.budgets import Price, Trade, affordable, shrunk
from tests.unit.conv_chain import conv_chain


def trade(name: str, insns: int, small: int, large: int) -> Trade:
    return Trade(name, insns, {f"{name}.small": small}, {f"{name}.large": large})


TRADES = (trade("a", 100, 10, 60), trade("b", 300, 20, 90), trade("c", 500, 10, 300))


@pytest.mark.parametrize(
    ("room", "layers"),
    [(1000, "abc"), (450, "abc"), (449, "ab"), (160, "ab"), (159, "b"), (110, "b"), (109, "a"), (89, ""), (0, "")],
)
def test_layers_that_save_most_for_a_byte_come_first_and_others_use_what_is_left(room: int, layers: str) -> None:
    assert affordable(TRADES, [], room) == set(layers)


def test_constants_of_other_layers_take_their_share_and_shared_ones_count_once() -> None:
    assert affordable(TRADES, [{"x": 100}, {"x": 100}], 200) == {"a"}
    assert affordable(TRADES, [{"x": 100}, {"y": 50}], 200) == set()
    twins = [replace(t, layer=t.layer + n) for t in TRADES[:1] for n in "12"]
    assert affordable(twins, [], 70) == {"a1", "a2"}


def test_what_needs_no_more_is_allowed_where_there_is_no_room() -> None:
    assert affordable([trade("a", 5, 40, 40), trade("b", 5, 40, 41)], [], 0) == {"a"}


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


def winograd_layers(compiled: Compiled) -> list[int]:
    """Heights of the layers that spend flash."""
    return [int(i.params["out_h"]) for i in compiled.program.instrs if i.variant == "dsp_winograd"]


def limited(model: Path, limit: int | None = None, board: Board | None = None, opt: str = "speed") -> Compiled:
    return compile_model(
        model, board or load_board("mps2-an386"), CompileOptions(opt=opt, flash_limit=limit, io_layout="nhwc")
    )


def test_flash_is_spent_at_speed_only(model: Path) -> None:
    assert winograd_layers(limited(model)) == [16, 8, 4]
    assert winograd_layers(limited(model, opt="balanced")) == []
    assert winograd_layers(limited(model, opt="size")) == []


def flash(compiled: Compiled) -> int:
    """Bytes of constants and code: counted where there is a compiler, else predicted."""
    found = counted(compiled.printed, compiled.board).flash_bytes
    return (
        found
        if found is not None
        else int(str(compiled.report["weights_bytes"])) + compiled.selection.code_bytes(compiled.program)
    )


def test_flash_limit_leaves_it_to_the_layers_with_most_pixels(model: Path) -> None:
    most = flash(limited(model))
    step = int(str(limited(model).report["weights_bytes"])) // 16
    found = []
    for limit in range(most, most - 18 * step, -step):
        compiled = limited(model, limit)
        assert flash(compiled) <= limit
        found.append(winograd_layers(compiled))
        if not found[-1]:
            break
    assert found[0] == [16, 8, 4]
    assert found[-1] == []
    assert [16, 8] in found
    assert all(heights == [16, 8, 4][: len(heights)] for heights in found)
    assert sorted(found, key=len, reverse=True) == found


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


def test_without_a_limit_the_boards_flash_keeps_room_for_code(model: Path) -> None:
    most = int(str(limited(model).report["weights_bytes"]))
    assert winograd_layers(limited(model, board=small_board(most + 64 * 1024))) == [16, 8, 4]
    assert winograd_layers(limited(model, board=small_board(most + 64 * 1024 - 1))) == [16, 8]
    assert winograd_layers(limited(model, board=small_board(64 * 1024))) == []


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
