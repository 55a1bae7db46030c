"""A hook of mkdocs: links of pages as a site wants them.

What lies outside of docs/ is named as a file of the sources, for a site has no such page; a link whose text is the name
of a page's file gets the page's title.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(?:#[^)]*)?\)")
_PAGE = re.compile(r"\[(\w+\.md)\](?=\(\1)")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the text of a page with its links changed."""
    return _PAGE.sub(lambda match: f"[{_title(match[1])}]", _OUTSIDE.sub(_named, markdown))


def _named(match: re.Match[str]) -> str:
    text, path = match[1], match[2]
    return text if path.rstrip("/") in text else f"{text} (`{path}`)"


@cache
def _title(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
