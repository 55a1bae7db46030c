"""scripts/disasm_diff.py: silent where gcc makes the same of two texts, else the instructions that differ."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_tool

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "disasm_diff.py"
CODE = "int f(int x);\nint f(int x) {\n  return x * 3;\n}\n"


def compare(tmp_path: Path, base: str, this: str) -> subprocess.CompletedProcess[str]:
    require_tool("gcc")
    for tree, text in (("base", base), ("this", this)):
        bundle = tmp_path / tree / "one-host" / "bundle"
        bundle.mkdir(parents=True)
        (bundle / "m.c").write_text(text)
        (bundle / "report.json").write_text(json.dumps({"model": "m", "cpu": "host"}))
    command = [sys.executable, str(SCRIPT), str(tmp_path / "base"), str(tmp_path / "this")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("this", "compiled"), [("/* f */ " + CODE, 0), (CODE.replace("x * 3", "x * 3 + 0 * 4"), 1)], ids=["comment", "text"]
)
def test_the_same_code(tmp_path: Path, this: str, compiled: int) -> None:
    done = compare(tmp_path, CODE, this)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"the same machine code in 1 bundles ({compiled} of them had another text)" in done.stdout


def test_another_instruction(tmp_path: Path) -> None:
    done = compare(tmp_path, CODE, CODE.replace("* 3", "* 4096"))
    assert done.returncode == 1
    assert "one-host: " in done.stdout
    assert "1 of 1 bundles differ: one-host" in done.stderr


def test_another_constant(tmp_path: Path) -> None:
    table = "const int t[2] = {{1, {}}};\n"
    assert compare(tmp_path, table.format(2), table.format(3)).returncode == 1
