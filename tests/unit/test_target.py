"""Board and CPU files: what comes with glowc is consistent, and mistakes are all reported at once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from glowc.board import (
    Board,
    board_names,
    cpu_names,
    find_tool,
    install_command,
    load_board,
    load_cpu,
    require_tool,
    tool_status,
)
from glowc.errors import BoardError, ToolError
from glowc.machine.elf import sections
from glowc.paths import data_dir

EXPECTED_BOARDS = {
    "host": "host",
    "mps2-an385": "cortex-m3",
    "mps2-an386": "cortex-m4",
    "mps2-an500": "cortex-m7",
    "mps2-an505": "cortex-m33",
    "mps3-an547": "cortex-m55",
    "netduinoplus2": "cortex-m4",
    "microbit": "cortex-m0",
    "linux-aarch64": "cortex-a53",
    "virt-a53": "cortex-a53",
    "linux-armhf": "cortex-a7",
    "nucleo-f446re": "cortex-m4",
    "nucleo-h743zi": "cortex-m7",
    "nrf52840-dk": "cortex-m4",
    "rpi-pico": "cortex-m0plus",
    "rpi-pico2": "cortex-m33",
    "nucleo-l4r5zi": "cortex-m4",
    "nucleo-g474re": "cortex-m4",
    "nucleo-u575zi-q": "cortex-m33",
    "nucleo-h7a3zi-q": "cortex-m7",
    "disco-f746ng": "cortex-m7",
    "nano33-ble": "cortex-m4",
    "nicla-vision": "cortex-m7",
    "teensy41": "cortex-m7",
    "alif-e7": "cortex-m55",
    "ek-ra8d1": "cortex-m55",
    "rpi-zero2": "cortex-a53",
    "rpi4": "cortex-a53",
}

FEATURES = {
    "cortex-m0": (set(), {"unaligned", "dsp", "fpu"}),
    "cortex-m3": ({"thumb2", "unaligned"}, {"dsp", "fpu"}),
    "cortex-m4": ({"dsp", "fpu"}, {"vcvtn", "fp64", "mve"}),
    "cortex-m7": ({"dsp", "fpu", "fp64", "vcvtn"}, {"mve"}),
    "cortex-m33": ({"dsp", "fpu", "vcvtn"}, {"fp64", "mve"}),
    "cortex-m55": ({"dsp", "fpu", "vcvtn", "mve", "mve-fp"}, {"neon"}),
    "cortex-a53": ({"a64", "neon", "vcvtn"}, {"dot", "i8mm"}),
    "cortex-a76": ({"a64", "neon", "dot"}, {"i8mm"}),
    "armv8.6-i8mm": ({"a64", "neon", "dot", "i8mm"}, {"sve"}),
    "cortex-a9": ({"a32", "neon"}, {"vcvtn", "a64"}),
}

VALID = """
summary = "a board of my own"
url = "https://example.org"
cpu = "cortex-m4"
cpus = ["cortex-m4"]
linker_script = "link.ld"
sources = ["{common}/crt.c", "start.c"]
arena_region = "ram"
weights_region = "flash"
stack_bytes = 1024
[memory.flash]
origin = 0
size_bytes = 1024
kind = "flash"
[memory.ram]
origin = 0x20000000
size_bytes = 1024
kind = "ram"
"""


def own_board(folder: Path, text: str = VALID) -> Path:
    path = folder / "my-board"
    path.mkdir()
    (path / "board.toml").write_text(text)
    (path / "link.ld").touch()
    (path / "start.c").touch()
    return path


def test_all_boards_of_the_design_are_there_with_their_default_cpu() -> None:
    found = {name: load_board(name).cpu.name for name in board_names()}
    assert found.items() >= EXPECTED_BOARDS.items()
    assert list(board_names()) == sorted(board_names())


@pytest.mark.parametrize("name", cpu_names())
def test_cpu_loads_and_rounds_as_the_reference(name: str) -> None:
    cpu = load_cpu(name)
    assert "-ffp-contract=off" in cpu.cflags
    assert cpu.cc.endswith("gcc")
    assert cpu.url.startswith("https://")
    assert cpu.summary


@pytest.mark.parametrize("name", FEATURES)
def test_cpu_features(name: str) -> None:
    has, lacks = FEATURES[name]
    cpu = load_cpu(name)
    assert cpu.has(*has)
    assert not cpu.features & lacks


@pytest.mark.parametrize("name", board_names())
def test_board_is_complete(name: str) -> None:
    board = load_board(name)
    assert board.cpus[0] == board.cpu.name
    assert board.summary
    assert board.url.startswith("https://")
    assert (board.folder / "README.md").read_text().startswith(f"# {name}\n")
    assert board.memory[board.arena_region].kind == "ram"
    assert board.runs or board.flash or "no command" in (board.folder / "README.md").read_text()
    families = {load_cpu(cpu).family for cpu in board.cpus}
    assert families == {board.cpu.family}
    if "{qemu_cpu}" in board.run_argv:
        assert all(load_cpu(cpu).qemu_cpu for cpu in board.cpus)


def linker_map(script: str) -> dict[str, tuple[int, int]]:
    units = {"": 1, "K": 1024, "M": 1024 * 1024}
    pattern = r"(\w+) \(\w+\) : ORIGIN = (\w+), LENGTH = (\d+)([KM]?)"
    return {
        name: (int(origin, 0), int(length) * units[unit]) for name, origin, length, unit in re.findall(pattern, script)
    }


@pytest.mark.parametrize("name", [name for name in board_names() if load_board(name).bare_metal])
def test_linker_script_has_the_map_of_the_board_file(name: str) -> None:
    board = load_board(name)
    assert board.linker_script is not None
    script = board.linker_script.read_text()
    assert linker_map(script) == {r.name: (r.origin, r.size_bytes) for r in board.memory.values()}
    assert f'REGION_ALIAS("ARENA", {board.arena_region})' in script
    assert f'REGION_ALIAS("WEIGHTS", {board.weights_region})' in script
    own = re.search(r"__stack_size = .*: (0x\w+);", script)
    assert (int(own.group(1), 0) if own else 16 * 1024) == board.stack_bytes


def test_cpu_option_overrides_the_default_within_the_board() -> None:
    assert load_board("linux-aarch64", "cortex-a76").cpu.has("dot")
    with pytest.raises(BoardError, match=r'board "linux-aarch64" has no CPU "cortex-m4"') as caught:
        load_board("linux-aarch64", "cortex-m4")
    assert "it can have: cortex-a53, cortex-a76, armv8.6-i8mm" in str(caught.value)


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(BoardError, match=r'unknown board "mps2-an368".*did you mean "mps2-an3'):
        load_board("mps2-an368")
    with pytest.raises(BoardError, match=r'unknown CPU "cortexm55".*did you mean "cortex-m55"'):
        load_cpu("cortexm55")


def test_board_may_be_a_folder_anywhere(tmp_path: Path) -> None:
    board = load_board(str(own_board(tmp_path)))
    assert board.name == "my-board"
    assert board.sources == (data_dir("boards") / "_common/crt.c", tmp_path / "my-board/start.c")
    assert board.bytes_of("ram") == 1024
    assert board.timeout_s > 0
    assert not board.runs


def test_folder_without_description_is_named(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match=r"holds no board\.toml"):
        load_board(str(tmp_path))


def test_all_problems_of_a_board_file_are_reported_at_once(tmp_path: Path) -> None:
    text = VALID.replace('cpu = "cortex-m4"\n', 'cpu = "cortex-m44"\n', 1)
    text = text.replace("size_bytes = 1024\nkind", 'size_bytes = "1K"\nkind', 1)
    text = text.replace('summary = "a board of my own"', 'sumary = "oops"')
    text = text.replace("start.c", "gone.c").replace('arena_region = "ram"', 'arena_region = "rom"')
    text = text.replace("stack_bytes = 1024", 'stack_bytes = 1024\nrun = ["qemu"]')
    with pytest.raises(BoardError) as caught:
        load_board(str(own_board(tmp_path, text)))
    problems = "\n".join(caught.value.details)
    for part in (
        'cpu: "cortex-m44" is not one of',
        'did you mean "cortex-m4"?',
        "memory.flash.size_bytes: must be an integer of at least 1, is '1K'",
        "summary: missing; needs a string",
        'sumary: unknown field; did you mean "summary"?',
        "gone.c does not exist",
        'arena_region: "rom" is not one of "flash", "ram"',
        "run: needs {elf}",
    ):
        assert part in problems
    assert f"{len(caught.value.details)} problems" in caught.value.message


def test_board_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match=r"board\.toml is not valid TOML"):
        load_board(str(own_board(tmp_path, "cpu = \n")))


def test_missing_tool_names_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert find_tool("arm-none-eabi-gcc") is None
    with pytest.raises(ToolError, match="arm-none-eabi-gcc is not installed") as caught:
        require_tool("arm-none-eabi-gcc")
    assert caught.value.hint == "sudo apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi"
    assert require_tool_hint("no-such-tool") is None


def require_tool_hint(name: str) -> str | None:
    with pytest.raises(ToolError) as caught:
        require_tool(name)
    return caught.value.hint


def test_one_command_installs_everything_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    missing = [status.tool.name for status in tool_status() if not status.ok]
    command = install_command(missing)
    assert command is not None
    assert command.startswith("sudo apt-get install gcc ")
    assert command.count("qemu-system-arm") == 1
    assert "qemu-user" in command


def test_every_tool_a_board_calls_is_in_the_table() -> None:
    known = {status.tool.name for status in tool_status()}
    boards: list[Board] = [load_board(name) for name in board_names()]
    called = {board.cpu.cc for board in boards}
    called |= {board.run_argv[0] for board in boards if board.runs} - {"{elf}"}
    assert called <= known


def test_file_that_is_no_elf_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.elf"
    path.write_bytes(b"#!/bin/sh\n" * 10)
    with pytest.raises(ToolError, match=r"x\.elf is not an ELF file"):
        sections(path)


def test_import_is_light() -> None:
    code = (
        "import sys, glowc.board, glowc.machine.link, glowc.machine.qemu; print(*{'numpy', 'onnx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_arena_shares_an_only_ram_with_the_stack() -> None:
    large = load_board("mps3-an547")  # its stack lies elsewhere
    assert load_board("microbit").arena_room == 16 * 1024 - 2048 - 128
    assert large.arena_room == large.memory[large.arena_region].size_bytes
    assert load_board("host").arena_room is None
