"""The documentation is true: generated pages are fresh, links lead somewhere, named commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


def test_generated_pages_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_docs.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text())
    missing = [t for t in targets if not (page.parent / t).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_named_in_the_text_exist(page: Path) -> None:
    from glowc.app.cli import app

    commands = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    commands |= {str(group.name) for group in app.registered_groups}
    text = page.read_text()
    fenced = "".join(re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S))
    named = set(re.findall(r"`glowc ([a-z][a-z-]*)", text)) | set(re.findall(r"^glowc ([a-z][a-z-]*)", fenced, re.M))
    assert named <= commands, f"{page.name} names {sorted(named - commands)}"
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"`make ([a-z][a-z-]*)", text))
    wrong = [t for t in targets if not re.search(rf"^{t}:", makefile, re.M)]
    assert not wrong


def test_page_of_static_analysis_is_fresh() -> None:
    """The tools themselves run by `make analyze`."""
    argv = [sys.executable, str(ROOT / "scripts" / "analyze.py"), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_is_on_the_site() -> None:
    """`make site` builds it, without a warning."""
    entries = re.findall(r"^ +- [^:\n]+: (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert sorted(entries) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))
