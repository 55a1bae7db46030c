"""What Windows and macOS ask of names, files, text, tools and Makefiles; none of it needs those systems."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import numpy as np
import pytest

from glowc.board import tools
from glowc.board.fields import read_toml
from glowc.board.flags import compile_argv, link_argv
from glowc.board.load import load_board
from glowc.compiler import bundle_folder, files
from glowc.errors import GlowcError, InputError, ToolError, reason_of
from glowc.frontend.reader import name_of
from glowc.machine import elf
from glowc.paths import refused_by_windows
from glowc.quant.data import read_samples
from glowc.quant.labels import read_classes
from glowc.quant.net import Port
from tests.conftest import ROOT, require_tool
from tests.unit.cli_calls import DIGITS, Glowc, refused, tree

WINDOWS, MACOS = SimpleNamespace(platform="win32"), SimpleNamespace(platform="darwin")
REPORT = '{"glowc": "0.1.0", "model": "m", "files": ["m.c", "m.h", "report.json"]}\n'


@pytest.mark.parametrize(
    "name", ["con", "NUL", "aux.c", "com1", "LPT9.txt", "com¹", "prn .h", "a.", "b ", "c:d", "e?", "f\tg"]
)
def test_names_that_windows_refuses(name: str) -> None:
    assert refused_by_windows(name)


@pytest.mark.parametrize("name", ["console", "com", "com10", "nul_", "a.b", "..", ".", ".x", "größe", "a b"])
def test_names_that_windows_takes(name: str) -> None:
    assert refused_by_windows(name) == ""


def test_model_named_like_a_device_gets_another_name(glowc: Glowc) -> None:
    assert [name_of(Path(file)) for file in ("aux.onnx", "Con.tflite", "auxiliary.onnx")] == [
        "aux_net",
        "Con_net",
        "auxiliary",
    ]
    refused(
        glowc, "compile", DIGITS, "--name", "nul", "-o", "b", says=["Windows has no file nul.c"], hint="--name nul_net"
    )
    refused(glowc, "board", "new", "com3", "--from", "rpi-pico", says=["'com3' is no name for a board"], hint="letters")
    refused(glowc, "compile", f"a={DIGITS}", f"b={DIGITS}", "--share-arena", "--group-name", "aux", "-o", "b",
            says=["--group-name aux"], hint="--group-name app")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "says"), [("Lib.h", "lib.h is the same file there"), ("src/nul.c", "the name of a device")]
)
def test_bundle_has_no_file_that_windows_cannot_have(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        bundle_folder.write_folder(tmp_path / "b", {"report.json": REPORT, "lib.h": "", name: ""})
    assert not (tmp_path / "b").exists()


def test_model_whose_files_would_be_those_of_another_in_the_folder(tmp_path: Path) -> None:
    bundle_folder.write_folder(tmp_path, {"report.json": REPORT, "m.c": "", "m.h": ""})
    other = REPORT.replace("m.", "M.").replace('"m"', '"M"')
    with pytest.raises(InputError, match=r"m\.c is the same file there") as raised:
        bundle_folder.write_folder(tmp_path, {"report.json": other, "M.c": "", "M.h": ""})
    assert "--name NAME" in str(raised.value)
    assert sorted(tree(tmp_path)) == ["m.c", "m.h", "report.json"]


@pytest.mark.parametrize("path", [r"C:\work\con\x.npz", r"build\aux", "out?.npz", r"C:\a.\b", "nul"])
def test_path_that_windows_does_not_have(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    files.check_path(Path(path))
    monkeypatch.setattr(files, "sys", WINDOWS)
    with pytest.raises(GlowcError, match="Windows has no file"):
        files.check_path(PureWindowsPath(path))  # type: ignore[arg-type]
    for good in (r"C:\work\..\x.npz", r"\\server\share\b", r".\b", "b"):
        files.check_path(PureWindowsPath(good))  # type: ignore[arg-type]


def test_path_that_is_too_long_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    error = FileNotFoundError(2, "No such file", "/x" * 150)
    assert reason_of(error) == "No such file"
    monkeypatch.setattr("glowc.errors.sys", WINDOWS)
    assert "300 characters and Windows takes 259: choose a shorter folder" in reason_of(error)


def test_file_that_another_program_holds_leaves_the_earlier_bundle_whole(
    glowc: Glowc, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert glowc("compile", DIGITS, "-o", "b").status == 0
    replace = files.os.replace

    def held(source: Path, place: Path) -> None:
        if Path(place).name == "digits.c":
            raise PermissionError(13, "Access is denied", str(source), None, str(place))
        replace(source, place)

    monkeypatch.setattr(files.os, "replace", held)
    says = ["Access is denied: digits.c is open in another program"]
    for again in (("--opt", "speed", "--weights", "array"), ("--board", "mps3-an547")):
        refused(glowc, "compile", DIGITS, *again, "-o", "b", says=says, hint="choose another folder")
    before = tree(Path("b"))
    monkeypatch.undo()
    assert b'"glowc"' in (before["report.json"] or b"")


def test_lines_end_as_they_should_whatever_the_user_s_files_have(tmp_path: Path) -> None:
    """With CRLF and the mark that Windows' editors put at the beginning, and without: the same."""
    mark = b"\xef\xbb\xbf"
    toml, rows, names = tmp_path / "board.toml", tmp_path / "rows.csv", tmp_path / "classes.txt"
    toml.write_bytes(mark + b'a = "x"\r\nb = [\r\n  1,\r\n]\r\n')
    rows.write_bytes(mark + b"1,2\r\n3,4\r\n")
    names.write_bytes(mark + b"cat\r\ndog\r\n")
    assert read_toml(toml) == {"a": "x", "b": [1]}
    assert read_classes(names) == ("cat", "dog")
    samples = list(read_samples([rows], [Port("x", (2,), np.dtype(np.float32))]))
    assert [sample["x"].tolist() for sample in samples] == [[1.0, 2.0], [3.0, 4.0]]


def _calls(path: Path) -> Iterator[tuple[ast.Call, str, set[str | None]]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield node, name, {keyword.arg for keyword in node.keywords}


def test_text_has_an_encoding_and_ends_of_lines_of_its_own() -> None:
    """Else the system's: code pages, and CRLF in what is written."""
    wrong = []
    for path in (*(ROOT / "glowc").rglob("*.py"), ROOT / "hatch_build.py", *(ROOT / "examples").rglob("*.py")):
        for call, name, given in _calls(path):
            modes = {
                a.value for a in call.args if isinstance(a, ast.Constant) and a.value in ("w", "a", "x", "wt", "at")
            }
            bare = (
                (name == "write_text" and not ("newline" in given and ("encoding" in given or len(call.args) > 1)))
                or (name == "read_text" and not ("encoding" in given or call.args))
                or (name == "open" and modes and not {"encoding", "newline"} <= given)
                or (name == "run" and "text" in given and path.is_relative_to(ROOT / "glowc"))
                or (name in ("rename", "symlink_to", "hardlink_to"))
            )
            wrong += [f"{path.relative_to(ROOT)}:{call.lineno} {name}"] if bare else []
    assert wrong == []


def test_files_of_a_checkout_are_the_same_everywhere() -> None:
    places = set[str]()
    for folder in ("glowc", "templates", "runtime_c", "boards", "docs", "examples", "scripts", "tests"):
        for path in (ROOT / folder).rglob("*"):
            parts = path.relative_to(ROOT).parts
            assert not any(map(refused_by_windows, parts)), path
            assert "/".join(parts).casefold() not in places, path
            places.add("/".join(parts).casefold())
            if path.suffix in {".py", ".j2", ".h", ".c", ".toml", ".ld", ".mk", ".md", ".cmake", ".json"}:
                assert b"\r" not in path.read_bytes(), path
    assert "* -text" in (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()


def test_compilers_get_slashes() -> None:
    board = load_board("mps2-an386")
    one = PureWindowsPath(r"C:\Users\a b\x.c")
    argv = [*compile_argv(one, board, one, one, include_dirs=[one]), *link_argv(one, board, [one], one)]  # type: ignore
    assert [word for word in argv if "\\" in word] == [str(one)] * 2  # the programs themselves


FOUND = {
    "win32": (
        ("arm-none-eabi-gcc", "ProgramFiles(x86)", "Arm GNU Toolchain arm-none-eabi/13.2 Rel1/bin"),
        ("arm-none-eabi-gcc", "ProgramFiles", "Arm/GNU Toolchain mingw-w64-x86_64-arm-none-eabi/bin"),
        ("arm-none-eabi-gcc", "LOCALAPPDATA", "xPacks/@xpack-dev-tools/arm-none-eabi-gcc/14.2.1-1.1.1/.content/bin"),
        ("arm-none-eabi-gcc", "APPDATA", "xPacks/@xpack-dev-tools/arm-none-eabi-gcc/14.2.1-1.1.1/.content/bin"),
        (
            "arm-none-eabi-gcc",
            "SystemDrive",
            "ST/STM32CubeIDE_1.16.0/STM32CubeIDE/plugins/"
            "com.st.stm32cube.ide.mcu.externaltools.gnu-tools-for-stm32.12.3.rel1.win32_1.0.200/tools/bin",
        ),
        ("qemu-system-arm", "ProgramFiles", "qemu"),
        ("gcc", "LOCALAPPDATA", "Microsoft/WinGet/Packages/BrechtSanders.WinLibs.POSIX.UCRT_x/mingw64/bin"),
    ),
    "darwin": (
        ("arm-none-eabi-gcc", "", "Applications/ArmGNUToolchain/13.2.Rel1/arm-none-eabi/bin"),
        ("arm-none-eabi-gcc", "HOME", "Library/xPacks/@xpack-dev-tools/arm-none-eabi-gcc/14.2.1-1.1.1/.content/bin"),
        (
            "arm-none-eabi-gcc",
            "",
            "Applications/STM32CubeIDE.app/Contents/Eclipse/plugins/"
            "com.st.stm32cube.ide.mcu.externaltools.gnu-tools-for-stm32.12.3.rel1.macos64_1.0/tools/bin",
        ),
        ("qemu-system-arm", "", "opt/homebrew/bin"),
        ("llvm-mca-19", "", "opt/homebrew/opt/llvm@19/bin"),
    ),
}


def _elsewhere(monkeypatch: pytest.MonkeyPatch, system: str, root: Path) -> None:
    """Nothing on the PATH, folders of the system below `root`, its variables as folders there."""
    monkeypatch.setattr(tools, "sys", SimpleNamespace(platform=system))
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    places = [p if p.startswith("{") else f"{root}{p}" for p in tools.PLACES[system]]
    monkeypatch.setattr(tools, "PLACES", {system: places})
    for key in ("ProgramFiles", "ProgramFiles(x86)", "LOCALAPPDATA", "APPDATA", "SystemDrive", "HOME"):
        monkeypatch.setenv(key.upper(), str(root / key))  # os.environ of Windows has them in capitals


@pytest.mark.parametrize(("system", "place"), [(s, place) for s, places in FOUND.items() for place in places])
def test_tools_are_found_where_installers_put_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, place: tuple[str, str, str]
) -> None:
    name, variable, inside = place
    _elsewhere(monkeypatch, system, tmp_path)
    assert tools.find_tool(name) is None
    path = tmp_path / variable / inside / f"{name.removesuffix('-19')}{'.exe' if system == 'win32' else ''}"
    path.parent.mkdir(parents=True)
    path.touch()
    assert tools.find_tool(name) == path
    assert tools.require_tool(name) == path


def test_newest_version_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _elsewhere(monkeypatch, "win32", tmp_path)
    for version in ("9.3 2020", "13.2 Rel1", "12.3 Rel1"):
        path = tmp_path / "ProgramFiles" / "Arm GNU Toolchain arm-none-eabi" / version / "bin" / "arm-none-eabi-gcc.exe"
        path.parent.mkdir(parents=True)
        path.touch()
    found = tools.find_tool("arm-none-eabi-gcc")
    assert found is not None
    assert "13.2 Rel1" in str(found)


@pytest.mark.parametrize(
    ("system", "command"),
    [
        ("win32", "winget install Arm.GnuArmEmbeddedToolchain SoftwareFreedomConservancy.QEMU"),
        ("darwin", "brew install gcc-arm-embedded qemu"),
        ("linux", "sudo apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm qemu-user"),
    ],
)
def test_what_to_install_is_said_for_the_system(monkeypatch: pytest.MonkeyPatch, system: str, command: str) -> None:
    monkeypatch.setattr(tools, "sys", SimpleNamespace(platform=system))
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    monkeypatch.setattr(tools, "PLACES", {})
    assert tools.install_command(["arm-none-eabi-gcc", "qemu-system-arm", "qemu-aarch64"]) == command
    missing = {status.tool.name for status in tools.tool_status() if status.tool.required}
    assert ("qemu-aarch64" in missing, "gcc" in missing) == (system == "linux", True)
    with pytest.raises(ToolError) as raised:
        tools.require_tool("aarch64-linux-gnu-gcc")
    assert ("runs on Linux" in str(raised.value)) == (system != "linux")


def test_doctor_on_windows(glowc: Glowc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _elsewhere(monkeypatch, "win32", tmp_path)
    done = glowc("doctor")
    assert (done.status, "Linux only" in done.out) == (1, True)
    assert "winget install Arm.GnuArmEmbeddedToolchain Bre" in done.out


def test_compiler_of_macos_is_no_package() -> None:
    assert tools.install_command(["gcc"]) == "sudo apt-get install gcc libc6-dev"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tools, "sys", MACOS)
        assert tools.install_command(["gcc", "qemu-system-arm"]) == "xcode-select --install && brew install qemu"


def test_linker_of_the_machine_gets_flags_that_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    board, one = load_board("host"), Path("a.o")
    for system, flags in (
        ("linux", {"-Wl,--gc-sections", "-Wl,-z,now"}),
        ("win32", {"-Wl,--gc-sections"}),
        ("darwin", {"-Wl,-dead_strip"}),
    ):
        monkeypatch.setattr("glowc.board.flags.sys", SimpleNamespace(platform=system))
        assert {word for word in link_argv(one, board, [one], one) if word.startswith("-Wl,")} == flags


@pytest.mark.parametrize("first", [b"MZ\x90\x00", b"\x64\x86\x07\x00", b"\xcf\xfa\xed\xfe"])
def test_programs_of_windows_and_macos_have_no_sizes(tmp_path: Path, first: bytes) -> None:
    (tmp_path / "model.elf").write_bytes(first + bytes(100))
    assert elf.sections(tmp_path / "model.elf") == ()
    (tmp_path / "model.elf").write_bytes(b"#!/bin/sh" + bytes(100))
    with pytest.raises(ToolError, match="not an ELF file"):
        elf.sections(tmp_path / "model.elf")


MAKEFILES = [
    ROOT / path
    for path in (
        "runtime_c/make/glowc.mk", "templates/kit/Makefile.j2", "examples/firmware-make/Makefile",
        "templates/model.mk.j2",
    )
]  # fmt: skip


@pytest.mark.parametrize("path", MAKEFILES, ids=lambda path: path.name)
def test_makefiles_of_users_call_programs_of_unix_only_beside_those_of_windows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    apart = re.sub(r'^ifeq \(\$\(shell echo "x"\),"x"\)\n.*?^endif\n', "", text, flags=re.M | re.S)
    apart = re.sub(r"^#.*\n", "", apart, flags=re.M)
    assert re.findall(r"\b(?:mkdir|rm|cp|mv|cat|printf|sed|awk)\b [^:]*|/dev/null|2>", apart) == []


def _cmd(folder: Path) -> Path:
    """Return a program that takes lines as cmd.exe does."""
    program = folder / "cmd"
    script = ROOT / "tests/unit/cmd_stand_in.py"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program


def test_makefiles_speak_to_cmd(tmp_path: Path, glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a stand-in for cmd.exe; the same lines went through that of Wine."""
    require_tool("make", "gcc")
    monkeypatch.chdir(tmp_path)
    shell, compiler = _cmd(tmp_path), tmp_path / "glowc"
    compiler.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo "glowc 1+2"; exit; }\necho "$*" >> log\n'
        "for end in .c .h _weights.c _weights.h; do echo > $4/m$end; done\n", encoding="utf-8",
    )  # fmt: skip
    compiler.chmod(0o755)
    assert glowc("make-include", "-o", "build/glowc.mk").status == 0
    Path("models").mkdir()
    Path("models/m.onnx").touch()
    text = "GLOWC_MODELS := m\nall:\ninclude build/glowc.mk\nall: $(GLOWC_SRCS)\n"
    Path("Makefile").write_text(text, encoding="utf-8")

    def made(*words: str) -> int:
        argv = ["make", f"SHELL={shell}", f"GLOWC={compiler}", *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return len(Path("log").read_text(encoding="utf-8").splitlines())

    assert made() == 1
    stamp = Path("build/models/m/bundle.stamp").read_text(encoding="utf-8")
    assert stamp.split() == ["--name", "m", "--weights", "c", "glowc", "1+2"]
    assert made() == 1
    assert made("GLOWC=nothing") == 1
    assert made("GLOWC_FLAGS=--opt size") == 2
