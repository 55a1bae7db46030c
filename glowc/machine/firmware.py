"""A bundle as one image for a board: with the program that feeds it from files, one that runs once, one on a line."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from glowc.board import Board
from glowc.codegen.mains import render_main
from glowc.compiler.files import check_output, write_file
from glowc.errors import InputError
from glowc.machine.execute import BundleInfo, build_bundle, bundle_defines, calls_of
from glowc.machine.link import Elf, build_elf
from glowc.machine.wire.session import identity_of
from glowc.paths import data_dir


def build_wire(info: BundleInfo, board: Board, out: Path, map_file: Path | None, uart: Sequence[Path] = ()) -> Elf:
    """Build the image that has a bundle on a serial line, for `glowc run --port`.

    `uart` are sources with the functions of glow_wire.h, for a board that brings none. Raises InputError where nobody
    brings them, ToolError when it cannot be built.
    """
    _check(out, map_file)
    drivers = [*(uart or board.wire_sources)]
    if not drivers:
        raise InputError(
            f"board {board.name} has no functions for a serial line",
            hint="--uart FILE.c with those of glow_wire.h: docs/WIRE.md",
        )
    with tempfile.TemporaryDirectory(prefix="glowc-build-") as folder:
        work, wire = Path(folder), data_dir("runtime_c") / "wire"
        main = work / "main_wire.c"
        calls = replace(calls_of(info), identity=identity_of(info))
        main.write_text(render_main(calls, "main_wire.c.j2"), encoding="utf-8", newline="\n")
        elf = build_elf(
            [main, *info.sources, wire / "glow_wire.c", *drivers], board, work / "model.elf",
            include_dirs=[info.include_dir, wire], defines=[*bundle_defines(info, board), *board.wire_defines],
            opt=info.optimisation, extra_flags=_flags(work, map_file),
        )  # fmt: skip
        _keep(elf, work, out, map_file)
    return replace(elf, path=out)


def _flags(work: Path, map_file: Path | None) -> list[str]:
    return ["-std=gnu11", *([f"-Wl,-Map={work / 'model.map'}"] if map_file is not None else [])]


def build_firmware(
    info: BundleInfo, board: Board, out: Path, map_file: Path | None = None, *, alone: bool = False
) -> Elf:
    """Build the image of a bundle and write it to `out`, and what the linker says to `map_file`.

    On a board that runs from here it is what `glowc run` runs: it reads in.bin and writes out.bin. On another one, and
    where it is to be `alone`, the program runs the bundle's test vectors, or else one inference on zeros, leaves the
    result in `glow_result`, and ends with 1 when it is wrong. Raises ToolError when it cannot be built.
    """
    _check(out, map_file)
    with tempfile.TemporaryDirectory(prefix="glowc-build-") as folder:
        work = Path(folder)
        flags = _flags(work, map_file)
        fed = board.runs and not alone
        elf = build_bundle(info, board, work, extra_flags=flags) if fed else _once(info, board, work, flags)
        _keep(elf, work, out, map_file)
    return replace(elf, path=out)


def _check(out: Path, map_file: Path | None) -> None:
    check_output(out)
    if map_file is not None:
        check_output(map_file, "--map")


def _keep(elf: Elf, work: Path, out: Path, map_file: Path | None) -> None:
    """Copy what was built to where it is wanted; the image may be executed."""
    write_file(out, lambda file: file.write(elf.path.read_bytes()))
    out.chmod(out.stat().st_mode | (out.stat().st_mode & 0o444) >> 2)
    if map_file is not None:
        write_file(map_file, lambda file: file.write((work / "model.map").read_bytes()), "--map")


def _once(info: BundleInfo, board: Board, work: Path, flags: list[str]) -> Elf:
    golden = info.include_dir / f"{info.name}_golden.c"
    calls = replace(calls_of(info), golden=golden.name in {Path(name).name for name in info.report["files"]})
    if calls.mode == "rows" and not calls.golden:
        calls = replace(calls, mode="caller")  # the whole input at once
    main = work / "main_once.c"
    main.write_text(render_main(calls, "main_once.c.j2"), encoding="utf-8", newline="\n")
    sources = [main, *info.sources, *([golden] if calls.golden else [])]
    return build_elf(
        sources, board, work / "model.elf", include_dirs=[info.include_dir, data_dir("runtime_c") / "wire"],
        defines=bundle_defines(info, board), opt=info.optimisation, extra_flags=flags,
    )  # fmt: skip
