"""Threads compile at the same time: what a plugin registers is there for its own compile, and for no other."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from glowc.board import load_board
from glowc.compiler import pipeline
from glowc.compiler.files import write_file
from glowc.compiler.options import CompileOptions
from tests.conftest import ROOT
from tests.unit.cli_calls import DIGITS

CUSTOM = ROOT / "examples" / "custom-op"
JOBS: dict[str, Callable[[], pipeline.Compiled]] = {
    "plugin": lambda: pipeline.compile_model(
        CUSTOM / "model.onnx", load_board("host"), CompileOptions(plugins=(CUSTOM / "my_ops.py",))
    ),
    "plain": lambda: pipeline.compile_model(DIGITS, load_board("host")),
}


def test_a_model_with_a_plugin_and_one_without_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One with a plugin has read its model and goes on when the other is done, or when that seems to wait for it."""
    alone = {name: job().bundle.files for name, job in JOBS.items()}
    reading, other_is_done, optimise = threading.Event(), threading.Event(), pipeline._optimised

    def waiting(*args: Any) -> Any:
        if not reading.is_set():
            reading.set()
            other_is_done.wait(0.5)
        return optimise(*args)

    monkeypatch.setattr(pipeline, "_optimised", waiting)
    with ThreadPoolExecutor(1) as pool:
        with_plugin = pool.submit(JOBS["plugin"])
        reading.wait(30)
        assert JOBS["plain"]().bundle.files == alone["plain"]
        other_is_done.set()
        assert with_plugin.result().bundle.files == alone["plugin"]


def test_files_written_by_threads_have_the_rights_of_any_other(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: write_file(tmp_path / f"{i}.bin", lambda f: f.write(b"x")), range(64)))
    assert {path.stat().st_mode for path in tmp_path.iterdir()} == {plain.stat().st_mode}
    mask = os.umask(0o022)
    os.umask(mask)
    assert plain.stat().st_mode & 0o777 == 0o666 & ~mask
