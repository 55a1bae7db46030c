"""A board and the user's wishes to the memory regions of a split arena, with the bytes that each may take."""

from __future__ import annotations

from collections.abc import Sequence

from glowc.board.fields import suggestion
from glowc.board.model import Board
from glowc.errors import InputError


def arena_rooms(board: Board, split: bool, wanted: Sequence[tuple[str, int | None]]) -> tuple[tuple[str, int], ...]:
    """Return (region, bytes), the fastest first; nothing when the arena stays whole.

    `split` takes all arena_regions of the board. `wanted` names regions with their bytes, None for all that the board
    has: only those are taken, or, with `split`, get another size. A board without arena_regions takes any name, as long
    as it has a size. InputError names everything that is wrong at once.
    """
    if not split and not wanted:
        return ()
    known = board.arena_rooms
    sizes = dict(wanted)
    problems = [f'region "{name}" is given twice' for name in sizes if [n for n, _ in wanted].count(name) > 1]
    if split and not known:
        problems.append(f'board "{board.name}" has no arena_regions')
    for name, size in sizes.items():
        problems += _problems(board, name, size)
    if problems:
        hint = "regions: " + ", ".join(f"{n} (at most {size} bytes)" for n, size in known.items())
        raise InputError(
            f"the arena cannot be split so on {board.name}",
            details=problems,
            hint=hint if known else "name every region with its size: --region fast=65536 --region slow=262144",
        )
    names = [n for n in known if split or n in sizes] if known else list(sizes)
    return tuple((name, sizes.get(name) or known[name]) for name in names)


def _problems(board: Board, name: str, size: int | None) -> list[str]:
    known = board.arena_rooms
    if known and name not in known:
        return [f'unknown region "{name}"{suggestion(name, known)}']
    if known and size is not None and size > board.memory[name].size_bytes:
        return [f'region "{name}" has {board.memory[name].size_bytes} bytes, not {size}']
    if not known and size is None:
        return [f'region "{name}" needs a size']
    return []
