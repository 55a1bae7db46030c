"""The QEMU plugin that counts instructions: compiled once per version into the cache."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from glowc.board import require_tool
from glowc.errors import ToolError
from glowc.paths import data_dir, find_cached, store_cached

_FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")


def counting_plugin() -> Path:
    """Return the compiled plugin, compiling it on first use.

    Its name holds a hash of source and flags, and it appears under that name only when complete, so
    that parallel first uses do not disturb each other. Raises ToolError if the compiler is missing or
    fails.
    """
    source = data_dir("boards") / "_common" / "plugin" / "glow_count.c"
    key = hashlib.sha256(source.read_bytes() + " ".join(_FLAGS).encode()).hexdigest()[:16]
    name = f"glow_count-{key}.so"
    return find_cached(name) or _compile(source, name)


def _compile(source: Path, name: str) -> Path:
    cc = require_tool("gcc")
    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        library = Path(folder) / "glow_count.so"
        argv = [str(cc), *_FLAGS, str(source), "-o", str(library)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError("cannot compile the instruction counter", details=done.stderr.splitlines())
        return store_cached(name, library.read_bytes())
