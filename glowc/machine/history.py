"""Measurements over time: a file that `glowc bench` appends to, and gates that say when a figure has grown too far."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict, cast

from glowc.compiler.report import BenchReport
from glowc.errors import FileError, InputError

FIGURES = ("insns", "cycles", "ms", "uj", "arena_bytes", "weights_bytes", "text_bytes", "rodata_bytes", "data_bytes",
           "bss_bytes", "stack_bytes", "stack_bound_bytes")  # fmt: skip
_GATE = re.compile(r"\s*(\w+)\s*>\s*(?:\+\s*([\d.]+)\s*%|([\d_.,]+))\s*")


class Entry(TypedDict):
    """One line of the file: what was measured of which model, where and when; `passed` says that every gate held."""

    time: str
    glowc: str
    model: str
    model_hash: str
    board: str
    cpu: str
    chip: str | None
    options: str
    figures: dict[str, float]
    passed: bool


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure and the most that it may be: absolute, or in percent above the last measurement that passed."""

    figure: str
    most: float | None = None
    percent: float | None = None

    def broken(self, entry: Entry, before: Entry | None) -> str | None:
        """Return what is wrong, with figures; None when the gate holds, also where there is nothing to compare with."""
        value = entry["figures"][self.figure]
        if self.most is not None:
            return f"{self.figure} is {value:,.6g}, more than {self.most:,.6g}" if value > self.most else None
        then = before["figures"].get(self.figure) if before is not None else None
        if then is None or before is None or value <= then * (1 + (self.percent or 0.0) / 100):
            return None
        growth = f"{100 * (value / then - 1):+.2f} %" if then else "from nothing"
        was = f"{growth} of {then:,.6g} ({before['time']})"
        return f"{self.figure} is {value:,.6g}, {was}; {self.percent:+g} % is allowed"


def parse_gates(texts: Sequence[str]) -> tuple[Gate, ...]:
    """Return gates from texts like `insns>+2%` and `uJ>50`. Raises InputError naming all that are none."""
    found = [(text, _GATE.fullmatch(text)) for text in texts]
    wrong = [text for text, match in found if match is None or match[1].lower() not in FIGURES]
    if wrong:
        raise InputError(
            f"--fail-if {', '.join(wrong)}: no such gate",
            details=[f"figures: {', '.join(FIGURES)}"],
            hint="--fail-if 'insns>+2%', 'arena_bytes>8000'",
        )
    return tuple(_gate(match[1].lower(), match[2], match[3]) for _, match in found if match is not None)


def _gate(figure: str, percent: str | None, most: str | None) -> Gate:
    try:
        return Gate(figure, None if most is None else float(most.replace(",", "").replace("_", "")),
                    None if percent is None else float(percent))  # fmt: skip
    except ValueError:
        raise InputError(f"--fail-if {figure}>{most or percent}: not a number") from None


def entry_of(report: BenchReport, gates: Sequence[Gate]) -> Entry:
    """Return a report as an entry. Raises InputError for gates on figures that were not measured."""
    chip = report.get("chip")
    values = cast("dict[str, float | None]", report)
    figures = {name: value for name in FIGURES if (value := values.get(name)) is not None}
    if missing := [gate.figure for gate in gates if gate.figure not in figures]:
        raise InputError(f"{report['board']} does not measure {', '.join(missing)}",
                         hint="an emulated Cortex-M board counts instructions, --chip adds cycles, ms, uJ")  # fmt: skip
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"), "glowc": report["glowc"], "model": report["model"],
        "model_hash": report["model_hash"], "board": report["board"], "cpu": report["run_cpu"],
        "chip": chip["name"] if chip else None, "options": report["options"], "figures": figures, "passed": True,
    }  # fmt: skip


def read_history(path: Path) -> list[Entry]:
    """Return the entries of a file, none when there is no file. Raises InputError naming the line that is no entry."""
    if not path.exists():
        return []
    entries: list[Entry] = []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            entries += [entry] if entry["figures"] is not None and entry["model"] and "passed" in entry else []
        except (ValueError, KeyError, TypeError):
            message = f"line {number} of {path} is no measurement of glowc"
            raise InputError(message, hint="choose another file") from None
    return entries


def last_like(entries: Sequence[Entry], entry: Entry) -> Entry | None:
    """Return the last entry that passed of the same model's name on the same board, CPU and chip."""
    alike = [e for e in entries if e["passed"] and _of(e) == _of(entry)]
    return alike[-1] if alike else None


def _of(entry: Entry) -> tuple[object, ...]:
    return entry["model"], entry.get("board"), entry.get("cpu"), entry.get("chip")


def broken_gates(gates: Sequence[Gate], entry: Entry, before: Entry | None) -> list[str]:
    """Return what each gate that does not hold says."""
    return [text for gate in gates if (text := gate.broken(entry, before)) is not None]


def append_entry(path: Path, entry: Entry) -> None:
    """Append a line. Raises GlowcError when it cannot be written."""
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(entry) + "\n")
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}", hint="choose another file with --history") from error
