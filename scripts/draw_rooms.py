"""Draw the rooms of glowc as docs/rooms.svg: the way of a model through them, and what each may import.

`make docs` writes the picture; the order is read from tests/unit/test_rooms.py, which holds it.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = {
    "errors": "what glowc raises",
    "paths": "where data lies",
    "graph": "IR of operators",
    "board": "CPUs, boards, tools",
    "asm": "machine instructions",
    "program": "IR of instructions",
    "kernels": "variants by core",
    "ops": "what operators mean",
    "frontend": "file to graph",
    "passes": "graph to graph",
    "lower": "graph to program",
    "memory": "lifetimes to offsets",
    "codegen": "program to C",
    "place": "order and places",
    "select": "which variants",
    "quant": "float file to int8 file",
    "compiler": "the pipeline",
    "machine": "build, run, validate",
    "api": "glowc in Python",
    "testing": "what pytest gets",
    "torch": "PyTorch modules",
    "app": "the command line",
}
WAY = ("frontend", "graph", "passes", "lower", "program", "place", "memory", "codegen", "machine")
BOX_W, BOX_H, GAP_X, GAP_Y, LEFT, TOP = 150, 46, 26, 14, 16, 92
STYLE = (
    "text{font:13px sans-serif;fill:#222}.n{font-weight:bold}.s{font-size:11px;fill:#555}"
    ".b{fill:#f4f6f8;stroke:#8a97a5}.w{fill:#e3eefa;stroke:#3b75b0}.a{stroke:#3b75b0;fill:none;marker-end:url(#h)}"
)


def order() -> list[tuple[str, ...]]:
    """Return the rows of rooms that tests/unit/test_rooms.py holds: each imports only those of rows before it."""
    tree = ast.parse((ROOT / "tests" / "unit" / "test_rooms.py").read_text(encoding="utf-8"))
    assigned = {ast.unparse(s.targets[0]): s.value for s in tree.body if isinstance(s, ast.Assign)}
    return list(ast.literal_eval(assigned["ORDER"]))


def drawn() -> list[list[str]]:
    """Return the rooms that have words, in columns."""
    columns = [[room for room in row if room in WORDS] for row in order()]
    return [column for column in columns if column]


def box(x: int, y: int, room: str) -> str:
    """Return one room."""
    kind = "w" if room in WAY else "b"
    return (
        f'<rect class="{kind}" x="{x}" y="{y}" width="{BOX_W}" height="{BOX_H}" rx="5"/>'
        f'<text class="n" x="{x + 10}" y="{y + 19}">{room}</text>'
        f'<text class="s" x="{x + 10}" y="{y + 36}">{escape(WORDS[room])}</text>'
    )


def way(width: int) -> str:
    """Return the way of a model through the rooms, as a line of arrows at the top."""
    stops = ("model file", *WAY)
    step = (width - 2 * LEFT) // len(stops)
    parts = []
    for i, stop in enumerate(stops):
        x = LEFT + i * step
        parts.append(f'<text class="n" x="{x}" y="52">{stop}</text>')
        if i + 1 < len(stops):
            parts.append(f'<path class="a" d="M{x + 9 * len(stop) + 6} 48H{x + step - 10}"/>')
    return "".join(parts)


def rooms_svg() -> str:
    """Return docs/rooms.svg."""
    columns = drawn()
    width = 2 * LEFT + len(columns) * BOX_W + (len(columns) - 1) * GAP_X
    height = TOP + max(map(len, columns)) * (BOX_H + GAP_Y) + 8
    boxes = [
        box(LEFT + c * (BOX_W + GAP_X), TOP + r * (BOX_H + GAP_Y), room)
        for c, column in enumerate(columns)
        for r, room in enumerate(column)
    ]
    head = '<marker id="h" markerWidth="8" markerHeight="8" refX="6" refY="3" orient="auto">'
    head += '<path d="M0 0L6 3L0 6z" fill="#3b75b0"/></marker>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
            f"<style>{STYLE}</style><defs>{head}</defs>",
            f'<text x="{LEFT}" y="24">A model walks through the blue rooms.</text>{way(width)}',
            f'<text x="{LEFT}" y="{TOP - 12}">A room imports only rooms in columns to its left.</text>',
            *boxes,
            "</svg>",
            "",
        ]
    )
