"""`glowc build`, `flash` and `board new`: what is written, printed and refused; built for this machine only."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from tests.conftest import require_tool
from tests.unit.cli_calls import DIGITS, GOOD, Glowc, refused, tree

FLASHED = """\
summary = "board with a loader of its own"
url = "https://example.com/"
cpu = "cortex-m4"
cpus = ["cortex-m4"]
sources = []
arena_region = "ram"
weights_region = "ram"
flash = "{flash}"

[memory.ram]
origin = 0x20000000
size_bytes = 0x20000
kind = "ram"
"""


def board(flash: str, name: str = "mine") -> Path:
    Path(name).mkdir()
    Path(f"{name}/board.toml").write_text(FLASHED.replace("{flash}", flash))
    return Path(name)


@pytest.fixture
def elf(glowc: Glowc) -> Path:
    require_tool("gcc")
    result = glowc("build", DIGITS, "--board", "host", "-o", "app.elf", "--map", "app.map")
    assert result.status == 0, result.err
    return Path("app.elf")


def test_image_and_map_are_kept_and_nothing_else(glowc: Glowc, elf: Path) -> None:
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["app.elf", "app.map"]
    assert elf.read_bytes()[:4] == b"\x7fELF"
    assert elf.stat().st_mode & stat.S_IXUSR
    assert "digits_run" in Path("app.map").read_text()


def test_image_that_cannot_be_written_is_said_before_the_work(glowc: Glowc) -> None:
    refused(glowc, "build", DIGITS, "-o", "no/app.elf", says=["no is no folder"], hint="--output")
    refused(glowc, "build", DIGITS, "-o", "app.elf", "--map", "no/map", says=["no is no folder"], hint="--map")


def test_bundle_has_its_vectors_already(glowc: Glowc, bundle: Path) -> None:
    np.savez("in.npz", image=GOOD)
    argv = ("--golden", "in.npz", "-o", "app.elf")
    refused(glowc, "build", bundle, *argv, says=["is a bundle"], hint="glowc compile --golden")


def test_line_needs_functions_of_the_board(glowc: Glowc) -> None:
    np.savez("in.npz", image=GOOD)
    wire = ("build", DIGITS, "-o", "app.elf", "--wire")
    assert glowc("board", "new", "own", "--from", "nucleo-l4r5zi").status == 0
    description = Path("own/board.toml")
    lines = [line for line in description.read_text().splitlines() if not line.startswith("wire_")]
    description.write_text("\n".join(lines))
    refused(glowc, *wire, "--board", "own", says=["no functions for a serial line"], hint="--uart FILE.c")
    assert "choose one" in glowc(*wire, "--golden", "in.npz").err
    Path("uart.c").write_text("int x;")
    assert "add --wire" in glowc("build", DIGITS, "-o", "app.elf", "--uart", "uart.c").err
    result = glowc(*wire, "--board", "host", "--uart", "uart.c")
    assert (result.status, "glow_wire_getc" in result.err) == (1, True)
    assert glowc(*wire, "--uart", "none.c").status == 1
    assert not Path("app.elf").exists()


def test_flash_prints_and_runs_only_when_told(glowc: Glowc, elf: Path) -> None:
    mine = board("cp {elf} 'on board'")
    before = tree(Path.cwd())
    assert glowc("flash", elf, "--board", mine).out == "cp app.elf 'on board'\n"
    assert tree(Path.cwd()) == before
    assert glowc("flash", elf, "--board", mine, "--run").status == 0
    assert Path("on board").read_bytes() == elf.read_bytes()


def test_flash_makes_the_form_that_a_loader_takes(glowc: Glowc, elf: Path) -> None:
    result = glowc("flash", elf, "--board", "teensy41")
    convert, load = result.out.strip().split(" && ")
    assert convert == "arm-none-eabi-objcopy -O ihex app.elf app.hex"
    assert load.endswith(" app.hex")


def test_flash_says_what_failed(glowc: Glowc, elf: Path) -> None:
    for number, (command, says) in enumerate(
        (("false {elf}", "exit status 1"), ("no-such-loader {elf}", "not installed"))
    ):
        result = glowc("flash", elf, "--board", board(command, f"b{number}"), "--run")
        assert (result.status, says in result.err) == (1, True), result.err
    assert "emulated" in glowc("flash", elf, "--board", "mps2-an386").err
    assert "README.md" in glowc("flash", elf, "--board", "alif-e7").err
    Path("text").write_text("no image")
    assert "not an ELF file" in glowc("flash", "text", "--board", "teensy41").err


def test_new_board_is_the_old_one_by_another_name(glowc: Glowc) -> None:
    assert glowc("board", "new", "my-board", "--from", "nucleo-h743zi", "-o", "deep").status == 0
    made, like = load_board("deep/my-board"), load_board("nucleo-h743zi")
    assert made.name == "my-board"
    assert made.memory == like.memory
    assert made.linker_script == Path("deep/my-board/link.ld").resolve()
    assert Path("deep/my-board/README.md").read_text().startswith("# my-board\n")
    assert os.listdir("deep") == ["my-board"]


def test_new_board_replaces_nothing(glowc: Glowc) -> None:
    Path("mine").mkdir()
    refused(glowc, "board", "new", "mine", "--from", "rpi-pico", says=["mine is there already"], hint="another name")
    refused(glowc, "board", "new", "../x", "--from", "rpi-pico", says=["no name for a board"], hint="letters")
    assert "did you mean" in glowc("board", "new", "my-board", "--from", "rpi-pic").err


def test_help_of_the_group_has_an_example(glowc: Glowc) -> None:
    assert "new" in glowc("board", "--help").out
    assert "Example: glowc board new" in glowc("board", "new", "--help").out
