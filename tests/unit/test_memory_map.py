"""The memory map: blocks where they are, the peak marked, long programs squeezed."""

from __future__ import annotations

from test_memory_graphs import layer_blocks, mobilenet_vww, network

from glowc.memory import Block, Lifetime, MemoryPlan, plan, render_text


def test_map_draws_blocks_at_their_place_and_marks_the_peak() -> None:
    blocks = [Block("x", Lifetime(0, 2), 32, 4), Block("y", Lifetime(1, 3), 16, 4)]
    text = render_text(MemoryPlan({"x": 0, "y": 32}, 48, 48, "by hand"), blocks, {"y": "conv/out"})
    lines = text.splitlines()
    cells = [line.split()[1] for line in lines[1:17]]
    assert cells == [".bb"] * 5 + ["aa."] * 11
    assert lines[17] == " " * 13 + "^"
    assert "peak: 48 bytes in use, first at instruction 1" in text
    assert "conv/out  <- at the peak" in text


def test_overlapping_blocks_are_not_counted_twice_at_the_peak() -> None:
    blocks, overlaps = layer_blocks(mobilenet_vww())
    assert "peak: 37,248 bytes in use" in render_text(plan(blocks, overlaps), blocks)


def test_long_program_is_squeezed_into_the_width() -> None:
    blocks = network("mixed", 400, seed=0)
    text = render_text(plan(blocks), blocks, width=60)
    assert max(len(line) for line in text.splitlines()[1:18]) <= 60


def test_empty_arena_has_a_map() -> None:
    assert "empty" in render_text(plan([]), [])
