"""Counts of the node tests: the table, the recorded numbers that must not fall, the file that docs are made from."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import onnx

from tests.onnx_backend.build import OTHER, PASS, REFUSED, Result
from tests.onnx_backend.cases import LEVELS
from tests.onnx_backend.suite import MUST_BE_ZERO, reason_class

HERE = Path(__file__).resolve().parent
COUNTS, RESULTS = HERE / "counts.toml", HERE / "results.json"
GROUPS = ("ordinary", "quantised", "small-floats", "sequences")


def counts(results: Sequence[Result]) -> dict[str, dict[str, int]]:
    """Return, per group: tests, passed by level, refused, and what must be zero."""
    table: dict[str, dict[str, int]] = {}
    for group in (*GROUPS, "all"):
        mine = [r for r in results if group in (r.group, "all")]
        row = {"tests": len(mine), "passed": sum(r.outcome == PASS for r in mine)}
        for level, name in enumerate(LEVELS):
            row[f"passed {name}"] = sum(r.outcome == PASS and r.level == level for r in mine)
        for outcome in (OTHER, REFUSED, *MUST_BE_ZERO):
            row[outcome] = sum(r.outcome == outcome for r in mine)
        table[group] = row
    return table


def refusals(results: Sequence[Result]) -> Counter[str]:
    """Return how many tests were refused for which reason."""
    return Counter(reason_class(r) for r in results if r.outcome == REFUSED)


def table(results: Sequence[Result]) -> str:
    """Return the counts as text."""
    rows = counts(results)
    keys = list(rows["all"])
    lines = [f"{'onnx ' + onnx.__version__:32}" + "".join(f"{group:>11}" for group in rows)]
    lines += [f"{key:32}" + "".join(f"{rows[group][key]:11}" for group in rows) for key in keys]
    lines += ["refused because of"]
    lines += [f"  {reason:30}{count:11}" for reason, count in refusals(results).most_common()]
    return "\n".join(lines)


def per_operator(results: Sequence[Result]) -> dict[str, dict[str, int]]:
    """Return the number of tests and of passed ones by operator, sorted."""
    found: dict[str, dict[str, int]] = {}
    for r in results:
        row = found.setdefault(r.op or "(none)", {"tests": 0, "passed": 0})
        row["tests"] += 1
        row["passed"] += r.outcome == PASS
    return dict(sorted(found.items()))


def record(results: Sequence[Result]) -> None:
    """Write counts.toml and results.json."""
    lines = ["# Node tests of the onnx package that pass; `scripts/onnx_backend.py --update` rewrites it.\n"]
    lines += [f'onnx = "{onnx.__version__}"\n']
    for group, row in counts(results).items():
        lines += [f"\n[{group}]\n", f"tests = {row['tests']}\n", f"passed = {row['passed']}\n"]
    COUNTS.write_text("".join(lines))
    refused: dict[str, dict[str, int]] = {}
    for r in results:
        if r.outcome in (REFUSED, OTHER):
            why = reason_class(r) if r.outcome == REFUSED else OTHER
            reasons = refused.setdefault(r.op or "(none)", {})
            reasons[why] = reasons.get(why, 0) + 1
    data = {
        "onnx": onnx.__version__, "counts": counts(results), "refused": dict(sorted(refusals(results).items())),
        "operators": per_operator(results), "reasons": dict(sorted(refused.items())),
    }  # fmt: skip
    RESULTS.write_text(json.dumps(data, indent=1) + "\n")


def problems(results: Sequence[Result], *, complete: bool = True) -> list[str]:
    """Return what is worse than it may be: any wrong answer, and fewer passes than recorded."""
    rows = counts(results)
    found = [f"{rows['all'][k]} tests with outcome {k!r}" for k in MUST_BE_ZERO if rows["all"][k]]
    recorded = tomllib.loads(COUNTS.read_text()) if COUNTS.exists() and complete else {}
    if recorded and recorded["onnx"] == onnx.__version__:
        for group, row in rows.items():
            if row["passed"] < recorded[group]["passed"]:
                found.append(f"{group}: {row['passed']} passed, {recorded[group]['passed']} are recorded")
    return found
