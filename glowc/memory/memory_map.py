"""A plan as a picture in text: addresses upwards, instructions to the right, the peak marked below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from string import ascii_letters, digits

from glowc.memory.types import Block, MemoryPlan

_ROWS = 16


def render_text(
    plan: MemoryPlan, blocks: Sequence[Block], labels: Mapping[str, str] | None = None, width: int = 100
) -> str:
    """The map and its legend, lines of about `width` characters.

    One letter is one block (letters repeat after 62), `.` is free; a cell shows the block in the
    middle of its address band at its first instruction. `^` marks where the most bytes are in use.
    """
    drawn = [b for b in blocks if b.size_bytes]
    if not drawn:
        return "memory map: the arena is empty\n"
    symbols = {b.name: symbol for b, symbol in zip(drawn, cycle(ascii_letters + digits), strict=False)}
    begin, end = min(b.lifetime.begin for b in drawn), max(b.lifetime.end for b in drawn)
    alive = {t: [b for b in drawn if b.lifetime.begin <= t < b.lifetime.end] for t in range(begin, end)}
    used = {t: _occupied(plan, alive[t]) for t in alive}
    peak = max(used.values())
    at_peak = min(t for t in used if used[t] == peak)
    step = -(-(end - begin) // max(1, width - 14))
    columns = range(begin, end, step)
    band = -(-plan.arena_bytes // _ROWS)
    lines = [
        f"memory map: arena {plan.arena_bytes:,} bytes, lower bound {plan.lower_bound_bytes:,} bytes, "
        f"instructions {begin}..{end - 1}, {step} per column, {band:,} bytes per row"
    ]
    for at in reversed(range(0, plan.arena_bytes, band)):
        middle = min(at + band // 2, plan.arena_bytes - 1)
        lines.append(f"{at:>10,}  " + "".join(_cell(plan, alive[t], middle, symbols) for t in columns))
    marks = ("^" if peak in (used.get(u) for u in range(t, t + step)) else " " for t in columns)
    lines.append((" " * 12 + "".join(marks)).rstrip())
    lines.append(f"peak: {peak:,} bytes in use, first at instruction {at_peak}")
    for b in drawn:
        place = f"[{plan.offsets_bytes[b.name]:,}, {plan.offsets_bytes[b.name] + b.size_bytes:,})"
        life = f"instr {b.lifetime.begin}..{b.lifetime.end - 1}"
        mark = "  <- at the peak" if b in alive[at_peak] else ""
        label = (labels or {}).get(b.name, b.name)
        lines.append(f"  {symbols[b.name]} {place:24} {b.size_bytes:>11,} B  {life}  {label}{mark}")
    return "\n".join([*lines, ""])


def _occupied(plan: MemoryPlan, alive: Sequence[Block]) -> int:
    """Bytes in use, where overlapping blocks share some."""
    total, reached = 0, 0
    for start, size in sorted((plan.offsets_bytes[b.name], b.size_bytes) for b in alive):
        total += max(0, start + size - max(start, reached))
        reached = max(reached, start + size)
    return total


def _cell(plan: MemoryPlan, alive: Sequence[Block], at: int, symbols: Mapping[str, str]) -> str:
    here = (b for b in alive if 0 <= at - plan.offsets_bytes[b.name] < b.size_bytes)
    return next((symbols[b.name] for b in here), ".")
