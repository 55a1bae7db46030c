"""The hooks around layers: nothing in the code while they are off, few instructions while they are on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from glowc.board import find_tool, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import BundleInfo, execute, load_bundle, random_inputs
from tests.e2e.models import DIGITS, board_tools, model_path

MOST_INSNS = 40  # of both calls around a layer
HOOK = re.compile(r"^ *GLOW_LAYER_(?:BEGIN|END)\(.*\);\n", re.MULTILINE)
CASES = [("mps2-an386", "plain"), ("mps2-an386", "stream"), ("mps3-an547", "plain"), ("linux-aarch64", "plain")]


def bundle(board: str, plan: str, folder: Path) -> BundleInfo:
    board_tools(board)
    write_bundle(compile_model(model_path(DIGITS), load_board(board), CompileOptions(plan=plan)), folder)
    return load_bundle(folder)


@pytest.mark.qemu
@pytest.mark.parametrize(("name", "plan"), CASES)
def test_hooks_that_are_on_take_few_instructions(name: str, plan: str, tmp_path: Path) -> None:
    """What the hooks themselves do is calibrated away, as in `glowc bench`: they set one mark each."""
    info, board = bundle(name, plan, tmp_path / "bundle"), load_board(name)
    inputs = random_inputs(info)
    off, on = (execute(info, board, inputs, marks=True, profile=profile).marks for profile in (False, True))
    mark = off[1] - off[0]
    assert on[1] - on[0] == mark
    calls = len(on) - len(off)
    assert calls == 2 * len(info.report["profile_order"] or info.report["layers"])
    more = (on[-1] - on[2]) - (off[-1] - off[2]) - calls * mark
    assert 2 * more <= MOST_INSNS * calls


@pytest.mark.parametrize("name", ["mps2-an386", "mps3-an547"])
def test_hooks_that_are_off_leave_no_trace_in_the_code(name: str, tmp_path: Path) -> None:
    info, cpu = bundle(name, "stream", tmp_path / "bundle"), load_board(name).cpu
    source = info.sources[0]
    text, objects = source.read_text(), []
    for code in (text, HOOK.sub("", text)):
        source.write_text(code)
        argv = [str(find_tool(cpu.cc)), *cpu.cflags, "-O2", "-c", source.name, "-o", "model.o"]
        subprocess.run(argv, cwd=source.parent, check=True)
        objects.append((source.parent / "model.o").read_bytes())
    assert HOOK.search(text)
    assert objects[0] == objects[1]
