"""Where templates/, runtime_c/ and boards/ are: the checkout's top level, or inside the installed wheel."""

from __future__ import annotations

import os
from pathlib import Path

_PKG = Path(__file__).resolve().parent


def data_dir(name: str) -> Path:
    """Return the folder `name` ("templates", "runtime_c" or "boards") of this installation."""
    base = _PKG / "_data" if (_PKG / "_data").is_dir() else _PKG.parent
    return base / name


def cache_dir() -> Path:
    """Return the user's cache folder for compiled templates, plugins and measurements; made if absent."""
    root = os.environ.get("GLOWC_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(root) if root else Path.home() / ".cache"
    path = base / "glowc"
    path.mkdir(parents=True, exist_ok=True)
    return path
