"""docs/REPORT.md, MATRIX.md and START_MAKE.md are executed: their commands, the query, the C and the makefile."""

from __future__ import annotations

import re
import shlex
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT, require_tool
from tests.unit.cli_calls import DIGITS, Glowc


def _blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.M | re.S)


def _run(glowc: Glowc, block: str) -> None:
    for line in block.splitlines():
        program, *argv = shlex.split(line, comments=True)
        assert program == "glowc"
        command, _, file = " ".join(argv).partition(" > ")
        done = glowc(*shlex.split(command))
        assert done.status == 0, done.err
        if file:
            Path(file).write_text(done.out)


@pytest.fixture(autouse=True)
def _tools() -> None:
    require_tool("cc", "arm-none-eabi-gcc", "qemu-system-arm", "make")


def test_commands_about_the_page(glowc: Glowc) -> None:
    Path("digits.onnx").write_bytes(DIGITS.read_bytes())
    first, second = _blocks("REPORT.md", "sh")
    _run(glowc, first)
    alone = Path("digits.html").read_text()
    _run(glowc, second)
    assert '"against":null' in alone
    assert '"against":{' in Path("digits.html").read_text()


def test_command_and_query_about_the_matrix(glowc: Glowc) -> None:
    Path("models").mkdir()
    Path("models/digits.onnx").write_bytes(DIGITS.read_bytes())
    _run(glowc, _blocks("MATRIX.md", "sh")[0])
    with sqlite3.connect("results.sqlite") as db:
        (query,) = _blocks("MATRIX.md", "sql")
        rows = db.execute(query).fetchall()
    db.close()
    assert len(rows) == 4
    assert "mps2-an386, size" in Path("results.html").read_text()


def test_start_with_a_makefile(glowc: Glowc) -> None:
    Path("kws.onnx").write_bytes(DIGITS.read_bytes())
    _run(glowc, _blocks("START_MAKE.md", "sh")[0])
    (code,) = _blocks("START_MAKE.md", "c")
    head, call = code.rsplit("int status", 1)
    Path("main.c").write_text(f"{head}int main(void) {{\n  int status{call}  return status;\n}}\n")
    rule = "firmware.elf:\n\t$(CC) $(CFLAGS) $(KWS_CPU_FLAGS) --specs=nosys.specs -o $@ $^ $(KWS_LDLIBS)\n"
    (page,) = _blocks("START_MAKE.md", "make")
    Path("Makefile").write_text(
        f"CC := arm-none-eabi-gcc\nCFLAGS = $(KWS_CPU_FLAGS)\nOBJS := main.o\nall: firmware.elf\n{page}\n{rule}"
    )
    subprocess.run(["make", "-s"], check=True)
    assert Path("firmware.elf").stat().st_size > 0
