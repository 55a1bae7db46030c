"""The emulated board that runs the code of a board which cannot be run from here."""

from __future__ import annotations

from dataclasses import replace

from glowc.board.chips import chip_names, default_chip, load_chip, machine_of
from glowc.board.load import board_names, load_board
from glowc.board.model import Board


def emulated(board: Board) -> Board | None:
    """Return the board itself where it runs, else an emulated one of the same core; None where there is none.

    That of the board's chip comes first: cycles are counted there. A CPU of the user's own is taken for the core that
    its compiler flags name.
    """
    if board.runs:
        return board
    chip = default_chip(board)
    if chip is not None:
        return machine_of(chip)
    known = [found for found in map(load_board, board_names()) if found.counts_insns]
    for like in known:
        if board.cpu.name in like.cpus:
            return load_board(like.name, board.cpu.name)
    for other in map(load_chip, chip_names()):
        if other.cpu == board.cpu.name:
            return machine_of(other)
    named = (like for like in known if set(_core(like)) <= set(_core(board)) and like.bare_metal == board.bare_metal)
    return next((replace(like, cpu=board.cpu) for like in named if _core(like)), None)


def _core(board: Board) -> tuple[str, ...]:
    """Return the compiler flags that say which core it is."""
    return tuple(flag.partition("+")[0] for flag in board.cpu.cflags if flag.startswith(("-mcpu=", "-march=")))
