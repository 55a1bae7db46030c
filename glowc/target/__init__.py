"""What glowc knows about machines: CPUs, boards, their tools and their ELF files. Vocabulary: every
room may import it."""

from __future__ import annotations

from glowc.target.elf import Section, Sizes, Symbol, sections, symbols
from glowc.target.load import board_names, cpu_names, load_board, load_cpu
from glowc.target.model import ARENA_SECTION, FAMILIES, WEIGHTS_SECTION, ArenaRegion, Board, Cpu, Region
from glowc.target.rooms import arena_rooms
from glowc.target.tools import Tool, ToolStatus, find_tool, install_command, require_tool, tool_status

__all__ = [
    "ARENA_SECTION",
    "FAMILIES",
    "WEIGHTS_SECTION",
    "ArenaRegion",
    "Board",
    "Cpu",
    "Region",
    "Section",
    "Sizes",
    "Symbol",
    "Tool",
    "ToolStatus",
    "arena_rooms",
    "board_names",
    "cpu_names",
    "find_tool",
    "install_command",
    "load_board",
    "load_cpu",
    "require_tool",
    "sections",
    "symbols",
    "tool_status",
]
