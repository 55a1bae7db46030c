"""Packs the commit that a package is built from: that of the checkout, or what the source archive says."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes the file that glowc/paths.py reads; an editable install asks the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to a package, if anybody knows the commit."""
        sys.path.insert(0, self.root)
        try:
            from glowc.paths import COMMIT_FILE, head_commit
        finally:
            sys.path.remove(self.root)
        packed = Path(self.root) / "glowc" / COMMIT_FILE
        known = packed.read_text("ascii") if packed.is_file() else head_commit(Path(self.root))
        if known is None or version == "editable":
            return
        self.folder = tempfile.TemporaryDirectory(prefix="glowc-commit-")
        path = Path(self.folder.name) / "commit"
        path.write_text(known, "ascii", newline="\n")
        build_data["force_include"][str(path)] = f"glowc/{COMMIT_FILE}"
