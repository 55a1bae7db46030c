"""Print the arena of the sample models under every memory plan: `make bench-memory`.

Inputs and outputs lie in the arena, images are interleaved (nhwc), kernels are the reference ones, which need no
scratch; `--cpu CPU` takes the fast ones of a CPU. The last column is an input that arrives row by row; where that is
not possible (no image), inputs and outputs are the caller's buffers. `--exported` takes images in the exported layout,
MODEL... other .onnx files.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from glowc.board import Cpu, load_board, load_cpu
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import optimise
from glowc.errors import GlowcError, InputError
from glowc.graph.graph import Graph
from glowc.lower.lowering import lower_graph
from glowc.place.places import verify_plan
from glowc.place.planning import Planned, Request, make_plan

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
NAMES = ("mlperf_ic_resnet8", "mlperf_kws_dscnn", "mlperf_vww_mobilenetv1", "mlperf_ad_autoencoder")


def proven_plan(graph: Graph, request: Request, cpu: Cpu | None) -> Planned:
    """Return the plan of a graph, executed byte by byte; without a CPU, with kernels that need no scratch."""
    if cpu is None:
        host = load_board("host").cpu
        planned = make_plan(lambda _: lower_graph(graph, host, lambda _: True), request)
    else:
        planned = make_plan(lambda streaming: lower_graph(graph, cpu, streaming), request)
    verify_plan(planned.program, planned.plan)
    return planned


def row(path: Path, layout: str, passes: str | None, cpu: Cpu | None) -> list[str]:
    """Return one line of the table."""
    graph = optimise(path, CompileOptions(io_layout=layout, passes=passes))
    start = time.perf_counter()
    plans = [proven_plan(graph, Request(kind), cpu) for kind in ("plain", "overlap", "stream")]
    try:
        last, how = proven_plan(graph, Request(fed=True), cpu), "rows"
    except InputError:
        last, how = proven_plan(graph, Request("stream", caller_io=True), cpu), "caller's buffers"
    seconds = time.perf_counter() - start
    name = path.parent.name if path.name == "model.onnx" else path.stem
    cells = [f"{p.plan.arena_bytes:,}" for p in (*plans, last)]
    return [name, *cells, how, f"{plans[2].extra_insns:,}", f"{seconds:.2f}"]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL", help="an .onnx file")
    parser.add_argument("--exported", action="store_true", help="images in the exported layout")
    parser.add_argument("--passes", help="edit the pipeline of graph passes")
    parser.add_argument("--cpu", help="take this CPU's kernels, e.g. cortex-m4")
    args = parser.parse_args()
    paths = args.models or [MODELS / name / "model.onnx" for name in NAMES]
    table = Table(title=f"arena bytes, {args.cpu or 'reference'} kernels")
    for column in ("model", "plain", "overlap", "stream", "fed", "fed by", "stream: + instructions", "seconds"):
        table.add_column(column, justify="left" if column in ("model", "fed by") else "right")
    try:
        cpu = load_cpu(args.cpu) if args.cpu else None
        for path in paths:
            table.add_row(*row(path, "exported" if args.exported else "nhwc", args.passes, cpu))
    except GlowcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
