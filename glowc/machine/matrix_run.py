"""Runs the cells of a matrix: in processes of this machine, or on the workers of a Dask scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from glowc.errors import ToolError
from glowc.machine.matrix import FAILED, FIGURES, Cell, Result, run_cell

_TRIES = 2  # of a cell whose process dies


def run_here(cells: Sequence[Cell], jobs: int) -> Iterator[Result]:
    """Yield results as they come, from `jobs` processes; when one dies, what is left is tried again, one by one."""
    died: Counter[str] = Counter()
    left = {cell.key: cell for cell in cells}
    alone = False
    while left:
        chosen = list(left.values())[: 1 if alone else None]
        for result in _pool(chosen, 1 if alone else jobs):
            del left[result["key"]]
            yield result
        lost = [cell for cell in chosen if cell.key in left]
        died.update(cell.key for cell in lost)
        for cell in [cell for cell in lost if died[cell.key] >= _TRIES]:
            del left[cell.key]
            yield _lost(cell)
        alone = bool(left)


def _pool(cells: Sequence[Cell], jobs: int) -> Iterator[Result]:
    """Yield results until all are there or a process has died."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures: list[Future[Result]] = [pool.submit(run_cell, cell) for cell in cells]
        try:
            for future in as_completed(futures):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    continue
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _lost(cell: Cell) -> Result:
    return {
        "key": cell.key, "name": cell.name, "board": cell.board, "opt": cell.opt, "status": FAILED,
        "message": "the process that ran it died: out of memory, or killed", "seconds": 0.0, "reference": None,
        "equal_share": None, "figures": dict.fromkeys(FIGURES),
    }  # fmt: skip


def run_there(cells: Sequence[Cell], scheduler: str) -> Iterator[Result]:
    """Yield results as they come from the workers of a Dask scheduler, which see the same files as this machine.

    A cell whose worker dies runs on another one. Raises ToolError when Dask is missing or the scheduler is not there.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise ToolError("--scheduler needs the Python package distributed", hint="pip install 'glowc[dask]'") from None
    try:
        client = distributed.Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise ToolError(f"no scheduler at {scheduler}: {error}", hint="dask scheduler; dask worker ADDRESS") from error
    with client:
        by_key = {cell.key: cell for cell in cells}
        futures = [client.submit(run_cell, cell, key=f"glowc-{key}", pure=False) for key, cell in by_key.items()]
        for future in distributed.as_completed(futures):
            cell = by_key[future.key.removeprefix("glowc-")]
            yield future.result() if future.status == "finished" else _lost(cell)
