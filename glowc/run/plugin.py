"""The QEMU plugin that counts instructions: compiled once per version into the cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from glowc.errors import ToolError
from glowc.paths import cache_dir, data_dir
from glowc.target import require_tool

_FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")


def counting_plugin() -> Path:
    """Return the compiled plugin, compiling it on first use.

    Its name holds a hash of source and flags, and it appears under that name only when complete, so
    that parallel first uses do not disturb each other. Raises ToolError if the compiler is missing or
    fails.
    """
    source = data_dir("boards") / "_common" / "plugin" / "glow_count.c"
    key = hashlib.sha256(source.read_bytes() + " ".join(_FLAGS).encode()).hexdigest()[:16]
    library = cache_dir() / f"glow_count-{key}.so"
    if not library.exists():
        _compile(source, library)
    return library


def _compile(source: Path, library: Path) -> None:
    cc = require_tool("gcc")
    handle, name = tempfile.mkstemp(dir=library.parent, prefix=f"{library.stem}.", suffix=".tmp")
    os.close(handle)
    partial = Path(name)
    try:
        argv = [str(cc), *_FLAGS, str(source), "-o", str(partial)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError("cannot compile the instruction counter", details=done.stderr.splitlines())
        partial.replace(library)
    finally:
        partial.unlink(missing_ok=True)
