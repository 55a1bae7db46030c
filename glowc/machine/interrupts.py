"""Ctrl-C in processes that work for another one: it reaches them too, and the one that started them speaks."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_CAN_HOLD = hasattr(signal, "pthread_sigmask")  # Windows cannot


@contextmanager
def held() -> Iterator[None]:
    """Hold Ctrl-C back; processes that are started meanwhile begin with it held."""
    if not _CAN_HOLD:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_silently() -> None:
    """Let Ctrl-C end this process at once and without a word from now on; one that was held back does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _CAN_HOLD:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def raised() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, so that what is done cleans up; after that it ends the process again."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
