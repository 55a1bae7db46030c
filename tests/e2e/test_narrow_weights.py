"""Weights of 4 bits: two in a byte of the constants; outputs are those of weights of 8 bits with the same values.

So are weights of 2 bits, and int8 ones of at most 16 different codes, whether the file says so by a palette or not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto

from glowc.app.compile_summary import compile_summary
from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, optimise
from glowc.ops.interp import run_graph
from glowc.place.places import verify_plan
from glowc.program.interp import run_program
from glowc.program.lifetimes import strip_markers
from tests.e2e.models import assert_same_bytes, outputs_on

INT2 = getattr(TensorProto, "INT2", None)  # onnx 1.20 and newer
BOARDS = ("host", "mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64", "linux-armhf")
LAYERS = ((16, 40, 3), (40, 64, 1), (64, 48, 3))  # input and output channels, size of the kernel
INNER, CLASSES = 96, 11


PALETTES = {4: (-128, -90, -61, -44, -30, -17, -9, 0, 3, 8, 15, 27, 41, 66, 90, 127), 2: (-100, -31, 29, 127)}
INDICES = {4: TensorProto.UINT4, 2: getattr(TensorProto, "UINT2", None)}


def write_model(path: Path, kind: int, weights: Sequence[int], bits: int = 0, *, sixteen: bool = False) -> Path:
    """Write convolutions and two Gemm in QDQ form with weights of an element kind; with `bits`, places in a palette.

    `sixteen`: activations are int16 codes, not int8.
    """
    rng, nodes, value = np.random.default_rng(1), [], "x"
    scale = 0.01 if max(weights) < 8 else 0.0012
    step, zero = (np.float32(0.02 / 256), np.int16(0)) if sixteen else (np.float32(0.02), np.int8(-128))
    consts = {"s": step, "ws": np.float32(scale), "bs": step * np.float32(scale), "z": zero, "z32": np.int32(0)}
    tensors = [oh.make_tensor("zw", kind, (), [0])]

    def layer(op: str, shape: tuple[int, ...], value: str, **attrs: object) -> str:
        n = len(nodes)
        places = rng.integers(0, len(weights), shape)
        if bits:
            tensors.append(oh.make_tensor(f"i{n}", INDICES[bits], shape, places.reshape(-1).tolist()))
            tensors.append(oh.make_tensor(f"p{n}", kind, (len(weights),), list(weights)))
            nodes.append(oh.make_node("Cast", [f"i{n}"], [f"c{n}"], to=TensorProto.INT32))
            nodes.append(oh.make_node("Gather", [f"p{n}", f"c{n}"], [f"w{n}"]))
        else:
            tensors.append(oh.make_tensor(f"w{n}", kind, shape, np.asarray(weights)[places].reshape(-1).tolist()))
        consts[f"b{n}"] = rng.integers(-500, 3000, shape[0], dtype=np.int32) * np.int32(256 if sixteen else 1)
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
    code = TensorProto.INT16 if sixteen else TensorProto.INT8
    graph = oh.make_graph(
        nodes,
        "narrow",
        [oh.make_tensor_value_info("x", code, (1, LAYERS[0][0], 7, 6))],
        [oh.make_tensor_value_info(value, code, None)],
        tensors,
    )
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 25)], ir_version=11), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("narrow")
    write_model(path / "s8.onnx", TensorProto.INT8, range(-127, 128))
    for bits, kind in ((4, TensorProto.INT4), (2, INT2)):
        weights = range(-(1 << (bits - 1)), 1 << (bits - 1))
        write_model(path / f"s{bits}_as_s8.onnx", TensorProto.INT8, weights)
        write_model(path / f"p{bits}_as_s8.onnx", TensorProto.INT8, PALETTES[bits])
        if kind is not None:
            write_model(path / f"s{bits}.onnx", kind, weights)
            write_model(path / f"p{bits}.onnx", TensorProto.INT8, PALETTES[bits], bits)
    return path


@cache
def compiled(path: Path, board: str, limit: int | None = None) -> Compiled:
    options = CompileOptions(name="net", ram_limit=limit)
    return compile_model(path, load_board(board), options)


def unpacked(result: Compiled) -> list[str]:
    return [i.kernel for i in strip_markers(result.program).instrs if i.kernel.startswith("unpack_")]


def parts(result: Compiled) -> list[str]:
    return [i.name for i in strip_markers(result.program).instrs if ".part" in i.name]


def inputs() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(2).integers(-128, 128, (2, 1, LAYERS[0][0], 7, 6)).astype(np.int8)}


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("form", "board"),
    [*((form, board) for form in ("s4", "p4") for board in BOARDS), ("s2", "mps2-an386"), ("s2", "mps3-an547"),
     *(("p2", board) for board in ("mps2-an386", "mps3-an547", "linux-aarch64"))],
)  # fmt: skip
def test_outputs_are_those_of_the_same_weights_in_bytes(folder: Path, form: str, board: str) -> None:
    if not (folder / f"{form}.onnx").is_file():
        pytest.skip("this onnx has no INT2")
    wide, narrow = compiled(folder / "s8.onnx", board), compiled(folder / f"{form}.onnx", board)
    graph = optimise(folder / f"{form}_as_s8.onnx", CompileOptions())
    expected = [run_graph(graph, {"x": x}) for x in inputs()["x"]]
    assert unpacked(wide) == []
    assert len(narrow.report["narrow_weights"]["packed"]) == 5
    assert f"unpack_{form}" in unpacked(narrow)
    wanted = {name: np.stack([e[name] for e in expected]) for name in graph.outputs}
    got = dict(zip(graph.outputs, outputs_on(narrow, inputs()).values(), strict=True))
    assert len(np.unique(wanted[graph.outputs[0]])) > CLASSES // 2
    assert_same_bytes(got, wanted)
    assert narrow.report["weights_bytes"] <= (0.08 + int(form[1]) / 8) * wide.report["weights_bytes"]


@pytest.mark.qemu
@pytest.mark.parametrize("form", ["s4", "p4"])
@pytest.mark.parametrize("board", BOARDS)
def test_weights_behind_sixteen_bits_are_stored_so_too(form: str, board: str, tmp_path: Path) -> None:
    kind, bits = (TensorProto.INT4, 0) if form == "s4" else (TensorProto.INT8, 4)
    weights = range(-8, 8) if form == "s4" else PALETTES[4]
    path = write_model(tmp_path / "net.onnx", kind, weights, bits, sixteen=True)
    wide = write_model(tmp_path / "wide.onnx", TensorProto.INT8, range(-127, 128), sixteen=True)
    narrow = compiled(path, board, 80_000)  # with less the largest layer stays bytes
    assert len(narrow.report["narrow_weights"]["packed"]) == 5
    assert narrow.report["weights_bytes"] <= 0.58 * compiled(wide, board).report["weights_bytes"]
    x = np.random.default_rng(2).integers(-(1 << 15), 1 << 15, (2, 1, LAYERS[0][0], 7, 6)).astype(np.int16)
    expected = [run_graph(narrow.graph, {"x": one}) for one in x]
    wanted = {name: np.stack([e[name] for e in expected]) for name in narrow.graph.outputs}
    assert all(len(np.unique(codes)) > CLASSES for codes in wanted.values())
    assert_same_bytes(dict(zip(wanted, outputs_on(narrow, {"x": x}).values(), strict=True)), wanted)


@pytest.mark.parametrize("form", ["s4", "p4", "p2"])
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "linux-aarch64"])
def test_the_plan_keeps_its_limit_and_its_data(folder: Path, board: str, form: str) -> None:
    if not (folder / f"{form}.onnx").is_file():
        pytest.skip("this onnx has no UINT2")
    wide = compiled(folder / "s8.onnx", board)
    for more in (0, 1200, 4000):
        limit = wide.plan.arena_bytes + more
        narrow = compiled(folder / f"{form}.onnx", board, limit)
        assert narrow.plan.arena_bytes <= limit
        assert narrow.report["weights_bytes"] <= wide.report["weights_bytes"]
        verify_plan(narrow.program, narrow.plan)
        x = {"x": inputs()["x"][0]}
        got = run_program(
            narrow.program, x, offsets_bytes=narrow.plan.offsets_bytes, arena_bytes=narrow.plan.arena_bytes
        )
        assert_same_bytes(got, run_graph(narrow.graph, x))
    assert not parts(compiled(folder / f"{form}.onnx", "mps2-an386", 80_000))


@pytest.mark.parametrize("form", ["s4", "p4"])
def test_layers_are_cut_into_parts_where_there_is_less_room_than_weights(folder: Path, form: str) -> None:
    result = compiled(folder / f"{form}.onnx", "mps2-an386")
    assert any(".part1" in name for name in parts(result))
    assert len(result.report["narrow_weights"]["packed"]) == 5


def test_scratch_of_a_layer_that_cores_share_is_that_of_all(folder: Path) -> None:
    options = CompileOptions(name="net", cores=4)
    made = compile_model(folder / "s4.onnx", load_board("mps2-an386"), options).planned.program
    shared = [(i, o) for i in made.instrs if i.shares > 1 for o in i.operands if o.role == "scratch"]
    assert any(".part" in instr.name for instr, _ in shared)
    for instr, scratch in shared:
        assert made.buffers[scratch.buffer].size_bytes >= instr.shares * scratch.type.size_bytes


def test_parts_of_a_layer_share_its_palette(folder: Path) -> None:
    result = compiled(folder / "p4.onnx", "mps2-an386")
    palettes = {name: array for name, array in result.program.consts.items() if name.endswith(".palette")}
    assert len(palettes) == len(LAYERS)  # those of fully connected layers stand in front of their weights
    for array in palettes.values():
        assert array.tolist() == list(PALETTES[4])


def test_layers_without_room_stay_bytes_and_are_named(folder: Path) -> None:
    limit = compiled(folder / "s8.onnx", "mps2-an386").plan.arena_bytes
    text = compile_summary(compiled(folder / "s4.onnx", "mps2-an386", limit), folder)
    assert "weights of 4 of 5 layers; as bytes (few, depthwise, float, or no room in RAM): conv10" in text


@pytest.mark.parametrize("form", ["s4", "s2", "p4", "p2"])
def test_weights_of_few_different_codes_are_stored_so_however_the_file_says_it(folder: Path, form: str) -> None:
    plain = compiled(folder / f"{form}_as_s8.onnx", "host")
    assert {*unpacked(plain)} == {f"unpack_{form}"}
    if (folder / f"{form}.onnx").is_file():
        said = compiled(folder / f"{form}.onnx", "host")
        assert plain.report["weights_bytes"] == said.report["weights_bytes"]
