"""Typed access to the fields of a TOML table that collects every problem instead of stopping at one."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from glowc.errors import DescriptionError


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """Return `; did you mean "x"?` for the nearest of `known`, or nothing."""
    near = difflib.get_close_matches(wrong, list(known), n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def read_toml(path: Path) -> dict[str, object]:
    """Return the table in `path`. Raises BoardError if it cannot be read or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DescriptionError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DescriptionError(f"{path} is not valid TOML", details=[str(error)]) from error


class Fields:
    """A table whose fields are taken one by one; `problems` lists all that was wrong.

    A wrong or missing field gives a neutral value, so that reading goes on to the next problem.
    """

    def __init__(self, table: Mapping[str, object], where: str = "") -> None:
        self._table = table
        self._where = where
        self._asked: set[str] = set()
        self.problems: list[str] = []

    def problem(self, key: str, text: str) -> None:
        """Note a problem with field `key`."""
        self.problems.append(f"{self._where}{key}: {text}")

    def has(self, key: str) -> bool:
        """Say whether the table holds `key`; an optional field counts as asked for."""
        self._asked.add(key)
        return key in self._table

    def string(self, key: str) -> str:
        """Return a non-empty string."""
        value = self._get(key)
        if isinstance(value, str) and value:
            return value
        self._wrong(key, value, "a string")
        return ""

    def integer(self, key: str, *, minimum: int) -> int:
        """Return an integer of at least `minimum`."""
        value = self._get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= minimum:
            return value
        self._wrong(key, value, f"an integer of at least {minimum}")
        return minimum

    def number(self, key: str, *, above: float) -> float:
        """Return a number, not NaN or infinite, that is larger than `above`."""
        value = self._get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and above < value < math.inf:
            return float(value)
        self._wrong(key, value, f"a number above {above:g}")
        return above + 1

    def strings(self, key: str, *, optional: bool = False) -> tuple[str, ...]:
        """Return a list of strings; empty if `optional` and absent."""
        if optional and not self.has(key):
            return ()
        value = self._get(key)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self._wrong(key, value, "a list of strings")
        return ()

    def choice(self, key: str, allowed: Iterable[str]) -> str:
        """Return a string that is one of `allowed`."""
        value, known = self.string(key), list(allowed)
        if value and value not in known:
            expected = ", ".join(f'"{name}"' for name in known)
            self.problem(key, f'"{value}" is not one of {expected}{suggestion(value, known)}')
        return value

    def boolean(self, key: str) -> bool:
        """Return true or false."""
        value = self._get(key)
        if isinstance(value, bool):
            return value
        self._wrong(key, value, "true or false")
        return False

    def table(self, key: str) -> Fields:
        """Return the sub-table `key`, with its own problem list."""
        value = self._get(key)
        if isinstance(value, dict):
            return Fields(value, f"{self._where}{key}.")
        self._wrong(key, value, "a table")
        return Fields({}, f"{self._where}{key}.")

    def tables(self, key: str) -> dict[str, Fields]:
        """Return the sub-tables of `key`, each with its own problem list."""
        value = self._get(key)
        if not isinstance(value, dict) or not all(isinstance(item, dict) for item in value.values()):
            self._wrong(key, value, "a table of tables")
            return {}
        return {name: Fields(item, f"{self._where}{key}.{name}.") for name, item in value.items()}

    def table_list(self, key: str) -> list[Fields]:
        """Return the tables of list `key`, each with its own problem list; empty if absent."""
        if not self.has(key):
            return []
        value = self._get(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            self._wrong(key, value, "a list of tables")
            return []
        return [Fields(item, f"{self._where}{key}[{index}].") for index, item in enumerate(value)]

    def reject_unknown(self) -> None:
        """Note every field of the table that nobody asked for."""
        for key in self._table:
            if key not in self._asked:
                self.problem(key, f"unknown field{suggestion(key, self._asked)}")

    def _get(self, key: str) -> object:
        self._asked.add(key)
        return self._table.get(key)

    def _wrong(self, key: str, value: object, expected: str) -> None:
        if key not in self._table:
            self.problem(key, f"missing; needs {expected}")
        else:
            self.problem(key, f"must be {expected}, is {value!r}")
