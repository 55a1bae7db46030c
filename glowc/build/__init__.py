"""C sources -> ELF, for a board."""

from __future__ import annotations

from glowc.build.elf import Elf, build_elf
from glowc.build.stack import UnboundedError, stack_bounds

__all__ = ["Elf", "UnboundedError", "build_elf", "stack_bounds"]
