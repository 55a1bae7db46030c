"""C sources -> ELF, for a board."""

from __future__ import annotations

from glowc.build.elf import Elf, build_elf

__all__ = ["Elf", "build_elf"]
