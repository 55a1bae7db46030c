"""What every layer of a bundle leaves on a board, its C as it is, beside what the graph interpreter says it should.

Values are found by their names: other kernels, or another memory plan, than glowc would choose today do no harm.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from glowc.board import Board
from glowc.compiler.bom import files_hash
from glowc.compiler.pipeline import Compiled
from glowc.errors import BundleError
from glowc.graph.scope import know_only, scoped
from glowc.graph.types import DType, TensorType
from glowc.machine.execute import BundleInfo
from glowc.machine.qemu import require_runnable
from glowc.machine.taps import Arrays, Progress, Tap, Tapped, board_values
from glowc.ops.interp import run_graph


def model_of_bundle(info: BundleInfo, model: Path | None) -> Path:
    """Return the model that a bundle was compiled from: the one named, or that of its name here or beside the bundle.

    Raises InputError when there is none, or it is another one.
    """
    made = info.report["sbom"]["model"]
    places = [model] if model is not None else [folder / made["name"] for folder in (Path(), info.folder.parent)]
    same = [path for path in places if path.is_file() and files_hash((path,)) == made["sha256"]]
    if same:
        return same[0]
    if model is not None:
        raise BundleError(f"{info.folder} was not compiled from {model}", hint="compile the model again")
    raise BundleError(
        f"{info.folder} is a bundle: it holds no model to compare with",
        hint=f"add --model with the file that it was compiled from, {made['name']}",
    )


def check_whole(info: BundleInfo) -> None:
    """Raise InputError for a bundle whose layers do not leave whole results in one arena."""
    report = info.report
    wrong = {
        "computes layers row by row": report.get("profile_order") is not None or report["input_stream"] == "rows",
        "has inputs and outputs in the caller's buffers": report["io_buffers"] == "caller",
        "has an arena in several regions": len(report.get("regions", [])) > 1,
        "shares its arena or functions with other models": bool(report.get("sources")),
    }
    for what, holds in wrong.items():
        if holds:
            raise BundleError(
                f"{info.folder} {what}: what its layers leave cannot be read there",
                hint="glowc debug MODEL compiles the model in one piece",
            )


def deployed(
    info: BundleInfo, compiled: Compiled, board: Board, samples: Mapping[str, np.ndarray], progress: Progress
) -> list[Tapped]:
    """Run a bundle on a board; return every layer's result, in order, of which `compiled` knows the value.

    `compiled` is its model, compiled with its options; `samples` are in the exported form, with a leading axis. Raises
    InputError where they have no layer in common, BoardError, ToolError.
    """
    require_runnable(board)
    given = {port.name: port.to_bundle(samples[port.name]) for port in info.inputs}
    progress("computing in the interpreter")
    expected = _interpreted(compiled, given)
    taps = [tap for tap in _taps(info) if tap.value in expected and _fits(tap.type, expected[tap.value])]
    if not taps:
        raise BundleError(f"{info.folder} has no layer of the model as glowc compiles it now", hint="compile it again")
    progress(f"building and running on {board.name}")
    with tempfile.TemporaryDirectory(prefix="glowc-debug-") as folder:
        found = board_values(info, board, taps, given, Path(folder))
    rows = info.report["layers"]
    return [
        Tapped(t, rows[t.layer]["op"], (rows[t.layer]["name"],), rows[t.layer]["kernel"], got, expected[t.value])
        for t, got in zip(taps, found, strict=True)
    ]


def _taps(info: BundleInfo) -> Iterator[Tap]:
    """Yield the tensors that layers leave behind in the arena, by the last layer that writes each."""
    placed = {tensor["name"]: tensor for tensor in info.report["tensors"]}
    last = {name: number for number, row in enumerate(info.report["layers"]) for name in row["writes"]}
    for name, layer in sorted(last.items(), key=lambda item: item[1]):
        tensor = placed.get(name)
        if tensor is not None and tensor["offset_bytes"] is not None and tensor["kind"] not in ("scratch", "state"):
            kind = TensorType(tuple(tensor["shape"]), DType(tensor["dtype"]))
            yield Tap(layer, name, tensor["offset_bytes"], kind)


def _fits(kind: TensorType, samples: np.ndarray) -> bool:
    return kind.shape == samples.shape[1:] and kind.dtype.numpy == samples.dtype


@scoped
@np.errstate(all="ignore")
def _interpreted(compiled: Compiled, given: Mapping[str, np.ndarray]) -> Arrays:
    """Return every value of the graph, samples first; states are kept from one to the next."""
    know_only(compiled.known)
    states: Arrays = {}
    count = len(next(iter(given.values()), [0]))
    runs = [
        run_graph(compiled.graph, {n: a[i] for n, a in given.items()}, keep_all=True, states=states)
        for i in range(count)
    ]
    return {name: np.stack([run[name] for run in runs]) for name in runs[0]}
