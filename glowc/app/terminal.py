"""Text for people: names from models, plugins and folders are shown as they are, and control nothing."""

from __future__ import annotations

import json
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from glowc.errors import GlowcError, InputError, InternalError
from glowc.paths import SCHEMA

# Control and format characters (escape sequences, right-to-left marks), lone surrogates, line separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str) -> str:
    r"""Return `text` with every character that a terminal would obey, newlines apart, as an escape such as \x1b."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or unicodedata.category(c) not in _HIDDEN else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class Verbosity(Enum):
    """How much is said besides results and errors."""

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"


_verbosity = Verbosity.NORMAL
_ANYWHERE = frozenset({"--debug", "-q", "--quiet", "-v", "--verbose"})


def set_verbosity(verbosity: Verbosity) -> None:
    """Say as much from now on."""
    global _verbosity
    _verbosity = verbosity


def is_quiet() -> bool:
    """Say whether only results and errors are wanted."""
    return _verbosity is Verbosity.QUIET


def with_common_first(argv: Sequence[str]) -> list[str]:
    """Return arguments with those that every command takes before the command, wherever they stood."""
    options = argv[1 : argv.index("--")] if "--" in argv else argv[1:]
    common = [text for text in options if text in _ANYWHERE]
    return [argv[0], *common, *(text for text in options if text not in _ANYWHERE), *argv[1 + len(options) :]]


def tell(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print what was done, unless it is to be quiet."""
    if not is_quiet():
        say(text, err=err, nl=nl)


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text to standard output, or to standard error."""
    typer.echo(visible(text), err=err, nl=nl)


def say_json(data: Mapping[str, Any]) -> None:
    """Print what a command says to scripts: one object, with the number of the schemas (docs/STABILITY.md)."""
    say(json.dumps({"schema": SCHEMA, **data}))


def tell_written(output: Path, text: str, as_json: bool) -> None:
    """Print what was written: as JSON where it is, else a line, unless it is to be quiet."""
    say_json({"output": str(output)}) if as_json else tell(text)


def say_text(text: str, as_json: bool) -> None:
    """Print a text that is the result."""
    say_json({"text": text}) if as_json else say(text)


def say_error(error: GlowcError) -> None:
    """Print an error, with the code of its kind, to standard error."""
    kind = "internal error" if isinstance(error, InternalError) else "error"
    say(f"{kind}[{error.code}]: {error}", err=True)


def usage_error(error: Exception) -> InputError | None:
    """Return what typer says of wrong arguments; None for what is no error of typer's.

    Its class is click's, or in newer versions its own copy of that.
    """
    text = error.format_message() if hasattr(error, "format_message") else None
    if text is None:
        return None
    context = getattr(error, "ctx", None)
    if context is None:
        return InputError(text)
    if text == context.get_help():  # no argument at all
        say(text)
        return InputError("a command is missing", hint=f"{context.command_path} COMMAND")
    return InputError(text.rstrip("."), hint=f"`{context.command_path} --help` lists the options")


def accept_any_text() -> None:
    """Let the standard streams show a character that their encoding lacks as an escape instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def progress_line(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current step on a terminal's standard error, or prints each when verbose."""
    if _verbosity is Verbosity.VERBOSE:
        begin = time.monotonic()
        yield lambda text: say(f"{time.monotonic() - begin:7.2f} s  {text}", err=True)
        return
    if quiet or is_quiet() or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("starting", spinner="line") as status:
        yield lambda text: status.update(Text(visible(text)))
