"""Finds the kernel cases: `kernel_cases()` of every tests/ops/test_*.py, in sorted order.

A file about the kernels of one instruction set says so: KERNELS = "dsp", a folder of glowc/kernels/.
Of every third case of a spatial kernel, a part of the rows is made a case of its own, without the first or
without the last row: nobody has to think of it, and no kernel forgets y_begin.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from tests.kernels.case import Case

OPS = Path(__file__).resolve().parent.parent / "ops"


@cache
def all_cases() -> tuple[Case, ...]:
    """Return every case. GLOWC_KERNELS ("conv_*,fc_s8") keeps only kernels whose name fits, GLOWC_CASES such files."""
    cases = []
    for path in sorted(path for path in OPS.glob("test_*.py") if _fits(path.stem, "GLOWC_CASES")):
        module = importlib.import_module(f"tests.ops.{path.stem}")
        if hasattr(module, "kernel_cases"):
            folder = getattr(module, "KERNELS", "")
            cases += [replace(case, folder=folder) for case in module.kernel_cases()]
    kept = [case for case in cases if wants(case.instr.kernel)]
    return (*kept, *_parts_of_rows(kept))


def _parts_of_rows(cases: Iterable[Case]) -> Iterator[Case]:
    ranges = ((case, case.instr.rows) for case in cases)
    spatial = [(case, rows) for case, rows in ranges if rows is not None and rows[1] - rows[0] > 1]
    for i, (case, (begin, end)) in enumerate(spatial[::3]):
        rows = (begin + 1, end) if i % 2 == 0 else (begin, end - 1)
        yield replace(case, instr=replace(case.instr, rows=rows))


def wants(kernel: str) -> bool:
    """Say whether GLOWC_KERNELS includes a kernel."""
    return _fits(kernel, "GLOWC_KERNELS")


def _fits(name: str, variable: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in os.environ.get(variable, "*").split(","))
