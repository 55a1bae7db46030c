"""The results of a matrix.

In SQLite: a row a cell, written the moment that the cell is done. As one HTML table: a row a model, a column a
board and an option.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from glowc.board import default_chip, load_board
from glowc.codegen.kernels import environment
from glowc.errors import FileError, InputError
from glowc.machine.matrix import FAILED, FIGURES, Cell, Result
from glowc.machine.page import policy_hash

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

    def every(self) -> list[Result]:
        """Return all results, of each model on a board with an option the last one that was added."""
        rows = self._db.execute(f"SELECT {', '.join(_COLUMNS)} FROM cells ORDER BY rowid")
        return list({_place(result): result for result in map(_result, rows)}.values())

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
class Line:
    """A line about a result: of a figure its `value`, and its `change` from an earlier one (0.1: 10 % more)."""

    text: str
    value: float | None = None
    change: float | None = None

    @property
    def kind(self) -> str:
        """Whether less or more is taken than before."""
        return "" if not self.change else "worse" if self.change > 0 else "better"

    def __str__(self) -> str:
        return self.text if not self.change else f"{self.text} ({100 * self.change:+.1f} %)"


@dataclass(frozen=True, slots=True)
class PageCell:
    """What is in a cell; `link` leads to the page of its report."""

    status: str
    lines: tuple[Line, ...] = ()
    link: str = ""

    @property
    def order(self) -> float | str:
        """What the page sorts a column by: the first figure."""
        return next((line.value for line in self.lines if line.value is not None), "")


@dataclass(frozen=True, slots=True)
class PageRow:
    """A model with its cells."""

    name: str
    cells: tuple[PageCell, ...]


def matrix_page(
    cells: Sequence[Cell], results: Sequence[Result], before: Sequence[Result] = (), folder: Path = Path()
) -> str:
    """Return the page, which lies in `folder`; a cell without a result is open. Figures are compared with `before`."""
    known, earlier = {result["key"]: result for result in results}, {_place(result): result for result in before}
    columns = list(dict.fromkeys((cell.board, cell.opt) for cell in cells))
    shown: dict[str, dict[tuple[str, str], PageCell]] = {}
    for cell in cells:
        old = earlier.get((cell.name, cell.board, cell.opt))
        shown.setdefault(cell.name, {})[cell.board, cell.opt] = _shown(cell, known.get(cell.key), old, folder)
    rows = [PageRow(name, tuple(own.get(c, PageCell("open")) for c in columns)) for name, own in shown.items()]
    heads = [f"{board}, {opt}" for board, opt in columns]
    env = environment()
    script = env.get_template("matrix/sort.js").render()
    return env.get_template("matrix/page.html.j2").render(
        rows=rows, columns=heads, summary=summary(cells, results), script=script, script_hash=policy_hash(script)
    )


def _place(result: Result) -> tuple[str, str, str]:
    return result["name"], result["board"], result["opt"]


def summary(cells: Sequence[Cell], results: Sequence[Result]) -> str:
    """Return how many cells there are, and how many of each status."""
    counts = Counter(result["status"] for result in results)
    parts = [f"{count} {status}" for status, count in sorted(counts.items())]
    left = len(cells) - len(results)
    return f"{len(cells)} cells: {', '.join([*parts, *([f'{left} open'] if left else [])])}"


def _shown(cell: Cell, result: Result | None, before: Result | None, folder: Path) -> PageCell:
    if result is None:
        return PageCell("open")
    link = ""
    if cell.page and Path(cell.page).is_file():
        link = Path(os.path.relpath(cell.page, folder)).as_posix()
    return PageCell(result["status"], tuple(result_lines(result, before)), link)


def result_lines(result: Result, before: Result | None = None) -> Iterator[Line]:
    """Yield what a person wants to know of a result, the most important first, compared with an earlier one."""
    figures, old = result["figures"], before["figures"] if before is not None else {}
    share = result["equal_share"]
    if share is not None:
        yield Line(f"{100 * share:.3f} % equal")
    chip = default_chip(load_board(result["board"]))
    for name, unit in (("ms", f"ms on {chip.name if chip else ''}"), ("insns", "instructions"),
                       ("arena_bytes", "bytes of arena")):  # fmt: skip
        value = figures.get(name)
        if value is not None:
            yield Line(f"{value:,.2f} {unit}" if name == "ms" else f"{value:,.0f} {unit}", value,
                       _change(value, old.get(name)))  # fmt: skip
    code, constants = _flash(figures)
    if code or constants:
        total = code + constants
        what = "bytes of flash" if code else "bytes of constants"
        yield Line(f"{total:,.0f} {what}", total, _change(total, sum(_flash(old))))
    if result["message"]:
        yield Line(result["message"])


def _flash(figures: Mapping[str, float | None]) -> tuple[float, float]:
    return figures.get("text_bytes") or 0, figures.get("rodata_bytes") or figures.get("weights_bytes") or 0


def _change(value: float, before: float | None) -> float | None:
    return value / before - 1 if before else None
