"""Targets of plugins: back ends that take parts of the graph, instruction sets with variants of glowc's own kernels."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from glowc.board import load_board
from glowc.compiler.delegates import delegate
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.compiler.plugins import load_plugins
from glowc.errors import InputError, InternalError
from glowc.graph.graph import Graph, Node
from glowc.graph.scope import scope
from glowc.ops.delegated import Backend, Handed, register_backends
from tests.conftest import ROOT
from tests.e2e.models import board_tools
from tests.unit.onnx_builders import model

EXAMPLE = ROOT / "examples/accelerator"
DIGITS = ROOT / "examples/digits"


def glowc(*argv: object, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, filter(None, (path, ROOT))))}
    command = [sys.executable, "-m", "glowc", *map(str, argv)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("board", ["host", pytest.param("mps2-an386", marks=pytest.mark.qemu)])
def test_the_page_s_command_finds_every_byte_equal(board: str) -> None:
    board_tools(board)
    (command,) = re.findall(r"^```sh\nglowc (.*?)\n```", (EXAMPLE / "README.md").read_text(), re.M | re.S)
    argv = command.replace("mps2-an386", board).replace("../digits", str(DIGITS))
    done = glowc(*argv.replace("convbox.py", str(EXAMPLE / "convbox.py")).split(), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outputs"][0]["equal_share"] == 1.0


def test_an_installed_package_is_a_target(tmp_path: Path) -> None:
    for file in EXAMPLE.glob("convbox.*"):
        shutil.copy(file, tmp_path)
    info = tmp_path / "convbox-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: convbox\nVersion: 1.0\n")
    (section,) = re.findall(r"^```toml\n.*?\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.M | re.S)
    (info / "entry_points.txt").write_text("[glowc.targets]\n" + section.replace('"', ""))
    done = glowc("compile", DIGITS / "digits.onnx", "--target", "convbox", "-o", tmp_path / "out", path=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "convbox_run" in (tmp_path / "out/digits.c").read_text()
    assert "convbox.c" in (tmp_path / "out/digits.mk").read_text()
    other = glowc("compile", DIGITS / "digits.onnx", "--target", "npu", "-o", tmp_path / "no", path=tmp_path)
    assert (other.returncode, "targets of installed packages: convbox" in other.stderr) == (1, True)


VARIANT = """
from glowc.kernels.base import KernelVariant
from glowc.kernels.features import Stated
from glowc.kernels.isas import InstructionSet
ISAS = {"mac4": InstructionSet(frozenset({"FEATURE"}), "mac4", Stated(macs=0.1))}
VARIANTS = {"fc_s8": (KernelVariant("mac4", rank=90, header="mac4.h"),)}
"""


@pytest.mark.parametrize("has", [True, False])
def test_an_instruction_set_has_variants_of_own_kernels(has: bool, tmp_path: Path) -> None:
    board_tools("host")
    board = load_board("host")
    feature = min(board.cpu.features) if has else "none-such"
    (tmp_path / "mac4.py").write_text(VARIANT.replace("FEATURE", feature))
    (tmp_path / "mac4.h").write_text("#define MAC4(s, a, b) ((s) + (a) * (b))\n")
    plain = (ROOT / "templates/kernels/ref/fc_s8.c.j2").read_text()
    (tmp_path / "fc_s8__mac4.c.j2").write_text(plain)
    compiled = compile_model(DIGITS / "digits.onnx", board, CompileOptions(plugins=(tmp_path / "mac4.py",)))
    assert ("fc_s8__mac4" in compiled.bundle.files["digits.c"]) == has
    assert ("mac4.h" in compiled.bundle.files) == has
    if has:
        assert '#include "mac4.h"' in compiled.bundle.files["digits.c"]
    assert "mac4" not in compile_model(DIGITS / "digits.onnx", board).bundle.files["digits.c"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (VARIANT.replace('"mac4": Ins', '"dsp": Ins'), "there is an instruction set dsp"),
        (VARIANT, "fc_s8: fc_s8__mac4.c.j2"),
        (VARIANT, "fc_s8: mac4.h"),
        (VARIANT.replace('KernelVariant("mac4"', 'KernelVariant("dsp"'), "fc_s8 has a variant for dsp"),
        ("BACKENDS = 3\n", "BACKENDS is a int"),
        ("ISAS = {'x': 3}\n", "3 is no InstructionSet"),
    ],
)
def test_targets_that_do_not_fit_are_told(text: str, says: str, tmp_path: Path) -> None:
    plugin = tmp_path / "bad.py"
    plugin.write_text(text)
    with pytest.raises(InputError, match=re.escape(says)):
        load_plugins([plugin])


# ---- which nodes become one part ----


def parts_of(ops: Sequence[str], edges: str) -> list[str]:
    """Return the parts of a graph whose nodes `a=x b=x,a ...` a back end takes that knows these operators."""
    nodes, values = [], []
    for number, edge in enumerate(edges.split()):
        out, _, ins = edge.partition("=")
        op = "Add" if "," in ins else ops[number % len(ops)]
        nodes.append(helper.make_node(op, ins.split(","), [out], name=out))
        values.append(out)
    path = model(nodes, {"x": "f32[1,4]"}, values[-1])
    from glowc.frontend import import_model

    graph = import_model(path.SerializeToString())
    seen: list[str] = []

    def build(part: Graph) -> Handed:
        seen.append("".join(node.outputs[0] for node in part.nodes))
        return Handed("f")

    def takes(node: Node, _: Graph) -> bool:
        return node.op in ("Relu", "Add")

    with scope():
        register_backends([Backend("box", takes, build)], "here")
        delegate(graph, load_board("host").cpu)
    return seen


@pytest.mark.parametrize(
    ("ops", "edges", "parts"),
    [
        (["Relu"], "a=x b=a c=b", ["abc"]),
        (["Relu", "Sin", "Relu"], "a=x b=a c=b", ["a", "c"]),
        (["Relu", "Sin"], "a=x b=a c=a,b", ["a", "c"]),  # c needs b, which needs a: never at once
        (["Relu", "Relu", "Sin"], "a=x b=x c=b d=a,b", ["ad", "b"]),
        (["Relu", "Sin", "Relu", "Relu", "Sin"], "a=x b=a c=b d=a e=c f=d,e", ["ad", "c", "f"]),
    ],
)
def test_parts_are_connected_and_can_be_called_at_once(ops: list[str], edges: str, parts: list[str]) -> None:
    assert parts_of(ops, edges) == parts


def test_a_function_of_a_back_end_that_fails_is_its_plugin_s_fault(tmp_path: Path) -> None:
    plugin = tmp_path / "broken.py"
    plugin.write_text(
        "from glowc.ops.delegated import Backend\n"
        "BACKENDS = (Backend('box', lambda node, graph: node.op == 'Conv', lambda part: 1 / 0),)\n"
    )
    with pytest.raises(InternalError, match=r"build of box fails: ZeroDivisionError(?s:.*)broken\.py"):
        compile_model(DIGITS / "digits.onnx", load_board("host"), CompileOptions(plugins=(plugin,)))


def test_a_part_left_to_glowc_changes_nothing(tmp_path: Path) -> None:
    plugin = tmp_path / "shy.py"
    plugin.write_text(
        "from glowc.ops.delegated import Backend\nBACKENDS = (Backend('box', lambda *_: True, lambda part: None),)\n"
    )
    board = load_board("host")
    shy = compile_model(DIGITS / "digits.onnx", board, CompileOptions(plugins=(plugin,))).bundle.files
    plain = compile_model(DIGITS / "digits.onnx", board).bundle.files
    assert {n: t.replace(str(plugin), "") for n, t in shy.items() if n.endswith(".c")} == {
        n: t for n, t in plain.items() if n.endswith(".c")
    }
    assert np.all([name in shy for name in plain])
