"""How programs are started on each kind of board, and how their failures read. No QEMU runs here."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pytest_subprocess import FakeProcess

from glowc.board import load_board
from glowc.errors import BoardError, ToolError
from glowc.machine.elf import Symbol
from glowc.machine.qemu import compiled_plugin, run_argv, run_elf

ELF = Path("/b/app.elf")


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glowc.board.tools.shutil.which", lambda name: f"/tools/{name}")


def command(board: str, cpu: str | None = None) -> str:
    return " ".join(run_argv(ELF, load_board(board, cpu)))


def test_host_runs_the_program_itself() -> None:
    assert command("host") == "/b/app.elf"


@pytest.mark.parametrize(
    ("board", "cpu", "expected"),
    [
        ("linux-aarch64", None, "qemu-aarch64 -cpu cortex-a53 /b/app.elf"),
        ("linux-aarch64", "cortex-a76", "qemu-aarch64 -cpu cortex-a76 /b/app.elf"),
        ("linux-aarch64", "armv8.6-i8mm", "qemu-aarch64 -cpu max,sve=off /b/app.elf"),
        ("linux-armhf", None, "qemu-arm -cpu cortex-a7 /b/app.elf"),
        ("linux-armhf", "cortex-a9", "qemu-arm -cpu cortex-a9 /b/app.elf"),
        (
            "mps3-an547",
            None,
            "qemu-system-arm -M mps3-an547 -nographic -monitor none -serial none"
            " -semihosting-config enable=on,target=native -kernel /b/app.elf",
        ),
        (
            "virt-a53",
            None,
            "qemu-system-aarch64 -M virt -cpu cortex-a53 -m 128M -nographic -monitor none -serial none"
            " -net none -semihosting-config enable=on,target=native -kernel /b/app.elf",
        ),
    ],
)
def test_command_of_each_kind_of_board(board: str, cpu: str | None, expected: str) -> None:
    assert command(board, cpu) == expected


def test_result_has_status_and_output(fp: FakeProcess, tmp_path: Path) -> None:
    fp.register(["/tools/qemu-arm", fp.any()], stdout="hello\n")
    result = run_elf(ELF, load_board("linux-armhf"), cwd=tmp_path)
    assert (result.exit_status, result.stdout, result.marks) == (0, "hello\n", ())


def test_failure_shows_the_last_lines(fp: FakeProcess, tmp_path: Path) -> None:
    fp.register([fp.any()], stdout="step\n" * 30 + "bad input\n", stderr="qemu: note\n", returncode=10)
    with pytest.raises(ToolError, match=r"app\.elf ended with exit status 10 on board host") as caught:
        run_elf(ELF, load_board("host"), cwd=tmp_path)
    assert caught.value.details[-2:] == ("bad input", "qemu: note")
    assert len(caught.value.details) == 21


def test_failure_is_a_result_when_not_checked(fp: FakeProcess, tmp_path: Path) -> None:
    fp.register([fp.any()], returncode=10)
    assert run_elf(ELF, load_board("host"), cwd=tmp_path, check=False).exit_status == 10


@pytest.mark.parametrize(("status", "name"), [(-11, "SIGSEGV"), (-6, "SIGABRT"), (-63, "63")])
def test_crash_is_named_by_its_signal(fp: FakeProcess, tmp_path: Path, status: int, name: str) -> None:
    fp.register([fp.any()], returncode=status)
    with pytest.raises(ToolError, match=f"crashed by signal {name}"):
        run_elf(ELF, load_board("host"), cwd=tmp_path)


def test_timeout_shows_what_was_printed_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def out_of_time(argv: list[str], **options: object) -> None:
        assert options["timeout"] == 7
        raise subprocess.TimeoutExpired(argv, 7, output=b"layer 3\n")  # bytes even in text mode

    monkeypatch.setattr("glowc.machine.qemu.subprocess.run", out_of_time)
    with pytest.raises(ToolError, match="did not end within 7 s on board host") as caught:
        run_elf(ELF, load_board("host"), cwd=tmp_path, timeout_s=7)
    assert caught.value.details == ("layer 3",)


def test_missing_qemu_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("glowc.board.tools.shutil.which", lambda name: None)
    with pytest.raises(ToolError, match="qemu-aarch64 is not installed") as caught:
        run_elf(ELF, load_board("linux-aarch64"), cwd=tmp_path)
    assert caught.value.hint == "sudo apt-get install qemu-user"


def test_real_board_says_how_to_flash_and_what_to_run_on_instead(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match='board "nucleo-f446re" is real hardware') as caught:
        run_elf(ELF, load_board("nucleo-f446re"), cwd=tmp_path)
    assert caught.value.hint is not None
    assert "openocd" in caught.value.hint
    assert "{elf}" not in caught.value.hint
    assert "--board mps2-an386" in caught.value.hint


def test_host_cannot_count(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match="cannot count instructions"):
        run_elf(ELF, load_board("host"), cwd=tmp_path, marks=True)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glowc.machine.qemu.symbols", lambda elf: {"glow_mark": Symbol(0x1234, 4, "func")})
    monkeypatch.setattr("glowc.machine.qemu.compiled_plugin", lambda name: Path("/cache,1/count.so"))


@pytest.mark.usefixtures("plugin")
def test_marks_are_read_from_the_plugin(fp: FakeProcess, tmp_path: Path) -> None:
    def write(process: object) -> None:
        args = process.args  # type: ignore[attr-defined]
        argument = args[args.index("-plugin") + 1]
        assert argument.startswith("/cache,,1/count.so,mark=0x1234,out=")  # a comma is written twice
        Path(argument.rsplit("out=", 1)[1]).write_text("100\n2500\n")

    fp.register(["/tools/qemu-aarch64", fp.any()], callback=write)
    assert run_elf(ELF, load_board("linux-aarch64"), cwd=tmp_path, marks=True).marks == (100, 2500)


def test_program_without_marks_cannot_be_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("glowc.machine.qemu.symbols", lambda elf: {})
    with pytest.raises(ToolError, match="no symbol glow_mark"):
        run_elf(ELF, load_board("linux-aarch64"), cwd=tmp_path, marks=True)


def test_plugin_is_compiled_once(fp: FakeProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GLOWC_CACHE_DIR", str(tmp_path))

    def write(process: Any) -> None:
        Path(list(process.args)[-1]).write_bytes(b"a library")

    fp.register(["/tools/gcc", fp.any()], callback=write)
    first = compiled_plugin("glow_count")
    assert first == compiled_plugin("glow_count")
    assert len(fp.calls) == 1
    assert [path.name for path in first.parent.iterdir()] == [first.name]  # no partial file is left


def test_failed_plugin_leaves_nothing(fp: FakeProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GLOWC_CACHE_DIR", str(tmp_path))
    fp.register(["/tools/gcc", fp.any()], stderr="error: no stdio.h\n", returncode=1)
    with pytest.raises(ToolError, match="cannot compile QEMU's plugin"):
        compiled_plugin("glow_count")
    assert not list((tmp_path / "glowc").iterdir())
