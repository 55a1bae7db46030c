"""Forests on Cortex-M: tables and code give the bytes of onnxruntime, with an FPU and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.api.build import compile
from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.machine.execute import bench, execute, load_bundle
from tests.conftest import require_module, require_tool

FEATURES, DEPTH, CLASSES = 16, 8, 4


def forest(kind: int, trees: int, *, votes: bool) -> onnx.ModelProto:
    """Return a random forest of whole trees; leaves are a vote for a class, or shares of two classes."""
    rng = np.random.default_rng(11)
    inner = 2**DEPTH - 1
    nodes, leaves = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    for t in range(trees):
        for i in range(2 * inner + 1):
            split = i < inner
            mode = "BRANCH_LEQ" if split else "LEAF"
            row = (
                (int(rng.integers(FEATURES)), float(rng.integers(-120, 120)), 2 * i + 1, 2 * i + 2)
                if split
                else (0, 0.0, 0, 0)
            )
            nodes.append((t, i, mode, *row))
            first, share = int(rng.integers(CLASSES)), float(np.float32(rng.random() / trees))
            entries = [(first, 1 / trees)] if votes else [(first, share), ((first + 1) % CLASSES, 1 / trees - share)]
            leaves += [] if split else [(t, i, *entry) for entry in entries]
    keys = ("nodes_treeids", "nodes_nodeids", "nodes_modes", "nodes_featureids", "nodes_values", "nodes_truenodeids",
            "nodes_falsenodeids")  # fmt: skip
    attrs = dict(zip(keys, map(list, zip(*nodes, strict=True)), strict=True))
    ends = ("class_treeids", "class_nodeids", "class_ids", "class_weights")
    attrs |= dict(zip(ends, map(list, zip(*leaves, strict=True)), strict=True))
    made = [
        helper.make_node("Cast", ["codes"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
                         classlabels_int64s=[3, 5, 7, 9], **attrs),
    ]  # fmt: skip
    x = helper.make_tensor_value_info("codes", kind, [1, FEATURES])
    outs = [
        helper.make_tensor_value_info(n, k, None)
        for n, k in (("label", TensorProto.INT64), ("scores", TensorProto.FLOAT))
    ]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph(made, "g", [x], outs), opset_imports=imports, ir_version=9)


@pytest.mark.qemu
@pytest.mark.parametrize("opt", ["balanced", "speed", "size"])
@pytest.mark.parametrize("board", ["host", "mps2-an385", "mps2-an386"])
@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_boards_give_onnxruntimes_bytes(kind: str, board: str, opt: str, tmp_path: Path) -> None:
    ort = require_module("onnxruntime")
    require_tool("gcc", "arm-none-eabi-gcc", "qemu-system-arm")
    rng = np.random.default_rng(2)
    x = rng.integers(-128, 128, (8, 1, FEATURES)).astype(kind)
    for votes in (True, False):
        model = forest(helper.np_dtype_to_tensor_dtype(np.dtype(kind)), 5, votes=votes)
        bundle = compile(model, tmp_path / str(votes), board=board, options=CompileOptions(opt=opt))
        done = execute(load_bundle(bundle.folder), load_board(board), {"codes": x})
        session = ort.InferenceSession(model.SerializeToString())
        want = [session.run(None, {"codes": row}) for row in x]
        for i, name in enumerate(("label", "scores")):
            assert done.outputs[name].tobytes() == np.stack([w[i] for w in want]).tobytes()


@pytest.mark.qemu
def test_code_takes_a_third_of_the_instructions_and_tables_less_flash(tmp_path: Path) -> None:
    require_tool("arm-none-eabi-gcc", "qemu-system-arm")
    board, model = load_board("mps2-an386"), forest(TensorProto.INT8, 20, votes=True)
    taken = {}
    for opt in ("balanced", "speed"):
        bundle = compile(model, tmp_path / opt, board=board.name, options=CompileOptions(opt=opt))
        report = bench(load_bundle(bundle.folder), board)
        insns = report["layers"][0]["insns"]
        taken[opt] = (report["text_bytes"] + report["rodata_bytes"], insns)
    assert taken["speed"][1] < 0.4 * taken["balanced"][1]
    assert taken["balanced"][0] < 0.7 * taken["speed"][0]
