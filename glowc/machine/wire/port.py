"""The host's end of a line: a serial port, a pseudo-terminal, a socket."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Protocol

from glowc.errors import MissingToolError, ToolError

DEFAULT_BAUD = 115200


class Port(Protocol):
    """Bytes both ways."""

    def write(self, data: bytes) -> None:
        """Send bytes. OSError when the line is gone."""

    def read(self, timeout_s: float) -> bytes:
        """Return what has come in: nothing when the time is up. OSError when the line is gone."""

    def close(self) -> None:
        """Give the line back."""


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

    Without pyserial (`glowc[serial]`), which Windows needs, a path works at the speed that it has. Raises ToolError
    saying why it cannot be opened.
    """
    try:
        if sys.platform != "win32" and "://" not in name:  # there ports are called COM3
            from glowc.machine.wire.posix import is_terminal, open_path

            if not is_terminal(name) or (baud is None and find_spec("serial") is None):
                return open_path(name)
        return _Serial(name, baud or DEFAULT_BAUD)
    except ImportError:
        raise MissingToolError(f"{name} needs pyserial", hint="pip install 'glowc[serial]'") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ToolError(
            f"cannot open port {name}: {reason}", hint="is the board connected, and nobody else on it?"
        ) from error
