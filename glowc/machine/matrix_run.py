"""Runs the cells of a matrix: in processes of this machine, or on the workers of a Dask scheduler.

Ctrl-C reaches processes that work for another one too, and the one that started them speaks.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from threading import Event
from typing import Any

from glowc.errors import MissingToolError, ToolError
from glowc.machine.matrix import FAILED, FIGURES, Cell, Result, run_cell

_MOST = 61 if sys.platform == "win32" else 1 << 16  # processes of a pool that Python can wait for


@contextmanager
def held() -> Iterator[None]:
    """Hold Ctrl-C back until the end; processes that are started meanwhile begin with it held.

    The mask is of this thread, which processes inherit. Another thread of this process, as those of numpy's BLAS, may
    take the signal, so Python's handler waits, too. Only in the main thread.
    """
    if sys.platform == "win32":  # which cannot
        yield
        return
    came = Event()
    handler = signal.signal(signal.SIGINT, lambda *_: came.set())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
    if came.is_set():
        raise KeyboardInterrupt


def end_silently() -> None:
    """Let Ctrl-C end this process at once and without a word from now on; one that was held back does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def raised() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, so that what is done cleans up; after that it ends the process again."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


_interrupted = Event()  # of a process that runs cells


def run_here(cells: Sequence[Cell], jobs: int) -> Iterator[Result]:
    """Yield results as they come, from `jobs` processes.

    When a process dies, the cells that may have run in it are tried one by one; one that dies twice alone has failed.
    """
    left = {cell.key: cell for cell in cells}
    while left:
        for result in _pool(list(left.values()), jobs):
            del left[result["key"]]
            yield result
        for cell in list(left.values())[: jobs + 1]:  # cells begin in their order
            del left[cell.key]
            yield next(_pool([cell], 1), None) or next(_pool([cell], 1), None) or _lost(cell)


def _pool(cells: Sequence[Cell], jobs: int) -> Iterator[Result]:
    """Yield results until all are there or a process has died."""
    with ProcessPoolExecutor(min(jobs, _MOST), mp_context=get_context("spawn"), initializer=end_silently) as pool:
        with held():
            futures: list[Future[Result]] = [pool.submit(_run_interruptible, run_cell, cell) for cell in cells]
        try:
            for future in as_completed(futures):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    continue
        finally:
            pool.shutdown(cancel_futures=True)


def _run_interruptible(run: Callable[[Cell], Result], cell: Cell) -> Result:
    """Run a cell in a process of a pool; after an interrupt it leaves alone those that wait for it."""
    if _interrupted.is_set():
        raise KeyboardInterrupt
    try:
        with raised():
            return run(cell)
    except KeyboardInterrupt:
        _interrupted.set()
        raise


def _lost(cell: Cell) -> Result:
    return {
        "key": cell.key, "name": cell.name, "board": cell.board, "opt": cell.opt, "status": FAILED,
        "message": "the process that ran it died: out of memory, or killed", "seconds": 0.0, "reference": None,
        "equal_share": None, "figures": dict.fromkeys(FIGURES),
    }  # fmt: skip


def connect(scheduler: str) -> Any:
    """Return a client of a Dask scheduler. Raises ToolError when Dask is missing or the scheduler is not there."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise MissingToolError(
            "--scheduler needs the Python package distributed", hint="pip install 'glowc[dask]'"
        ) from None
    try:
        return distributed.Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise ToolError(f"no scheduler at {scheduler}: {error}", hint="dask scheduler; dask worker ADDRESS") from error


def run_there(cells: Sequence[Cell], client: Any) -> Iterator[Result]:
    """Yield results as they come from the workers of a Dask client, which see the same files as this machine.

    A cell whose worker dies runs on another one.
    """
    as_done = import_module("distributed").as_completed
    with client:
        by_key = {f"glowc-{cell.key}": cell for cell in cells}
        futures = [client.submit(run_cell, cell, key=key, pure=False) for key, cell in by_key.items()]
        for future in as_done(futures):
            yield future.result() if future.status == "finished" else _lost(by_key[future.key])
