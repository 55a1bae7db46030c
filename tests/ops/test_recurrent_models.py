"""Recurrent models compiled to C: the sample networks, code size against length, state kept between calls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from glowc.app.cli import app
from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.errors import InputError, ModelError
from glowc.machine.execute import build_bundle, execute, load_bundle
from glowc.ops.interp import run_graph
from glowc.program.interp import Memory, run_program
from glowc.program.text import dump_program, parse_program
from tests.conftest import require_tool
from tests.ops.recurrent_models import OPS, Layer, feeds_of, layer, model_of

WINDOWS, SEQ = 4, 5


def compiled(
    one: Layer, folder: Path, board: str = "host", *, outputs: list[str] | None = None, **options: object
) -> Compiled:
    """Compile a layer with constant initial states and write the bundle to folder/net."""
    path = folder / "net.onnx"
    onnx.save(model_of(one, const=(1, 2, 3, 5, 6, 7), outputs=outputs), path)
    result = compile_model(path, load_board(board), CompileOptions(**options))  # type: ignore[arg-type]
    write_bundle(result, folder / "net")
    return result


@pytest.mark.parametrize("name", ["torch_gru_kws_fp32", "torch_gru_kws_fp32_legacy", "torch_gru_kws_qdq"])
def test_sample_networks_equal_onnxruntime(name: str, shared_models: Path, tmp_path: Path) -> None:
    board = load_board("host")
    require_tool(board.cpu.cc)
    model = shared_models / name
    write_bundle(compile_model(model / "model.onnx", board), tmp_path)
    with np.load(model / "inputs.npz") as inputs, np.load(model / "golden.npz") as golden:
        got = execute(load_bundle(tmp_path), board, dict(inputs)).outputs["output"]
        want = golden["output__ort_int"]
    # Of the quantised network only the GRU is float; its last step is an int8 output, dequantised.
    tolerance = 0 if name.endswith("qdq") else 1e-5 * np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_code_size_does_not_depend_on_the_length(op: str, direction: str, tmp_path: Path) -> None:
    board = load_board("mps2-an386")
    require_tool(board.cpu.cc)
    sizes = []
    for seq in (10, 100, 1000):
        folder = tmp_path / str(seq)
        folder.mkdir()
        compiled(layer(op, seq=seq, batch=1, direction=direction), folder, "mps2-an386", outputs=["y"])
        elf = build_bundle(load_bundle(folder / "net"), board, folder, link=False)
        sizes.append(sum(s.text for n, s in elf.object_sizes.items() if n.startswith("net")))
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= 64, sizes  # lengths and offsets as immediates of 2 or 4 bytes


def windows(one: Layer) -> list[np.ndarray]:
    x = one.inputs[0]
    assert x is not None
    return np.split(x, WINDOWS)


def window_of(one: Layer) -> Layer:
    return replace(one, inputs=(windows(one)[0], *one.inputs[1:]))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("initial", [False, True])
def test_windows_with_state_equal_one_long_inference(op: str, initial: bool, tmp_path: Path) -> None:
    """In C, in the arena of the file, and in the instruction interpreter, bytes of one sample after the other."""
    board = load_board("host")
    require_tool(board.cpu.cc)
    whole = layer(op, seq=WINDOWS * SEQ, initial=initial)
    (tmp_path / "whole").mkdir()
    long = execute_once(compiled(whole, tmp_path / "whole"), tmp_path / "whole", feeds_of(whole)["x"][None])
    done = compiled(window_of(whole), tmp_path, stateful=True)
    short = execute_once(done, tmp_path, np.stack(windows(whole)))
    np.testing.assert_array_equal(np.concatenate(list(short["y"])), long["y"][0])
    np.testing.assert_array_equal(short["y_h"][-1], long["y_h"][0])
    memory = Memory(done.program, done.plan.offsets_bytes, done.plan.arena_bytes)
    for x, y in zip(windows(whole), short["y"], strict=True):
        got = run_program(done.program, {"x": x}, memory=memory)
        np.testing.assert_allclose(got["y"], y, rtol=1e-5, atol=1e-6)


def execute_once(done: Compiled, folder: Path, x: np.ndarray) -> dict[str, np.ndarray]:
    return execute(load_bundle(folder / "net"), done.board, {"x": x}).outputs


def test_report_and_header_tell_the_state(tmp_path: Path) -> None:
    done = compiled(layer("LSTM", seq=SEQ, initial=True, bias=False), tmp_path, stateful=True, outputs=["y"])
    states = done.report["states"]
    assert isinstance(states, list)
    assert [(s["name"], s["size_bytes"]) for s in states] == [("layer_h", 32), ("layer_c", 32)]
    assert all(0 <= s["offset_bytes"] <= done.plan.arena_bytes - 32 for s in states)
    header, source = (tmp_path / "net" / "net.h").read_text(), (tmp_path / "net" / "net.c").read_text()
    assert "#define NET_STATE_BYTES 64u" in header
    assert "int net_reset(void);" in header
    assert source.count("memcpy(bytes + ") == 3  # the input, h and c
    assert (
        parse_program(dump_program(done.program), {**done.program.consts}).states.keys() == done.program.states.keys()
    )
    plain = compiled(layer("LSTM", seq=SEQ), tmp_path)
    assert plain.report["states"] == []
    assert "reset" not in (tmp_path / "net" / "net.h").read_text()


def test_reset_clears_the_state(tmp_path: Path) -> None:
    done = compiled(layer("GRU", seq=SEQ), tmp_path, stateful=True)
    memory = Memory(done.program, done.plan.offsets_bytes, done.plan.arena_bytes)
    x = feeds_of(layer("GRU", seq=SEQ))["x"]
    first = run_program(done.program, {"x": x}, memory=memory)["y"]
    second = run_program(done.program, {"x": x}, memory=memory)["y"]
    memory.reset()
    third = run_program(done.program, {"x": x}, memory=memory)["y"]
    np.testing.assert_array_equal(first, third)
    assert np.abs(first - second).max() > 0.01


@pytest.mark.parametrize(
    ("one", "const", "message"),
    [
        (layer("GRU", direction="bidirectional"), (1, 2, 3), "direction bidirectional"),
        (layer("LSTM", initial=True), (1, 2, 3), 'initial state "c0" is computed at run time'),
    ],
)
def test_layers_that_cannot_keep_a_state_are_named(
    one: Layer, const: tuple[int, ...], message: str, tmp_path: Path
) -> None:
    onnx.save(model_of(one, const=const), tmp_path / "net.onnx")
    with pytest.raises(ModelError, match="--stateful") as error:
        compile_model(tmp_path / "net.onnx", load_board("host"), CompileOptions(stateful=True))
    assert message in str(error.value)


def test_stateful_needs_a_recurrent_operator_and_no_golden(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    infos = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in "xy"]
    graph = onnx.helper.make_graph([node], "g", infos[:1], infos[1:])
    path = tmp_path / "relu.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    with pytest.raises(ModelError, match="--stateful"):
        compile_model(path, load_board("host"), CompileOptions(stateful=True))
    with pytest.raises(InputError, match="--golden"):
        compiled(layer("GRU"), tmp_path, stateful=True, golden=tmp_path / "in.npz")


def test_command_line_option(tmp_path: Path) -> None:
    onnx.save(model_of(layer("GRU")), tmp_path / "net.onnx")
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["compile", str(tmp_path / "net.onnx"), "-o", str(out), "--stateful", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads((out / "report.json").read_text())["options"] == "--opt balanced --stateful"


def test_initial_state_that_others_read_too_is_not_overwritten(tmp_path: Path) -> None:
    """A computed initial state may not become the buffer that the layer advances while somebody still reads it."""
    one = layer("GRU", initial=True)
    model = model_of(one, const=(1, 2, 3), outputs=["y", ""])
    nodes = [onnx.helper.make_node("Tanh", ["h0"], ["start"]), onnx.helper.make_node("Exp", ["start"], ["late"])]
    model.graph.node[0].input[5] = "start"
    model.graph.node.insert(0, nodes[0])
    model.graph.node.append(nodes[1])
    model.graph.output.append(onnx.helper.make_tensor_value_info("late", onnx.TensorProto.FLOAT, None))
    onnx.save(model, tmp_path / "net.onnx")
    done = compile_model(tmp_path / "net.onnx", load_board("host"))
    inputs = {n: feeds_of(one)[n] for n in ("x", "h0")}
    want = run_graph(done.imported, inputs)
    got = run_program(done.program, inputs, offsets_bytes=done.plan.offsets_bytes, arena_bytes=done.plan.arena_bytes)
    for name, array in want.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6)
