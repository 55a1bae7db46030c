"""Ports that are files of a POSIX system: terminals at the speed that they have, pseudo-terminals, sockets."""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
import tty
from pathlib import Path

assert sys.platform != "win32"  # there pyserial opens all ports

_CHUNK = 4096


class Descriptor:
    """A port that is a file of the system."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]

    def read(self, timeout_s: float) -> bytes:
        ready, _, _ = select.select([self._descriptor], [], [], max(timeout_s, 0.0))
        if not ready:
            return b""
        data = os.read(self._descriptor, _CHUNK)
        if not data:
            raise OSError("the other end has closed it")
        return data

    def close(self) -> None:
        os.close(self._descriptor)


def is_terminal(name: str) -> bool:
    """Say whether a path is a serial port or a pseudo-terminal. OSError when it is nothing."""
    return stat.S_ISCHR(Path(name).stat().st_mode)


def open_path(name: str) -> Descriptor:
    """Open a terminal for plain bytes, connect to a socket, or open what else it is. OSError when that fails."""
    if stat.S_ISSOCK(Path(name).stat().st_mode):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.connect(name)
            return Descriptor(line.detach())
    descriptor = os.open(name, os.O_RDWR | os.O_NOCTTY)
    if is_terminal(name):
        tty.setraw(descriptor)
    return Descriptor(descriptor)
