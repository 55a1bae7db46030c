"""What tests of the command line share, besides `glowc` (tests/conftest.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model, write_bundle
from tests.unit.cli_calls import DIGITS


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits") / "bundle"
    write_bundle(compile_model(DIGITS, load_board("host")), folder)
    return folder
