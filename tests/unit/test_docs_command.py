"""`glowc docs`: the pages of this installation by name, however they are written."""

from __future__ import annotations

import pytest

from tests.conftest import ROOT
from tests.unit.cli_calls import Glowc, refused


def test_every_page_is_listed_with_its_title(glowc: Glowc) -> None:
    result = glowc("docs")
    assert result.status == 0
    names = {line.split()[0] for line in result.out.splitlines()}
    assert names == {page.stem.lower() for page in (ROOT / "docs").glob("*.md")}
    assert all(len(line.split(None, 1)) == 2 for line in result.out.splitlines())


@pytest.mark.parametrize("name", ["wire", "WIRE", "WIRE.md", "docs/WIRE.md", "docs/WIRE.md#the-protocol"])
def test_a_page_is_printed_as_it_is(glowc: Glowc, name: str) -> None:
    assert glowc("docs", name).out == (ROOT / "docs/WIRE.md").read_text()


def test_page_that_opens_nowhere_is_printed(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", lambda path: opened.append(path) or 1)
    assert glowc("docs", "faq", "--open").out == (ROOT / "docs/FAQ.md").read_text()
    assert opened == [str(ROOT / "docs/FAQ.md")]


def test_unknown_page_names_the_nearest(glowc: Glowc) -> None:
    refused(glowc, "docs", "memry", says=['no page memry; did you mean "memory"?'], hint="`glowc docs`")
    refused(glowc, "docs", "../../etc/passwd", says=["no page"])
