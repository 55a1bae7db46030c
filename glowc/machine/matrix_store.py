"""The results of a matrix in SQLite: a row a cell, written the moment that the cell is done."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

from glowc.errors import GlowcError, InputError
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
        raise GlowcError(f"cannot write {path}: {path.parent} is no folder", hint="choose another file with -o FILE")
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
