"""Names from a model on a terminal: shown as they are, and obeyed by nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from glowc.app.show import board_table, boards_data, doctor_data, doctor_table
from tests.conftest import ROOT
from tests.unit.cli_calls import Glowc, images, save
from tests.unit.onnx_builders import model

# ---- names that are more than letters ----


def named(name: str) -> Path:
    proto = model([helper.make_node("Relu", ["x"], [name], name=name)], {"x": "f32[1,4]"}, {name: "f32"})
    images(x=np.ones((1, 4), np.float32))
    return save(proto)


@pytest.mark.parametrize("name", ["[/x]", "[bold]", "a[link=x]b", ":smile:", "\\[x]"])
def test_name_that_looks_like_markup_is_printed_as_it_is(glowc: Glowc, name: str) -> None:
    named(name)
    for result in (glowc("bench", "net.onnx"), glowc("validate", "net.onnx", "--input", "in.npz")):
        assert result.status == 0, result.err
        assert name in result.out


@pytest.mark.parametrize(("name", "shown"), [("a\x1b[31mb\x07", r"a\x1b[31mb\x07"), ("a\u202eb", r"a\u202eb")])
def test_name_does_not_reach_the_terminal_as_an_escape_sequence(glowc: Glowc, name: str, shown: str) -> None:
    named(name)
    bad = save(
        model([helper.make_node("Wibble", ["x"], ["y"], name=name, domain="c")], {"x": "f32[1]"}, "y", domains=["c"]),
        "bad.onnx",
    )
    results = (
        glowc("bench", "net.onnx"),
        glowc("validate", "net.onnx", "--input", "in.npz"),
        glowc("compile", bad, "-o", "o"),
    )
    for result in results:
        assert shown in result.out + result.err
        assert name not in result.out + result.err


def test_name_that_the_terminal_has_no_letters_for(glowc: Glowc) -> None:
    named("\u0443\u0437\u0435\u043b")
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    argv = [sys.executable, "-m", "glowc", "bench", "net.onnx"]
    done = subprocess.run(argv, env={**env, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"\\u0443\\u0437" in done.stdout


def test_names_and_the_line_to_copy_stay_whole_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "60")):
        monkeypatch.setenv(name, value)
    packages = "gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
    install = f"sudo apt-get install {packages}"
    doctor_table(doctor_data() | {"install": install})
    printed = capsys.readouterr().out
    assert f"\n  {install}\n" in printed
    assert "\n arm-linux-gnueabihf-gcc " in printed
    board_table(boards_data())
    assert "\n nucleo-u575zi-q " in capsys.readouterr().out
