"""A plan as a picture, in text or SVG: addresses upwards, instructions to the right, blocks named, the peak marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
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


_LEFT, _TOP, _BOTTOM, _HEIGHT = 90, 40, 46, 520
_COLORS = ("#8dd3c7", "#ffed6f", "#bebada", "#fb8072", "#80b1d3", "#fdb462", "#b3de69", "#fccde5", "#bc80bd", "#ccebc5")


def render_svg(
    plan: MemoryPlan,
    blocks: Sequence[Block],
    labels: Mapping[str, str] | None = None,
    instructions: Sequence[str] = (),
    title: str = "memory map",
) -> str:
    """Return an SVG file; `labels` rename blocks, `instructions` name the columns."""
    drawn = [b for b in blocks if b.size_bytes]
    count = max([1, len(instructions), *(b.lifetime.end for b in drawn)])
    column = max(14.0, min(60.0, 1000 / count))
    width = _LEFT + column * count + 20
    arena = max(plan.arena_bytes, 1)
    names = labels or {}

    def y(address: float) -> float:
        return _TOP + _HEIGHT * (1 - address / arena)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{_TOP + _HEIGHT + _BOTTOM}" '
        'font-family="sans-serif" font-size="10">',
        f'<text x="{_LEFT}" y="16" font-size="13">{escape(title)}: arena {plan.arena_bytes:,} bytes, '
        f"lower bound {plan.lower_bound_bytes:,} bytes</text>",
        f'<rect x="{_LEFT}" y="{_TOP}" width="{column * count:.1f}" height="{_HEIGHT}" fill="#f4f4f4"/>',
    ]
    parts += _peak(plan, drawn, column)
    for number, b in enumerate(sorted(drawn, key=lambda b: (b.lifetime.begin, b.name))):
        low, high = plan.offsets_bytes[b.name], plan.offsets_bytes[b.name] + b.size_bytes
        left, wide = _LEFT + column * b.lifetime.begin, column * (b.lifetime.end - b.lifetime.begin)
        tall = y(low) - y(high)
        name = names.get(b.name, b.name)
        about = f"{name}: {b.size_bytes:,} bytes at {low:,}, instructions {b.lifetime.begin}..{b.lifetime.end - 1}"
        parts.append(
            f'<g><title>{escape(about)}</title><rect x="{left:.1f}" y="{y(high):.1f}" width="{wide:.1f}" '
            f'height="{tall:.1f}" fill="{_COLORS[number % len(_COLORS)]}" fill-opacity="0.75" stroke="#555"/>'
        )
        room = int(wide / 5.5)
        if tall >= 11 and room >= 3:
            parts.append(f'<text x="{left + 3:.1f}" y="{y(high) + 10:.1f}">{escape(name[:room])}</text>')
        parts.append("</g>")
    parts += _axes(plan, count, column, instructions)
    return "\n".join([*parts, "</svg>", ""])


def _peak(plan: MemoryPlan, drawn: Sequence[Block], column: float) -> list[str]:
    """The instructions at which a block reaches the top of the arena."""
    top = [b for b in drawn if plan.offsets_bytes[b.name] + b.size_bytes == plan.arena_bytes]
    times = sorted({t for b in top for t in range(b.lifetime.begin, b.lifetime.end)})
    marks = [
        f'<rect x="{_LEFT + column * t:.1f}" y="{_TOP - 6}" width="{column:.1f}" height="{_HEIGHT + 6}" '
        'fill="#d62728" fill-opacity="0.12"/>'
        for t in times
    ]
    if times:
        marks.append(f'<text x="{_LEFT + column * times[0]:.1f}" y="{_TOP - 9}" fill="#d62728">peak</text>')
    return marks


def _axes(plan: MemoryPlan, count: int, column: float, instructions: Sequence[str]) -> list[str]:
    parts = []
    for quarter in range(5):
        at = _TOP + _HEIGHT * (1 - quarter / 4)
        address = f"{plan.arena_bytes * quarter // 4:,}"
        ends = f'x1="{_LEFT}" x2="{_LEFT + column * count:.1f}" y1="{at:.1f}" y2="{at:.1f}"'
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 3:.1f}" text-anchor="end">{address}</text>')
        parts.append(f'<line {ends} stroke="#bbb"/>')
    for t in range(count):
        x, at = _LEFT + column * (t + 0.5), _TOP + _HEIGHT + 14
        name = escape(instructions[t]) if t < len(instructions) else ""
        parts.append(f'<text x="{x:.1f}" y="{at}" text-anchor="middle">{t}<title>{name}</title></text>')
    parts.append(f'<text x="{_LEFT}" y="{_TOP + _HEIGHT + 34}">instruction</text>')
    return parts
