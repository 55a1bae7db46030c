"""Text for people: names from models, plugins and folders are shown as they are, and control nothing."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

# Control and format characters (escape sequences, right-to-left marks), lone surrogates, line separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str) -> str:
    r"""Return `text` with every character that a terminal would obey, newlines apart, as an escape such as \x1b."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or unicodedata.category(c) not in _HIDDEN else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text to standard output, or to standard error."""
    typer.echo(visible(text), err=err, nl=nl)


def accept_any_text() -> None:
    """Let the standard streams show a character that their encoding lacks as an escape instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def progress_line(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current step on a terminal's standard error."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("starting") as status:
        yield lambda text: status.update(Text(visible(text)))
