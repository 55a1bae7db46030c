"""The compiler's command lines, and what its failures look like. No compiler runs here."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from pytest_subprocess import FakeProcess

from glowc.board import load_board
from glowc.board.flags import compile_argv, link_argv
from glowc.errors import ToolError
from glowc.machine.elf import Sizes, sections, symbols
from glowc.machine.link import build_elf
from glowc.paths import data_dir

CC = Path("/tools/cc")
COMMON = data_dir("boards") / "_common"
IO = data_dir("runtime_c") / "io"


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glowc.board.tools.shutil.which", lambda name: f"/tools/{name}")


def tiny_elf(path: Path, text_bytes: int = 8) -> None:
    """Write a 32-bit Arm ELF: sections .text, .bss and .stack, and the Thumb function glow_mark."""
    names = b"\0.text\0.bss\0.stack\0.symtab\0"
    symbol_names = b"\0glow_mark\0"
    body = 52
    symbol_table = struct.pack("<IIIBBH", 1, 0x101, 4, 2, 0, 1)
    headers = [
        (0, 0, 0, 0, 0, 0, 0),
        (1, 1, 6, 0x100, body, text_bytes, 0),
        (7, 8, 3, 0x2000, body, 64, 0),
        (12, 8, 3, 0x3000, body, 4096, 0),
        (0, 3, 0, 0, body, len(names), 0),
        (0, 3, 0, 0, body + len(names), len(symbol_names), 0),
        (19, 2, 0, 0, body + len(names) + len(symbol_names), len(symbol_table), 5),
    ]
    data = names + symbol_names + symbol_table
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    head = struct.pack("<16sHHIIIIIHHHHHH", ident, 2, 40, 1, 0, 0, body + len(data), 0, 52, 0, 0, 40, 7, 4)
    tables = b"".join(struct.pack("<10I", *fields, 0, 0, 0) for fields in headers)
    path.write_bytes(head + data + tables)


def fake_compiler(fp: FakeProcess) -> None:
    def write(process: object) -> None:
        args = process.args  # type: ignore[attr-defined]
        tiny_elf(Path(args[args.index("-o") + 1]))

    fp.register([fp.any()], callback=write)
    fp.keep_last_process(True)


def test_compile_command_of_a_cortex_m_board() -> None:
    argv = compile_argv(
        CC,
        load_board("mps2-an386"),
        Path("a.c"),
        Path("a.o"),
        include_dirs=[Path("inc")],
        defines=["N=3"],
        opt="-Os",
        extra_flags=["-Werror"],
    )
    assert argv == [
        *("/tools/cc", "-mthumb", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
        *("-ffp-contract=off", "-std=c11", "-Wall", "-Wextra", "-ffunction-sections", "-fdata-sections"),
        *("-Os", "-Iinc", f"-I{IO}", "-DGLOW_SEMIHOSTING=1", "-DN=3", "-Werror", "-c", "a.c", "-o", "a.o"),
    ]


def test_link_command_of_a_cortex_m_board_has_no_stdio_and_no_heap() -> None:
    board = load_board("microbit")
    assert link_argv(CC, board, [Path("a.o")], Path("a.elf")) == [
        *("/tools/cc", "-mthumb", "-mcpu=cortex-m0", "-mfloat-abi=soft", "-ffp-contract=off"),
        *("-nostartfiles", "--specs=nano.specs", f"-T{board.linker_script}", f"-L{COMMON}"),
        *("-Wl,--defsym=__stack_size=2048", "-Wl,--gc-sections"),
        *("a.o", "-lm", "-lc", "-lgcc", "-o", "a.elf"),
    ]


def test_link_command_of_bare_metal_a64_leaves_out_the_linux_start_up() -> None:
    argv = link_argv(CC, load_board("virt-a53"), [Path("a.o")], Path("a.elf"))
    assert argv[3:6] == ["-nostdlib", "-static", "-no-pie"]
    compiled = compile_argv(CC, load_board("virt-a53"), Path("a.c"), Path("a.o"))
    assert "-fno-pie" in compiled


def test_link_command_for_linux_is_static_and_for_the_host_is_not() -> None:
    assert link_argv(CC, load_board("linux-armhf", "cortex-a9"), [Path("a.o")], Path("a")) == [
        *("/tools/cc", "-marm", "-mcpu=cortex-a9", "-mfpu=neon", "-mfloat-abi=hard", "-ffp-contract=off"),
        *("-static", "-Wl,--gc-sections", "a.o", "-lm", "-o", "a"),
    ]
    assert "-static" not in link_argv(CC, load_board("host"), [Path("a.o")], Path("a"))


def test_extra_flags_reach_compiler_and_linker() -> None:
    board = load_board("host")
    assert "-fsanitize=address" in link_argv(CC, board, [], Path("a"), extra_flags=["-fsanitize=address"])


def test_build_compiles_the_sources_and_the_boards_own_and_links(fp: FakeProcess, tmp_path: Path) -> None:
    fake_compiler(fp)
    elf = build_elf([Path("x/a.c"), Path("y/b.c")], load_board("microbit"), tmp_path / "out.elf")
    commands = [[str(item) for item in call] for call in fp.calls]
    compiled = {Path(c[c.index("-c") + 1]).name for c in commands if "-c" in c}
    assert compiled == {"a.c", "b.c", "crt.c", "cortex_m_startup.c", "glow_io_semihost.c"}
    assert all(c[0] == "/tools/arm-none-eabi-gcc" for c in commands)
    link = commands[-1]
    objects = [Path(item).name for item in link if item.endswith(".o")]
    assert objects == ["a.o", "b.o", "crt.o", "cortex_m_startup.o", "glow_io_semihost.o"]
    assert elf.path == tmp_path / "out.elf"
    assert elf.sizes == Sizes(text=8, rodata=0, data=0, bss=64)  # .stack is no variable
    assert (elf.text, elf.rodata, elf.data, elf.bss) == (8, 0, 0, 64)
    assert elf.object_sizes == {"a.c": elf.sizes, "b.c": elf.sizes}


def test_build_without_link_compiles_only_the_callers_sources(fp: FakeProcess, tmp_path: Path) -> None:
    fake_compiler(fp)
    elf = build_elf([Path("a.c"), Path("b.c")], load_board("host"), tmp_path / "out", link=False)
    assert len(fp.calls) == 2
    assert elf.path == tmp_path / "out.obj"
    assert elf.sizes == Sizes(text=16, rodata=0, data=0, bss=128)


def test_two_sources_of_one_name_do_not_share_an_object(fp: FakeProcess, tmp_path: Path) -> None:
    fake_compiler(fp)
    elf = build_elf([Path("x/a.c"), Path("y/a.c")], load_board("host"), tmp_path / "out", link=False)
    assert {path.name for path in elf.path.iterdir()} == {"a.o", "a-2.o"}
    assert set(elf.object_sizes) == {"x/a.c", "y/a.c"}


def test_compile_error_shows_the_message_and_the_command(fp: FakeProcess, tmp_path: Path) -> None:
    fp.register([fp.any()], stderr="a.c:1:1: error: unknown type name 'foo'\n", returncode=1)
    fp.keep_last_process(True)
    with pytest.raises(ToolError, match=r"cannot compile a\.c for board host \(host\)") as caught:
        build_elf([Path("a.c")], load_board("host"), tmp_path / "out")
    assert "a.c:1:1: error: unknown type name 'foo'" in caught.value.details
    assert caught.value.details[-1].startswith("command: /tools/gcc -ffp-contract=off")


def test_long_message_is_cut(fp: FakeProcess, tmp_path: Path) -> None:
    fp.register([fp.any()], stderr="error\n" * 100, returncode=1)
    fp.keep_last_process(True)
    with pytest.raises(ToolError) as caught:
        build_elf([Path("a.c")], load_board("host"), tmp_path / "out")
    assert "... and 60 more lines" in caught.value.details


def test_missing_compiler_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("glowc.board.tools.shutil.which", lambda name: None)
    with pytest.raises(ToolError, match="aarch64-linux-gnu-gcc is not installed") as caught:
        build_elf([Path("a.c")], load_board("virt-a53"), tmp_path / "out")
    assert caught.value.hint == "sudo apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"


def test_elf_reader_clears_the_thumb_bit_and_knows_the_kinds(tmp_path: Path) -> None:
    tiny_elf(tmp_path / "a.elf")
    assert [(s.name, s.kind, s.size) for s in sections(tmp_path / "a.elf")] == [
        (".text", "text", 8),
        (".bss", "bss", 64),
        (".stack", "bss", 4096),
    ]
    mark = symbols(tmp_path / "a.elf")["glow_mark"]
    assert (mark.address, mark.size, mark.type) == (0x100, 4, "func")
