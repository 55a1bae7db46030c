"""The command lines of compiler and linker, as pure functions of a board."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from glowc.board import Board
from glowc.board.flags import compile_argv
from glowc.paths import data_dir

__all__ = ["compile_argv", "link_argv"]


def link_argv(
    cc: Path, board: Board, objects: Iterable[Path], out: Path, *, extra_flags: Iterable[str] = ()
) -> list[str]:
    """Return the command that links `objects` to `out`."""
    before, after = _libraries(board)
    return [
        str(cc),
        *board.cpu.cflags,
        *before,
        *_script(board),
        "-Wl,--gc-sections",
        *board.ldflags,
        *extra_flags,
        *(str(path) for path in objects),
        *after,
        "-o",
        str(out),
    ]


def _script(board: Board) -> tuple[str, ...]:
    if board.linker_script is None:
        return ()
    return (
        f"-T{board.linker_script}",
        f"-L{data_dir('boards') / '_common'}",  # where the script's INCLUDE is
        f"-Wl,--defsym=__stack_size={board.stack_bytes}",
    )


def _libraries(board: Board) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the flags before and the libraries after the objects. No image contains a heap or stdio."""
    if board.bare_metal and board.cpu.family == "cortex-m":
        return ("-nostartfiles", "--specs=nano.specs"), ("-lm", "-lc", "-lgcc")
    if board.bare_metal:
        return ("-nostdlib", "-static", "-no-pie"), ("-lm", "-lc", "-lgcc")
    if board.cpu.family == "host":
        return (), ("-lm",)
    return ("-static",), ("-lm",)  # under qemu-user no target root file system is needed
