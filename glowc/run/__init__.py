"""ELF -> outputs and instruction counts, on the host or under QEMU."""

from __future__ import annotations

from glowc.run.elf import RunResult, require_runnable, run_argv, run_elf
from glowc.run.plugin import counting_plugin

__all__ = ["RunResult", "counting_plugin", "require_runnable", "run_argv", "run_elf"]
