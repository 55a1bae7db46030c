"""Passes on programs: views instead of copies, sharing in place, dead stores, order, lifetimes, alloc and dealloc."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from glowc import memory
from glowc.kernels.verify import verify_program
from glowc.place.places import memory_blocks, memory_overlaps, plan_memory, schedule, verify_plan
from glowc.place.rewrite.eliminate import eliminate_copies, remove_dead_stores
from glowc.place.rewrite.reorder import reorder, steps_of
from glowc.place.rewrite.row_overlap import row_overlaps
from glowc.place.rewrite.share_in_place import in_place_pairs, share_in_place
from glowc.program.ir import Access, BufferKind, Program
from glowc.program.lifetimes import live_bytes, place_markers, root_lifetimes, strip_markers
from tests.unit.instr_programs import Maker, random_inputs, random_program, run


def kernels(program: Program) -> list[str]:
    return [i.kernel for i in program.instrs if not i.is_marker]


def alias(program: Program, name: str) -> tuple[str | None, int]:
    buffer = program.buffers[name]
    return buffer.alias_of, buffer.alias_offset_bytes


def same(before: Program, after: Program, plan: memory.MemoryPlan | None = None) -> None:
    """Both programs are well formed and give the same outputs."""
    verify_program(after)
    inputs = random_inputs(before)
    expected, got = run(before, inputs), run(after, inputs, plan)
    assert {n: a.tolist() for n, a in got.items()} == {n: a.tolist() for n, a in expected.items()}


def chain(*ops: str) -> Program:
    """in -> each op in turn -> y; the last but one result is `h`."""
    m = Maker()
    m.input("x", 3)
    value = "x"
    for index, op in enumerate(ops):
        out = "y" if index == len(ops) - 1 else f"t{index}"
        if op == "reshape":
            m.copy(value, m.value(out, m.rows[value]), m.rows[value])
        elif op == "slice":
            m.copy(value, m.value(out, 1), 1, 1)
        else:
            m.relu(value, out)
        value = out
    return m.program("y")


# ---- eliminate_copies ----


def test_reshape_becomes_a_view() -> None:
    before = chain("relu", "reshape", "relu")
    after = eliminate_copies(before)
    assert kernels(after) == ["unary", "unary"]
    assert alias(after, "t1") == ("t0", 0)
    same(before, after)


def test_slice_of_the_leading_axis_becomes_a_view_with_an_offset() -> None:
    before = chain("relu", "slice", "relu")
    after = eliminate_copies(before)
    assert alias(after, "t1") == ("t0", 8)
    same(before, after)


def test_reshape_to_an_output_makes_the_source_a_view() -> None:
    before = chain("relu", "reshape")
    after = eliminate_copies(before)
    assert kernels(after) == ["unary"]
    assert alias(after, "t0") == ("y", 0)
    same(before, after)


def test_views_of_views_have_the_sum_of_offsets() -> None:
    before = chain("relu", "slice", "reshape", "relu")
    after = eliminate_copies(before)
    assert after.root("t2") == ("t0", 8)
    same(before, after)


def test_concat_of_two_results_needs_no_copy() -> None:
    m = Maker()
    m.input("x", 2)
    m.relu("x", "a")
    m.add("x", "x", "b")
    m.value("y", 4)
    m.copy("a", "y", 2)
    m.copy("b", "y", 2, 0, 2)
    before = m.program("y")
    after = eliminate_copies(before)
    assert kernels(after) == ["unary", "binary"]
    assert (alias(after, "a"), alias(after, "b")) == (("y", 0), ("y", 16))
    same(before, after)


def test_concat_of_a_value_with_itself_keeps_one_copy() -> None:
    m = Maker()
    m.input("x", 2)
    m.relu("x", "a")
    m.value("y", 4)
    m.copy("a", "y", 2)
    m.copy("a", "y", 2, 0, 2)
    before = m.program("y")
    after = eliminate_copies(before)
    assert kernels(after) == ["unary", "copy_b4"]
    same(before, after)


def test_model_input_to_model_output_stays_a_copy() -> None:
    before = chain("reshape")
    assert eliminate_copies(before) is before


def test_constant_is_never_the_base_of_a_view() -> None:
    m = Maker()
    m.const("k", 2)
    m.input("x", 2)
    m.copy("k", m.value("v", 2), 2)
    m.add("x", "v", "y")
    before = m.program("y")
    after = eliminate_copies(before)
    assert alias(after, "v") == (None, 0)
    same(before, after)


def test_source_that_is_written_later_stays_apart() -> None:
    m = Maker()
    m.input("x", 2)
    m.relu("x", "a")
    m.copy("a", m.value("v", 2), 2)
    m.add("a", "a", "a")
    m.add("v", "a", "y")
    before = m.program("y")
    after = eliminate_copies(before)
    assert alias(after, "v") == (None, 0)
    same(before, after)


def test_fill_around_a_copy_does_not_erase_what_was_computed_before() -> None:
    """Pad along the leading axis: the source must not move into the padded tensor, whose fill comes later."""
    m = Maker()
    m.input("x", 2)
    m.relu("x", "a")
    m.fill(m.value("y", 4))
    m.copy("a", "y", 2, 0, 1)
    before = m.program("y")
    after = eliminate_copies(before)
    assert alias(after, "a") == (None, 0)
    same(before, after)


def test_view_that_would_be_misaligned_stays_a_copy() -> None:
    before = chain("relu", "slice", "relu")
    (copy,) = (i for i in before.instrs if i.kernel == "copy_b4")
    # The same bytes seen as int8, from an odd offset on: the floats after the view would be misaligned.
    from glowc.graph.types import DType, TensorType

    operands = tuple(
        replace(o, type=TensorType((before.buffers[o.buffer].size_bytes,), DType.S8)) for o in copy.operands
    )
    odd = replace(copy, kernel="copy_b1", operands=operands, params={**copy.params, "d0": 8, "in_offset": 1})
    program = replace(before, instrs=tuple(odd if i is copy else i for i in before.instrs))
    assert eliminate_copies(program) is program


# ---- share_in_place ----


def test_elementwise_result_is_written_over_a_dying_input() -> None:
    before = chain("relu", "relu", "relu")
    after = share_in_place(before)
    assert {after.root(n)[0] for n in ("x", "t0", "t1")} == {"x"}
    same(before, after, plan_memory(after))


def test_chain_with_reshapes_between_needs_one_buffer() -> None:
    m = Maker()
    m.input("x", 2)
    m.add("x", "x", "t0")
    value = "t0"
    for index in range(1, 5):
        value = m.relu(value, f"t{index}") if index % 2 else m.copy(value, m.value(f"t{index}", 2), 2)
    m.copy(value, m.value("y", 2), 2)
    before = m.program("y")
    after = share_in_place(eliminate_copies(before))
    assert len({after.root(f"t{index}")[0] for index in range(5)}) == 1
    same(before, after, plan_memory(after))


def test_input_that_is_read_again_is_not_overwritten() -> None:
    m = Maker()
    m.input("x", 2)
    m.add("x", "x", "a")
    m.relu("a", "b")
    m.add("a", "b", "y")
    before = m.program("y")
    after = share_in_place(before)
    assert after.root("b")[0] != after.root("a")[0]
    same(before, after, plan_memory(after))


def test_value_of_another_size_is_not_shared() -> None:
    m = Maker()
    m.input("x", 3)
    m.input("row", 1)
    m.relu("row", "r")
    m.relu("x", "h")
    m.add("h", "r", "y")
    before = m.program("y")
    assert ("r", "y") not in in_place_pairs(before)
    assert ("h", "y") in in_place_pairs(before)
    after = share_in_place(before)
    same(before, after, plan_memory(after))


def test_model_input_never_becomes_the_model_output() -> None:
    before = chain("relu")
    assert in_place_pairs(before) == ()
    assert share_in_place(before) is before


def test_variant_that_may_not_run_in_place_is_not_shared() -> None:
    before = chain("relu", "reshape", "relu", "relu")
    assert all("copy" not in name for pair in in_place_pairs(before) for name in pair)
    copies = [i for i in before.instrs if i.kernel == "copy_b4"]
    ends = {o.buffer for i in copies for o in i.operands}
    assert not any(set(pair) == ends for pair in in_place_pairs(before))


def test_output_that_was_begun_before_is_not_put_over_an_input() -> None:
    m = Maker()
    m.input("x", 2)
    m.relu("x", "a")
    m.fill(m.value("h", 2))
    m.relu("a", "h")
    m.relu("h", "y")
    before = m.program("y")
    after = share_in_place(before)
    assert after.root("h")[0] != after.root("a")[0]
    same(before, after, plan_memory(after))


def test_input_of_the_caller_is_not_overwritten() -> None:
    before = chain("relu", "slice", "relu")
    assert share_in_place(before).root("t0") == ("x", 0)
    assert share_in_place(replace(before, caller_io=True)).root("t0") == ("t0", 0)


@pytest.mark.parametrize("view", [False, True])
def test_input_that_is_an_output_is_not_overwritten(view: bool) -> None:
    m = Maker()
    m.input("x", 2)
    kept = m.copy("x", m.value("z", 2), 2) if view else "x"
    m.relu("x", "t")
    m.add("t", "x", "y")
    before = eliminate_copies(m.program("y"))
    before = replace(before, outputs=(*before.outputs, replace(before.inputs[0], buffer=kept, access=Access.OUT)))
    after = share_in_place(before)
    assert {after.root(n)[0] for n in ("t", "y")} == {"y"}
    assert not any(o.source == "x" for o in row_overlaps(after))
    plan = plan_memory(after, memory_overlaps(after))
    verify_plan(after, plan)


def test_shared_bytes_have_the_larger_alignment() -> None:
    m = Maker()
    m.input("x", 2)
    m.relu("x", m.value("h", 2, align=16))
    m.relu("h", "y")
    after = share_in_place(m.program("y"))
    assert after.root("h") == ("x", 0)
    assert after.buffers["x"].align_bytes == 16


def test_sum_with_a_part_of_itself_is_not_written_over_it() -> None:
    """h + h[0]: in place, the first row would be new before the last row reads it."""
    m = Maker()
    m.input("x", 1)
    m.value("h", 3)
    for row in range(3):
        m.copy("x", "h", 1, 0, row)
    m.copy("h", m.value("first", 1), 1)
    m.add("h", "first", "s")
    m.relu("s", "y")
    before = m.program("y")
    after = share_in_place(eliminate_copies(before))
    assert alias(after, "first") == ("h", 0)
    assert after.root("s")[0] != after.root("h")[0]
    same(before, after, plan_memory(after))


# ---- dead stores ----


def test_result_that_nobody_reads_goes_away_with_its_buffers_and_constants() -> None:
    m = Maker()
    m.input("x", 2)
    m.const("k", 2)
    m.add("x", "k", "dead")
    m.relu("dead", "dead2")
    m.relu("x", "y")
    after = remove_dead_stores(m.program("y"))
    assert kernels(after) == ["unary"]
    assert set(after.buffers) == {"x", "y"}
    assert after.consts == {}


def test_live_program_is_returned_as_it_is() -> None:
    program = chain("relu", "relu")
    assert remove_dead_stores(program) is program


def test_state_that_only_the_next_inference_reads_is_written() -> None:
    m = Maker()
    m.input("x", 2)
    m.relu("x", "y")
    m.copy("x", m.value("state", 2, BufferKind.STATE), 2)
    program = replace(m.program("y"), states={"state": np.zeros((2, 2), np.float32)})
    assert remove_dead_stores(program) is program


def test_partial_writes_of_a_live_buffer_stay() -> None:
    m = Maker()
    m.input("x", 1)
    m.fill(m.value("y", 3))
    m.copy("x", "y", 1, 0, 1)
    program = m.program("y")
    assert remove_dead_stores(program) is program


# ---- lifetimes and markers ----


def test_lifetimes_are_half_open_and_follow_views() -> None:
    after = eliminate_copies(chain("relu", "slice", "relu", "relu"))
    assert root_lifetimes(after) == {"x": (0, 1), "t0": (0, 2), "t2": (1, 3), "y": (2, 3)}
    assert live_bytes(after) == (48, 32, 16)


def test_unused_input_lives_at_the_start_and_every_output_to_the_end() -> None:
    m = Maker()
    m.input("unused", 1)
    m.input("x", 1)
    m.relu("x", "early")
    m.relu("x", "y")
    spans = root_lifetimes(m.program("early", "y"))
    assert spans["unused"] == (0, 1)
    assert spans["early"] == (0, 2)


def test_markers_stand_around_the_lifetime_and_can_be_taken_off() -> None:
    program = chain("relu", "relu")
    marked = place_markers(program)
    assert [i.name for i in marked.instrs] == [
        "alloc x", "alloc t0", "unary.0", "dealloc x", "alloc y", "unary.1", "dealloc t0", "dealloc y",
    ]  # fmt: skip
    verify_program(marked)
    assert strip_markers(marked).instrs == program.instrs
    assert place_markers(marked).instrs == marked.instrs
    assert root_lifetimes(strip_markers(marked)) == root_lifetimes(program)


# ---- order ----


def dependencies(program: Program) -> set[tuple[int, int]]:
    """(earlier, later) pairs of the steps, through the values they write and read."""
    steps = steps_of(program).steps
    writer = {value: i for i, step in enumerate(steps) for value in step.outputs}
    return {(writer[v], i) for i, step in enumerate(steps) for v in step.inputs if v in writer and writer[v] != i}


def test_read_depends_on_every_write_and_partial_writes_keep_their_order() -> None:
    m = Maker()
    m.input("x", 1)
    m.fill(m.value("p", 3))
    m.copy("x", "p", 1, 0, 1)
    m.relu("p", "y")
    assert {(0, 1), (0, 2), (1, 2)} <= dependencies(m.program("y"))


def test_write_depends_on_earlier_reads_of_the_same_bytes() -> None:
    m = Maker()
    m.input("x", 1)
    m.relu("x", "a")
    m.relu("a", "b")  # reads a ...
    m.fill("a")  # ... before this overwrites it
    m.add("a", "b", "y")
    assert (1, 2) in dependencies(m.program("y"))


def test_scratch_is_counted_with_its_step() -> None:
    from glowc.graph.types import DType, TensorType
    from glowc.program.ir import Access, Buffer, BufferKind, Operand

    program = chain("relu")
    scratch = Operand("scratch", "s", Access.OUT, TensorType((40,), DType.U8))
    instr = replace(program.instrs[0], operands=(*program.instrs[0].operands, scratch))
    buffers = {**program.buffers, "s": Buffer("s", BufferKind.SCRATCH, 40, 4)}
    steps = steps_of(replace(program, instrs=(instr,), buffers=buffers))
    assert steps.steps[0].scratch_bytes == 40
    assert "s" not in steps.sizes


def test_identity_order_returns_the_same_program() -> None:
    program = chain("relu", "relu")
    assert reorder(program, [0, 1]) is program


def test_order_with_the_lower_peak_is_chosen() -> None:
    """Two long branches end in one row each: one after the other needs less than side by side."""
    m = Maker()
    m.input("x", 1)
    for branch in "ab":
        m.fill(m.value(f"{branch}1", 8))
    for branch in "ab":
        m.copy(f"{branch}1", m.value(f"{branch}2", 1), 1, 7)
        m.add(f"{branch}2", "x", f"{branch}3")
    m.add("a3", "b3", "y")
    before = m.program("y")
    after = schedule(before)
    fills = [i for i, kernel in enumerate(kernels(after)) if kernel == "fill_b4"]
    assert fills[1] > fills[0] + 1
    plan = plan_memory(after)
    assert plan.arena_bytes == plan.lower_bound_bytes < plan_memory(before).arena_bytes
    same(before, after, plan)


# ---- all together ----


@pytest.mark.parametrize("block", range(10))
def test_random_programs_give_the_same_outputs_in_their_planned_arena(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        before = random_program(seed)
        verify_program(before)
        viewed = eliminate_copies(before)
        same(before, viewed)
        after = schedule(before)
        plan = plan_memory(after)
        same(before, place_markers(after), plan)


@pytest.mark.parametrize("seed", range(25))
def test_every_order_that_the_dependencies_allow_gives_the_same_outputs(seed: int) -> None:
    program = eliminate_copies(random_program(seed))
    needs = dependencies(program)
    count = len(program.instrs)
    if count > 6:
        program = eliminate_copies(random_program(1000 + seed))
        needs, count = dependencies(program), len(program.instrs)
    tried = 0
    for order in itertools.permutations(range(count)) if count <= 7 else ():
        place = {step: at for at, step in enumerate(order)}
        if all(place[a] < place[b] for a, b in needs):
            same(program, reorder(program, order))
            tried += 1
            if tried == 20:
                break


def test_memory_blocks_are_the_roots() -> None:
    after = schedule(chain("relu", "reshape", "relu", "slice", "relu"))
    names = {block.name for block in memory_blocks(after)}
    assert names == {n for n, b in after.buffers.items() if b.alias_of is None}
