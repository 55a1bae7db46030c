"""Weights of 4 bits: two in a byte of the constants; outputs are those of weights of 8 bits with the same values."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto

from glowc.app.show import compile_summary
from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.ops.interp import run_graph
from glowc.place.planning import verify_plan
from glowc.program.interp import run_program
from glowc.program.lifetimes import strip_markers
from tests.e2e.models import assert_same_bytes, outputs_on

INT2 = getattr(TensorProto, "INT2", None)  # onnx 1.20 and newer
BOARDS = ("host", "mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64", "linux-armhf")
LAYERS = ((16, 40, 3), (40, 64, 1), (64, 48, 3))  # input and output channels, size of the kernel
INNER, CLASSES = 96, 11


def write_model(path: Path, kind: int, weights: range) -> Path:
    """Write convolutions and two Gemm in QDQ form with weights of an element kind."""
    rng, nodes, value = np.random.default_rng(1), [], "x"
    consts = {"s": np.float32(0.02), "ws": np.float32(0.01), "bs": np.float32(0.0002)}
    consts |= {"z": np.int8(-128), "z32": np.int32(0)}
    tensors = [oh.make_tensor("zw", kind, (), [0])]

    def layer(op: str, shape: tuple[int, ...], value: str, **attrs: object) -> str:
        n = len(nodes)
        codes = rng.integers(weights.start, weights.stop, shape)
        tensors.append(oh.make_tensor(f"w{n}", kind, shape, codes.reshape(-1).tolist()))
        consts[f"b{n}"] = rng.integers(-500, 3000, shape[0], dtype=np.int32)
        nodes.extend(
            [
                oh.make_node("DequantizeLinear", [value, "s", "z"], [f"x{n}"]),
                oh.make_node("DequantizeLinear", [f"w{n}", "ws", "zw"], [f"wf{n}"]),
                oh.make_node("DequantizeLinear", [f"b{n}", "bs", "z32"], [f"bf{n}"]),
                oh.make_node(op, [f"x{n}", f"wf{n}", f"bf{n}"], [f"y{n}"], name=f"{op.lower()}{n}", **attrs),
                oh.make_node("QuantizeLinear", [f"y{n}", "s", "z"], [f"q{n}"]),
            ]
        )
        return f"q{n}"

    for in_c, out_c, k in LAYERS:
        value = layer("Conv", (out_c, in_c, k, k), value, kernel_shape=(k, k), pads=(k // 2,) * 4)
    nodes += [
        oh.make_node("DequantizeLinear", [value, "s", "z"], ["pf"]),
        oh.make_node("GlobalAveragePool", ["pf"], ["pooled"]),
        oh.make_node("Flatten", ["pooled"], ["flat"]),
        oh.make_node("QuantizeLinear", ["flat", "s", "z"], ["flat_q"]),
    ]
    value = layer("Gemm", (INNER, LAYERS[-1][1]), "flat_q", transB=1)
    value = layer("Gemm", (CLASSES, INNER), value, transB=1)
    tensors += [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in consts.items()]
    graph = oh.make_graph(
        nodes,
        "narrow",
        [oh.make_tensor_value_info("x", TensorProto.INT8, (1, LAYERS[0][0], 7, 6))],
        [oh.make_tensor_value_info(value, TensorProto.INT8, None)],
        tensors,
    )
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 25)], ir_version=11), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("narrow")
    for bits, kind in ((4, TensorProto.INT4), (2, INT2)):
        weights = range(-(1 << (bits - 1)), 1 << (bits - 1))
        write_model(path / f"s{bits}_as_s8.onnx", TensorProto.INT8, weights)
        if kind is not None:
            write_model(path / f"s{bits}.onnx", kind, weights)
    return path


@cache
def compiled(path: Path, board: str, limit: int | None = None) -> Compiled:
    options = CompileOptions(name="net", ram_limit=limit, verify_plan=True)
    return compile_model(path, load_board(board), options)


def unpacked(result: Compiled) -> list[str]:
    return [i.name for i in strip_markers(result.program).instrs if i.kernel.startswith("unpack_s")]


def inputs() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(2).integers(-128, 128, (2, 1, LAYERS[0][0], 7, 6)).astype(np.int8)}


@pytest.mark.qemu
@pytest.mark.parametrize(("bits", "board"), [*((4, board) for board in BOARDS), (2, "mps2-an386"), (2, "mps3-an547")])
def test_outputs_are_those_of_the_same_weights_in_bytes(folder: Path, bits: int, board: str) -> None:
    if not (folder / f"s{bits}.onnx").is_file():
        pytest.skip("this onnx has no INT2")
    wide, narrow = compiled(folder / f"s{bits}_as_s8.onnx", board), compiled(folder / f"s{bits}.onnx", board)
    expected = [run_graph(wide.graph, {"x": x}) for x in inputs()["x"]]
    assert unpacked(wide) == []
    assert len(narrow.report["narrow_weights"]["packed"]) == 5
    wanted = {name: np.stack([e[name] for e in expected]) for name in wide.graph.outputs}
    assert len(np.unique(wanted[wide.graph.outputs[0]])) > CLASSES // 2
    assert_same_bytes(outputs_on(narrow, inputs()), wanted)
    assert narrow.report["weights_bytes"] <= (0.08 + bits / 8) * wide.report["weights_bytes"]


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "linux-aarch64"])
def test_the_plan_keeps_its_limit_and_its_data(folder: Path, board: str) -> None:
    wide = compiled(folder / "s4_as_s8.onnx", board)
    for more in (0, 1200, 4000):
        limit = wide.plan.arena_bytes + more
        narrow = compiled(folder / "s4.onnx", board, limit)
        assert narrow.plan.arena_bytes <= limit
        assert narrow.report["weights_bytes"] <= wide.report["weights_bytes"]
        verify_plan(narrow.program, narrow.plan)
        x = {"x": inputs()["x"][0]}
        got = run_program(
            narrow.program, x, offsets_bytes=narrow.plan.offsets_bytes, arena_bytes=narrow.plan.arena_bytes
        )
        assert_same_bytes(got, run_graph(wide.graph, x))
    assert not any(".part" in name for name in unpacked(compiled(folder / "s4.onnx", "mps2-an386", 80_000)))


def test_layers_are_cut_into_parts_where_there_is_less_room_than_weights(folder: Path) -> None:
    result = compiled(folder / "s4.onnx", "mps2-an386")
    assert any(".part1" in name for name in unpacked(result))
    assert len(result.report["narrow_weights"]["packed"]) == 5


def test_layers_without_room_stay_bytes_and_are_named(folder: Path) -> None:
    limit = compiled(folder / "s4_as_s8.onnx", "mps2-an386").plan.arena_bytes
    text = compile_summary(compiled(folder / "s4.onnx", "mps2-an386", limit), folder)
    assert "weights of 4 of 5 layers; as bytes (few, depthwise, float, or no room in RAM): conv10" in text


def test_weights_of_eight_bits_that_would_fit_four_stay_bytes(folder: Path) -> None:
    assert unpacked(compiled(folder / "s4_as_s8.onnx", "host")) == []
