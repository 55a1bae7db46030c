"""boards/_chips/ -> Chip: what the cycles of a program depend on besides the core, its clock, flash and caches; the
emulated board that runs the code of a board which cannot be run from here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from glowc.board.fields import Fields, read_toml, suggestion
from glowc.board.load import board_names, cpu_names, finish, load_board, load_cpu
from glowc.board.model import Board
from glowc.errors import UnknownBoardError
from glowc.paths import data_dir


@dataclass(frozen=True, slots=True)
class Cache:
    """Lines of a cache, the least recently used replaced first; one set: any line may have any address."""

    line_bytes: int
    ways: int
    sets: int

    @property
    def size_bytes(self) -> int:
        """All bytes of the cache."""
        return self.line_bytes * self.ways * self.sets


@dataclass(frozen=True, slots=True)
class Flash:
    """What fetches and reads of flash wait for, in cycles of the core.

    A line that follows the one which missed before has been asked for ahead: `fetch_sequential_cycles`. `unified`: one
    cache has instructions and data.
    """

    fetch_miss_cycles: int = 0
    fetch_sequential_cycles: int = 0
    data_miss_cycles: int = 0
    instruction_cache: Cache | None = None
    data_cache: Cache | None = None
    unified: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """Slow memory that all constants and tensors lie in, as on Cortex-A: `cache` is the second one in front of it.

    A read waits `miss_cycles` for a line; one that follows others was asked for ahead, of which one comes in
    `sequential_cycles`, while the core computes.
    """

    cache: Cache
    miss_cycles: int
    sequential_cycles: int


# A byte of constants takes as much energy as this many cycles: one number for all chips, which scripts/energy.py fits
# to 16 published measurements. Anomaly detection, which reads each weight once, takes up to 11 % more than its cycles
# alone would say.
CYCLES_OF_A_CONSTANT_BYTE = 0.113


@dataclass(frozen=True, slots=True)
class Energy:
    """What a cycle of a chip takes, in picojoules: fitted to energy that was measured on it and published.

    `error_percent` is the worst error of a measurement that is predicted from all others (scripts/energy.py).
    """

    pj_per_cycle: float
    error_percent: int
    source: str

    def microjoules(self, cycles: float, constant_bytes: int) -> float:
        """Return what cycles take, in which `constant_bytes` come from flash, each byte counted once."""
        return (cycles + CYCLES_OF_A_CONSTANT_BYTE * constant_bytes) * self.pj_per_cycle / 1e6


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip, as `boards/_chips/<name>.toml` describes it.

    `cpu` names the CPU whose code it runs and `machine` the QEMU board that runs that code; `core` is the pipeline that
    counts the cycles. `measured` says which programs with known cycles on this very chip the model was compared with,
    `assumed` what no manual or measurement supports. `energy` is None where no
    measurement of the chip's energy is published, `memory` where RAM has no wait states.
    """

    name: str
    summary: str
    url: str
    cpu: str
    core: str
    machine: str
    clock_mhz: int
    flash: Flash
    measured: str = ""
    assumed: str = ""
    energy: Energy | None = None
    memory: Memory | None = None

    def milliseconds(self, cycles: float) -> float:
        """Return how long cycles take."""
        return cycles / (1000 * self.clock_mhz)


def chip_names() -> tuple[str, ...]:
    """Return the names of all chips, sorted."""
    return tuple(sorted(path.stem for path in (data_dir("boards") / "_chips").glob("*.toml")))


def load_chip(name_or_file: str) -> Chip:
    """Return a chip by its name or its .toml file. Raises BoardError if it is unknown or its file is wrong."""
    path = _chip_file(name_or_file)
    name = path.stem
    fields = Fields(read_toml(path))
    cpu = fields.choice("cpu", cpu_names())
    chip = Chip(
        name=name,
        summary=fields.string("summary"),
        url=fields.string("url"),
        cpu=cpu,
        core=fields.string("core") if fields.has("core") else cpu,
        machine=fields.choice("machine", board_names()),
        clock_mhz=fields.integer("clock_mhz", minimum=1),
        flash=_flash(fields),
        measured=fields.string("measured") if fields.has("measured") else "",
        assumed=fields.string("assumed") if fields.has("assumed") else "",
        energy=_energy(fields),
        memory=_memory(fields),
    )
    finish(fields, path)
    return chip


def _chip_file(name_or_file: str) -> Path:
    if name_or_file in chip_names():
        return data_dir("boards") / "_chips" / f"{name_or_file}.toml"
    file = Path(name_or_file)
    if file.suffix == ".toml" and file.is_file():
        return file
    raise UnknownBoardError(
        f'unknown chip "{name_or_file}"{suggestion(name_or_file, chip_names())}',
        details=["known: " + ", ".join(chip_names())],
        hint="a chip may also be a .toml file, given as a path: docs/CYCLES.md",
    )


def _flash(fields: Fields) -> Flash:
    if not fields.has("flash"):
        return Flash()
    table = fields.table("flash")
    waits = ("fetch_miss_cycles", "fetch_sequential_cycles", "data_miss_cycles")
    fetch, sequential, data = (table.integer(key, minimum=0) for key in waits)
    unified = table.boolean("unified") if table.has("unified") else False
    instruction, constants = (_cache(table, key) for key in ("instruction_cache", "data_cache"))
    table.reject_unknown()
    fields.problems += table.problems
    return Flash(fetch, sequential, data, instruction, constants, unified)


def _energy(fields: Fields) -> Energy | None:
    if not fields.has("energy"):
        return None
    table = fields.table("energy")
    energy = Energy(
        table.number("pj_per_cycle", above=0), table.integer("error_percent", minimum=1), table.string("source")
    )
    table.reject_unknown()
    fields.problems += table.problems
    return energy


def _memory(fields: Fields) -> Memory | None:
    if not fields.has("memory"):
        return None
    table = fields.table("memory")
    waits = [table.integer(key, minimum=0) for key in ("miss_cycles", "sequential_cycles")]
    cache = _cache(table, "cache")
    if cache is None:
        table.problem("cache", "missing or wrong")
    table.reject_unknown()
    fields.problems += table.problems
    return None if cache is None else Memory(cache, *waits)


def _cache(fields: Fields, key: str) -> Cache | None:
    if not fields.has(key):
        return None
    table = fields.table(key)
    cache = Cache(*(table.integer(what, minimum=1) for what in ("line_bytes", "ways", "sets")))
    table.reject_unknown()
    fields.problems += table.problems
    return cache


def default_chip(board: Board) -> Chip | None:
    """Return the first of a board's chips that has its CPU; None when it names none."""
    chips = map(load_chip, board.chips)
    return next((chip for chip in chips if chip.cpu == board.cpu.name), None)


def machine_of(chip: Chip) -> Board:
    """Return the QEMU board that runs code for the chip's CPU."""
    return replace(load_board(chip.machine), cpu=load_cpu(chip.cpu))


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
