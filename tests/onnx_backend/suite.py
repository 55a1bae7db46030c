"""All node tests in parallel processes, and why those that were refused were."""

from __future__ import annotations

import multiprocessing
import os
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.onnx_backend.build import CC_ERROR, CRASH, REFUSED, WRONG, Result, run_batch
from tests.onnx_backend.cases import NodeTest, all_tests, batches

BATCH = 24
MUST_BE_ZERO = (WRONG, CC_ERROR, CRASH)
OUT_OF_REACH = ("strings", "maps", "exotic types", "other domains")
CONTROL_FLOW = frozenset({"Loop", "Scan", "If", "SequenceMap"})
# The shape of the result, or whether there is one, depends on the data.
DATA_SHAPES = frozenset({"NonZero", "Unique", "NonMaxSuppression"})
RANDOM = frozenset({
    "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli",
})  # fmt: skip
NOT_YET = "not yet"
_BATCHES: list[tuple[NodeTest, ...]] = []


def run_all(tests: Sequence[NodeTest] | None = None, jobs: int = 0) -> list[Result]:
    """Return the results in the order of the tests."""
    chosen = all_tests() if tests is None else tuple(tests)
    reachable = [t for t in chosen if t.group not in OUT_OF_REACH]
    _BATCHES[:] = list(batches(reachable, BATCH))
    numbers = range(len(_BATCHES))
    with tempfile.TemporaryDirectory(prefix="glowc-onnx-") as folder:
        places = [Path(folder) / str(i) for i in numbers]
        context = multiprocessing.get_context("fork")  # the children inherit the tests
        with ProcessPoolExecutor(jobs or min(os.cpu_count() or 1, 4), context) as pool:
            done = [r for group in pool.map(_numbered, numbers, places) for r in group]
    results = {r.name: r for r in done}
    for test in chosen:
        results.setdefault(test.name, Result(test.name, test.op, test.group, REFUSED, 0, test.group))
    return [results[t.name] for t in chosen]


def _numbered(number: int, place: Path) -> list[Result]:
    return run_batch(_BATCHES[number], place)


def reason_class(result: Result) -> str:
    """Return why a refused test is out of reach, or "not yet"."""
    if result.group in OUT_OF_REACH:
        return result.group
    if result.op in RANDOM:
        return "random numbers"
    if result.op in DATA_SHAPES:
        return "shapes that depend on data"
    if result.op in CONTROL_FLOW:
        return "control flow at run time"
    if "training" in result.name or "training" in result.reason:
        return "training"
    return "no output has elements" if "has no elements" in result.reason else NOT_YET


def short_reason(result: Result) -> str:
    """Return the first line of a refusal that says what is missing, without names of values."""
    lines = [line.strip() for line in result.reason.splitlines() if line.strip()]
    kept = [line for line in lines if "hint:" not in line and "problems" not in line] or lines or [""]
    text = re.sub(r"^.*?\.onnx: ", "", kept[0])
    if "cannot be compiled" in text and len(kept) > 1:
        text = kept[1]
    return re.sub(r'\s*"[^"]*"', "", text)[:150]


def is_open(result: Result) -> bool:
    """True for a refusal that is not out of reach by its nature."""
    return result.outcome == REFUSED and reason_class(result) == NOT_YET
