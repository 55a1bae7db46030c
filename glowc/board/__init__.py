"""What glowc knows about machines: CPUs, boards and their tools."""

from __future__ import annotations

from glowc.board.chips import Cache, Chip, Energy, chip_names, default_chip, emulated, load_chip, machine_of
from glowc.board.load import board_names, cpu_names, load_board, load_cpu
from glowc.board.model import ARENA_SECTION, CODE_SECTION, FAMILIES, WEIGHTS_SECTION, ArenaRegion, Board, Cpu, Region
from glowc.board.rooms import arena_rooms
from glowc.board.tools import (
    Tool,
    ToolStatus,
    find_tool,
    install_command,
    require_tool,
    run_tool,
    shell_text,
    tool_status,
)

__all__ = [
    "ARENA_SECTION",
    "CODE_SECTION",
    "FAMILIES",
    "WEIGHTS_SECTION",
    "ArenaRegion",
    "Board",
    "Cache",
    "Chip",
    "Cpu",
    "Energy",
    "Region",
    "Tool",
    "ToolStatus",
    "arena_rooms",
    "board_names",
    "chip_names",
    "cpu_names",
    "default_chip",
    "emulated",
    "find_tool",
    "install_command",
    "load_board",
    "load_chip",
    "load_cpu",
    "machine_of",
    "require_tool",
    "run_tool",
    "shell_text",
    "tool_status",
]
