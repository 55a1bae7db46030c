"""The results of a matrix.

In SQLite: a row a cell, written the moment that the cell is done. As one HTML table: a row a model, a column a
board and an option.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from glowc.codegen.kernels import environment
from glowc.errors import FileError, InputError
from glowc.machine.matrix import FAILED, FIGURES, Cell, Result

_APPLICATION = 0x676C6F77  # "glow": says that the file is ours
_COLUMNS = ("key", "name", "board", "opt", "status", "message", "seconds", "reference", "equal_share", *FIGURES)
_TABLE = f"""CREATE TABLE IF NOT EXISTS cells (
  key TEXT PRIMARY KEY, name TEXT NOT NULL, board TEXT NOT NULL, opt TEXT NOT NULL, status TEXT NOT NULL,
  message TEXT NOT NULL, seconds REAL NOT NULL, reference TEXT, equal_share REAL,
  {", ".join(f"{name} NUMERIC" for name in FIGURES)})"""


class Store:
    """A file of results. Every method commits: what was added stays when the process is killed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def add(self, result: Result) -> None:
        """Keep a result in the place of an earlier one of the same cell."""
        head = [result["key"], result["name"], result["board"], result["opt"], result["status"], result["message"]]
        values = [*head, result["seconds"], result["reference"], result["equal_share"]]
        values += [result["figures"].get(name) for name in FIGURES]
        marks = ", ".join("?" * len(_COLUMNS))
        with self._db:
            self._db.execute(f"INSERT OR REPLACE INTO cells ({', '.join(_COLUMNS)}) VALUES ({marks})", values)

    def results(self, cells: Sequence[Cell]) -> list[Result]:
        """Return the results of cells that are there, in their order."""
        rows = self._db.execute(f"SELECT {', '.join(_COLUMNS)} FROM cells")
        known = {row[0]: row for row in rows}
        return [_result(known[cell.key]) for cell in cells if cell.key in known]

    def finished(self, cells: Sequence[Cell]) -> frozenset[str]:
        """Return the keys of the cells that need not run again: those that failed may have lacked a tool or memory."""
        return frozenset(r["key"] for r in self.results(cells) if r["status"] != FAILED)


def _result(row: Sequence[str]) -> Result:
    head = dict(zip(_COLUMNS, row, strict=True))
    figures = {name: head.pop(name) for name in FIGURES}
    return cast(Result, {**head, "figures": figures})


@contextmanager
def open_store(path: Path) -> Iterator[Store]:
    """Yield the results in a file, which is made if absent. Raises GlowcError for a file that holds something else."""
    if not path.parent.is_dir():
        raise FileError(f"cannot write {path}: {path.parent} is no folder", hint="choose another file with -o FILE")
    try:
        with closing(sqlite3.connect(path)) as db:
            _check(db, path)
            yield Store(db)
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path} is no file of results: {error}", hint="choose another file with -o FILE") from error


def _check(db: sqlite3.Connection, path: Path) -> None:
    mark = db.execute("PRAGMA application_id").fetchone()[0]
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and mark != _APPLICATION:
        raise InputError(f"{path} is a database of something else", hint="choose another file with -o FILE")
    with db:
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(_TABLE)


@dataclass(frozen=True, slots=True)
class PageCell:
    """What stands in a cell."""

    status: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageRow:
    """A model with its cells."""

    name: str
    cells: tuple[PageCell, ...]


def matrix_page(cells: Sequence[Cell], results: Sequence[Result]) -> str:
    """Return the page; a cell without a result is open."""
    known = {result["key"]: result for result in results}
    columns = list(dict.fromkeys((cell.board, cell.opt) for cell in cells))
    rows = []
    for name in dict.fromkeys(cell.name for cell in cells):
        own = {(cell.board, cell.opt): known.get(cell.key) for cell in cells if cell.name == name}
        rows.append(PageRow(name, tuple(_shown(own.get(column)) for column in columns)))
    heads = [f"{board}, {opt}" for board, opt in columns]
    template = environment().get_template("matrix/page.html.j2")
    return template.render(rows=rows, columns=heads, summary=summary(cells, results))


def summary(cells: Sequence[Cell], results: Sequence[Result]) -> str:
    """Return how many cells there are, and how many of each status."""
    counts = Counter(result["status"] for result in results)
    parts = [f"{count} {status}" for status, count in sorted(counts.items())]
    left = len(cells) - len(results)
    return f"{len(cells)} cells: {', '.join([*parts, *([f'{left} open'] if left else [])])}"


def _shown(result: Result | None) -> PageCell:
    return PageCell("open", ()) if result is None else PageCell(result["status"], tuple(result_lines(result)))


def result_lines(result: Result) -> Iterator[str]:
    """Yield what a person wants to know of a result, the most important first."""
    figures = result["figures"]
    share = result["equal_share"]
    if share is not None:
        yield f"{100 * share:.3f} % equal"
    for name, unit in (("ms", "ms"), ("insns", "instructions"), ("arena_bytes", "bytes of arena")):
        value = figures.get(name)
        if value is not None:
            yield f"{value:,.2f} {unit}" if unit == "ms" else f"{value:,.0f} {unit}"
    parts = [figures.get("text_bytes") or 0, figures.get("rodata_bytes") or figures.get("weights_bytes") or 0]
    if any(parts):
        yield f"{sum(parts):,.0f} bytes of flash" if parts[0] else f"{parts[1]:,.0f} bytes of constants"
    if result["message"]:
        yield result["message"]
