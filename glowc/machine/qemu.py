"""ELF + board -> exit status, output and instruction counts: on the host, under qemu-user or QEMU.

The plugins of QEMU that count and trace are compiled once per version into the cache.
"""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from glowc.board import Board, emulated, require_tool, run_tool
from glowc.errors import BoardError, ToolError
from glowc.machine.elf import symbols
from glowc.machine.flash import flash_text
from glowc.paths import data_dir, find_cached, store_cached

PLUGINS = sys.platform != "win32"  # whether QEMU takes what is compiled here
_FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")


def compiled_plugin(name: str) -> Path:
    """Return the plugin `name` of boards/_common/plugin, compiling it on first use.

    Its name holds a hash of sources and flags, and it appears under that name only when complete, so
    that parallel first uses do not disturb each other. Raises ToolError if the compiler is missing or
    fails.
    """
    if not PLUGINS:
        raise ToolError("instructions are counted by a plugin of QEMU, which glowc builds on Linux and macOS",
                        hint="count in WSL or in a container: docs/PLATFORMS.md")  # fmt: skip
    folder = data_dir("boards") / "_common" / "plugin"
    source = folder / f"{name}.c"
    text = b"".join(path.read_bytes() for path in (source, folder / "glow_qemu.h")) + " ".join(_FLAGS).encode()
    library = f"{name}-{hashlib.sha256(text).hexdigest()[:16]}.so"
    return find_cached(library) or _compile(source, library)


def _compile(source: Path, name: str) -> Path:
    cc, symbols_later = require_tool("gcc"), ["-Wl,-undefined,dynamic_lookup"] if sys.platform == "darwin" else []
    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        library = Path(folder) / name
        argv = [str(cc), *_FLAGS, *symbols_later, str(source), "-o", str(library)]
        done = run_tool(argv)
        if done.returncode != 0:
            raise ToolError(f"cannot compile QEMU's plugin {source.name}", details=done.stderr.splitlines())
        return store_cached(name, library.read_bytes())


_LAST_LINES = 20
_TRACE_SLOWER = 5


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a program leaves when it ends.

    `marks` are the instructions executed since reset at each call of glow_mark; only differences
    between them mean something, and two adjacent calls tell what a mark itself costs.
    """

    exit_status: int  # negative: ended by that signal
    stdout: str
    stderr: str
    marks: tuple[int, ...] = ()


def run_elf(
    elf: Path,
    board: Board,
    *,
    cwd: Path,
    timeout_s: int | None = None,
    marks: bool = False,
    check: bool = True,
) -> RunResult:
    """Run `elf` on `board` with its files in `cwd`; `marks` counts executed instructions.

    Raises BoardError if the board cannot run programs (or cannot count), and ToolError if QEMU is
    missing, the time is up (`timeout_s`, or the board's own limit), or, unless `check` is false, the
    program ends with a status other than 0.
    """
    require_runnable(board, marks=marks, elf=elf)
    if not marks:
        return _run(elf, board, (), cwd, timeout_s, check)
    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        out = Path(folder) / "marks.txt"
        plugin = ("-plugin", plugin_argument("glow_count", elf, out))
        result = _run(elf, board, plugin, cwd, timeout_s, check)
        counts = tuple(int(line) for line in out.read_text(encoding="utf-8").split()) if out.exists() else ()
        return RunResult(result.exit_status, result.stdout, result.stderr, counts)


def trace_elf(elf: Path, board: Board, *, cwd: Path, caches: Sequence[str]) -> str:
    """Run `elf` on `board` and return what the plugin glow_trace says with these `caches` and areas of its arguments.

    Raises what `run_elf` raises. Takes several times as long as counting.
    """
    require_runnable(board, marks=True, elf=elf)
    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        out = Path(folder) / "trace.txt"
        plugin = ("-plugin", plugin_argument("glow_trace", elf, out, caches))
        _run(elf, board, plugin, cwd, _TRACE_SLOWER * board.timeout_s, check=True)
        return out.read_text(encoding="utf-8")


def require_runnable(board: Board, *, marks: bool = False, elf: Path = Path("firmware.elf")) -> None:
    """Raise BoardError if the board cannot run `elf`, telling how to flash it, or cannot count instructions."""
    if not board.runs:
        how = f"flash it: {flash_text(board, elf)}" if board.flash else "flash it with your own tools"
        raise BoardError(
            f'board "{board.name}" is real hardware: glowc builds for it and cannot run it',
            hint=f"{how}; or {_instead(board)}",
        )
    if marks and not board.counts_insns:
        raise BoardError(
            f'board "{board.name}" runs natively and cannot count instructions', hint="choose a QEMU board"
        )


def _instead(board: Board) -> str:
    """Return which emulated board runs the code of one that does not run from here."""
    other = emulated(board)
    if other is None:
        return f"run on a QEMU board with the same CPU ({board.cpu.name}), see `glowc boards`"
    return f"run on {other.name}, an emulated board that runs code for {board.cpu.name}: --board {other.name}"


def plugin_argument(name: str, elf: Path, out: Path, more: Sequence[str] = ()) -> str:
    """Return QEMU's `FILE,NAME=VALUE,...` for a plugin, in which a comma inside a value is written twice."""
    mark = symbols(elf).get("glow_mark")
    if mark is None:
        raise ToolError(f"{elf.name} has no symbol glow_mark to count at", hint="call glow_mark() in its main")
    library, path = (str(value).replace(",", ",,") for value in (compiled_plugin(name), out))
    return ",".join((library, f"mark={mark.address:#x}", f"out={path}", *more))


def run_argv(elf: Path, board: Board, plugin: tuple[str, ...] = ()) -> list[str]:
    """Return the command that runs `elf` on `board`, its template filled in."""
    argv: list[str] = []
    for item in board.run_argv:
        if item == "{plugin}":
            argv += plugin
        else:
            argv.append(item.replace("{elf}", str(elf)).replace("{qemu_cpu}", board.cpu.qemu_cpu or "max"))
    return argv


def _run(elf: Path, board: Board, plugin: tuple[str, ...], cwd: Path, timeout_s: int | None, check: bool) -> RunResult:
    argv = run_argv(elf.resolve(), board, plugin)
    if board.run_argv[0] != "{elf}":
        argv[0] = str(require_tool(argv[0]))
    limit_s = timeout_s or board.timeout_s
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(
            f"{elf.name} did not end within {limit_s} s on board {board.name}",
            details=_last_lines(_text(error.stdout), _text(error.stderr)),
        ) from error
    if check and done.returncode != 0:
        raise ToolError(
            f"{elf.name} {_how_it_ended(done.returncode)} on board {board.name}",
            details=_last_lines(done.stdout, done.stderr),
        )
    return RunResult(done.returncode, done.stdout, done.stderr)


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"crashed by signal {signal.Signals(-status).name}"
    except ValueError:
        return f"crashed by signal {-status}"


def _text(output: str | bytes | None) -> str:
    """Return partial output as text: subprocess hands it over as bytes when the time is up."""
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""


def _last_lines(*outputs: str) -> list[str]:
    return [line for output in outputs for line in output.splitlines()[-_LAST_LINES:]]
