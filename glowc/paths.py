"""Where templates/, runtime_c/, boards/, docs/, examples/ are: the checkout, or inside the wheel; the user's cache.

Files of the cache end with a hash of their content: what is damaged counts as absent.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

_PKG = Path(__file__).resolve().parent
_HASH_BYTES = hashlib.sha256().digest_size


def data_dir(name: str) -> Path:
    """Return the folder `name` ("templates", "runtime_c", "boards", "docs" or "examples") of this installation."""
    base = _PKG / "_data" if (_PKG / "_data").is_dir() else _PKG.parent
    return base / name


@cache
def _runtime_headers() -> dict[str, Path]:
    return {path.name: path for path in data_dir("runtime_c").rglob("glow_*.h")}


def runtime_header(name: str) -> Path:
    """Return the path of a header of runtime_c, whichever folder it lies in. KeyError when there is none."""
    return _runtime_headers()[name]


def cache_dir() -> Path:
    """Return the user's cache folder for compiled templates and QEMU plugins; made if absent.

    What lies there is executed. Where the folder cannot be used, or somebody else may write to it, it is a folder of
    this process that goes with it.
    """
    root = os.environ.get("GLOWC_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        path = (Path(root) if root else Path.home() / ".cache") / "glowc"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_own(path) and os.access(path, os.R_OK | os.W_OK | os.X_OK):
            return path
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        pass
    return Path(_process_folder().name)


def _is_own(path: Path) -> bool:
    """Say whether only this user may write to a folder, where the system tells: Windows has no owners and modes."""
    if not hasattr(os, "geteuid"):
        return True
    found = path.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@cache
def _process_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="glowc-cache-")


def find_cached(name: str) -> Path | None:
    """Return the path of a whole file of the cache, None when there is none."""
    path = cache_dir() / name
    return path if _content(path) is not None else None


def load_cached(name: str) -> bytes | None:
    """Return what was stored under `name`, None when it is absent or damaged."""
    return _content(cache_dir() / name)


def store_cached(name: str, content: bytes) -> Path:
    """Store bytes under `name` and return where; the file appears as a whole. Raises OSError."""
    path = cache_dir() / name
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{path.stem}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content + hashlib.sha256(content).digest())
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    return path


def _content(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content, digest = data[:-_HASH_BYTES], data[-_HASH_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None
