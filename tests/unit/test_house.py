"""`make house` counts, and shows what the last release had."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


def test_figures_stand_beside_those_of_the_last_release(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    copy = tmp_path / "copy"
    for command in (["git", "clone", "-q", "--shared", str(ROOT), str(copy)], ["git", "-C", str(copy), "tag", "v0.0"]):
        subprocess.run(command, check=True)
    script = str(copy / "scripts" / "house.py")
    done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {"lines", "import-circles"} <= {row[0] for row in rows}
    assert all(row[1:] == [row[1], "v0.0:", row[1]] for row in rows)
