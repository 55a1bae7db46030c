"""Chips played for the drivers of serial lines: what the manuals say of clocks, pins and UARTs, register by register.

A register behind a clock that is off faults, as on silicon; a byte is on the line only when pins and speed are right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

BAUD, TOLERANCE = 115200, 0.015


class FaultError(Exception):
    """An access that the chip would not take."""


@dataclass
class Chip:
    """Registers by address; `gates` are ranges that need a clock: (first, end, register, bits set, bits clear)."""

    gates: tuple[tuple[int, int, int, int, int], ...]
    pins: Mapping[int, tuple[int, int]]  # register: (mask, value)
    uart: Uart
    ready: Mapping[int, Callable[[int], int]] = field(default_factory=dict)  # what a register reads as
    reset: Mapping[int, int] = field(default_factory=dict)
    registers: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.registers.update(self.reset)
        self.uart.chip = self

    def value(self, address: int) -> int:
        return self.registers.get(address, 0)

    def check(self, address: int) -> None:
        for first, end, register, on, off in self.gates:
            if first <= address < end and (self.value(register) & (on | off)) != on:
                raise FaultError(f"{address:#x} behind a clock that is off: {register:#x}")

    def read(self, address: int, size: int) -> int:
        self.check(address)
        if self.uart.base <= address < self.uart.base + 0x100:
            return self.uart.read(address - self.uart.base)
        held = self.value(address)
        return self.ready[address](held) if address in self.ready else held

    def write(self, address: int, size: int, value: int) -> None:
        self.check(address)
        if self.uart.base <= address < self.uart.base + 0x100:
            self.uart.write(address - self.uart.base, value)
        else:
            self.registers[address] = value


class Uart:
    """A UART: `hz` is its clock, found in the chip's registers; bytes that came in wait in `arriving`."""

    def __init__(self, base: int, hz: Callable[[Chip], float]) -> None:
        self.base, self.hz = base, hz
        self.chip: Chip
        self.own: dict[int, int] = {}
        self.arriving: list[int] = []
        self.sent: list[int] = []
        self.busy = 0  # reads of the state until there is room

    def speed(self) -> float:
        raise NotImplementedError

    def enabled(self) -> bool:
        raise NotImplementedError

    def send(self, value: int) -> None:
        if self.busy:
            raise FaultError("a byte is written where there is no room")
        self._check_line()
        self.sent.append(value & 0xFF)
        self.busy = 3

    def take(self) -> int:
        self._check_line()
        return self.arriving.pop(0) if self.arriving else 0

    def room(self) -> bool:
        self.busy = max(0, self.busy - 1)
        return self.busy == 0

    def _check_line(self) -> None:
        if not self.enabled():
            raise FaultError("transmitter and receiver are off")
        if abs(self.speed() / BAUD - 1) > TOLERANCE:
            raise FaultError(f"{self.speed():.0f} baud")
        for register, (mask, value) in self.chip.pins.items():
            if self.chip.value(register) & mask != value:
                raise FaultError(f"pin register {register:#x} is {self.chip.value(register):#x}")

    def read(self, offset: int) -> int:
        raise NotImplementedError

    def write(self, offset: int, value: int) -> None:
        self.own[offset] = value


class StmUart(Uart):
    """USART with ISR, RDR and TDR; the LPUART divides 256 times the clock."""

    def __init__(self, base: int, hz: Callable[[Chip], float], factor: int = 1) -> None:
        super().__init__(base, hz)
        self.factor, self.errors = factor, 0

    def speed(self) -> float:
        return self.factor * self.hz(self.chip) / self.own[0x0C]

    def enabled(self) -> bool:
        return self.own.get(0, 0) & 0xD == 0xD

    def read(self, offset: int) -> int:
        if offset == 0x1C:
            return (0x80 if self.room() else 0) | (0x20 if self.arriving else 0) | self.errors
        return self.take() if offset == 0x24 else self.own.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        if offset == 0x0C and self.own.get(0, 0) & 1:
            raise FaultError("the speed is written while the line is on")
        if offset == 0x20:
            self.errors &= ~value
        self.send(value) if offset == 0x28 else super().write(offset, value)


class Pl011(Uart):
    """Arm's PL011."""

    def speed(self) -> float:
        return self.hz(self.chip) / (16 * (self.own[0x24] + self.own[0x28] / 64))

    def enabled(self) -> bool:
        return self.own.get(0x30, 0) & 0x301 == 0x301 and self.own.get(0x2C, 0) & 0x60 == 0x60

    def read(self, offset: int) -> int:
        if offset == 0x18:
            return (0 if self.room() else 0x20) | (0 if self.arriving else 0x10)
        return self.take() if offset == 0 else self.own.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        self.send(value) if offset == 0 else super().write(offset, value)


class Lpuart(Uart):
    """NXP's LPUART: an overrun stops it until its flag is cleared."""

    overrun = False

    def speed(self) -> float:
        baud = self.own[0x10]
        return self.hz(self.chip) / (((baud >> 24 & 31) + 1) * (baud & 0x1FFF))

    def enabled(self) -> bool:
        return self.own.get(0x18, 0) & 0xC0000 == 0xC0000

    def read(self, offset: int) -> int:
        if offset == 0x14:
            full = 1 << 21 if self.arriving and not self.overrun else 0
            return (1 << 23 if self.room() else 0) | full | (1 << 19 if self.overrun else 0)
        return self.take() if offset == 0x1C else self.own.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        if offset == 0x14 and value & 1 << 19:
            self.overrun = False
        self.send(value) if offset == 0x1C else super().write(offset, value)


class Uart16550(Uart):
    """The 16550, as Synopsys has it: a bit of LCR shows the divider in the place of the data."""

    divider = 0

    def speed(self) -> float:
        return self.hz(self.chip) / (16 * self.divider)

    def enabled(self) -> bool:
        return self.own.get(0x0C, 0) == 0x03 and self.own.get(0x08, 0) & 1 == 1

    def read(self, offset: int) -> int:
        if offset == 0x14:
            return (0x20 if self.room() else 0) | (1 if self.arriving else 0)
        return self.take() if offset == 0 else self.own.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        if self.own.get(0x0C, 0) & 0x80 and offset in (0, 4):
            self.divider = self.divider & (0xFF00 if offset == 0 else 0xFF) | value << (0 if offset == 0 else 8)
        elif offset == 0:
            self.send(value)
        else:
            super().write(offset, value)


class SciB(Uart):
    """Renesas' SCI of the RA8: RDRF stays until it is cleared."""

    full = False

    def speed(self) -> float:
        speed = self.own[0x10]
        bit_clocks = 12 if speed & 0x40 else {0: 64, 0x10: 32, 0x20: 32, 0x30: 16}[speed & 0x30]
        return 2 * self.hz(self.chip) / (bit_clocks * ((speed >> 8 & 255) + 1))

    def enabled(self) -> bool:
        return self.own.get(0x08, 0) & 0x11 == 0x11

    def read(self, offset: int) -> int:
        if offset == 0x48:
            self.full = self.full or bool(self.arriving)
            return (1 << 29 if self.room() else 0) | (1 << 31 if self.full else 0)
        return self.take() if offset == 0 else self.own.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        if offset == 0x10 and self.own.get(0x08, 0) & 0x11:
            raise FaultError("the speed is written while the line is on")
        if offset == 0x68 and value & 1 << 31:
            self.full = False
        self.send(value) if offset == 4 else super().write(offset, value)


def _pin(ports: int, port: int, number: int, function: int) -> dict[int, tuple[int, int]]:
    """MODER and AFR of a pin of an STM32."""
    at, shift = ports + 0x400 * port, 4 * (number % 8)
    return {at: (3 << 2 * number, 2 << 2 * number), at + 0x20 + 4 * (number // 8): (15 << shift, function << shift)}


def _stm32(
    rcc: int, ports: int, port_clocks: int, uart: StmUart, clock: tuple[int, int],
    pins: tuple[tuple[int, int], ...], function: int, hsi: tuple[int, int],
    more: tuple[tuple[int, int, int, int, int], ...] = (),
) -> Chip:  # fmt: skip
    wanted: dict[int, tuple[int, int]] = {}
    for port, number in pins:
        for register, (mask, value) in _pin(ports, port, number, function).items():
            old = wanted.get(register, (0, 0))
            wanted[register] = (old[0] | mask, old[1] | value)
    gates = [(ports + 0x400 * p, ports + 0x400 * p + 0x400, rcc + port_clocks, 1 << p, 0) for p, _ in pins]
    gates += [(uart.base, uart.base + 0x400, rcc + clock[0], clock[1], 0), *more]
    on, ready = hsi
    starts = {rcc: lambda held: held | ready if held & on else held & ~ready}
    reset = {ports + 0x400 * p: 0xFFFFFFFF for p, _ in pins}  # analogue
    return Chip(tuple(gates), wanted, uart, starts, {**reset, rcc: 0x18 if rcc == 0x58024400 else 0})


def _hsi(rcc: int, on: int, choice: int, mask: int, value: int, hz: float) -> Callable[[Chip], float]:
    """The clock of a line when it is the internal oscillator, running by 1; else something unknown."""

    def found(chip: Chip) -> float:
        chosen = chip.value(rcc + choice) & mask == value and chip.value(rcc) & on
        divided = rcc == 0x58024400 and chip.value(rcc) & 0x18
        return hz if chosen and not divided else 1.0

    return found


L4, U5, F7, H7 = 0x40021000, 0x46020C00, 0x40023800, 0x58024400


def stm32(name: str) -> Chip:
    """A chip with ST's USART by the name of its board."""
    lpuart = StmUart(0x40008000, _hsi(L4, 0x100, 0x88, 0xC00, 0x800, 16e6), 256)
    usart3 = StmUart(0x40004800, _hsi(H7, 1, 0x54, 7, 3, 64e6))
    usart1 = StmUart(0x40011000, _hsi(H7, 1, 0x54, 0x38, 0x18, 64e6))
    new = (0x100, 0x400)
    return {
        "nucleo-l4r5zi": lambda: _stm32(L4, 0x48000000, 0x4C, lpuart, (0x5C, 1), ((6, 7), (6, 8)), 8, new,
                                        ((0x40007000, 0x40007400, L4 + 0x58, 1 << 28, 0),
                                         (0x40008000, 0x40008400, 0x40007004, 1 << 9, 0))),
        "nucleo-g474re": lambda: _stm32(L4, 0x48000000, 0x4C, lpuart, (0x5C, 1), ((0, 2), (0, 3)), 12, new),
        "nucleo-u575zi-q": lambda: _stm32(U5, 0x42020000, 0x8C, StmUart(0x40013800, _hsi(U5, 0x100, 0xE0, 3, 2, 16e6)),
                                          (0xA4, 1 << 14), ((0, 9), (0, 10)), 7, new),
        "disco-f746ng": lambda: _stm32(F7, 0x40020000, 0x30, StmUart(0x40011000, _hsi(F7, 1, 0x90, 3, 2, 16e6)),
                                       (0x44, 1 << 4), ((0, 9), (1, 7)), 7, (1, 2)),
        "nucleo-h743zi": lambda: _stm32(H7, 0x58020000, 0xE0, usart3, (0xE8, 1 << 18), ((3, 8), (3, 9)), 7, (1, 4)),
        "nucleo-h7a3zi-q": lambda: _stm32(H7, 0x58020000, 0x140, usart3, (0x148, 1 << 18), ((3, 8), (3, 9)), 7, (1, 4)),
        "nicla-vision": lambda: _stm32(H7, 0x58020000, 0xE0, usart1, (0xF0, 1 << 4), ((0, 9), (0, 10)), 7, (1, 4)),
    }[name]()  # fmt: skip


def pico(resets: int, bits: tuple[int, int, int], clocks: int, crystal: int, pins: int, pads: int, uart: int) -> Chip:
    """An RP2040 or RP2350: `bits` of the resets of UART 0, pads and pins."""
    held = [(where, where + 0x100, resets, 0, 1 << bit) for where, bit in zip((uart, pads, pins), bits, strict=True)]
    enable = {crystal + 4: lambda _: 1 << 31 if chip.value(crystal) == 0xFABAA0 else 0}
    line = Pl011(uart, lambda c: 12e6 if c.value(clocks + 0x48) & 0x8E0 == 0x880 else 1.0)
    wanted = {pins + 4: (31, 2), pins + 12: (31, 2), pads + 4: (0x1C0, 0x40), pads + 8: (0x1C0, 0x40)}
    all_done = {resets + 8: lambda _: ~chip.value(resets) & 0xFFFFFFFF}
    chip = Chip(
        tuple(held), wanted, line, {**enable, **all_done}, {resets: 0xFFFFFFFF, pads + 4: 0x116, pads + 8: 0x116}
    )
    return chip


def teensy() -> Chip:
    """An i.MX RT1062."""
    line = Lpuart(0x40198000, lambda c: 24e6 if c.value(0x400FC024) & 0x7F == 0x40 else 1.0)
    gate = ((0x40198000, 0x40199000, 0x400FC074, 3 << 6, 0),)
    pins = {0x401F80C4: (15, 2), 0x401F80C8: (15, 2), 0x401F8550: (1, 1)}
    return Chip(gate, pins, line)


def alif() -> Chip:
    """An Ensemble E7."""
    line = Uart16550(0x4901A000, lambda c: 38.4e6 if not c.value(0x4902F008) & 1 << 10 else 100e6)
    gates = ((0x4901A000, 0x4901B000, 0x4902F008, 1 << 2, 0), (0x4901A000, 0x4901B000, 0x4902F000, 3 << 30, 0))
    return Chip(gates, {0x1A603020: (0x10007, 0x10001), 0x1A603024: (7, 1)}, line)


def ra8() -> Chip:
    """An RA8D1: clocks and pins are protected, the clock of the SCI changes on request."""
    system, pwpr = 0x4001E000, 0x40400D03
    line = SciB(0x40358900, lambda c: 20e6 if c.value(system + 0x55) == 3 and c.value(system + 0x54) == 0 else 1.0)
    gates = (
        (0x40358900, 0x40358A00, 0x40203004, 0, 1 << 22), (0x40203004, 0x40203008, system + 0x3FE, 0xA502, 0),
        (system + 0x32, system + 0x33, system + 0x3FE, 0xA501, 0),
        (system + 0x54, system + 0x56, system + 0x3FE, 0xA501, 0),
        (0x40400AB8, 0x40400AC0, pwpr, 0x40, 0x80),
    )  # fmt: skip
    ready = {
        system + 0x3C: lambda _: 0 if chip.value(system + 0x32) else 8,
        system + 0x55: lambda held: held | 0x80 if held & 0x40 else held,
    }
    reset = {system + 0x32: 1, system + 0x55: 1, 0x40203004: 0xFFFFFFFF, pwpr: 0x80}
    pin = (0x1F010000, 0x05010000)
    chip = Chip(gates, {0x40400AB8: pin, 0x40400ABC: pin}, line, ready, reset)
    return chip


CHIPS: Mapping[str, Callable[[], Chip]] = {
    **{name: (lambda name=name: stm32(name)) for name in (
        "nucleo-l4r5zi", "nucleo-g474re", "nucleo-u575zi-q", "disco-f746ng", "nucleo-h743zi", "nucleo-h7a3zi-q",
        "nicla-vision",
    )},
    "rpi-pico": lambda: pico(0x4000C000, (22, 8, 5), 0x40008000, 0x40024000, 0x40014000, 0x4001C000, 0x40034000),
    "rpi-pico2": lambda: pico(0x40020000, (26, 9, 6), 0x40010000, 0x40048000, 0x40028000, 0x40038000, 0x40070000),
    "teensy41": teensy, "alif-e7": alif, "ek-ra8d1": ra8,
}  # fmt: skip
"""The chip of a board, as it is after a reset."""
