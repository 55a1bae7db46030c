"""Files that commands write: looked at before the work begins, and there as a whole or not at all; example projects."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from glowc.errors import GlowcError, InputError
from glowc.paths import data_dir


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


_LEFT_OUT = shutil.ignore_patterns("build", "__pycache__", "*.pyc", ".*")


def example_titles() -> dict[str, str]:
    """Return what each example shows, by name: the first line of its README.md."""
    readmes = sorted(data_dir("examples").glob("*/README.md"))
    return {path.parent.name: path.read_text("utf-8").splitlines()[0].removeprefix("# ") for path in readmes}


def copy_example(name: str, folder: Path) -> None:
    """Copy an example to a folder that is absent or empty, whole or not at all.

    Raises InputError for an unknown name and for a folder with files in it, GlowcError when it cannot be written.
    """
    if name not in example_titles():
        raise InputError(f'unknown example "{name}"', details=["known: " + ", ".join(example_titles())],
                         hint="`glowc example` lists them")  # fmt: skip
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already and holds something", hint="name a new folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".glowc-", dir=folder.parent) as temporary:
            made = Path(temporary) / folder.name
            shutil.copytree(data_dir("examples") / name, made, ignore=_LEFT_OUT)
            made.replace(folder)
    except (OSError, shutil.Error) as error:
        raise GlowcError(f"cannot write {folder}: {getattr(error, 'strerror', None) or error}") from error
