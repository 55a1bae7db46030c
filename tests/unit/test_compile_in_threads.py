"""Threads compile at the same time: what a plugin registers is there for its own compile, and for no other."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from glowc.board import load_board
from glowc.compiler.files import write_file
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, plans_of
from glowc.ops.registry import find_op
from tests.conftest import ROOT
from tests.unit.cli_calls import DIGITS

EXAMPLES = ROOT / "examples"
CUSTOM, SINE = EXAMPLES / "custom-op/model.onnx", EXAMPLES / "tflite/sine.tflite"
OPERATORS, ACCELERATOR = (CUSTOM.parent / "my_ops.py",), (EXAMPLES / "accelerator/convbox.py",)
JOBS: tuple[tuple[Path, str, CompileOptions], ...] = (
    (CUSTOM, "host", CompileOptions(plugins=OPERATORS)),
    (DIGITS, "microbit", CompileOptions(opt="size")),
    (SINE, "mps2-an386", CompileOptions()),
    (DIGITS, "host", CompileOptions(plugins=ACCELERATOR)),
    (CUSTOM, "mps3-an547", CompileOptions(plugins=OPERATORS, opt="speed")),
    (SINE, "linux-aarch64", CompileOptions(plugins=ACCELERATOR)),
    (DIGITS, "linux-armhf", CompileOptions()),
    (DIGITS, "host", CompileOptions(plan="stream")),
)
"""A model, its board and options: with plugins and without, ONNX and TensorFlow Lite."""


def files_of(job: tuple[Path, str, CompileOptions]) -> dict[str, str]:
    model, board, options = job
    return dict(compile_model(model, load_board(board), options).bundle.files)


@pytest.fixture
def _often() -> Iterator[None]:
    """Let threads take turns a hundred times as often as they do."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 100)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("_often")
def test_eight_threads_write_what_one_writes_after_the_other() -> None:
    together = threading.Barrier(len(JOBS))

    def job(number: int) -> dict[str, str]:
        together.wait(60)
        return files_of(JOBS[number])

    with ThreadPoolExecutor(len(JOBS)) as pool:
        found = list(pool.map(job, range(len(JOBS))))
    for number, files in enumerate(found):
        assert files == files_of(JOBS[number]), JOBS[number]


def test_what_a_compile_knows_goes_with_its_result() -> None:
    """Its plans are listed in another thread; operators of the plugin are known to nobody else."""
    with ThreadPoolExecutor(1) as pool:
        compiled = pool.submit(compile_model, CUSTOM, load_board("host"), JOBS[0][2]).result()
    assert plans_of(compiled)
    assert find_op("SoftThreshold") is None


def test_files_written_by_threads_have_the_rights_of_any_other(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: write_file(tmp_path / f"{i}.bin", lambda f: f.write(b"x")), range(64)))
    assert {path.stat().st_mode for path in tmp_path.iterdir()} == {plain.stat().st_mode}
    mask = os.umask(0o022)
    os.umask(mask)
    assert plain.stat().st_mode & 0o777 == 0o666 & ~mask
