"""Bytes that the rings of a segment share: rows over rows, distances that keep live rows apart, and the peak."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowc.place.stream.model import Ints, Ring, Timeline


def forbidden(a: tuple[Ints, Ints], b: tuple[Ints, Ints]) -> tuple[int, int] | None:
    """Return the open interval of distances a - b at which live bytes would collide, None when none do."""
    both = (a[1] >= 0) & (b[1] >= 0)
    if not both.any():
        return None
    return int((b[0] - a[1])[both].min()), int((b[1] - a[0])[both].max())


def best_merges(timeline: Timeline) -> dict[int, str]:
    """Return the merges that save bytes, chosen stage by stage."""
    merges: dict[int, str] = {}
    size = sum(r.size_bytes for r in timeline.rings(merges))
    for i, stage in enumerate(timeline.model.stages):
        best: str | None = None
        for buffer in stage.over:
            if buffer in merges.values() or not timeline.may_merge(i, buffer):
                continue
            tried = sum(r.size_bytes for r in timeline.rings({**merges, i: buffer}))
            if tried < size:
                best, size = buffer, tried
        if best is not None:
            merges[i] = best
    return merges


def sizes_of(rings: Sequence[Ring], steps: int) -> int:
    """Return the most bytes between the lowest and the highest live byte of all buffers together, at any step."""
    if not steps:
        return 0
    total = np.zeros(steps, np.int64)
    for ring in rings:
        low, high = ring.hull(steps)
        total += high - low
    return int(total.max())
