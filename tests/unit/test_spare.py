"""What a plan leaves free beside a layer: gaps, variants with much scratch, weights that are kept there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from glowc import memory
from glowc.board import Board, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.kernels.choice import variant_of
from glowc.kernels.dsp.conv import ConvPlan, keep_quad
from glowc.memory.types import MemoryPlan, RegionPlan
from glowc.place.places import memory_blocks, verify_plan
from glowc.place.rewrite.row_overlap import off_grid, row_overlaps
from glowc.place.spare import Gap, widest_gaps
from glowc.program.ir import Instr
from glowc.program.lifetimes import strip_markers
from tests.unit.conv_chain import conv_chain
from tests.unit.instr_programs import Maker

CHANNELS = (8, 16, 32, 32, 64)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return conv_chain(tmp_path_factory.mktemp("spare") / "chain.onnx", (24, 26), CHANNELS, pooled=True)


def compiled(model: Path, *, slow: bool, **options: object) -> Compiled:
    board: Board = load_board("mps2-an386")
    board = replace(board, cpu=replace(board.cpu, slow_flash=slow))
    return compile_model(model, board, CompileOptions(**options))  # type: ignore[arg-type]


def keeping(result: Compiled) -> list[Instr]:
    """Return the instructions that keep weights in their scratch."""
    instrs = strip_markers(result.program).instrs
    return [i for i in instrs if isinstance(i.plan, ConvPlan) and i.plan.kept > 0]


def test_gaps_are_what_no_live_buffer_takes_and_start_aligned() -> None:
    maker = Maker()
    maker.relu(maker.input("x", 4), "a")  # 32 bytes each
    maker.relu("a", "b")
    program = maker.program("b")
    plan = MemoryPlan({"x": 0, "a": 40, "b": 100}, 160, 64, "hand")
    gaps = widest_gaps(program, plan, align_bytes=16)
    first, second = (gaps[i.name] for i in program.instrs)
    assert first == Gap(80, 160)  # after a, which ends at 72
    assert second == Gap(0, 40)  # x is dead; b takes 100 to 132
    assert widest_gaps(program, replace(plan, regions=(RegionPlan("r", 160, plan, 0),))) == {}


def test_weights_are_kept_in_the_gap_and_the_arena_is_no_larger(model: Path) -> None:
    plain, kept = compiled(model, slow=False), compiled(model, slow=True)
    assert keeping(plain) == []
    assert keeping(kept) != []
    assert kept.plan.arena_bytes == plain.plan.arena_bytes
    memory.check(kept.plan, memory_blocks(kept.program), kept.planned.overlaps)
    verify_plan(kept.program, kept.plan)
    for instr in keeping(kept):
        scratch = next(o for o in instr.operands if o.role == "scratch")
        assert variant_of(instr).scratch_bytes(instr) == scratch.type.size_bytes
        assert kept.plan.offsets_bytes[scratch.buffer] + scratch.type.size_bytes <= kept.plan.arena_bytes


@pytest.mark.parametrize("options", [{"plan": "plain"}, {"guard": True}])
def test_nothing_is_kept_where_everything_stands_apart(model: Path, options: dict[str, object]) -> None:
    assert keeping(compiled(model, slow=True, **options)) == []


def test_as_many_pairs_of_channels_are_kept_as_there_is_room_for(model: Path) -> None:
    result = compiled(model, slow=False)
    instr = next(i for i in strip_markers(result.program).instrs if i.variant == "dsp_quad" and i.macs > 100_000)
    weights = {o.role: result.program.consts[o.buffer] for o in instr.operands if o.role == "weights"}
    least, pairs = variant_of(instr).scratch_bytes(instr), instr.int_("out_c") // 2
    everything = keep_quad(weights, instr, 1 << 20, 0)
    assert everything is not None
    size = variant_of(instr).scratch_bytes(replace(instr, plan=everything.plan))
    assert _kept_pairs(everything.constants["weights"]) == pairs
    exact, less = keep_quad(weights, instr, size, 0), keep_quad(weights, instr, size - 1, 0)
    assert exact is not None and less is not None  # noqa: PT018
    assert _kept_pairs(exact.constants["weights"]) == pairs
    assert _kept_pairs(less.constants["weights"]) == pairs - 1
    assert keep_quad(weights, instr, least + 255, 0) is None  # a few weights are not worth a second call


def _kept_pairs(weights: np.ndarray) -> int:
    return int(weights.view(np.int32)[0])


def test_variants_with_much_scratch_are_for_layers_beside_which_it_is_free(model: Path) -> None:
    result = compiled(model, slow=False)
    gaps = widest_gaps(result.program, result.plan)
    for instr in strip_markers(result.program).instrs:
        variant = variant_of(instr)
        if variant.modest_bytes is not None and variant.scratch_bytes(instr) > variant.modest_bytes(instr):
            assert variant.scratch_bytes(instr) <= gaps[instr.name].size_bytes
            break
    else:
        pytest.fail("no layer takes more scratch than is modest")


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two 1x1 convolutions of 64 channels beside which the arena has no room."""
    return conv_chain(tmp_path_factory.mktemp("spare") / "points.onnx", (23, 25), (64, 64, 64), kernel=1)


def of_eight_pixels(result: Compiled) -> list[ConvPlan]:
    plans = [i.plan for i in strip_markers(result.program).instrs if isinstance(i.plan, ConvPlan)]
    return [plan for plan in plans if plan.quads >= 2]


def test_the_arena_grows_for_layers_that_then_read_weights_once(points: Path) -> None:
    plain, roomy = compiled(points, io_layout="nhwc", slow=False), compiled(points, io_layout="nhwc", slow=True)
    need = plain.plan.arena_bytes
    assert of_eight_pixels(plain) == []
    assert [plan.kept > 0 for plan in of_eight_pixels(roomy)] == [True, True]
    assert need < roomy.plan.arena_bytes <= need + max(need * 15 // 100, 8192)
    memory.check(roomy.plan, memory_blocks(roomy.program), roomy.planned.overlaps)
    verify_plan(roomy.program, roomy.plan)


def test_the_arena_grows_a_little_for_layers_that_then_read_weights_half_as_often(points: Path) -> None:
    need = compiled(points, io_layout="nhwc", slow=False).plan.arena_bytes
    roomy = compiled(points, io_layout="nhwc", slow=True, ram_limit=need * 105 // 100)
    assert [plan.kept for plan in of_eight_pixels(roomy)] == [0, 0]
    assert need < roomy.plan.arena_bytes <= need * 105 // 100


def test_the_arena_does_not_grow_beyond_a_limit_nor_for_size(points: Path) -> None:
    need = compiled(points, io_layout="nhwc", slow=False).plan.arena_bytes
    assert compiled(points, io_layout="nhwc", slow=True, ram_limit=need).plan.arena_bytes == need
    assert of_eight_pixels(compiled(points, io_layout="nhwc", slow=True, opt="size")) == []


@pytest.mark.parametrize(("channels", "opt", "apart"), [
    ((96, 64), "balanced", True), ((96, 64), "size", False), ((48, 64), "balanced", False),
])  # fmt: skip
def test_an_output_lies_beside_its_input_where_weights_are_read_again_otherwise(
    tmp_path: Path, channels: tuple[int, ...], opt: str, *, apart: bool
) -> None:  # fmt: skip
    """Weights of 55 KB, which no data cache of a Cortex-M55 keeps, and of 27 KB."""
    model = conv_chain(tmp_path / "chain.onnx", (8, 4), channels)
    result = compile_model(model, load_board("mps3-an547"), CompileOptions(opt=opt, io_layout="nhwc"))
    program = strip_markers(result.program)
    assert any(i.plan.reads_weights_once for i in program.instrs)
    found = row_overlaps(program)
    assert bool(off_grid(program, found, result.plan.offsets_bytes)) != apart
