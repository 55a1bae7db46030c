"""`--plugin`: the worked example on the host and on a board, and what a bad plugin says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.e2e.models import board_tools

EXAMPLE = ROOT / "examples/custom-op"


def glowc(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "glowc", *argv], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("board", ["host", pytest.param("mps2-an386", marks=pytest.mark.qemu)])
def test_example_gives_what_numpy_computes(board: str, tmp_path: Path) -> None:
    board_tools(board)
    done = glowc(
        "run", str(EXAMPLE / "model.onnx"), "--plugin", str(EXAMPLE / "my_ops.py"), "--board", board,
        "--input", str(EXAMPLE / "input.npz"), "--output", str(tmp_path / "y.npz"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "y.npz") as got, np.load(EXAMPLE / "output.npz") as wanted:
        np.testing.assert_allclose(got["y"], wanted["y"], rtol=1e-5, atol=1e-5)


def test_bundle_holds_the_c_function_and_lists_it(tmp_path: Path) -> None:
    done = glowc("compile", str(EXAMPLE / "model.onnx"), "--plugin", str(EXAMPLE / "my_ops.py"), "-o", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "frame_energy.c").read_bytes() == (EXAMPLE / "frame_energy.c").read_bytes()
    assert "frame_energy.c" in (tmp_path / "model.mk").read_text()
    assert '#include "frame_energy.h"' in (tmp_path / "model.c").read_text()
    # The bundle stands alone: it is built without the plugin.
    board_tools("host")
    done = glowc("run", str(tmp_path), "-i", str(EXAMPLE / "input.npz"), "-o", str(tmp_path / "y.npz"))
    assert done.returncode == 0, done.stderr


def test_committed_model_is_what_the_script_writes(tmp_path: Path) -> None:
    for file in EXAMPLE.glob("*.py"):
        (tmp_path / file.name).write_text(file.read_text())
    subprocess.run([sys.executable, "make_model.py"], cwd=tmp_path, check=True)
    assert (tmp_path / "model.onnx").read_bytes() == (EXAMPLE / "model.onnx").read_bytes()


def test_without_the_plugin_the_operators_are_named() -> None:
    done = glowc("compile", str(EXAMPLE / "model.onnx"), "-o", "/nonexistent")
    assert done.returncode == 1
    assert "my.dsp::SoftThreshold" in done.stderr
    assert "my.dsp::FrameEnergy" in done.stderr


HEAD = "from glowc.ops.base import KernelDef, OpDef, Params\nfrom glowc.kernels.base import KernelVariant\n"
KERNEL = "KERNELS = (KernelDef('mine', (), Params, print),)\n"
FUNCTIONS = "lambda *a: (), lambda *a: (), lambda *a: None"
BAD = {
    "def infer(:\n": "line 1",
    "raise RuntimeError('no board here')\n": "RuntimeError: no board here",
    "import a_module_that_is_not_there\n": "ModuleNotFoundError",
    "x = 1\n": "neither OP, OPS, KERNELS, ISAS nor BACKENDS",
    "OP = 'Cube'\n": "'Cube' is no OpDef",
    "OPS = 3\n": "OPS is a int, not a tuple",
    f"{HEAD}OP = OpDef('Conv', {FUNCTIONS})\n": "operator Conv is already defined by glowc",
    f"{HEAD}OPS = (OpDef('Mine', {FUNCTIONS}),) * 2\n": "operator Mine is already defined by itself",
    f"{HEAD}KERNELS = (KernelDef('copy_b1', (), Params, print),)\n": "kernel copy_b1 is already defined by glowc",
    f"{HEAD}KERNELS = (KernelDef('mine', (), Params, print),)\n": "mine: mine__ref.c.j2",
    f"{HEAD}KERNELS = (KernelDef('mine', (), Params, print, extern='f', extern_header='f.h'),)\n": "mine: f.h",
    f"{HEAD}KERNELS = (KernelDef('mine', (), ('n',), print),)\n": "parameters are ('n',), not a dataclass",
    f"{HEAD}{KERNEL}VARIANTS = 3\n": "VARIANTS is a int, not a mapping",
    f"{HEAD}{KERNEL}VARIANTS = {{'mine': 3}}\n": "VARIANTS of mine is a int, not a tuple",
    f"{HEAD}{KERNEL}VARIANTS = {{'mine': ('fpu',)}}\n": "'fpu' is no KernelVariant",
    f"{HEAD}{KERNEL}VARIANTS = {{'other': ()}}\n": "VARIANTS of other, which KERNELS does not define",
    f"{HEAD}{KERNEL}VARIANTS = {{'mine': (KernelVariant('avx'),)}}\n": "mine has a variant for avx",
    f"{HEAD}{KERNEL}VARIANTS = {{'mine': (KernelVariant('fpu', form='own'),)}}\n": "mine: mine__fpu_own.c.j2",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_plugin_is_refused_naming_the_cause(text: str, tmp_path: Path) -> None:
    from glowc.compiler.plugins import load_plugins
    from glowc.errors import InputError

    plugin = tmp_path / "bad.py"
    plugin.write_text(text)
    with pytest.raises(InputError) as caught:
        load_plugins([plugin])
    assert BAD[text] in str(caught.value)
    assert "bad.py" in str(caught.value)


def test_variant_of_a_plugin_is_printed_for_the_cpus_that_have_its_instruction_set(tmp_path: Path) -> None:
    from glowc.board import load_board
    from glowc.compiler.options import CompileOptions
    from glowc.compiler.pipeline import compile_model

    shutil.copytree(EXAMPLE, tmp_path / "op")
    plugin, template = tmp_path / "op/my_ops.py", tmp_path / "op/soft_threshold__ref.c.j2"
    variant = 'KernelVariant("fpu", form="own", rank=1, in_place=True)'
    with plugin.open("a") as file:
        file.write(f'\nfrom glowc.kernels.base import KernelVariant\nVARIANTS = {{"soft_threshold": ({variant},)}}\n')
    template.with_name("soft_threshold__fpu_own.c.j2").write_text("/* its own */\n" + template.read_text())
    options = CompileOptions(plugins=(plugin,))
    for board, name in (("host", "fpu_own"), ("microbit", "ref")):
        code = compile_model(EXAMPLE / "model.onnx", load_board(board), options).bundle.files["model.c"]
        assert f"soft_threshold__{name}(" in str(code)
        assert ("/* its own */" in str(code)) == (name == "fpu_own")


def test_compiles_in_one_process_do_not_share_plugins() -> None:
    from glowc.board import load_board
    from glowc.compiler.options import CompileOptions
    from glowc.compiler.pipeline import compile_model
    from glowc.errors import ModelError
    from glowc.ops.registry import all_ops
    from glowc.program.kernel import all_kernels

    own, host, model = (set(all_ops()), set(all_kernels())), load_board("host"), EXAMPLE / "model.onnx"
    options = CompileOptions(plugins=(EXAMPLE / "my_ops.py",))
    first = compile_model(model, host, options).bundle.files
    with pytest.raises(ModelError, match="SoftThreshold"):
        compile_model(model, host)
    assert (set(all_ops()), set(all_kernels())) == own
    assert compile_model(model, host, options).bundle.files == first


def test_missing_plugin_is_refused(tmp_path: Path) -> None:
    done = glowc("compile", str(EXAMPLE / "model.onnx"), "--plugin", str(tmp_path / "none.py"), "-o", str(tmp_path))
    assert done.returncode == 1
    assert "none.py does not exist" in done.stderr
