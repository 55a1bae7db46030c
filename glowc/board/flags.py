"""The command lines of compiler and linker, as pure functions of a board."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from glowc.board.model import Board, Cpu
from glowc.paths import data_dir

_LANGUAGE = ("-std=c11", "-Wall", "-Wextra", "-ffunction-sections", "-fdata-sections")

# Bare-metal A64 is built with the Linux compiler, whose defaults serve a loader and an unwinder.
_BARE_A64 = ("-fno-pie", "-fno-asynchronous-unwind-tables", "-fno-stack-protector")


def native_cpu() -> str | None:
    """Return the CPU of board host whose kernels are made for this machine, None where there is none."""
    return "x86-64" if platform.machine() in ("x86_64", "AMD64") else None


def native_flags(cpu: Cpu) -> tuple[str, ...]:
    """Return what makes code fast that runs on this machine and no other; nothing for other CPUs."""
    if cpu.family != "host":
        return ()
    # gcc for Windows does not align the stack for vectors
    return ("-O3", "-march=native") if native_cpu() and sys.platform != "win32" else ("-O3",)


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
        *(f"-I{path.as_posix()}" for path in (*include_dirs, *board.include_dirs)),
        *(f"-D{define}" for define in (*board.defines, *defines)),
        *extra_flags,
        "-c",
        source.as_posix(),
        "-o",
        out.as_posix(),
    ]


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
        *_at_link(board),
        *board.ldflags,
        *extra_flags,
        *(path.as_posix() for path in objects),
        *after,
        "-o",
        out.as_posix(),
    ]


def _at_link(board: Board) -> tuple[str, ...]:
    """Return the flags that drop what is unused; the linkers of Windows and macOS know but some."""
    if board.cpu.family != "host" or sys.platform == "win32":
        return ("-Wl,--gc-sections",)
    if sys.platform == "darwin":
        return ("-Wl,-dead_strip",)
    # without -z now the first call of expf would look it up, on the stack of the inference
    return ("-Wl,--gc-sections", "-Wl,-z,now")


def _script(board: Board) -> tuple[str, ...]:
    if board.linker_script is None:
        return ()
    return (
        f"-T{board.linker_script.as_posix()}",
        f"-L{(data_dir('boards') / '_common').as_posix()}",  # where the script's INCLUDE is
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
