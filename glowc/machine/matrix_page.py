"""The results of a matrix as one HTML table: a row a model, a column a board and an option."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from glowc.codegen.kernels import environment
from glowc.machine.matrix import Cell, Result


@dataclass(frozen=True, slots=True)
class PageCell:
    """What stands in a cell."""

    status: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageRow:
    """A model with its cells."""

    name: str
    cells: tuple[PageCell, ...]


def matrix_page(cells: Sequence[Cell], results: Sequence[Result]) -> str:
    """Return the page; a cell without a result is open."""
    known = {result["key"]: result for result in results}
    columns = list(dict.fromkeys((cell.board, cell.opt) for cell in cells))
    rows = []
    for name in dict.fromkeys(cell.name for cell in cells):
        own = {(cell.board, cell.opt): known.get(cell.key) for cell in cells if cell.name == name}
        rows.append(PageRow(name, tuple(_shown(own.get(column)) for column in columns)))
    heads = [f"{board}, {opt}" for board, opt in columns]
    template = environment().get_template("matrix/page.html.j2")
    return template.render(rows=rows, columns=heads, summary=summary(cells, results))


def summary(cells: Sequence[Cell], results: Sequence[Result]) -> str:
    """Return how many cells there are, and how many of each status."""
    counts = Counter(result["status"] for result in results)
    parts = [f"{count} {status}" for status, count in sorted(counts.items())]
    left = len(cells) - len(results)
    return f"{len(cells)} cells: {', '.join([*parts, *([f'{left} open'] if left else [])])}"


def _shown(result: Result | None) -> PageCell:
    return PageCell("open", ()) if result is None else PageCell(result["status"], tuple(result_lines(result)))


def result_lines(result: Result) -> Iterator[str]:
    """Yield what a person wants to know of a result, the most important first."""
    figures = result["figures"]
    share = result["equal_share"]
    if share is not None:
        yield f"{100 * share:.3f} % equal"
    for name, unit in (("ms", "ms"), ("insns", "instructions"), ("arena_bytes", "bytes of arena")):
        value = figures.get(name)
        if value is not None:
            yield f"{value:,.2f} {unit}" if unit == "ms" else f"{value:,.0f} {unit}"
    parts = [figures.get("text_bytes") or 0, figures.get("rodata_bytes") or figures.get("weights_bytes") or 0]
    if any(parts):
        yield f"{sum(parts):,.0f} bytes of flash" if parts[0] else f"{parts[1]:,.0f} bytes of constants"
    if result["message"]:
        yield result["message"]
