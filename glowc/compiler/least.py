"""What a graph needs at the very least: what cannot fit is said before variants are chosen and memory is planned."""

from __future__ import annotations

import numpy as np

from glowc.board import Board
from glowc.compiler.fit import larger, request_of, smaller_flash
from glowc.compiler.options import CompileOptions
from glowc.errors import FlashError, RamError
from glowc.graph.graph import Graph

_LARGE = 4096  # bytes of a constant that counts: smaller ones may be folded into code
_FEW = 16  # different values, of which places in a palette may be stored


def check_least(graph: Graph, board: Board, options: CompileOptions) -> None:
    """Raise LimitError for constants beyond the board's flash, and for inputs or outputs beyond its RAM.

    Limits of the user are for those who know the whole need.
    """
    if any(node.op == "Delegated" for node in graph.nodes):
        return  # where its constants are is for its back end to say
    _check_constants(graph, board, options)
    _check_ends(graph, board, options)


def _check_constants(graph: Graph, board: Board, options: CompileOptions) -> None:
    bound = board.bytes_of("flash") if board.bare_metal else None
    if bound is None or sum(a.nbytes for a in graph.consts.values()) <= bound:
        return
    sizes = constant_bytes(graph)
    least = sum(sizes.values())
    if least <= bound:
        return
    most = sorted(sizes.items(), key=lambda item: -item[1])[:8]
    raise FlashError(
        f"the model needs at least {least} bytes of flash for its constants, board {board.name} has {bound}",
        details=["largest constants:", *(f"  {size:>10} {name}" for name, size in most)],
        hint=smaller_flash(graph.consts, options),
    )


def constant_bytes(graph: Graph) -> dict[str, int]:
    """Return the bytes of the constants that no kernel stores in fewer; of equal ones the first counts."""
    found: dict[str, int] = {}
    seen: set[bytes] = set()
    for name, array in graph.consts.items():
        raw = np.ascontiguousarray(array).tobytes()
        if len(raw) >= _LARGE and raw not in seen and len(np.unique(array.reshape(-1)[: 1 << 16])) > _FEW:
            seen.add(raw)
            found[name] = graph.types[name].size_bytes
    return found


def _check_ends(graph: Graph, board: Board, options: CompileOptions) -> None:
    """Inputs are all there before the first layer, an output after the last one; rows come one by one.

    Of an arena in regions the plan says more.
    """
    request = request_of(options, board)
    bound = request.room_bytes
    if bound is None or request.fed or request.caller_io or request.rooms:
        return
    read = {name for node in graph.nodes for name in node.inputs}
    inputs = sum(graph.types[name].size_bytes for name in graph.inputs if name in read)
    output = max((graph.types[name].size_bytes for name in graph.outputs), default=0)
    for what, least in (("its inputs", inputs), ("an output", output)):
        if least > bound:
            raise RamError(
                f"the model needs at least {least} bytes of RAM for {what}, board {board.name} allows {bound}",
                hint=f"{larger('RAM')}; with --io-buffers caller they are your program's",
            )
