"""A regression test that runs without glowc: a bundle with test vectors, what the board needs, and a Makefile."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from glowc.board import Board
from glowc.board.flags import compile_argv, link_argv
from glowc.codegen.kernels import environment
from glowc.codegen.names import c_ident
from glowc.compiler.bom import as_bytes
from glowc.compiler.files import check_path, take_places
from glowc.errors import BoardError, FileError, reason_of
from glowc.machine.execute import BundleInfo, bundle_defines
from glowc.machine.qemu import run_argv
from glowc.paths import data_dir, full_version

MARK = "glowc-kit.txt"
_OBJECT = "OBJECT"


@dataclass(frozen=True, slots=True)
class Kit:
    """The files of a kit by their path inside it."""

    files: Mapping[str, str | bytes]


@dataclass(frozen=True, slots=True)
class _Commands:
    """What the Makefile prints: words of make, with paths inside the kit; `qemu` is empty where none is needed."""

    cflags: Sequence[str]
    ldflags: Sequence[str]
    libraries: Sequence[str]
    sources: Sequence[str]
    objects: Sequence[str]
    run: str
    qemu: str


def kit_of(info: BundleInfo, board: Board) -> Kit:
    """Return the kit of a bundle with test vectors. Raises BoardError for a board that no emulator runs."""
    if not board.runs:
        raise BoardError(
            f'board "{board.name}" is real hardware: no emulator runs a test of it',
            hint="use an emulated board with the same core, see `glowc boards`",
        )
    ours = {f"model/{path.name}": path.read_bytes() for path in sorted(info.folder.iterdir()) if path.is_file()}
    theirs = {f"board/{path.name}": path.read_bytes() for path in _board_files(board)}
    made = {name: _text(name, info, board) for name in ("Makefile", "test.c")}
    return Kit(
        {MARK: f"Written by glowc {full_version()} test-kit, which replaces these files.\n", **made, **theirs, **ours}
    )


def _text(name: str, info: BundleInfo, board: Board) -> str:
    prefix = c_ident(info.name).lower()
    template = environment().get_template(f"kit/{name}.j2")
    return template.render(name=info.name, prefix=prefix, P=prefix.upper(), board=board, make=_commands(info, board))


def _board_files(board: Board) -> Iterator[Path]:
    yield from board.sources
    for folder in board.include_dirs:
        yield from sorted(folder.glob("*.h"))
    if board.linker_script is not None:
        yield board.linker_script
        yield from sorted((data_dir("boards") / "_common").glob("*.ld"))


def _commands(info: BundleInfo, board: Board) -> _Commands:
    script = Path("board") / board.linker_script.name if board.linker_script is not None else None
    here = replace(board, include_dirs=(Path("board"),), linker_script=script)
    one, defines = Path(_OBJECT), bundle_defines(info, board)
    compiled = compile_argv(one, here, one, one, include_dirs=[Path("model")], defines=defines, opt=info.optimisation)
    linked = link_argv(Path("ld"), here, [one], one)
    before, after = linked[1 : linked.index(_OBJECT)], linked[linked.index(_OBJECT) + 1 : linked.index("-o")]
    own = [f"{info.name}.c", info.weights_source, f"{info.name}_golden.c", *info.report.get("extern_sources", [])]
    files = ["test.c", *(f"model/{name}" for name in own), *(f"board/{path.name}" for path in board.sources)]
    objects = [name for name in files if name.endswith(".o")]
    sources = [name for name in files if name not in objects]
    cflags = [_quoted(flag) for flag in compiled[1 : compiled.index("-c")]]
    return _Commands(cflags, [_quoted(_inside(flag)) for flag in before], after, sources, objects, *_run(board))


def _run(board: Board) -> tuple[str, str]:
    """Return the command that runs the image, and the emulator's name where one does."""
    program, *arguments = run_argv(Path("ELF"), board)
    words = [_quoted(word).replace("ELF", "$(ELF)") for word in arguments]
    return (" ".join(["$(QEMU)", *words]), program) if program != "ELF" else ("$(ELF)", "")


def _inside(flag: str) -> str:
    return "-Lboard" if flag.startswith("-L") else flag


def _quoted(flag: str) -> str:
    """Return a word as a shell of make takes it, be it cmd.exe."""
    return '"' + flag.replace('"', '\\"') + '"' if set(flag) & set('"() ;&|<>*?') else flag


def write_kit(kit: Kit, folder: Path, *, force: bool = False) -> None:
    """Write a kit into a folder that is absent, empty, or holds an earlier kit; files of others stay.

    Raises GlowcError when the folder holds files of others (`force` writes beside and over them), or cannot be written.
    """
    check_path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"cannot write {folder}: it is a file")
    others = sorted(p.name for p in folder.iterdir()) if folder.is_dir() and not (folder / MARK).is_file() else []
    if others and not force:
        raise FileError(f"{folder} holds files and is no test kit of glowc", details=others[:5],
                         hint="choose another folder, or --force to write beside and over them")  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".glowc-", dir=folder, ignore_cleanup_errors=True) as temporary:
            for name, content in kit.files.items():
                (Path(temporary) / name).parent.mkdir(exist_ok=True)
                (Path(temporary) / name).write_bytes(as_bytes(content))
            take_places(Path(temporary), folder, kit.files)
    except OSError as error:
        raise FileError(f"cannot write {folder}: {reason_of(error)}") from error
