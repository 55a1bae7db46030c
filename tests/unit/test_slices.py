"""Inferences in steps: what they compute, how long they are, what is refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.errors import BoardError, GlowcError, InputError, LimitError
from glowc.graph.scope import scope
from glowc.program.interp import run_program
from glowc.program.ir import Slices
from tests.conftest import ROOT
from tests.unit.conv_chain import conv_chain

DIGITS = ROOT / "examples/digits/digits.onnx"
BOARDS = ("mps2-an386", "mps2-an500", "mps3-an547", "linux-aarch64", "host")


def in_steps(path: Path, board: str, share: int) -> tuple[Compiled, Slices]:
    """Compile a model in steps of a share of its predicted cycles, or of as few more as are possible."""
    target = load_board(board)
    bound = compile_model(path, target).report["cycles_estimate"] // share
    while True:
        try:
            found = compile_model(path, target, CompileOptions(slice=str(bound)))
        except LimitError:
            bound += bound // 4
            continue
        assert found.program.slices is not None
        return found, found.program.slices


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", ["digits", "convolutions", "depthwise", "head"])
def test_steps_compute_every_layer_once_and_in_order(name: str, board: str, tmp_path: Path) -> None:
    path = DIGITS
    if name == "head":
        path = conv_chain(tmp_path / "net.onnx", (8, 8), (4, 64), kernel=1, classes=400)
    elif name != "digits":
        path = conv_chain(tmp_path / "net.onnx", (28, 24), (16, 16, 16), depthwise=name == "depthwise")
    found, slices = in_steps(path, board, 12)
    plain = [instr for instr in found.program.instrs if not instr.is_marker]
    assert [part.index for part in slices.parts] == sorted(part.index for part in slices.parts)
    assert len(slices.parts) > len(plain)
    for index, instr in enumerate(plain):
        parts = [part for part in slices.parts if part.index == index]
        if instr.params.get("descending", 0) and index not in slices.ends:
            parts.reverse()
        assert parts[0].begin == 0
        assert all(one.end == other.begin for one, other in pairwise(parts))
    report = found.report["slices"]
    assert report is not None
    assert report["step_parts"] == [len(step) for step in slices.steps]
    assert report["longest_cycles_estimate"] <= 1.1 * report["limit_cycles"]
    with scope(found.known):
        rng = np.random.default_rng(1)
        inputs = {
            o.role: rng.integers(-128, 128, o.type.shape).astype(o.type.dtype.numpy) for o in found.program.inputs
        }
        places = {"offsets_bytes": found.plan.offsets_bytes, "arena_bytes": found.plan.arena_bytes}
        got = run_program(found.program, inputs, **places)  # type: ignore[arg-type]
        whole = compile_model(path, load_board(board))
        wanted = run_program(whole.program, inputs)
    for key, array in wanted.items():
        np.testing.assert_array_equal(got[key], array)


def test_a_bundle_without_slices_has_nothing_of_them() -> None:
    files = compile_model(DIGITS, load_board("mps2-an386")).bundle.files
    own = [text for name, text in files.items() if name.startswith("digits")]
    assert not any("digits_step" in text or "digits_part" in text for text in own)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        (CompileOptions(slice="soon"), InputError, "is no time and no number of cycles"),
        (CompileOptions(slice="999"), InputError, "a step needs 1000 or more"),
        (CompileOptions(slice="1ms"), BoardError, "needs a clock"),
        (CompileOptions(slice="1ms", chip="stm32h743"), BoardError, "runs code for cortex-m7"),
        (CompileOptions(chip="stm32l4r5"), InputError, "--chip says what the time of --slice is"),
        (CompileOptions(slice="1ms", chip="stm32l4"), BoardError, "unknown chip"),
    ],
)
def test_what_is_no_slice(options: CompileOptions, error: type[GlowcError], says: str) -> None:
    with pytest.raises(error, match=says):
        compile_model(DIGITS, load_board("host"), options)


def test_all_options_that_do_not_go_with_slices_are_named() -> None:
    options = CompileOptions(slice="20000", plan="stream", io_buffers="caller", guard=True)
    with pytest.raises(InputError) as caught:
        compile_model(DIGITS, load_board("mps2-an386"), options)
    for name in ("--plan stream", "--io-buffers caller", "--guard"):
        assert any(name in detail for detail in caught.value.details)


def test_layers_that_are_too_long_are_named_with_what_is_possible() -> None:
    with pytest.raises(LimitError, match="20,000 cycles") as caught:
        compile_model(DIGITS, load_board("host"), CompileOptions(slice="20000"))
    assert any("residual" in detail for detail in caught.value.details)
    cycles = (caught.value.hint or "").split()[-2]
    compile_model(DIGITS, load_board("host"), CompileOptions(slice=cycles))


def test_parts_of_any_number_have_a_place_in_the_table(tmp_path: Path) -> None:
    """More rows than 16 bits count, and a model without a layer."""
    for rows, kind in ((70_000, "uint32_t"), (7_000, "uint16_t")):
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (rows, 8)) for name in "xy")
        net = helper.make_graph([helper.make_node("Softmax", ["x"], ["y"])], "net", [x], [y])
        path = tmp_path / "net.onnx"
        save(helper.make_model(net, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
        found = compile_model(path, load_board("linux-aarch64"), CompileOptions(slice="50000"))
        assert f"{kind} begin;" in found.bundle.files["net.c"]
    port = helper.make_tensor_value_info("x", TensorProto.FLOAT, (4,))
    empty = helper.make_graph([], "net", [port], [port])
    save(helper.make_model(empty, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    with pytest.raises(InputError, match="has no layer"):
        compile_model(path, load_board("host"), CompileOptions(slice="50000"))


def test_a_layer_of_one_part_is_called_whole(tmp_path: Path) -> None:
    """A row that nothing divides and that takes a little longer than is aimed at."""
    path, board = conv_chain(tmp_path / "net.onnx", (1, 64), (8, 8)), load_board("host")
    longest = max(layer["cycles_estimate"] for layer in compile_model(path, board).report["layers"])
    found = compile_model(path, board, CompileOptions(slice=str(longest)))
    assert not any(instr.cut for instr in found.program.instrs)
    assert "y_end = " not in found.bundle.files["net.c"].partition("net_parts[")[2]
