"""Pages and help texts keep to tests/words.toml: plain words, one spelling, short sentences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from glowc.app.cli import app
from tests.conftest import ROOT

RULES = tomllib.loads((ROOT / "tests/words.toml").read_text("utf-8"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/README.md")])


def _without_code(text: str) -> str:
    text = re.sub(r"^ *```.*?^ *```$|<!--.*?-->", "", text, flags=re.M | re.S)
    text = re.sub(r"(?<=\n\n)(?: {4}\S.*\n)+", "", text)
    text = re.sub(r"`[^`]+`", "CODE", text)
    return re.sub(r"\]\([^)]*\)|\[|https?://\S+", "", text)


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences outside of tables; an entry of a list begins a new one."""
    text = re.sub(r"^\|.*$", "\n", text, flags=re.M)
    for block in re.split(r"\n\s*\n|^(?=#|\s*(?:[*-]|\d+\.) )", text, flags=re.M):
        yield from re.split(r"(?<=[.!?])[*\")]*\s+", " ".join(block.split()))


def _wrong(text: str) -> list[str]:
    text = _without_code(text)
    found = [
        f"{' '.join(text[max(0, match.start() - 40) : match.end() + 40].split())}: {better}"
        for pattern, better in RULES["instead_of"].items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]
    for sentence in _sentences(text):
        if len(sentence.split()) > RULES["words_in_a_sentence"]:
            found.append(f"{len(sentence.split())} words: {sentence}")
        if re.match(r"(?:[*-] )?What\b[^?]*$", sentence):
            found.append(f'begins with "What": {sentence}')
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_words_of_a_page(page: Path) -> None:
    assert not _wrong(page.read_text("utf-8"))


def _helps(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    yield path, command.help or ""
    for parameter in command.params:
        yield f"{path} {parameter.opts[0]}", getattr(parameter, "help", None) or ""
    for name, inner in getattr(command, "commands", {}).items():
        yield from _helps(inner, f"{path} {name}")


def test_words_of_the_help() -> None:
    wrong = {path: _wrong(text) for path, text in _helps(typer.main.get_command(app), "glowc")}
    assert not {path: found for path, found in wrong.items() if found}


def test_wrong_words_are_found() -> None:
    assert len(_wrong("A quantiser is beside it.")) == 2
    assert len(_wrong("What counts is this.\n\n* " + "word " * 41)) == 2


@pytest.mark.parametrize("text", ["Use `--beside`.", "such as this", "| " + "word " * 41 + "|", "What is this?"])
def test_right_words_are_left_alone(text: str) -> None:
    assert not _wrong(text)
