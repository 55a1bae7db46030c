"""Print the constants of sample models on every CPU, with their bound: `make constants`.

A line for each model: its bound (glowc/select/budgets.py), the most bytes at `balanced` and at `size`, on
which CPU, and how many of the CPUs are above the bound. `--mutate least` gives every channel of an
int8 layer a weight of -128 beside a negative one first, `--mutate large` every second channel weights of 127. Ends with
1 when one is above. MODEL...: other .onnx files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from glowc.board import cpu_names, load_cpu
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import optimise
from glowc.graph.graph import Graph
from glowc.select.budgets import bound_bytes
from glowc.select.candidates import Candidates
from glowc.select.choose import select_variants

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
OPTS = ("balanced", "size")
MUTANTS = ("least", "large")

FEW = 64  # bytes over the bound of a small model that would take half of its cycles more to save


def mutated(graph: Graph, kind: str) -> Graph:
    """Return the graph with weights that int8 kernels find hard in all its convolutions and fully connected layers."""
    consts = dict(graph.consts)
    for node in graph.nodes:
        name = node.inputs[1] if node.op in ("Conv", "FullyConnected") else ""
        if name in consts and consts[name].dtype == np.int8:
            weights = consts[name].copy()
            _spoil(weights.reshape(len(weights), -1), kind)
            consts[name] = weights
    return replace(graph, consts=consts)


def _spoil(rows: np.ndarray, kind: str) -> None:
    if kind == "large":
        rows[::2] = 127
        return
    for channel, row in enumerate(rows):
        column = channel % row.size
        row[column] = -128
        if channel ^ 1 < len(rows) and rows[channel ^ 1][column] != -128:
            rows[channel ^ 1][column] = -1


def measured(graph: Graph, cpu: str, opt: str) -> tuple[int, int]:
    """Return (bytes of the constants, their bound and FEW)."""
    selection = select_variants(Candidates(graph, load_cpu(cpu)), opt)
    program = selection.lower(lambda _: False)
    return sum(array.nbytes for array in program.consts.values()), bound_bytes(selection.layers) + FEW


def row(graph: Graph, cpus: Sequence[str]) -> tuple[list[str], int]:
    """Return the cells of a line, and how many are above the bound."""
    cells, above, bound = [], 0, 0
    for opt in OPTS:
        found = []
        for cpu in cpus:
            size, bound = measured(graph, cpu, opt)
            found.append((size, cpu))
            above += size > bound
        cells += [f"{max(found)[0]:,}", max(found)[1]]
    return [f"{bound:,}", *cells, str(above)], above


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL", help="an .onnx file")
    parser.add_argument("--mutate", choices=MUTANTS, help="change the weights first")
    parser.add_argument("--passes", help="as in glowc compile")
    args = parser.parse_args()
    table = Table("model", "bound", "balanced", "CPU", "size", "CPU", "above")
    cpus = [name for name in cpu_names() if name != "host"]
    total = 0
    for path in args.models or sorted(MODELS.glob("*/model.onnx")):
        graph = optimise(path, CompileOptions(passes=args.passes))
        cells, above = row(mutated(graph, args.mutate) if args.mutate else graph, cpus)
        total += above
        table.add_row(path.parent.name if path.name == "model.onnx" else path.stem, *cells)
    Console(width=140).print(table)
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
