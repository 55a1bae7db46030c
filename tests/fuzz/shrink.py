"""Makes the smallest network that still shows a difference: hypothesis replays the drawn numbers and shrinks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes
from hypothesis.errors import NoSuchExample

from tests.fuzz.recipe import Recipe
from tests.fuzz.strategy import recipes

_KEY = b"network"
_UNSHRUNK = b"network.secondary"  # what is stored under the key itself counts as shrunk already


def shrunk(rolled: Sequence[int], shows: Callable[[Recipe], bool], most_examples: int = 400) -> Recipe | None:
    """Return the smallest network found for which `shows` holds, starting at the drawn numbers; None when none does."""
    database = InMemoryExampleDatabase()
    database.save(_UNSHRUNK, choices_to_bytes(tuple(rolled)))
    profile = settings(
        database=database, max_examples=most_examples, deadline=None, phases=(Phase.reuse, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    try:
        return find(recipes(), shows, settings=profile, database_key=_KEY)
    except NoSuchExample:
        return None
