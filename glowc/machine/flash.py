"""The commands that put an image on a board: from the `flash` line of its board.toml."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from glowc.board import Board, find_tool, shell_text
from glowc.errors import BoardError, MissingToolError, ToolError

_FORMS = {"{bin}": "binary", "{hex}": "ihex"}  # objcopy's names for what loaders take in place of an ELF


def flash_commands(board: Board, elf: Path) -> list[list[str]]:
    """Return the commands in their order: those that convert the image, if any, and the loader's.

    Raises BoardError for a board without a command.
    """
    if board.flash is None:
        raise BoardError(
            f'board "{board.name}" has no command to flash it',
            hint=f"{board.folder / 'README.md'} says how; a line `flash = ...` in board.toml with {{elf}}, {{bin}} or "
            "{hex} makes it a command" if not board.runs else f"it is emulated: glowc run --board {board.name}",
        )  # fmt: skip
    files = {form: elf.with_suffix(f".{form[1:-1]}") for form in _FORMS if form in board.flash}
    objcopy = f"{board.cpu.tool_prefix}objcopy"
    commands = [[objcopy, "-O", _FORMS[form], str(elf), str(path)] for form, path in files.items()]
    words = shlex.split(board.flash)  # with slashes also on Windows: openocd takes backslashes for escapes
    for form, path in {**files, "{elf}": elf}.items():
        words = [word.replace(form, path.as_posix()) for word in words]
    return [*commands, words]


def flash_text(board: Board, elf: Path) -> str:
    """Return the commands as a shell takes them."""
    return " && ".join(shell_text(command) for command in flash_commands(board, elf))


def flash(board: Board, elf: Path) -> None:
    """Run the commands, their output on the terminal. Raises ToolError when one is missing or fails."""
    for command in flash_commands(board, elf):
        try:
            status = subprocess.run([str(find_tool(command[0]) or command[0]), *command[1:]], check=False).returncode
        except FileNotFoundError:
            raise MissingToolError(
                f"{command[0]} is not installed", hint=f"{board.folder / 'README.md'} names it"
            ) from None
        except OSError as error:
            raise ToolError(f"{command[0]} cannot be run: {error.strerror}") from error
        if status != 0:
            raise ToolError(
                f"{command[0]} ended with exit status {status}", details=["command: " + shell_text(command)]
            )
