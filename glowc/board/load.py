"""boards/ -> Board and Cpu. A board is a folder with a board.toml, here or anywhere; a CPU is a file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from glowc.board.fields import Fields, read_toml, suggestion
from glowc.board.model import FAMILIES, ArenaRegion, Board, Cpu, Region
from glowc.errors import DescriptionError, UnknownBoardError
from glowc.paths import data_dir

_DEFAULT_TIMEOUT_S = 60


def cpu_names() -> tuple[str, ...]:
    """Return the names of all CPUs, sorted."""
    return tuple(sorted(_cpu_files()))


def _cpu_files(board: Path | None = None) -> dict[str, Path]:
    """Return the files of CPUs by name: glowc's own, and those in the folder `_cpu` of a board."""
    folders = [data_dir("boards"), *([] if board is None else [board])]
    return {path.stem: path for folder in folders for path in sorted((folder / "_cpu").glob("*.toml"))}


def board_names() -> tuple[str, ...]:
    """Return the names of all boards that come with glowc, sorted."""
    return tuple(sorted(path.parent.name for path in data_dir("boards").glob("[!_]*/board.toml")))


def load_cpu(name: str, board: Path | None = None) -> Cpu:
    """Return the CPU `name`, of those that the folder `board` brings too. BoardError: unknown, or its file is wrong."""
    known = _cpu_files(board)
    if name not in known:
        raise UnknownBoardError(
            f'unknown CPU "{name}"{suggestion(name, tuple(known))}',
            details=["known: " + ", ".join(sorted(known))],
        )
    path = known[name]
    fields = Fields(read_toml(path))
    cpu = Cpu(
        name=name,
        summary=fields.string("summary"),
        url=fields.string("url"),
        family=fields.choice("family", FAMILIES),
        features=frozenset(fields.strings("features")),
        cc=fields.string("cc"),
        cflags=fields.strings("cflags"),
        align_bytes=fields.integer("align_bytes", minimum=1),
        line_bytes=fields.integer("line_bytes", minimum=1) if fields.has("line_bytes") else 1,
        qemu_cpu=fields.string("qemu_cpu") if fields.has("qemu_cpu") else None,
        loop_bytes=fields.integer("loop_bytes", minimum=1) if fields.has("loop_bytes") else None,
        slow_flash=fields.boolean("slow_flash") if fields.has("slow_flash") else False,
        near_bytes=fields.integer("near_bytes", minimum=1) if fields.has("near_bytes") else 0,
        cycles_per_100_insns=(
            fields.integer("cycles_per_100_insns", minimum=1) if fields.has("cycles_per_100_insns") else 100
        ),
    )
    # A fused multiply-add rounds once instead of twice: other bits than the reference.
    if "-ffp-contract=off" not in cpu.cflags:
        fields.problem("cflags", "must contain -ffp-contract=off")
    finish(fields, path)
    return cpu


def load_board(name_or_path: str, cpu: str | None = None) -> Board:
    """Return a board by its name or its folder, for `cpu` or the board's default CPU.

    Raises BoardError, with every problem found, if the board is unknown, its description is wrong,
    or it cannot have that CPU.
    """
    folder = _board_folder(name_or_path)
    path = folder / "board.toml"
    fields = Fields(read_toml(path))
    default, cpus = _cpus(fields, tuple(sorted(_cpu_files(folder))))
    memory = _regions(fields)
    arena_regions = _arena_regions(fields, memory)
    script = _paths(fields, "linker_script", folder)
    parts = partial(
        Board,
        name=folder.name,
        summary=fields.string("summary"),
        url=fields.string("url"),
        folder=folder,
        cpus=cpus,
        memory=MappingProxyType(memory),
        arena_region=fields.choice("arena_region", memory),
        weights_region=fields.choice("weights_region", memory),
        linker_script=script[0] if script else None,
        sources=_paths(fields, "sources", folder),
        include_dirs=(data_dir("runtime_c") / "io", *_paths(fields, "include_dirs", folder)),
        defines=fields.strings("defines", optional=True),
        cflags=fields.strings("cflags", optional=True),
        ldflags=fields.strings("ldflags", optional=True),
        stack_bytes=_stack_bytes(fields, script),
        run_argv=_run_argv(fields),
        timeout_s=fields.integer("timeout_s", minimum=1) if fields.has("timeout_s") else _DEFAULT_TIMEOUT_S,
        flash=fields.string("flash") if fields.has("flash") else None,
        arena_regions=arena_regions,
        wire_sources=_paths(fields, "wire_sources", folder),
        wire_defines=fields.strings("wire_defines", optional=True),
        cores_source=next(iter(_paths(fields, "cores_source", folder)), None),
        chips=fields.strings("chips", optional=True),
    )
    finish(fields, path)
    if cpu is not None and cpu not in cpus:
        raise UnknownBoardError(
            f'board "{folder.name}" has no CPU "{cpu}"{suggestion(cpu, cpus)}',
            details=["it can have: " + ", ".join(cpus)],
        )
    return parts(cpu=load_cpu(cpu or default, folder))


def _stack_bytes(fields: Fields, script: tuple[Path, ...]) -> int | None:
    """Return the stack of a board with a linker script; others have none to place."""
    if not script and fields.has("stack_bytes"):
        fields.problem("stack_bytes", "is for a board with a linker_script, which this one lacks")
    return fields.integer("stack_bytes", minimum=256) if script else None


def _cpus(fields: Fields, known: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the default CPU and all that the board can have."""
    default, cpus = fields.choice("cpu", known), fields.strings("cpus")
    for index, name in enumerate(cpus):
        if name not in known:
            fields.problem(f"cpus[{index}]", f'unknown CPU "{name}"{suggestion(name, known)}')
    if default and cpus and default not in cpus:
        fields.problem("cpu", f'"{default}" is not in cpus')
    return default, cpus


def _board_folder(name_or_path: str) -> Path:
    if name_or_path in board_names():
        return data_dir("boards") / name_or_path
    folder = Path(name_or_path)
    if (folder / "board.toml").is_file():
        return folder.resolve()
    if folder.is_dir():
        raise DescriptionError(f'folder "{name_or_path}" holds no board.toml')
    raise UnknownBoardError(
        f'unknown board "{name_or_path}"{suggestion(name_or_path, board_names())}',
        details=["known: " + ", ".join(board_names())],
        hint=_chip_hint(name_or_path) or "a board may also be a folder with a board.toml, given as a path",
    )


def _chip_hint(name: str) -> str | None:
    """Return the boards of a chip of that name, None where there is no such chip."""
    if not (data_dir("boards") / "_chips" / f"{name}.toml").is_file():
        return None
    files = {board: Fields(read_toml(data_dir("boards") / board / "board.toml")) for board in board_names()}
    having = [board for board, fields in files.items() if fields.has("chips") and name in fields.strings("chips")]
    boards = f"boards that have it: {', '.join(having)}; " if having else ""
    return f"{name} is a chip: {boards}`glowc bench MODEL --chip {name}` counts its milliseconds"


def _regions(fields: Fields) -> dict[str, Region]:
    regions = {}
    for name, table in fields.tables("memory").items():
        regions[name] = Region(
            name=name,
            origin=table.integer("origin", minimum=0),
            size_bytes=table.integer("size_bytes", minimum=1),
            kind=table.choice("kind", ("flash", "ram")),
        )
        table.reject_unknown()
        fields.problems += table.problems
    return regions


def _arena_regions(fields: Fields, memory: Mapping[str, Region]) -> tuple[ArenaRegion, ...]:
    """Return the regions for an arena that is split: RAM, each once, with more bytes than are reserved."""
    ram = {name: region for name, region in memory.items() if region.kind == "ram"}
    regions: list[ArenaRegion] = []
    for table in fields.table_list("arena_regions"):
        name = table.choice("region", ram)
        reserve_bytes = table.integer("reserve_bytes", minimum=0) if table.has("reserve_bytes") else 0
        if name in ram and reserve_bytes >= ram[name].size_bytes:
            table.problem("reserve_bytes", f'"{name}" has {ram[name].size_bytes} bytes in all')
        if any(name == r.region for r in regions):
            table.problem("region", f'"{name}" is there already')
        regions.append(ArenaRegion(name, reserve_bytes))
        table.reject_unknown()
        fields.problems += table.problems
    return tuple(regions)


def _paths(fields: Fields, key: str, folder: Path) -> tuple[Path, ...]:
    """Return the files of field `key` (a string or a list; may be absent), checked to exist.

    {common} is boards/_common, {runtime} is runtime_c; anything else is relative to the board's folder.
    """
    if not fields.has(key):
        return ()
    texts = (fields.string(key),) if key in ("linker_script", "cores_source") else fields.strings(key)
    paths = []
    for text in texts:
        text = text.replace("{common}", str(data_dir("boards") / "_common"))
        text = text.replace("{runtime}", str(data_dir("runtime_c")))
        path = folder / text
        if not path.exists():
            fields.problem(key, f"{path} does not exist")
        paths.append(path)
    return tuple(paths)


def _run_argv(fields: Fields) -> tuple[str, ...]:
    argv = fields.strings("run", optional=True)
    if argv and "{elf}" not in argv:
        fields.problem("run", "needs {elf} as one of its arguments")
    return argv


def finish(fields: Fields, path: Path) -> None:
    """Raise BoardError with every problem that was found in the fields of a file."""
    fields.reject_unknown()
    if fields.problems:
        count = len(fields.problems)
        raise DescriptionError(
            f"{path}: {count} problem{'s' if count > 1 else ''}",
            details=fields.problems,
            hint="docs/BOARDS.md names every field; `glowc board new` copies a board that works",
        )
