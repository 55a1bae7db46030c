"""Cycles of the blocks of a program on a core, without memory that makes it wait: by the manual's rules or llvm-mca."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from glowc.board import Board, find_tool, install_command
from glowc.errors import BoardError, MissingToolError
from glowc.machine.cycles.mca import MCA, MODELS, assembly, block_cycles
from glowc.machine.cycles.rules import CORES, Cycles, cycles_of
from glowc.machine.cycles.trace import Block
from glowc.machine.listing import read_functions

T = TypeVar("T")
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Trust:
    """How far a core's model may be off, and what it was checked against."""

    percent: int | None  # None: never checked against silicon
    checked: str


UNCHECKED = Trust(None, "not checked against silicon")
TRUST = {
    "cortex-m4": Trust(8, "eight programs measured on an STM32L4R5, none of them fitted"),
    "cortex-m33": Trust(10, "four programs measured on an nRF5340, three rules fitted to them"),
    "cortex-m7": Trust(15, "estimated from the scheduling model of LLVM 19"),
    "cortex-m55": Trust(20, "cycles an instruction of two layers counted on an Apollo510, with other kernels"),
}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What blocks take on a core, by place; `taken` and `unaligned` are cycles for each of them."""

    blocks: Mapping[Place, Cycles]
    insns: Mapping[Place, int]
    taken: float
    unaligned: float


def known_cores() -> tuple[str, ...]:
    """Return the names of the cores whose cycles can be counted, sorted."""
    return tuple(sorted({*CORES, *MODELS}))


_NOTHING = "chips with Cortex-M0, M0+, M3, M4 and M33 need nothing"


def missing_tool(core: str) -> str:
    """Return what keeps the cycles of a core from being counted here; nothing where all is installed."""
    return f"counting the cycles of {core} needs {MCA}" if core in MODELS and find_tool(MCA) is None else ""


def read_pipeline(elf: Path, board: Board, core: str, blocks: Iterable[Block]) -> Pipeline:
    """Return the cycles of blocks of an ELF on `core`.

    Raises BoardError for a core that nothing is known of, ToolError when a tool is missing or fails.
    """
    places = sorted({(block.begin, block.end) for block in blocks})
    if core in CORES:
        return _by_rules(elf, board, core, places)
    if core not in MODELS:
        raise BoardError(f"no rules for the cycles of {core}", details=["known: " + ", ".join(known_cores())])
    missing = missing_tool(core)
    if missing:
        raise MissingToolError(missing, hint="; ".join(filter(None, (install_command([MCA]), _NOTHING))))
    return _by_mca(elf, core, places)


def _by_rules(elf: Path, board: Board, core: str, places: Sequence[Place]) -> Pipeline:
    functions = read_functions(elf, board).values()
    bodies = _bodies({insn.address: insn for f in functions for insn in f.insns}, places)
    rules = CORES[core]
    cycles = {place: cycles_of(body, rules) for place, body in bodies.items()}
    return Pipeline(cycles, {p: len(body) for p, body in bodies.items()}, rules.taken, rules.unaligned)


def _by_mca(elf: Path, core: str, places: Sequence[Place]) -> Pipeline:
    model, told = MODELS[core], _told(core)
    bodies = {place: tuple(body) for place, body in _bodies(assembly(elf, model), places).items()}
    new = dict(enumerate(dict.fromkeys(body for body in bodies.values() if body not in told)))
    told |= {new[key]: count for key, count in block_cycles(new, model).items()}
    cycles = {place: Cycles(issue=told[body]) for place, body in bodies.items()}
    return Pipeline(cycles, {p: len(body) for p, body in bodies.items()}, model.taken, 0)


@cache
def _told(_: str) -> dict[tuple[str, ...], float]:
    """Return what llvm-mca told of blocks on a core; programs have many of them in common."""
    return {}


def _bodies(insns: Mapping[int, T], places: Sequence[Place]) -> dict[Place, list[T]]:
    """Return the instructions between the two addresses of each place."""
    addresses = sorted(insns)
    spans = {p: (bisect_left(addresses, p[0]), bisect_left(addresses, p[1])) for p in places}
    return {place: [insns[a] for a in addresses[begin:end]] for place, (begin, end) in spans.items()}
