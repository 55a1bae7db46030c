"""C sources + a board -> an ELF with its sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from glowc.board import Board, require_tool, run_tool, shell_text
from glowc.board.flags import compile_argv, link_argv
from glowc.errors import ToolError
from glowc.machine.elf import Sizes, sections

_JOBS = 2
_MESSAGE_LINES = 40  # of a compiler's message; the first errors are the telling ones


@dataclass(frozen=True, slots=True)
class Elf:
    """A built image. `path` is the folder of the objects when nothing was linked.

    `sizes` are bytes of the whole image, start-up and libraries included, after unused sections were
    dropped; `object_sizes` are those of the caller's own sources before that, by file name.
    """

    path: Path
    sizes: Sizes
    object_sizes: Mapping[str, Sizes]

    @property
    def text(self) -> int:
        """Return the bytes of code."""
        return self.sizes.text

    @property
    def rodata(self) -> int:
        """Return the bytes of constants."""
        return self.sizes.rodata

    @property
    def data(self) -> int:
        """Return the bytes of initialised variables."""
        return self.sizes.data

    @property
    def flash(self) -> int:
        """Return the bytes that are flashed: code, constants and initial values."""
        return self.text + self.rodata + self.data

    @property
    def bss(self) -> int:
        """Return the bytes of zeroed variables, the arena included, the stack not."""
        return self.sizes.bss


def build_elf(
    sources: Sequence[Path],
    board: Board,
    out_elf: Path,
    *,
    include_dirs: Sequence[Path] = (),
    defines: Sequence[str] = (),
    opt: str = "-O2",
    extra_flags: Sequence[str] = (),
    link: bool = True,
) -> Elf:
    """Compile `sources` with the board's own and link them to `out_elf`; objects among them stay as they are.

    `extra_flags` go to every compilation and to the link. With `link=False` only `sources` are
    compiled. Objects are kept beside the ELF in `<stem>.obj/`. Raises ToolError if the compiler is
    missing or reports an error.
    """
    cc = require_tool(board.cpu.cc)
    folder = out_elf.parent / f"{out_elf.stem}.obj"
    folder.mkdir(parents=True, exist_ok=True)
    every = [*sources, *board.sources] if link else list(sources)
    objects = _object_paths(every, folder)

    def compile_one(source: Path, out: Path) -> None:
        if source == out:
            return
        argv = compile_argv(
            cc,
            board,
            source,
            out,
            include_dirs=include_dirs,
            defines=defines,
            opt=opt,
            extra_flags=extra_flags,
        )
        _call(argv, f"cannot compile {source.name} for board {board.name} ({board.cpu.name})")

    with ThreadPoolExecutor(_JOBS) as pool:
        for _ in pool.map(compile_one, every, objects):
            pass  # fetching a result raises its error: the first, in the order of the sources
    own = dict(zip(_names(sources), objects, strict=False))
    object_sizes = {name: Sizes.of(sections(path)) for name, path in own.items()}
    if not link:
        total = Sizes.of(section for path in objects for section in sections(path))
        return Elf(folder, total, MappingProxyType(object_sizes))
    _call(
        link_argv(cc, board, objects, out_elf, extra_flags=extra_flags),
        f"cannot link {out_elf.name} for board {board.name}",
    )
    return Elf(out_elf, Sizes.of(sections(out_elf)), MappingProxyType(object_sizes))


def _object_paths(sources: Sequence[Path], folder: Path) -> list[Path]:
    """Return one object path per source; a second file of the same stem gets a number."""
    paths: list[Path] = []
    for source in sources:
        if source.suffix == ".o":
            paths.append(source)
            continue
        path, number = folder / f"{source.stem}.o", 2
        while path in paths:
            path, number = folder / f"{source.stem}-{number}.o", number + 1
        paths.append(path)
    return paths


def _names(sources: Sequence[Path]) -> list[str]:
    """Return the file names; the whole path where two sources share one."""
    names = [source.name for source in sources]
    return [name if names.count(name) == 1 else str(source) for name, source in zip(names, sources, strict=True)]


def _call(argv: list[str], failure: str) -> None:
    done = run_tool(argv)
    if done.returncode == 0:
        return
    lines = (done.stderr + done.stdout).splitlines()
    if len(lines) > _MESSAGE_LINES:
        lines = [*lines[:_MESSAGE_LINES], f"... and {len(lines) - _MESSAGE_LINES} more lines"]
    raise ToolError(f"{failure} (exit status {done.returncode})", details=[*lines, "command: " + shell_text(argv)])
