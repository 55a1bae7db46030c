"""docs/FROM_TFLM.md and docs/FROM_KERAS.md are executed: their commands, and the firmware in C."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from glowc.app.cli import app
from tests.conftest import require_tflite
from tests.tflite.cases import make_case

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("FROM_TFLM.md", "FROM_KERAS.md")
_SEED = 0


def _commands(page: str) -> list[list[str]]:
    """Return the lines of the page's shell blocks that are about a TensorFlow Lite file."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)
    lines = [line.split() for block in blocks if "tflite" in block for line in block.splitlines()]
    assert len(lines) >= 2
    assert all(line[0] == "glowc" for line in lines)
    return [line[1:] for line in lines]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with model.tflite, which keeps a state, and in.npz."""
    require_tflite()
    case = make_case("SVDF", _SEED)
    (tmp_path / "model.tflite").write_bytes(case.model)
    np.savez(tmp_path / "in.npz", t0=np.stack([call[0] for call in case.calls]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_commands_do_what_the_page_says(page: str, here: Path) -> None:
    for command in _commands(page):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    assert np.load(here / "out.npz").files


def test_the_firmware_compiles_and_answers(here: Path) -> None:
    (code,) = re.findall(r"^```c\n(.*?)^```", (DOCS / "FROM_TFLM.md").read_text(), re.M | re.S)
    assert CliRunner().invoke(app, ["compile", "model.tflite", "--board", "host", "-o", "build/model"]).exit_code == 0
    (here / "main.c").write_text(code)
    sources = [str(p) for p in sorted((here / "build" / "model").glob("*.c"))]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Ibuild/model"]
    subprocess.run(["gcc", *flags, "main.c", *sources, "-lm", "-o", "firmware"], check=True, cwd=here)
    assert subprocess.run([str(here / "firmware")], check=False).returncode == 0
