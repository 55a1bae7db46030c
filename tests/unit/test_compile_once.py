"""The compilers of a run give the object of an earlier call only where the compiler would (tests/compile_once.sh)."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, remove_older, require_tool

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def gcc(tmp_path: Path) -> Call:
    """Call gcc in a folder through the script, with a store and a log of its own."""
    require_tool("gcc", "sha256sum")
    script, real = tmp_path / "gcc", tmp_path / "real"
    real.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/log\nexec {shutil.which("gcc", path=_without_stand_ins())} "$@"\n'
    )
    script.write_text(
        f"#!/bin/sh\nreal={real} version=$COMPILER store={tmp_path}/store\n. {ROOT}/tests/compile_once.sh\n"
    )
    for path in (script, real):
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "store").mkdir()

    def call(
        folder: str, *options: str, what: tuple[str, ...] = ("-c", "a.c", "-o", "a.o")
    ) -> subprocess.CompletedProcess[str]:
        argv = [str(script), "-Iinc", *options, *what]
        return subprocess.run(argv, cwd=tmp_path / folder, capture_output=True, text=True, check=False)

    return call


def _without_stand_ins() -> str:
    parts = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(part for part in parts if not Path(part).name.startswith("compilers"))


def _write(folder: Path, number: int, source: str = "int f(void) { return NUMBER; }\n") -> None:
    (folder / "inc").mkdir(parents=True, exist_ok=True)
    (folder / "inc/number.h").write_text(f"#define NUMBER {number}\n")
    (folder / "a.c").write_text(f'#include "number.h"\nextern int f(void);\n{source}')


def _compiled(tmp_path: Path) -> int:
    """How often a compiler compiled since the last question."""
    log = tmp_path / "log"
    calls = log.read_text().splitlines()
    log.write_text("")
    return sum("-E" not in call.split() for call in calls)


def test_the_same_text_is_compiled_once(gcc: Call, tmp_path: Path) -> None:
    _write(tmp_path / "one", 1)
    _write(tmp_path / "two", 1)
    assert gcc("one").returncode == gcc("two").returncode == 0
    assert _compiled(tmp_path) == 1
    assert (tmp_path / "one/a.o").read_bytes() == (tmp_path / "two/a.o").read_bytes()
    assert [path.suffix for path in (tmp_path / "store").iterdir()] == [".o"]


def test_another_header_option_or_name_is_another_object(gcc: Call, tmp_path: Path) -> None:
    _write(tmp_path / "one", 1)
    _write(tmp_path / "two", 2)
    gcc("one")
    first = (tmp_path / "one/a.o").read_bytes()
    gcc("two")
    gcc("one", "-O2")
    gcc("one", "-DNUMBER=3", "-w")
    assert _compiled(tmp_path) == 4
    assert (tmp_path / "two/a.o").read_bytes() != first
    gcc("one")
    assert _compiled(tmp_path) == 0
    assert (tmp_path / "one/a.o").read_bytes() == first


def test_another_compiler_s_object_is_another(gcc: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "one", 1)
    for version in ("12", "13", "12"):
        monkeypatch.setenv("COMPILER", version)
        gcc("one")
    assert _compiled(tmp_path) == 2


def test_a_program_of_two_sources_is_linked_once(gcc: Call, tmp_path: Path) -> None:
    for name, number in (("one", 7), ("two", 7), ("three", 8)):
        _write(tmp_path / name, number)
        (tmp_path / name / "b.c").write_text("int f(void);\nint main(void) { return f(); }\n")
        assert gcc(name, what=("a.c", "b.c", "-o", "program", "-lm")).returncode == 0
        assert subprocess.run([tmp_path / name / "program"], check=False).returncode == number
    assert _compiled(tmp_path) == 2


def test_objects_to_link_go_to_the_compiler(gcc: Call, tmp_path: Path) -> None:
    _write(tmp_path / "one", 1, "int main(void) { return 0; }\n")
    gcc("one")
    for _ in range(2):
        assert gcc("one", what=("a.o", "-o", "program")).returncode == 0
    assert _compiled(tmp_path) == 3


def test_syntax_is_checked_once_and_errors_are_said_each_time(gcc: Call, tmp_path: Path) -> None:
    _write(tmp_path / "one", 1)
    (tmp_path / "one/b.c").write_text("int g(void);\n")
    for right in (True, False):
        for _ in range(2):
            done = gcc("one", what=("-fsyntax-only", "a.c", "b.c"))
            assert done.returncode == (0 if right else 1)
            assert right or "b.c" in done.stderr
        assert _compiled(tmp_path) == (1 if right else 2)
        (tmp_path / "one/b.c").write_text("int g(void) { return lost; }\n")


def test_what_goes_nowhere_stays_there(gcc: Call, tmp_path: Path) -> None:
    _write(tmp_path / "one", 1, "int main(void) { return 0; }\n")
    for _ in range(2):
        assert gcc("one", what=("a.c", "-o", "/dev/null")).returncode == 0
    assert not Path("/dev/null").is_file()
    assert _compiled(tmp_path) == 2


def test_options_that_are_not_known_go_to_the_compiler(gcc: Call, tmp_path: Path) -> None:
    _write(tmp_path / "one", 1)
    for _ in range(2):
        assert gcc("one", "-g").returncode == 0
        assert gcc("one", "-fstack-usage").returncode == 0
    assert _compiled(tmp_path) == 4


def test_warnings_and_errors_are_said_each_time(gcc: Call, tmp_path: Path) -> None:
    _write(tmp_path / "one", 1, "int f(void) { int lost; return NUMBER; }\n")
    for _ in range(2):
        done = gcc("one", "-Wall")
        assert done.returncode == 0
        assert "lost" in done.stderr
        (tmp_path / "one/a.o").unlink()
        done = gcc("one", "-Wall", "-Werror")
        assert done.returncode == 1
        assert "lost" in done.stderr
        assert not (tmp_path / "one/a.o").exists()
    assert not list((tmp_path / "store").iterdir())


def test_a_header_of_the_system_is_not_one_of_ours(gcc: Call, tmp_path: Path) -> None:
    """The same text, but a warning where the header is no system's."""
    _write(tmp_path / "one", 1)
    (tmp_path / "one/inc/number.h").write_text("static int g(void) { int lost; return 1; }\n#define NUMBER g()\n")
    argv = ("-Wall", "-Werror", "-O2")
    _write(tmp_path / "two", 1)
    shutil.copytree(tmp_path / "one/inc", tmp_path / "two/sys")
    (tmp_path / "two/inc/number.h").unlink()
    assert gcc("two", "-isystem", "sys", *argv).returncode == 0
    done = gcc("one", *argv)
    assert done.returncode == 1
    assert "lost" in done.stderr


def test_old_objects_are_removed(tmp_path: Path) -> None:
    for name, age_s in (("old.o", 100), ("new.o", 10)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age_s, 1000 - age_s))
    remove_older(tmp_path, 950)
    assert [path.name for path in tmp_path.iterdir()] == ["new.o"]
