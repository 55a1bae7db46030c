"""Scratch that makes layers faster: shortcuts run ahead of such layers, and the arena grows by a smaller share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest

from glowc import memory
from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.kernels.choice import guessed_insns
from glowc.kernels.dsp.winograd import WinogradPlan
from glowc.place import planning
from glowc.place.places import memory_blocks, verify_plan
from glowc.program.lifetimes import strip_markers


def codes(real: str, back: str) -> list[onnx.NodeProto]:
    """Return the nodes that make codes of a tensor, and numbers of these."""
    return [
        oh.make_node("QuantizeLinear", [real, "s", "z"], [f"{back}_q"]),
        oh.make_node("DequantizeLinear", [f"{back}_q", "s", "z"], [back]),
    ]


@pytest.fixture(scope="module")
def residual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two blocks of ResNet-8 in int8; the shortcut of the second one comes last."""
    rng = np.random.default_rng(0)
    consts: dict[str, object] = {"s": np.float32(0.02), "ws": np.float32(0.01), "bs": np.float32(0.0002)}
    consts |= {"z": np.int8(-128), "z8": np.int8(0), "z32": np.int32(0)}
    nodes = [oh.make_node("DequantizeLinear", ["x_q", "s", "z"], ["x"])]
    for name, source, inputs, outputs, kernel, stride in (
        ("a", "x", 16, 16, 3, 1), ("b", "a", 16, 16, 3, 1), ("c", "x+b", 16, 32, 3, 2), ("d", "c", 32, 32, 3, 1),
        ("shortcut", "x+b", 16, 32, 1, 2),
    ):  # fmt: skip
        consts[f"{name}_wq"] = rng.integers(-12, 13, (outputs, inputs, kernel, kernel), dtype=np.int8)
        consts[f"{name}_bq"] = rng.integers(-500, 500, outputs, dtype=np.int32)
        nodes += [
            oh.make_node("DequantizeLinear", [f"{name}_wq", "ws", "z8"], [f"{name}_w"]),
            oh.make_node("DequantizeLinear", [f"{name}_bq", "bs", "z32"], [f"{name}_b"]),
            oh.make_node("Conv", [source, f"{name}_w", f"{name}_b"], [f"{name}_c"], name,
                         kernel_shape=(kernel, kernel), pads=4 * (kernel // 2,), strides=(stride, stride)),
            *codes(f"{name}_c", name),
        ]  # fmt: skip
        if name == "b":
            nodes += [oh.make_node("Add", ["x", "b"], ["x+b_f"]), *codes("x+b_f", "x+b")]
    nodes += [oh.make_node("Add", ["d", "shortcut"], ["sum"]), oh.make_node("QuantizeLinear", ["sum", "s", "z"], ["y"])]
    given, result = (
        oh.make_tensor_value_info(name, onnx.TensorProto.INT8, shape)
        for name, shape in (("x_q", (1, 16, 32, 32)), ("y", (1, 32, 16, 16)))
    )
    tensors = [onh.from_array(np.asarray(array), name) for name, array in consts.items()]
    model = oh.make_model(oh.make_graph(nodes, "residual", [given], [result], tensors))
    path = tmp_path_factory.mktemp("roomier") / "residual.onnx"
    onnx.save(model, path)
    return path


def compiled(model: Path, *, slow: bool, **options: object) -> Compiled:
    board = load_board("mps2-an386")
    board = replace(board, cpu=replace(board.cpu, slow_flash=slow))
    return compile_model(model, board, CompileOptions(io_layout="nhwc", **options))  # type: ignore[arg-type]


def passes(result: Compiled) -> list[int]:
    """Return the output channels that layers by Winograd's algorithm compute in a pass."""
    return [i.plan.channels for i in strip_markers(result.program).instrs if isinstance(i.plan, WinogradPlan)]


def test_a_shortcut_runs_ahead_of_a_layer_that_spends_what_it_frees(
    residual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    ahead = compiled(residual, slow=False)
    names = [i.name.split(".")[0] for i in strip_markers(ahead.program).instrs]
    assert names.index("shortcut") < names.index("d")
    monkeypatch.setattr(planning, "_MOST_MOVES", 0)
    usual = compiled(residual, slow=False)
    assert passes(usual) == [8, 8, 8]
    assert passes(ahead) == [8, 8, 16]
    assert ahead.plan.arena_bytes == usual.plan.arena_bytes
    verify_plan(ahead.program, ahead.plan)


def test_the_arena_grows_by_a_smaller_share_than_instructions_fall(residual: Path) -> None:
    usual, grown = compiled(residual, slow=False), compiled(residual, slow=True)
    assert passes(grown) == [16, 16, 16]
    before, after = (sum(map(guessed_insns, strip_markers(c.program).instrs)) for c in (usual, grown))
    assert 1 < grown.plan.arena_bytes / usual.plan.arena_bytes < min(1.2, before / after)
    memory.check(grown.plan, memory_blocks(grown.program), grown.planned.overlaps)
    verify_plan(grown.program, grown.plan)
    need = usual.plan.arena_bytes
    for options in ({"ram_limit": need}, {"opt": "size"}):
        assert compiled(residual, slow=True, **options).plan.arena_bytes <= need
