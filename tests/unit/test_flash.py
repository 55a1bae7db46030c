"""Flash spent for speed: which layers have it, and that no limit is passed for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from glowc.driver import Compiled, CompileOptions, compile_model
from glowc.flash import Trade, affordable
from glowc.target import Board, load_board
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
    return [int(i.params["out_h"]) for i in compiled.program.instrs if i.isa == "dsp_winograd"]


def limited(model: Path, limit: int | None = None, board: Board | None = None, opt: str = "speed") -> Compiled:
    return compile_model(
        model, board or load_board("mps2-an386"), CompileOptions(opt=opt, flash_limit=limit, io_layout="nhwc")
    )


def test_flash_is_spent_at_speed_only(model: Path) -> None:
    assert winograd_layers(limited(model)) == [16, 8, 4]
    assert winograd_layers(limited(model, opt="balanced")) == []
    assert winograd_layers(limited(model, opt="size")) == []


def test_flash_limit_leaves_it_to_the_layers_with_most_pixels(model: Path) -> None:
    least = int(str(limited(model, opt="balanced").report["weights_bytes"]))
    most = int(str(limited(model).report["weights_bytes"]))
    each = (most - least) // 3
    for count, heights in ((3, [16, 8, 4]), (2, [16, 8]), (1, [16]), (0, [])):
        compiled = limited(model, least + count * each + 16)
        assert winograd_layers(compiled) == heights
        assert int(str(compiled.report["weights_bytes"])) <= least + count * each + 16


def test_without_a_limit_the_boards_flash_keeps_room_for_code(model: Path) -> None:
    most = int(str(limited(model).report["weights_bytes"]))
    assert winograd_layers(limited(model, board=small_board(most + 64 * 1024))) == [16, 8, 4]
    assert winograd_layers(limited(model, board=small_board(most + 64 * 1024 - 1))) == [16, 8]
    assert winograd_layers(limited(model, board=small_board(64 * 1024))) == []
    assert winograd_layers(limited(model, most, small_board(most))) == [16, 8, 4]
