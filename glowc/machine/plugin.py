"""The QEMU plugins that count and trace: compiled once per version into the cache."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from glowc.board import require_tool
from glowc.errors import ToolError
from glowc.paths import data_dir, find_cached, store_cached

_FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")


def compiled_plugin(name: str) -> Path:
    """Return the plugin `name` of boards/_common/plugin, compiling it on first use.

    Its name holds a hash of sources and flags, and it appears under that name only when complete, so
    that parallel first uses do not disturb each other. Raises ToolError if the compiler is missing or
    fails.
    """
    folder = data_dir("boards") / "_common" / "plugin"
    source = folder / f"{name}.c"
    text = b"".join(path.read_bytes() for path in (source, folder / "glow_qemu.h")) + " ".join(_FLAGS).encode()
    library = f"{name}-{hashlib.sha256(text).hexdigest()[:16]}.so"
    return find_cached(library) or _compile(source, library)


def _compile(source: Path, name: str) -> Path:
    cc = require_tool("gcc")
    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        library = Path(folder) / name
        argv = [str(cc), *_FLAGS, str(source), "-o", str(library)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"cannot compile QEMU's plugin {source.name}", details=done.stderr.splitlines())
        return store_cached(name, library.read_bytes())
