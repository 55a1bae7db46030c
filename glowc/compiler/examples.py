"""The example projects that come with glowc."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from glowc.errors import GlowcError, InputError
from glowc.paths import data_dir

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
