"""Files that commands write: looked at before the work begins, and there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from glowc.errors import GlowcError


def check_output(path: Path, option: str = "--output", *, makes_folders: bool = False) -> None:
    """Raise GlowcError when no file can be written at `path`; nothing is touched."""
    folder = path.parent
    while makes_folders and not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if path.is_dir():
        reason = "it is a folder"
    elif not folder.is_dir():
        reason = f"{folder} is no folder"
    elif not os.access(folder, os.W_OK | os.X_OK):
        reason = f"folder {folder} is not writable"
    else:
        return
    raise _cannot(path, reason, option)


def write_file(path: Path, write: Callable[[BinaryIO], object], option: str = "--output") -> None:
    """Let `write` fill a new file that then takes the place of `path`. Raises GlowcError when it cannot be written."""
    check_output(path, option)
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".glowc-") as folder:
            with open(Path(folder) / "new", "wb") as file:  # as others would: mkstemp's files are for one user
                write(file)
            os.replace(file.name, path)
    except OSError as error:
        raise _cannot(path, error.strerror or str(error), option) from error


def _cannot(path: Path, reason: str, option: str) -> GlowcError:
    return GlowcError(f"cannot write {path}: {reason}", hint=f"choose another file with {option} FILE")
