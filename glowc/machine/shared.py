"""A bundle as a shared library of this machine, called through ctypes."""

from __future__ import annotations

import ctypes
import sys
import tempfile
from pathlib import Path

from glowc.board import load_board, require_tool, run_tool
from glowc.board.flags import native_flags
from glowc.codegen.names import c_ident
from glowc.errors import BundleError, ToolError
from glowc.machine.execute import BundleInfo, check_object, read_blob

_MESSAGE_LINES = 20
_ALIGN = 64
_ITSELF = ["-static-libgcc"] if sys.platform == "win32" else []  # a library that needs no other one


def shared_library(info: BundleInfo) -> ctypes.CDLL:
    """Compile the bundle's C for this machine and load it; nothing stays on disk.

    Code for Cortex-M0 to M33 is built with its twins in portable C: equal results. Raises ToolError when the compiler
    is missing or refuses the sources (code for Helium or Advanced SIMD has no twins).
    """
    host = load_board("host").cpu
    check_object(info, host)
    prefix = c_ident(info.name)
    defines = [f"-D{prefix.upper()}_NO_STATIC_ARENA"]
    if info.report.get("cpu") not in load_board("host").cpus:
        defines.append("-DGLOW_ANY_CORE")
    with tempfile.TemporaryDirectory(prefix="glowc-load-", ignore_cleanup_errors=True) as folder:
        library = Path(folder) / f"{prefix}.so"
        fast = native_flags(host)
        flags = ["-std=c11", *fast, "-shared", "-fPIC", *_ITSELF, *host.cflags, *defines, f"-I{info.include_dir}"]
        files = [*map(str, info.sources), "-o", str(library), "-lm"]
        argv = [str(require_tool(host.cc)), *flags, *files]
        _build(argv, info)
        return _with_constants(ctypes.CDLL(str(library)), info, prefix)


def _with_constants(library: ctypes.CDLL, info: BundleInfo, prefix: str) -> ctypes.CDLL:
    """Return a library that uses the constants of the bundle's own file, where it has one."""
    blob = read_blob(info)
    if not blob:
        return library
    room = ctypes.create_string_buffer(len(blob) + _ALIGN)
    start = -ctypes.addressof(room) % _ALIGN
    ctypes.memmove(ctypes.addressof(room) + start, blob, len(blob))
    library.glow_blob = room  # type: ignore[attr-defined]  # alive as long as the library
    use = library[f"{prefix}_use_weights"]
    if use(ctypes.c_void_p(ctypes.addressof(room) + start), ctypes.c_size_t(len(blob))) != 0:
        raise BundleError(f"{info.report.get('weights_blob')} does not fit the code of {info.folder}",
                         hint="compile the model again")  # fmt: skip
    return library


def _build(argv: list[str], info: BundleInfo) -> None:
    done = run_tool(argv)
    if done.returncode:
        cpu = info.report.get("cpu")
        raise ToolError(
            f"{info.folder} cannot be built for this machine (compiled for {cpu})",
            details=done.stderr.splitlines()[:_MESSAGE_LINES],
            hint="compile the model for --board host: its integer results are the same on every CPU",
        )


def require_one_arena(info: BundleInfo) -> None:
    """Raise InputError for bundles that a caller cannot hand one arena and whole inputs."""
    if len(info.report.get("regions", [])) > 1:
        raise BundleError(
            f"{info.folder} has an arena in several parts", hint="compile without --arena-split and --region"
        )
    if info.report.get("input_stream") == "rows":
        raise BundleError(f"{info.folder} takes its input by rows", hint="compile without --input-stream rows")
