"""Files of a bundle: equal ones keep their time, lists of them are whole, README.md says what holds."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.unit.cli_calls import DIGITS, Glowc


def _times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def _long_ago(folder: Path) -> dict[str, int]:
    for path in folder.rglob("*"):
        os.utime(path, (1e9, 1e9))
    return _times(folder)


def test_files_with_equal_bytes_keep_their_time(glowc: Glowc) -> None:
    compile_ = ("compile", DIGITS, "-o", "out", "--board", "mps2-an386")
    assert glowc(*compile_).status == 0
    before = _long_ago(Path("out"))
    assert glowc(*compile_).status == 0
    assert _times(Path("out")) == before
    Path("out/digits.h").write_text("edited")
    assert glowc(*compile_, "--opt", "size").status == 0
    changed = {name for name, at in _times(Path("out")).items() if at != before.get(name)}
    assert {"digits.h", "digits.c", "report.json"} <= changed
    assert {"glow_numeric.h", "glow_status.h"}.isdisjoint(changed)


def test_link_is_replaced_by_a_file_even_when_it_leads_to_equal_bytes(glowc: Glowc) -> None:
    assert glowc("compile", DIGITS, "-o", "out").status == 0
    Path("out/digits.h").rename("elsewhere.h")
    Path("out/digits.h").symlink_to(Path("elsewhere.h").resolve())
    assert glowc("compile", DIGITS, "-o", "out").status == 0
    assert not Path("out/digits.h").is_symlink()


def test_headers_of_a_group_are_those_of_its_models_too(glowc: Glowc) -> None:
    argv = ("compile", f"a={DIGITS}", f"b={DIGITS}", "--share-arena", "--group-name", "app", "-o", "out")
    assert glowc(*argv).status == 0
    text = Path("out/app.mk").read_text()
    listed = re.search(r"^APP_HDRS := \$\(addprefix \$\(APP_DIR\),(.*)\)$", text, re.M)
    assert listed is not None
    assert sorted(listed[1].split()) == sorted(path.name for path in Path("out").glob("*.h"))


@pytest.mark.parametrize(
    ("board", "says"), [("host", "nearest"), ("mps2-an386", "CPACR"), ("microbit", "no register of one")]
)
def test_readme_says_what_holds(glowc: Glowc, board: str, says: str) -> None:
    assert glowc("compile", DIGITS, "-o", "out", "--board", board).status == 0
    section = Path("out/README.md").read_text().partition("## What holds")[2].partition("\n## ")[0]
    for word in ("Threads", "Interrupts", "FPU", "DMA", "Stack"):
        assert f"**{word}**" in section
    assert says in section
    assert len(section.strip().splitlines()) <= 14
