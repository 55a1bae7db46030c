"""What people expect of any command line: -h, -q, -v, completion, sizes with units, a hint that leads on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import helper

from glowc.board.sizes import parse_size
from glowc.errors import InputError
from glowc.place.regions import parse_regions
from tests.conftest import ROOT
from tests.unit.cli_calls import DIGITS, Glowc, refused, save
from tests.unit.onnx_builders import model


@pytest.mark.parametrize(
    ("text", "size"),
    [("8192", 8192), ("8K", 8192), ("8k", 8192), ("8 KiB", 8192), ("2M", 2 << 20), ("1g", 1 << 30), ("0x20", 32),
     ("64_000", 64000)],
)  # fmt: skip
def test_sizes_have_units(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-5", "0", "1.5K", "K", "8X", "8K8", "0x", "٣"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no size in bytes"):
        parse_size(text)


def test_regions_have_units_and_wrong_ones_are_told_at_once() -> None:
    assert parse_regions(["dtcm=64K", "sram"]) == (("dtcm", 65536), ("sram", None))
    with pytest.raises(InputError) as error:
        parse_regions(["dtcm=-5", "sram=8K", "=8K"])
    assert error.value.details == ("--region dtcm=-5", "--region =8K")


@pytest.mark.parametrize("option", ["--ram-limit", "--flash-limit"])
def test_limits_have_units(glowc: Glowc, option: str) -> None:
    assert glowc("compile", DIGITS, "-o", "out", option, "1M").status == 0
    assert glowc("compile", DIGITS, "-o", "small", option, "1K").status == (3 if option == "--flash-limit" else 0)
    done = glowc("compile", DIGITS, "-o", "none", option, "-5")
    assert (done.status, "'-5' is no size in bytes" in done.err, Path("none").exists()) == (1, True, False)


def test_short_help(glowc: Glowc) -> None:
    assert glowc("-h").out == glowc("--help").out
    assert "Example: glowc compile" in glowc("compile", "-h").out


def test_quiet_says_errors_alone_and_verbose_each_step(glowc: Glowc) -> None:
    for argv in (("-q", "compile", DIGITS, "-o", "a"), ("compile", DIGITS, "-o", "b", "--quiet")):
        done = glowc(*argv)
        assert (done.status, done.out, done.err) == (0, "", "")
    assert "no such file" in glowc("compile", "none.onnx", "-o", "c", "-q").err.lower()
    steps = glowc("compile", DIGITS, "-o", "d", "-v")
    assert (steps.status, " s  " in steps.err, "digits: 9 layers" in steps.out) == (0, True, True)
    refused(glowc, "-q", "-v", "boards", says=["opposite things"], hint="one of them")


def test_quiet_reaches_every_command_that_writes_files(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("models").mkdir()
    Path("models/digits.onnx").write_bytes(DIGITS.read_bytes())
    matrix = ("matrix", "--models", "models", "--boards", "rpi-pico", "-o", "r.sqlite", "-q", "--restart")
    for argv in (
        ("report", DIGITS, "--no-measure", "-o", "page.html"), (*matrix, "--do", "validate"), ("example", "digits"),
        ("board", "new", "own", "--from", "rpi-pico"),
    ):  # fmt: skip
        done = glowc(*argv, "-q")
        assert (done.status, done.out, done.err) == (0, "", "")
    monkeypatch.setenv("PATH", "")  # no compiler
    failed = glowc(*matrix, "--do", "bench")
    assert (failed.status, "failed" in failed.out) == (3, True)


@pytest.mark.parametrize(
    ("words", "found"),
    [(("com",), "compile"), (("compile", "--board", "mps3"), "mps3-an547"), (("bench", "--chip", "stm32l"), "l4r5")],
)  # fmt: skip
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_boards_and_chips_are_completed(words: tuple[str, ...], found: str, shell: str) -> None:
    line = " ".join(("glowc", *words))
    asked = {"_GLOWC_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(len(words)),
             "_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}  # fmt: skip
    code = "import sys; sys.argv[0] = 'glowc'; from glowc.app.cli import app; app(prog_name='glowc')"
    env = {**os.environ, **asked, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert found in done.stdout


def test_an_operator_that_is_missing_has_a_way_on(glowc: Glowc) -> None:
    nodes = [helper.make_node("Softmaks", ["x"], ["y"], name="last", domain="com.me")]
    path = save(model(nodes, {"x": "f32[1,4]"}, "y", domains=["com.me"]))
    done = refused(glowc, "compile", path, "-o", "o", says=["unsupported operator com.me::Softmaks"], hint="--plugin")
    assert "near to Softmaks: Softmax" in done.err


def helps(glowc: Glowc) -> dict[str, str]:
    """The help of each command."""
    names = re.findall(r"^  (\S+)  ", glowc("--help").out.partition("Commands:")[2], re.MULTILINE)
    assert len(names) > 20
    return {name: glowc(name, "--help").out for name in names}


def test_help_has_words_for_types_and_the_width_of_the_terminal(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    found = helps(glowc)
    assert not [name for name, text in found.items() if re.search(r"<\w+>|list\[|\{[A-Z]|\bPATH\b", text)]
    assert "compile [OPTIONS] MODEL..." in found["compile"]
    assert 80 < max(len(line) for text in found.values() for line in text.splitlines()) <= 100


def test_help_begins_with_what_only_this_command_has(glowc: Glowc) -> None:
    text = glowc("bench", "--help").out
    assert text.index("--chip") < text.index("--json") < text.index("--batch-size")
