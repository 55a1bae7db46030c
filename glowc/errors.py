"""The errors glowc raises, with the fields that every message shows.

A user's mistake is a `GlowcError` (exit status 1, never a traceback); a limit that a model exceeds is a `LimitError`
(exit status 3); a broken invariant of glowc itself is an `InternalError` (exit status 2).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

MISMATCH = 3  # the exit status where a comparison, or a limit, says no


class GlowcError(Exception):
    """A mistake in the user's input: what is wrong, what was seen, and what to do about it.

    `details` are further lines (one per problem found or per fact seen); `hint` tells what to try.
    """

    exit_status = 1

    def __init__(self, message: str, *, details: Iterable[str] = (), hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = tuple(details)
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.message, *(f"  {line}" for line in self.details)]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class ModelError(GlowcError):
    """The model file cannot be read, is not valid ONNX, or uses something glowc does not support."""


class FloatLayerError(ModelError):
    """The model is right, and --require-int8 says no: layers between quantised parts would compute in float."""

    exit_status = MISMATCH


class InputError(GlowcError):
    """The arrays or options that came with a command do not fit the model."""


class BoardError(GlowcError):
    """The board is unknown, its description is wrong, or the model does not fit it."""


class LimitError(BoardError):
    """The model is right, and a limit says no: RAM or flash, of the board or of an option.

    `need_bytes` are the least bytes of flash that were found, where that is the limit.
    """

    exit_status = MISMATCH

    def __init__(
        self, message: str, *, details: Iterable[str] = (), hint: str | None = None, need_bytes: int | None = None
    ) -> None:
        super().__init__(message, details=details, hint=hint)
        self.need_bytes = need_bytes


class ToolError(GlowcError):
    """A compiler, QEMU or an optional Python package is missing or failed."""


class InternalError(GlowcError):
    """A broken invariant of glowc itself; please report it with the dump."""

    exit_status = 2


_LONGEST_PATH = 259  # characters that Windows takes where long paths are not switched on


def reason_of(error: OSError) -> str:
    """Return what the system says of a file, with what it means where that is not plain: held open, or too long."""
    reason = error.strerror or str(error)
    names = [os.path.abspath(name) for name in (error.filename, error.filename2) if isinstance(name, str)]
    if isinstance(error, PermissionError) and error.filename2 is not None:
        reason += f": {os.path.basename(names[-1])} is open in another program, or write-protected"
    longest = max(map(len, names), default=0)
    if sys.platform == "win32" and longest > _LONGEST_PATH:
        reason += f"; its path has {longest} characters and Windows takes {_LONGEST_PATH}: choose a shorter folder"
        reason += ", or switch long paths on (docs/PLATFORMS.md)"
    return reason
