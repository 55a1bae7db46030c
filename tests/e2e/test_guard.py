"""`--guard`: a layer that writes outside of its tensors is named on the board; right layers pass, off costs nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import InputError
from glowc.machine.execute import bench, execute, load_bundle, random_inputs
from tests.conftest import ROOT, require_tool
from tests.e2e.models import board_tools
from tests.unit.cli_calls import Glowc
from tests.unit.onnx_builders import model

DIGITS = ROOT / "examples/digits/digits.onnx"
SPILL = """
from dataclasses import dataclass
from glowc.ops.base import KernelDef, OpDef, Params
@dataclass(frozen=True)
class Spill(Params):
    n: int
def infer(node, in_types):
    return (in_types[0],)
def reference(call):
    return (call.array(0),)
def lower(node, ctx):
    x = ctx.read(node.inputs[0])
    ctx.emit("spill", {"in": x, "out": ctx.write(node.outputs[0])}, Spill(x.type.elements))
def interpret(arrays, p):
    arrays["out"].reshape(-1)[:] = arrays["in"].reshape(-1)
OP = OpDef("Spill", infer, reference, lower, domain="my")
KERNELS = (KernelDef("spill", ("in in", "out out"), Spill, interpret, extern="spill", extern_header="spill.h",
                     extern_sources=("spill.c",)),)
"""
SPILL_H = "#include <stdint.h>\nvoid spill(const float *in, float *out, int32_t n);\n"
SPILL_C = """
#include "spill.h"
void spill(const float *in, float *out, int32_t n) {
  for (int32_t i = FIRST; i < n + BEYOND; i++) {
    out[i] = in[i < 0 || i >= n ? 0 : i];
  }
}
"""


@pytest.mark.parametrize("board", ["host", pytest.param("mps2-an386", marks=pytest.mark.qemu)])
@pytest.mark.parametrize(("first", "beyond"), [(0, 0), (0, 1), (-1, 0)])
def test_layer_that_writes_outside_of_its_tensors_is_named(
    board: str, first: int, beyond: int, glowc: Glowc, tmp_path: Path
) -> None:
    board_tools(board)
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Spill", ["a"], ["b"], name="block/spill", domain="my"),
        helper.make_node("Exp", ["b"], ["y"], name="last"),
    ]
    onnx.save(model(nodes, {"x": "f32[1,5]"}, {"y": "f32"}, domains=["my"]), tmp_path / "net.onnx")
    (tmp_path / "spill.py").write_text(SPILL)
    (tmp_path / "spill.h").write_text(SPILL_H)
    (tmp_path / "spill.c").write_text(SPILL_C.replace("FIRST", str(first)).replace("BEYOND", str(beyond)))
    np.savez(tmp_path / "in.npz", x=np.ones((2, 1, 5), np.float32))
    done = glowc("run", tmp_path / "net.onnx", "--plugin", tmp_path / "spill.py", "--guard", "--board", board,
                 "--input", tmp_path / "in.npz", "--output", tmp_path / "out.npz")  # fmt: skip
    if first == beyond == 0:
        assert done.status == 0, done.err
        return
    assert done.status == 1
    assert "wrote outside of its tensors: block/spill" in done.err


@pytest.mark.parametrize("board", ["host", pytest.param("mps2-an386", marks=pytest.mark.qemu),
                                   pytest.param("mps3-an547", marks=pytest.mark.qemu)])  # fmt: skip
def test_layers_that_keep_to_their_tensors_pass_with_the_same_bytes(board: str, tmp_path: Path) -> None:
    board_tools(board)
    target, outputs, reports = load_board(board), [], []
    for guard in (False, True):
        compiled = compile_model(DIGITS, target, CompileOptions(guard=guard, plan="plain"))
        write_bundle(compiled, tmp_path / str(guard))
        info = load_bundle(tmp_path / str(guard))
        outputs.append(execute(info, target, random_inputs(info, 2)).outputs["logits"])
        reports.append(compiled.report)
        text = (tmp_path / str(guard) / "digits.c").read_text()
        assert ("zone" in text) == guard
        assert ("GLOW_ERROR_GUARD" in text) == guard
    assert np.array_equal(*outputs)
    assert int(reports[1]["arena_bytes"]) >= int(reports[0]["arena_bytes"]) + 32  # type: ignore[call-overload]
    assert f"_ARENA_BYTES {reports[1]['arena_bytes']}u" in (tmp_path / "True/digits.h").read_text()


def test_guarded_bundle_stays_clean_under_strict_warnings(tmp_path: Path) -> None:
    require_tool("gcc")
    write_bundle(compile_model(DIGITS, load_board("host"), CompileOptions(guard=True)), tmp_path)
    strict = ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror")
    argv = ["gcc", *strict, "-fsyntax-only", str(tmp_path / "digits.c")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options", [{"plan": "stream"}, {"plan": "overlap"}, {"regions": (("a", 900), ("b", 9000))}])
def test_plans_that_share_bytes_cannot_be_guarded(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="--guard"):
        compile_model(DIGITS, load_board("host"), CompileOptions(guard=True, **options))  # type: ignore[arg-type]


def test_report_of_a_guarded_bundle_has_its_option(tmp_path: Path) -> None:
    require_tool("gcc")
    write_bundle(compile_model(DIGITS, load_board("host"), CompileOptions(guard=True)), tmp_path)
    report = bench(load_bundle(tmp_path), load_board("host"))
    assert "--guard" in str(report["options"])
