"""Drivers of serial lines of boards that no QEMU plays: on the host, by chips that are played register by register."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from glowc.board import board_names, load_board
from tests.conftest import ROOT, require_tool
from tests.wire.chips import CHIPS, Chip, FaultError, Lpuart, StmUart

IN_QEMU = {
    "mps2-an385",
    "mps2-an386",
    "mps2-an500",
    "mps2-an505",
    "mps2-an521",
    "mps3-an547",
    "musca-b1",
    "netduinoplus2",
    "microbit",
    "virt-a53",
}
SAME = {"nucleo-f446re": "netduinoplus2", "nrf52840-dk": "microbit", "nano33-ble": "microbit"}
"""Boards with the UART of one that QEMU plays, at other pins."""
STRICT = ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Wvla", "-Werror")
SHIM = """\
#include "glow_wire.h"
#include "glow_wire_reg.h"
uint32_t (*on_read)(uint32_t, uint32_t);
void (*on_write)(uint32_t, uint32_t, uint32_t);
uint32_t glow_mock_read(uint32_t address, uint32_t bytes) { return on_read(address, bytes); }
void glow_mock_write(uint32_t address, uint32_t bytes, uint32_t value) { on_write(address, bytes, value); }
"""
READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)


class Driver:
    """A board's driver, built for this machine, at a chip. What the chip does not take is raised after the call."""

    def __init__(self, name: str, chip: Chip, folder: Path) -> None:
        board = load_board(name)
        (folder / "shim.c").write_text(SHIM)
        defines = [f"-D{define}" for define in ("GLOW_WIRE_MOCK", *board.wire_defines)]
        sources = [str(path) for path in (*board.wire_sources, folder / "shim.c")]
        library = folder / "driver.so"
        command = ["gcc", *STRICT, "-shared", "-fPIC", *defines, f"-I{ROOT / 'runtime_c/wire'}", *sources, "-o"]
        subprocess.run([*command, str(library)], check=True)
        self.library, self.chip, self.fault = ctypes.CDLL(str(library)), chip, ""
        self._hooks = READ(self._read), WRITE(self._write)
        for hook, where in zip(self._hooks, ("on_read", "on_write"), strict=True):
            ctypes.c_void_p.in_dll(self.library, where).value = ctypes.cast(hook, ctypes.c_void_p).value

    def _read(self, address: int, size: int) -> int:
        try:
            return self.chip.read(address, size)
        except FaultError as fault:
            self.fault = self.fault or str(fault)
            return 0xFFFFFFFF  # nothing waits for ever

    def _write(self, address: int, size: int, value: int) -> None:
        try:
            self.chip.write(address, size, value)
        except FaultError as fault:
            self.fault = self.fault or str(fault)

    def __call__(self, function: str, *arguments: int) -> int:
        result: int = getattr(self.library, f"glow_wire_{function}")(*arguments)
        assert not self.fault, self.fault
        return result


@pytest.fixture(name="driver", params=sorted(CHIPS))
def _driver(request: pytest.FixtureRequest, tmp_path: Path) -> Driver:
    require_tool("gcc")
    return Driver(request.param, CHIPS[request.param](), tmp_path)


def test_every_board_on_a_desk_has_a_line() -> None:
    known = IN_QEMU | SAME.keys() | CHIPS.keys()
    for name in board_names():
        board = load_board(name)
        assert board.wire_sources, name
        assert name in known or not board.bare_metal, f"{name}: who tries its driver?"
    for name, other in SAME.items():
        assert load_board(name).wire_sources == load_board(other).wire_sources


def test_line_is_opened_and_carries_bytes_both_ways(driver: Driver) -> None:
    driver("open")
    assert driver("getc") == -1
    for byte in (0, 0x55, 0xFF, 0x0A):
        driver("putc", byte)
    assert driver.chip.uart.sent == [0, 0x55, 0xFF, 0x0A]
    driver.chip.uart.arriving += [0, 1, 254, 255]
    assert [driver("getc") for _ in range(5)] == [0, 1, 254, 255, -1]


def test_line_may_be_opened_again_while_it_runs(driver: Driver) -> None:
    for _ in range(2):
        driver("open")
    driver("putc", 7)
    assert driver.chip.uart.sent == [7]


def test_other_registers_stay_as_they_are(driver: Driver) -> None:
    """Bits of shared registers that belong to nobody here keep their value."""
    shared = [register for _, _, register, on, off in driver.chip.gates if on or off]
    before = {register: driver.chip.value(register) for register in shared}
    driver("open")
    for register in shared:
        wanted = sum({on for _, _, r, on, _ in driver.chip.gates if r == register})
        freed = sum({off for _, _, r, _, off in driver.chip.gates if r == register})
        if wanted < 1 << 32 and register not in (0x4001E3FE, 0x40400D03):
            assert driver.chip.value(register) & ~(wanted | freed) == before[register] & ~(wanted | freed)


@pytest.mark.parametrize("name", ["nucleo-h743zi", "teensy41"])
def test_overrun_does_not_stop_the_line(name: str, tmp_path: Path) -> None:
    require_tool("gcc")
    driver = Driver(name, CHIPS[name](), tmp_path)
    driver("open")
    uart = driver.chip.uart
    if isinstance(uart, Lpuart):
        uart.overrun = True
    if isinstance(uart, StmUart):
        uart.errors = 8
    uart.arriving += [1, 2]
    got = [driver("getc") for _ in range(3)]
    assert [byte for byte in got if byte >= 0] == [1, 2]
    assert not getattr(uart, "errors", 0)


def test_a_played_chip_tells_a_wrong_speed_and_a_closed_clock(tmp_path: Path) -> None:
    require_tool("gcc")
    driver = Driver("nucleo-u575zi-q", CHIPS["nucleo-u575zi-q"](), tmp_path)
    with pytest.raises(AssertionError, match="clock that is off"):
        driver("getc")
    driver.fault = ""
    driver("open")
    driver.chip.uart.own[0x0C] = 100
    with pytest.raises(AssertionError, match="160000 baud"):
        driver("putc", 1)
