"""Files of the user's cache. Each ends with a hash of its content: what is damaged counts as absent."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from glowc.paths import cache_dir

_HASH_BYTES = hashlib.sha256().digest_size


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
