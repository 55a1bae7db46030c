"""What tests of the command line share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from glowc.app import cli
from glowc.board import load_board
from glowc.compiler.pipeline import compile_model, write_bundle
from tests.unit.cli_calls import DIGITS, Glowc, Result


@pytest.fixture
def glowc(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Glowc:
    """Run the command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "_debug", False)

    def call(*argv: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["glowc", *map(str, argv)])
        capsys.readouterr()
        status: object = 0
        try:
            cli.main()
        except SystemExit as stop:
            status = stop.code
        printed = capsys.readouterr()
        return Result(int(str(status or 0)), printed.out, printed.err)

    return call


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits") / "bundle"
    write_bundle(compile_model(DIGITS, load_board("host")), folder)
    return folder
