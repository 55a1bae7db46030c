"""Files that commands write: looked at before the work begins, and there as a whole or not at all; example projects."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path, PureWindowsPath
from typing import BinaryIO

from glowc.errors import FileError, GlowcError, InputError, reason_of
from glowc.paths import data_dir, refused_by_windows


def check_output(path: Path, option: str = "--output", *, makes_folders: bool = False) -> None:
    """Raise GlowcError when no file can be written at `path`; nothing is touched."""
    check_path(path)
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
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".glowc-", ignore_cleanup_errors=True) as folder:
            with open(Path(folder) / "new", "wb") as file:  # as others would: mkstemp's files are for one user
                write(file)
            os.replace(file.name, path)
    except OSError as error:
        raise _cannot(path, reason_of(error), option) from error


def take_places(made: Path, folder: Path, names: Iterable[str]) -> None:
    """Move files from `made` to their places in `folder`: all of them, or none and OSError."""
    earlier = made / ".earlier"
    earlier.mkdir()
    moved: list[tuple[Path, Path | None]] = []
    try:
        for number, name in enumerate(names):
            place, kept = folder / name, earlier / str(number)
            place.parent.mkdir(parents=True, exist_ok=True)
            there = os.path.lexists(place)
            if there:
                shutil.copy2(place, kept, follow_symlinks=False)
            os.replace(made / name, place)
            moved.append((place, kept if there else None))
    except OSError:
        for place, old in reversed(moved):
            with suppress(OSError):
                place.unlink() if old is None else os.replace(old, place)
        raise


def check_path(path: Path) -> None:
    """Raise GlowcError for a path that Windows does not have, there."""
    if sys.platform != "win32":
        return
    windows = PureWindowsPath(path)
    for part in windows.parts[bool(windows.anchor) :]:
        if reason := refused_by_windows(part):
            raise FileError(f"Windows has no file {part!r}: {reason}", hint=f"choose another name in {path}")


def _cannot(path: Path, reason: str, option: str) -> GlowcError:
    return FileError(f"cannot write {path}: {reason}", hint=f"choose another file with {option} FILE")


_LEFT_OUT = shutil.ignore_patterns("build", "__pycache__", "*.pyc", ".*")


def example_titles() -> dict[str, str]:
    """Return what each example shows, by name: the first line of its README.md."""
    readmes = sorted(data_dir("examples").glob("*/README.md"))
    return {path.parent.name: path.read_text("utf-8").splitlines()[0].removeprefix("# ") for path in readmes}


def copy_example(name: str, folder: Path) -> None:
    """Copy an example to a folder that is absent or empty, whole or not at all.

    Raises InputError for an unknown name and for a folder with files in it, GlowcError when it cannot be written.
    """
    check_path(folder)
    if name not in example_titles():
        raise InputError(f'unknown example "{name}"', details=["known: " + ", ".join(example_titles())],
                         hint="`glowc example` lists them")  # fmt: skip
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"{folder} is there already and holds something", hint="name a new folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".glowc-", dir=folder.parent, ignore_cleanup_errors=True) as temporary:
            made = Path(temporary) / folder.name
            shutil.copytree(data_dir("examples") / name, made, ignore=_LEFT_OUT)
            if folder.is_dir():
                folder.rmdir()  # Windows replaces no folder
            os.replace(made, folder)
    except OSError as error:
        raise FileError(f"cannot write {folder}: {reason_of(error)}") from error
