"""The commands that end in a board: `build`, `flash` and `board new`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glowc.app.measure import note_core, open_bundle, target_of
from glowc.app.options import BoardOpt, CpuOpt, JsonOpt, RunBoardOpt, SourceArg, compiles
from glowc.app.terminal import say_json, say_text, tell, tell_written
from glowc.errors import InputError

if TYPE_CHECKING:
    from glowc.compiler.options import CompileOptions

board_app = typer.Typer(no_args_is_help=True, help="Make your own boards.", rich_markup_mode=None)


@compiles
def build(
    source: SourceArg,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="the image, an ELF file")],
    options: CompileOptions,
    board: RunBoardOpt = None,
    cpu: CpuOpt = None,
    golden: Annotated[
        Path | None,
        typer.Option(
            "--golden", metavar="FILE", help=".npz of inputs: the firmware runs them and counts wrong outputs"
        ),
    ] = None,
    wire: Annotated[
        bool, typer.Option("--wire", help="firmware for `glowc run --port`: the model on a serial line")
    ] = False,
    uart: Annotated[
        list[Path] | None,
        typer.Option(
            "--uart", metavar="FILE.c", exists=True, dir_okay=False, help="functions of glow_wire.h; repeatable"
        ),
    ] = None,
    map_: Annotated[Path | None, typer.Option("--map", metavar="FILE", help="also write the linker's map")] = None,
    as_json: JsonOpt = False,
) -> None:
    """Build firmware."""
    from glowc.machine.firmware import build_firmware, build_wire

    if uart and not wire:
        raise InputError("--uart is for firmware on a serial line", hint="add --wire")
    if wire and golden is not None:
        raise InputError("--golden and --wire are two kinds of firmware: choose one")
    if golden is not None and source.is_dir():
        raise InputError(
            f"{source} is a bundle: its test vectors are made when it is compiled", hint="glowc compile --golden"
        )
    target = target_of(source, board, cpu)
    with open_bundle(source, target, replace(options, golden=golden), as_json) as info:
        if wire:
            elf = build_wire(info, target, output, map_, uart or ())
        else:
            elf = build_firmware(info, target, output, map_, alone=golden is not None)
    note_core(info, target)
    sizes = {"text_bytes": elf.text, "rodata_bytes": elf.rodata, "data_bytes": elf.data, "bss_bytes": elf.bss}
    if as_json:
        say_json({"output": str(output), "board": target.name, **sizes})
        return
    tell(f"{output}: {elf.text:,} bytes of code, {elf.rodata:,} of constants, {elf.data + elf.bss:,} of variables")
    if target.flash is not None:
        tell(f"  glowc flash {output} --board {board or target.name}")


def flash(
    elf: Annotated[
        Path, typer.Argument(metavar="ELF", help="an image that `glowc build` wrote", exists=True, dir_okay=False)
    ],
    board: BoardOpt,
    run: Annotated[bool, typer.Option("--run", help="do it instead of printing the commands")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Put firmware on a board."""
    from glowc.board import load_board
    from glowc.machine.elf import sections
    from glowc.machine.flash import flash as do
    from glowc.machine.flash import flash_text

    sections(elf)
    target = load_board(board)
    say_text(flash_text(target, elf), as_json)
    if run:
        do(target, elf)


@board_app.command(
    "new", help="Copy a board into a folder to edit.\n\nExample: glowc board new my-board --from rpi-pico"
)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="its name, and that of the folder")],
    like: Annotated[str, typer.Option("--from", metavar="BOARD", help="the board that is nearest: a name or a folder")],
    parent: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="where the folder is made")] = Path("."),
    as_json: JsonOpt = False,
) -> None:
    """Copy a board."""
    from glowc.board.new import new_board

    folder = new_board(name, like, parent)
    what = f"{folder}: memory and flash command in board.toml, the same map in link.ld; then --board {folder}"
    tell_written(folder, what, as_json)


@board_app.callback()
def _group() -> None:
    """Keep `new` a command of its own."""


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        help="Build firmware for a board: one ELF file.\n\n"
        "Example: glowc build kws.onnx --board nucleo-l4r5zi --golden in.npz -o kws.elf"
    )(build)
    app.command(
        help="Print the commands that flash an image, or run them.\n\n"
        "Example: glowc flash kws.elf --board nucleo-l4r5zi --run"
    )(flash)
    app.add_typer(board_app, name="board")
