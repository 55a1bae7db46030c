"""The command that compiles a C file for a board, as a pure function of the board."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from glowc.board.model import Board

_LANGUAGE = ("-std=c11", "-Wall", "-Wextra", "-ffunction-sections", "-fdata-sections")

# Bare-metal A64 is built with the Linux compiler, whose defaults serve a loader and an unwinder.
_BARE_A64 = ("-fno-pie", "-fno-asynchronous-unwind-tables", "-fno-stack-protector")


def compile_argv(
    cc: Path,
    board: Board,
    source: Path,
    out: Path,
    *,
    include_dirs: Iterable[Path] = (),
    defines: Iterable[str] = (),
    opt: str = "-O2",
    extra_flags: Iterable[str] = (),
) -> list[str]:
    """Return the command that compiles `source` to object file `out`; `extra_flags` come last and win."""
    bare_a64 = board.bare_metal and board.cpu.family == "cortex-a64"
    return [
        str(cc),
        *board.cpu.cflags,
        *_LANGUAGE,
        opt,
        *(_BARE_A64 if bare_a64 else ()),
        *board.cflags,
        *(f"-I{path}" for path in (*include_dirs, *board.include_dirs)),
        *(f"-D{define}" for define in (*board.defines, *defines)),
        *extra_flags,
        "-c",
        str(source),
        "-o",
        str(out),
    ]
