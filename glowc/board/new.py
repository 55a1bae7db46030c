"""A folder for a board of one's own, from one that is near."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from glowc.board.load import load_board
from glowc.errors import BoardError, FileError, reason_of
from glowc.paths import refused_by_windows


def new_board(name: str, like: str, parent: Path) -> Path:
    """Write `parent`/`name` with the files of board `like` under the new name, and return it.

    Raises BoardError for a name that is no plain one, a folder that is there, and when it cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) or refused_by_windows(name):
        raise BoardError(
            f"{name!r} is no name for a board and its folder", hint="letters, digits, dots, dashes: my-board"
        )
    known, folder = load_board(like), parent / name
    if folder.exists() or folder.is_symlink():
        raise FileError(f"{folder} is there already", hint="choose another name or folder, or remove it")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".glowc-", dir=parent) as temporary:
            made = Path(temporary) / name
            shutil.copytree(known.folder, made)
            for path in (made / "board.toml", made / "link.ld", made / "README.md"):
                if path.is_file():
                    text = _renamed(path.read_text("utf-8"), name, known.name)
                    path.write_text(text, encoding="utf-8", newline="\n")
            os.replace(made, folder)
    except OSError as error:
        raise FileError(f"cannot write {folder}: {reason_of(error)}") from error
    return folder


def _renamed(text: str, name: str, like: str) -> str:
    text = re.sub(r'^summary = "(.*)"$', f'summary = "{name}: made from {like}"', text, count=1, flags=re.M)
    return re.sub(rf"(^# |/\* ){re.escape(like)}\b", rf"\g<1>{name}", text, count=1)
