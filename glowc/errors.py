"""The errors glowc raises, with the fields that every message shows.

A user's mistake is a `GlowcError` (exit status 1, never a traceback); a limit that a model exceeds is a `LimitError`
(exit status 3); a broken invariant of glowc itself is an `InternalError` (exit status 2). Each kind of error has a code
that stays as it is; docs/ERRORS.md says what each means, and `glowc explain` prints that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import ClassVar

MISMATCH = 3  # the exit status where a comparison, or a limit, says no


class GlowcError(Exception):
    """A mistake in the user's input: what is wrong, what was seen, and what to do about it.

    `details` are further lines (one per problem found or per fact seen); `hint` tells what to try. `code` is that of
    the kind.
    """

    code: ClassVar[str] = "GL0201"
    exit_status = 1

    def __init__(self, message: str, *, details: Iterable[str] = (), hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = tuple(details)
        self.hint = hint

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of the error."""
        return {"code": self.code, "message": self.message, "details": list(self.details), "hint": self.hint,
                "exit_status": self.exit_status}  # fmt: skip

    def __str__(self) -> str:
        lines = [self.message, *(f"  {line}" for line in self.details)]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class ModelError(GlowcError):
    """The model does not suit the command."""

    code = "GL0100"


class ModelFileError(ModelError):
    """The model file cannot be read, or is damaged, or no model."""

    code = "GL0101"


class UnsupportedError(ModelError):
    """The model uses something that glowc does not compile."""

    code = "GL0102"


class StreamError(ModelError):
    """The model cannot be computed step by step along an axis, or with a state."""

    code = "GL0104"


class FloatLayerError(ModelError):
    """The model is right, and --require-int8 says no: layers between quantised parts would compute in float."""

    code = "GL0105"
    exit_status = MISMATCH


class InputError(GlowcError):
    """The arrays or options that came with a command do not fit the model."""


class SizesError(InputError):
    """The sizes, values or states given for inputs do not fit the model."""

    code = "GL0103"


class FileError(InputError):
    """A file or folder cannot be written, or holds what glowc must not write over."""

    code = "GL0202"


class PluginError(InputError):
    """A plugin cannot be used."""

    code = "GL0203"


class BundleError(InputError):
    """A folder is no bundle, or a file no report, or they do not belong to the model or to this version."""

    code = "GL0204"


class ArraysError(InputError):
    """Arrays, or a file of them, do not fit the inputs or outputs of the model."""

    code = "GL0205"


class TunedError(InputError):
    """A file of measured kernels cannot be used."""

    code = "GL0206"


class GroupError(InputError):
    """Several models do not fit together."""

    code = "GL0207"


class DataError(InputError):
    """Sample data cannot be read, or do not fit the model."""

    code = "GL0301"


class LabelsError(InputError):
    """Labels, classes or a metric do not fit the data or the model."""

    code = "GL0302"


class ProfileError(InputError):
    """A profile cannot be made or read, or is that of another model."""

    code = "GL0303"


class LikeError(InputError):
    """A model cannot be quantised as the earlier one was."""

    code = "GL0304"


class NoChoiceError(InputError):
    """No choice of precisions keeps the limits or the target."""

    code = "GL0305"


class BoardError(GlowcError):
    """The board cannot do what the command asks for."""

    code = "GL0400"


class UnknownBoardError(BoardError):
    """No board, CPU or chip has this name."""

    code = "GL0401"


class DescriptionError(BoardError):
    """The description of a board, CPU or chip is wrong."""

    code = "GL0402"


class LimitError(BoardError):
    """The model is right, and a limit says no: RAM or flash, of the board or of an option.

    `need_bytes` are the least bytes of flash that were found, where that is the limit.
    """

    code = "GL0500"
    exit_status = MISMATCH

    def __init__(
        self, message: str, *, details: Iterable[str] = (), hint: str | None = None, need_bytes: int | None = None
    ) -> None:
        super().__init__(message, details=details, hint=hint)
        self.need_bytes = need_bytes


class RamError(LimitError):
    """The model needs more RAM than there is, or than an option allows."""

    code = "GL0501"


class FlashError(LimitError):
    """The model needs more flash than there is, or than an option allows."""

    code = "GL0502"


class ToolError(GlowcError):
    """A compiler, QEMU or another program failed."""

    code = "GL0600"


class MissingToolError(ToolError):
    """A program or an optional Python package is not installed."""

    code = "GL0601"


class InternalError(GlowcError):
    """A broken invariant of glowc itself; please report it with the dump."""

    code = "GL0900"
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
