"""The host's end of a line: a serial port, a pseudo-terminal, a socket."""

from __future__ import annotations

import os
import select
import socket
import stat
import tty
from pathlib import Path
from typing import Protocol

from glowc.errors import ToolError

_CHUNK = 4096
DEFAULT_BAUD = 115200


class Port(Protocol):
    """Bytes both ways."""

    def write(self, data: bytes) -> None:
        """Send bytes. OSError when the line is gone."""

    def read(self, timeout_s: float) -> bytes:
        """Return what has come in: nothing when the time is up. OSError when the line is gone."""

    def close(self) -> None:
        """Give the line back."""


class _Descriptor:
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


class _Serial:
    """A port by pyserial."""

    def __init__(self, url: str, baud: int) -> None:
        import serial

        self._serial = serial.serial_for_url(url, baudrate=baud, timeout=0)

    def write(self, data: bytes) -> None:
        self._serial.write(data)

    def read(self, timeout_s: float) -> bytes:
        self._serial.timeout = max(timeout_s, 0.0)
        first: bytes = self._serial.read(1)
        return first + self._serial.read(self._serial.in_waiting) if first else b""

    def close(self) -> None:
        self._serial.close()


def open_port(name: str, baud: int | None = None) -> Port:
    """Open a serial port or pseudo-terminal by its path, a Unix socket by its path, or one of pyserial's URLs.

    Without pyserial (`glowc[serial]`) a path works at the speed that it has. Raises ToolError saying why it cannot be
    opened.
    """
    try:
        if "://" in name:
            return _Serial(name, baud or DEFAULT_BAUD)
        mode = Path(name).stat().st_mode
        if stat.S_ISSOCK(mode):
            return _Descriptor(_connected(name))
        return _terminal(name, baud) if stat.S_ISCHR(mode) else _Descriptor(os.open(name, os.O_RDWR))
    except ImportError:
        raise ToolError(f"{name} needs pyserial", hint="pip install 'glowc[serial]'") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ToolError(
            f"cannot open port {name}: {reason}", hint="is the board connected, and nobody else on it?"
        ) from error


def _connected(path: str) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(path)
        return line.detach()


def _terminal(name: str, baud: int | None) -> Port:
    try:
        return _Serial(name, baud or DEFAULT_BAUD)
    except ImportError:
        if baud is not None:
            raise
    descriptor = os.open(name, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(descriptor)
    return _Descriptor(descriptor)
