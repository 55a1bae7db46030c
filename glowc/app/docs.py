"""`glowc docs`: the pages of documentation that came with this installation, listed, printed or opened."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from glowc.app.terminal import say
from glowc.errors import InputError


def _pages() -> dict[str, Path]:
    """Return the pages by the name that the command takes: that of the file, in small letters."""
    from glowc.paths import data_dir

    return {path.stem.lower(): path for path in sorted(data_dir("docs").glob("*.md"))}


def _page(name: str) -> Path:
    """Return the page of a name: `memory`, MEMORY.md and docs/MEMORY.md#planners are one."""
    from glowc.board.fields import suggestion

    pages = _pages()
    wanted = re.sub(r"\.md$", "", name.split("#")[0].replace("\\", "/").rpartition("/")[2].lower())
    found = pages.get(wanted) or pages.get(wanted.replace("-", "_"))
    if found is None:
        raise InputError(f"no page {name}{suggestion(wanted, pages)}", details=[", ".join(pages)],
                         hint="`glowc docs` lists the pages")  # fmt: skip
    return found


def _title(page: Path) -> str:
    lines = page.read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("# ") for line in lines if line.startswith("# ")), "")


def docs(
    page: Annotated[
        str | None, typer.Argument(metavar="PAGE", help="a page, such as memory; none: list them", show_default=False)
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="open the page in the program for such files")] = False,
) -> None:
    """List, print or open the documentation."""
    if page is None:
        pages = _pages()
        wide = max(map(len, pages))
        say("\n".join(f"{name:{wide}}  {_title(path)}" for name, path in pages.items()))
        return
    path = _page(page)
    if open_ and typer.launch(str(path)) == 0:
        return
    say(path.read_text(encoding="utf-8"), nl=False)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    text = "List the pages of the documentation, print one, or open it.\n\nExample: glowc docs memory"
    app.command("docs", help=text)(docs)
