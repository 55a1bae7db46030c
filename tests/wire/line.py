"""Boards on a line for tests: firmware in QEMU or as a process, a line that damages, loses and repeats, resets."""

from __future__ import annotations

import json
import os
import pty
import random
import socket
import subprocess
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from glowc.board import Board
from glowc.machine.wire.port import Port


@dataclass
class Noise:
    """A port whose frames are damaged or lost with some probability, both ways; `reset` is called now and then."""

    port: Port
    dice: random.Random
    damaged: float = 0.01
    lost: float = 0.002
    frames: int = 0
    spoiled: int = 0
    _left: bytes = field(default=b"", repr=False)

    def write(self, data: bytes) -> None:
        self.port.write(self._through(data))

    def read(self, timeout_s: float) -> bytes:
        *frames, self._left = (self._left + self.port.read(timeout_s)).split(b"\0")
        return b"".join(self._through(frame + b"\0") if frame else b"\0" for frame in frames)

    def close(self) -> None:
        self.port.close()

    def _through(self, data: bytes) -> bytes:
        self.frames += 1
        chance = self.dice.random()
        if chance >= self.damaged + self.lost:
            return data
        self.spoiled += 1
        if chance < self.lost:
            return b""
        at = self.dice.randrange(len(data))
        kind = self.dice.randrange(4)
        if kind == 0:  # a flipped bit
            return data[:at] + bytes([data[at] ^ 1 << self.dice.randrange(8)]) + data[at + 1 :]
        if kind == 1:  # a lost byte
            return data[:at] + data[at + 1 :]
        if kind == 2:  # noise in between
            return data[:at] + self.dice.randbytes(3) + data[at:]
        return data + data  # an echo


@contextmanager
def process(elf: Path) -> Iterator[str]:
    """Run firmware of a hosted board on a pseudo-terminal; yield the path of the other end."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    board = subprocess.Popen([elf], stdin=master, stdout=master)
    try:
        yield os.ttyname(slave)
    finally:
        board.kill()
        board.wait()
        os.close(slave)
        os.close(master)


class Monitor:
    """QEMU's machine protocol: what a test does to the board."""

    def __init__(self, path: Path) -> None:
        self._line = socket.socket(socket.AF_UNIX)
        self._line.settimeout(10)
        self._line.connect(str(path))
        self._text = self._line.makefile("rw", encoding="utf-8")
        self._text.readline()
        self._ask("qmp_capabilities")

    def reset(self) -> None:
        """Press the board's reset button."""
        self._ask("system_reset")

    def close(self) -> None:
        self._text.close()
        self._line.close()

    def _ask(self, command: str) -> None:
        self._text.write(json.dumps({"execute": command}) + "\n")
        self._text.flush()
        while "return" not in json.loads(self._text.readline()):
            pass


@contextmanager
def emulated(board: Board, elf: Path, folder: Path, line: str = "socket") -> Iterator[tuple[str, Monitor]]:
    """Run firmware in QEMU with its first UART on a Unix socket, or on a pseudo-terminal (`line="pty"`)."""
    uart, control = folder / "uart", folder / "qmp"
    words = {"{elf}": str(elf), "{qemu_cpu}": board.cpu.qemu_cpu or ""}
    argv = [words.get(word, word) for word in board.run_argv if word != "{plugin}"]
    place = argv.index("-serial") + 1
    argv[place] = "pty" if line == "pty" else f"unix:{uart},server=on,wait=off"
    argv += ["-qmp", f"unix:{control},server=on,wait=off"]
    qemu = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert qemu.stdout is not None
        name = qemu.stdout.readline().split("redirected to ")[1].split()[0] if line == "pty" else str(uart)
        monitor = _connected(control, qemu)
        try:
            yield name, monitor
        finally:
            monitor.close()
    finally:
        qemu.kill()
        qemu.wait()


def _connected(path: Path, qemu: subprocess.Popen[str]) -> Monitor:
    for _ in range(500):
        with suppress(OSError):
            return Monitor(path)
        assert qemu.poll() is None, "QEMU ended"
        time.sleep(0.02)
    raise AssertionError("QEMU does not answer")
