"""docs/ADDING.md is executed: its code blocks, in a copy of the tree, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_tool

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "ADDING.md").read_text()
BLOCKS = re.findall(r"^`([^`\n]+)`\n\n```\w*\n(.*?)^```$", PAGE, re.M | re.S)
(ISA_LINE,) = re.findall(r'^    "toy": .*\n', PAGE, re.M)

CUBE_MODEL = """
import onnx, onnx.helper as oh
f = onnx.TensorProto.FLOAT
g = oh.make_graph([oh.make_node("Cube", ["x"], ["y"], name="my/cube")], "g",
                  [oh.make_tensor_value_info("x", f, [5])], [oh.make_tensor_value_info("y", f, [5])])
onnx.save(oh.make_model(g, opset_imports=[oh.make_opsetid("", 17)], ir_version=8), "cube.onnx")
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the blocks of the page."""
    root = tmp_path_factory.mktemp("tree")
    ignore = shutil.ignore_patterns("__pycache__")
    for folder in ("glowc", "templates", "runtime_c", "boards", "tests"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", root)
    for name, text in BLOCKS:
        target = root / name
        assert not target.exists(), f"{name} is not new"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    table = root / "glowc/kernels/isas.py"
    table.write_text(table.read_text().replace("ISAS = {\n", f"ISAS = {{\n{ISA_LINE}", 1))
    return root


def run(tree: Path, *args: str, cwd: Path | None = None) -> str:
    """Run Python in the copied tree and return its output."""
    env = {**os.environ, "PYTHONPATH": str(tree), "GLOWC_KERNELS": "cube*"}
    done = subprocess.run(
        [sys.executable, *args], cwd=cwd or tree, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_page_shows_one_of_each() -> None:
    names = [name for name, _ in BLOCKS]
    folders = [name.split("/")[0] for name in names]
    operator, variant, board, graph_pass = 6, 2, 3, 2
    assert folders[:operator] == 2 * ["glowc", "templates", "tests"]
    assert folders[operator : operator + variant] == ["templates", "glowc"]
    assert folders[operator + variant : -board - graph_pass] == ["glowc", "glowc", "templates", "runtime_c"]
    assert folders[-board - graph_pass :] == [*["boards"] * board, "glowc", "tests"]


def test_new_operator_and_variant_compile_and_pass_the_kernel_tests(tree: Path) -> None:
    require_tool("gcc")
    harness = ("tests/kernels/test_kernels.py", "-k", "host and not clang")
    run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *harness)
    run(tree, "-c", CUBE_MODEL)
    out = run(tree, "-m", "glowc", "compile", "cube.onnx", "--board", "host", "-o", "out")
    assert "1 layers" in out
    assert "__fpu" in (tree / "out/cube.c").read_text()


def test_an_operator_on_codes_takes_its_endings_for_nothing(tree: Path) -> None:
    run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/ops/test_cube.py", "tests/ops/test_cube_codes.py")


def test_new_instruction_set_is_three_folders_and_a_line(tree: Path, tmp_path: Path) -> None:
    require_tool("gcc")
    copy = tmp_path / "tree"
    shutil.copytree(tree, copy)
    cpu = copy / "boards/_cpu/host.toml"
    cpu.write_text(cpu.read_text().replace("features = [", 'features = ["toy", ', 1))
    harness = ("tests/kernels/test_kernels.py", "-k", "host and not clang")
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *harness)
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_rooms.py", "-k", "instruction_set")
    run(copy, "-c", CUBE_MODEL)
    run(copy, "-m", "glowc", "compile", "cube.onnx", "--board", "host", "-o", "out", "--dump-ir", "dump")
    assert "__toy" in (copy / "out/cube.c").read_text()
    assert (copy / "out/glow_toy.h").is_file()
    assert "toy.cube.CubePlan" in (copy / "dump/99-program.txt").read_text()


def test_new_board_works_in_the_repository(tree: Path) -> None:
    run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_target.py")
    run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_licence.py", "-k", "every_source")


def test_new_board_builds_from_a_folder_anywhere(tree: Path) -> None:
    require_tool("arm-none-eabi-gcc")
    run(tree, "-c", CUBE_MODEL)
    out = run(tree, "-m", "glowc", "bench", "cube.onnx", "--board", str(tree / "boards/my-board"), "--json")
    assert '"text_bytes"' in out


def test_new_pass_works_with_its_one_line(tree: Path) -> None:
    pipeline = tree / "glowc/passes/pipeline.py"
    text = pipeline.read_text()
    text = text.replace("\nOnPass = ", "\nfrom glowc.passes.drop_double_neg import DropDoubleNeg\n\nOnPass = ", 1)
    head = "\nPIPELINE: tuple[Step, ...] = (\n"
    pipeline.write_text(text.replace(head, f"{head}    DropDoubleNeg(),\n", 1))
    run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_drop_double_neg.py")
    assert "drop-double-neg" in run(tree, "-c", "from glowc.passes.pipeline import pass_names; print(pass_names())")
