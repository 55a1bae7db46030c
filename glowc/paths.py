"""Where templates/, runtime_c/, boards/, docs/, examples/ are, and which glowc they make; names of files; the cache.

The files are those of the checkout, or inside the wheel. The version carries a hash of all that decides what glowc
writes, the same in a checkout and a wheel of equal contents, so that equal input gives equal bytes; a commit that
changes documents alone leaves it as it is. Files of the cache end with a hash of their content: what is damaged counts
as absent.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path

_PKG = Path(__file__).resolve().parent
_DECIDE = ("templates", "runtime_c", "boards")  # and the code: what glowc writes follows from them
COMMIT_FILE = "_data/commit"  # of an installed package, written by hatch_build.py
SCHEMA = 1  # of report.json and all JSON that commands print: docs/STABILITY.md says when it grows
_PORTS = tuple(port + number for port in ("com", "lpt") for number in "123456789¹²³")
_DEVICES = frozenset(("con", "prn", "aux", "nul", "conin$", "conout$", *_PORTS))
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


@cache
def full_version() -> str:
    """Return the version that artefacts carry, as `0.1.0+1f2e3d4c`."""
    number: str = sys.modules["glowc"].__version__  # there: a package is imported before its modules
    return f"{number}+{package_hash()[:8]}"


@cache
def package_hash() -> str:
    """Return the hash, in hexadecimal digits, of the package's code, templates, runtime and boards."""
    digest = hashlib.sha256()
    for name, path in sorted(_files()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _files() -> Iterator[tuple[str, Path]]:
    """Yield the files of the package by their path in a checkout, without what programs leave beside them."""
    for top, base in (("glowc", _PKG), *((name, data_dir(name)) for name in _DECIDE)):
        for folder, folders, names in os.walk(base):
            inside = Path(folder).relative_to(base).parts
            left = ("__pycache__",) if inside else ("__pycache__", "_data")
            folders[:] = [name for name in folders if not name.startswith(".") and name not in left]
            for name in names:
                if not name.startswith(".") and not name.endswith(".pyc"):
                    yield "/".join((top, *inside, name)), Path(folder, name)


@cache
def commit() -> str | None:
    """Return the commit that this glowc was built from, or is checked out at; None where nobody knows."""
    try:
        return (_PKG / COMMIT_FILE).read_text("ascii").strip()
    except OSError:
        return head_commit(_PKG.parent)


def head_commit(checkout: Path) -> str | None:
    """Return the commit that a checkout of git is at, as its files say; None for what is no checkout."""
    try:
        folder = _git_folder(checkout / ".git")
        head = (folder / "HEAD").read_text("utf-8").strip()
        name = head.removeprefix("ref: ")
        return head if name == head else _commit_of(folder, name)
    except OSError:
        return None


def _git_folder(path: Path) -> Path:
    """Return the folder of git's files; in a work tree `.git` is a file that names it."""
    if path.is_dir():
        return path
    return path.parent / path.read_text("utf-8").removeprefix("gitdir:").strip()


def _commit_of(folder: Path, name: str) -> str | None:
    """Return the commit of a branch: in a file of its own, or in the list of packed ones."""
    common = folder / "commondir"
    shared = folder / common.read_text("utf-8").strip() if common.is_file() else folder
    for base in (folder, shared):
        if (base / name).is_file():
            return (base / name).read_text("utf-8").strip()
    packed = (line.split() for line in (shared / "packed-refs").read_text("utf-8").splitlines())
    return next((words[0] for words in packed if words[1:] == [name]), None)


def refused_by_windows(name: str) -> str:
    """Return why Windows has no file of this name, one part of a path; nothing where it has."""
    if name.partition(".")[0].rstrip(" ").lower() in _DEVICES:
        return "it is the name of a device"
    if name.endswith((" ", ".")) and name not in (".", ".."):
        return "it ends with a dot or a blank"
    wrong = next((c for c in name if c in '<>:"/\\|?*' or c < " "), None)
    return "" if wrong is None else f"it has the character {wrong!r}"


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


class _Uncached(SourceFileLoader):
    """Runs a Python file and leaves no byte code beside it."""

    def set_data(self, path: str, data: object, *, _mode: int = 0) -> None:
        """Keep nothing."""


def module_spec(name: str, path: str | Path) -> ModuleSpec | None:
    """Return how a Python file of the user becomes a module of that name; None where Python knows no such file."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is not None and isinstance(spec.loader, SourceFileLoader):
        spec.loader = _Uncached(name, str(path))
    return spec
