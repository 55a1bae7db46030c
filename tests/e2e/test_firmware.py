"""Firmware of `glowc build`: complete for boards that are not here, and what it says of its vectors is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from glowc.board import Board, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.elf import symbols
from glowc.machine.execute import BundleInfo, load_bundle
from glowc.machine.firmware import build_firmware
from glowc.machine.qemu import run_elf
from tests.conftest import ROOT, require_tool

pytestmark = pytest.mark.qemu

MODELS = ROOT / "examples/firmware-make/models"
SINE, SINE_TEST = MODELS / "sine.onnx", MODELS / "sine_test.npz"


def bundle(board: Board, folder: Path, **options: object) -> BundleInfo:
    require_tool(board.cpu.cc)
    write_bundle(compile_model(SINE, board, CompileOptions(**options)), folder)  # type: ignore[arg-type]
    return load_bundle(folder)


@pytest.mark.parametrize("name", ["nucleo-l4r5zi", "teensy41", "disco-f746ng", "alif-e7", "rpi-pico"])
@pytest.mark.parametrize("golden", [None, SINE_TEST])
def test_image_for_silicon_is_complete(name: str, golden: Path | None, tmp_path: Path) -> None:
    board = load_board(name)
    elf = build_firmware(bundle(board, tmp_path / "sine", golden=golden), board, tmp_path / "app.elf")
    found = symbols(elf.path)
    assert "glow_result" in found
    assert ("sine_golden_failures" in found) == (golden is not None)
    assert board.memory[board.arena_region].holds(found["sine_arena"].address, 1)


def test_boot_rom_finds_the_image_of_a_teensy(tmp_path: Path) -> None:
    """Image vector table at 0x1000 of the flash: header, vector table, itself (i.MX RT1060 manual, section 9.7.1)."""
    board = load_board("teensy41")
    found = symbols(build_firmware(bundle(board, tmp_path / "sine"), board, tmp_path / "app.elf").path)
    assert found["glow_flash_config"].address == 0x60000000
    assert found["glow_image_table"].address == 0x60001000
    assert found["glow_vectors"].address == 0x60002000


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("name", ["mps2-an386", "mps2-an385"])
def test_vectors_are_run_and_wrong_ones_counted(name: str, wrong: bool, tmp_path: Path) -> None:
    board = load_board(name)
    require_tool(board.run_argv[0])
    info = bundle(board, tmp_path / "sine", golden=SINE_TEST)
    if wrong:
        source = info.folder / "sine_golden.c"
        before, mark, after = source.read_text().partition("sine_golden_output")
        assert mark
        source.write_text(before + mark + after.replace("  ", "  1 + ", 1))
    elf = build_firmware(info, board, tmp_path / "app.elf", alone=True)
    assert run_elf(elf.path, board, cwd=tmp_path, check=False).exit_status == int(wrong)
