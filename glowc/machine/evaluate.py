"""A model on a (labelled) set: the float model, the quantised one in onnxruntime, its C on the host and on a board.

Outputs are compared as real values: codes are dequantised by the quantisation that the bundle's report states.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import numpy as np

from glowc.board import Board, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, import_graph, write_bundle
from glowc.errors import InputError
from glowc.graph.graph import Graph
from glowc.graph.numerics import dequantize, quantize
from glowc.graph.scope import scoped
from glowc.machine.execute import BundleInfo, execute, load_bundle
from glowc.machine.execute import Port as BundlePort
from glowc.machine.layer_error import LayerError, layer_errors
from glowc.machine.validate import reference_outputs
from glowc.quant.data import ImageFormat
from glowc.quant.labels import EvalSet, Labels, read_set
from glowc.quant.metrics import Metric, auc, check_classes, confusion, cosine, predicted, top
from glowc.quant.net import Port
from glowc.quant.scheme import Params
from glowc.quant.simulate import relative_error

Arrays = dict[str, np.ndarray]
Progress = Callable[[str], None]
LAYER_SAMPLES = 32
WORST = 10
MOST_CLASSES = 64  # of a confusion matrix
TOP = 5


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What is evaluated besides the model, and how."""

    float_model: Path | None = None
    board: Board | None = None
    board_samples: int = 16
    metric: Metric | None = None
    compile: CompileOptions = field(default_factory=CompileOptions)


class Score(TypedDict):
    """How good the outputs of one machine are; null where it has no meaning. Errors are against the first machine."""

    machine: str
    samples: int
    top1: float | None
    top5: float | None
    auc: float | None
    metric: float | None
    agree: float | None
    rmse_over_largest: float | None
    cosine: float | None


class WorstSample(TypedDict):
    """A sample on which the C is farthest from the first machine, or wrong where that one is right."""

    index: int
    file: str
    label: str | None
    reference: str
    predicted: str
    rmse_over_largest: float


class Evaluation(TypedDict):
    """All that `glowc eval --json` prints; `drop_points` is top-1 (or the metric) of the first less that of the C."""

    model: str
    float_model: str | None
    samples: int
    scores: list[Score]
    drop_points: float | None
    classes: list[str]
    confusion: list[list[int]] | None
    worst: list[WorstSample]
    layers: list[LayerError]


def _port(port: BundlePort) -> Port:
    coded = port.exported_dtype.is_integer and port.quant is not None
    params = Params(port.quant.scale[0], port.quant.zero_point[0]) if coded and port.quant else None
    return Port(port.name, port.exported_shape, port.exported_dtype.numpy, params, alias=port.alias)


def graph_ports(graph: Graph) -> tuple[Port, ...]:
    """Return the inputs of a float model."""
    return tuple(Port(n, graph.types[n].shape, graph.types[n].dtype.numpy) for n in graph.inputs)


def _bundle(model: Path, board: Board, options: CompileOptions, folder: Path) -> BundleInfo:
    write_bundle(compile_model(model, board, options), folder)
    return load_bundle(folder)


@scoped
def evaluate(
    model: Path, data: Sequence[Path], labels: Path | None, classes: Sequence[str], images: ImageFormat,
    options: EvalOptions, progress: Progress = lambda _: None,
) -> Evaluation:  # fmt: skip
    """Return how good a model is on a set, on every machine asked for. Raises InputError for what does not fit."""
    with tempfile.TemporaryDirectory(prefix="glowc-eval-") as folder:
        progress("compiling for the host")
        info = _bundle(model, load_board("host"), options.compile, Path(folder))
        floats = import_graph(options.float_model, options.compile) if options.float_model is not None else None
        if floats is not None:
            _check_same_inputs(info, floats)
        given = read_set(
            data, graph_ports(floats) if floats else [_port(p) for p in info.inputs], labels, classes, images
        )
        runs = _runs(model, info, floats, given, options, progress)
    return _evaluation(model, options, given, runs, _layers(model, info, given, options, progress))


def _check_same_inputs(info: BundleInfo, floats: Graph) -> None:
    """Raise InputError where the float model has other inputs than the model."""
    wanted = {p.name: p.exported_shape for p in info.inputs}
    seen = {n: floats.types[n].shape for n in floats.inputs}
    if wanted != seen:
        details = [f"{text} takes {', '.join(f'{n}{list(s)}' for n, s in shapes.items())}"
                   for text, shapes in ((info.name, wanted), ("the float model", seen))]  # fmt: skip
        raise InputError("the float model has other inputs", details=details, hint="--float: what MODEL was made from")


def _runs(
    model: Path, info: BundleInfo, floats: Graph | None, given: EvalSet, options: EvalOptions, progress: Progress
) -> dict[str, Arrays]:
    """Return the outputs of each machine, real values, by what the machine is called; the reference first."""
    runs: dict[str, Arrays] = {}
    if floats is not None and options.float_model is not None:
        progress("running the float model")
        outputs, whose = reference_outputs(options.float_model, floats, options.compile, given.inputs)
        runs[f"float, {_short(whose)}"] = outputs
    own = as_exported(info, given.inputs)
    progress("running the model")
    outputs, whose = reference_outputs(model, import_graph(model, options.compile), options.compile, own)
    runs[f"model, {_short(whose)}"] = _real(info, outputs)
    progress("building and running its C on the host")
    runs["model, C on the host"] = _executed(info, load_board("host"), own)
    if options.board is not None:
        runs[f"model, {options.board.name}"] = _on_board(model, options, own, given.count, progress)
    return runs


def _short(whose: str) -> str:
    return "onnxruntime" if whose.startswith("onnxruntime") else "interpreter"


def as_exported(info: BundleInfo, samples: Mapping[str, np.ndarray]) -> Arrays:
    """Return samples as the model takes them: real values become codes where its inputs are quantised."""
    found = {}
    for port in info.inputs:
        array = samples[port.name]
        coded = array.dtype.kind == "f" and port.exported_dtype.is_integer and port.quant is not None
        found[port.name] = quantize(array, port.quant, port.exported_dtype) if coded and port.quant else array
    return found


def _real(info: BundleInfo, outputs: Mapping[str, np.ndarray]) -> Arrays:
    """Return outputs as real values."""
    quants = {p.name: p.quant if p.exported_dtype.is_integer else None for p in info.outputs}
    return {n: dequantize(a, q) if (q := quants[n]) is not None and a.dtype.kind in "iu" else a
            for n, a in outputs.items()}  # fmt: skip


def _executed(info: BundleInfo, board: Board, samples: Arrays) -> Arrays:
    done = execute(info, board, {p.name: p.to_bundle(samples[p.name]) for p in info.inputs})
    return _real(info, {p.name: p.to_exported(done.outputs[p.name]) for p in info.outputs})


def _on_board(model: Path, options: EvalOptions, samples: Arrays, count: int, progress: Progress) -> Arrays:
    """Return the outputs of some samples, evenly chosen, on the board; NaN stands for the others."""
    assert options.board is not None
    progress(f"running on {options.board.name}")
    chosen = np.unique(np.linspace(0, count - 1, min(count, options.board_samples)).astype(int))
    with tempfile.TemporaryDirectory(prefix="glowc-eval-") as folder:
        info = _bundle(model, options.board, options.compile, Path(folder))
        found = _executed(info, options.board, {n: a[chosen] for n, a in samples.items()})
    filled = {n: np.full((count, *a.shape[1:]), np.nan) for n, a in found.items()}
    for name, array in found.items():
        filled[name][chosen] = array
    return filled


def _evaluation(
    model: Path, options: EvalOptions, given: EvalSet, runs: dict[str, Arrays], layers: list[LayerError]
) -> Evaluation:  # fmt: skip
    firsts = {machine: next(iter(outputs.values())) for machine, outputs in runs.items()}
    reference, own = next(iter(firsts.values())), firsts["model, C on the host"]
    labels = given.labels
    if labels is not None and labels.classes:
        check_classes(labels, own)
    scores = [_score(machine, array, reference, labels, options.metric) for machine, array in firsts.items()]
    sorts = labels is not None and labels.classes
    matrix = confusion(own, labels.values) if labels is not None and sorts else None
    return {
        "model": str(model), "float_model": str(options.float_model) if options.float_model else None,
        "samples": given.count, "scores": scores, "drop_points": _drop(scores),
        "classes": list(labels.names) if labels else [],
        "confusion": matrix.tolist() if matrix is not None and len(matrix) <= MOST_CLASSES else None,
        "worst": _worst(given, reference, own), "layers": layers,
    }  # fmt: skip


def _score(
    machine: str, outputs: np.ndarray, reference: np.ndarray, labels: Labels | None, metric: Metric | None
) -> Score:
    ran = ~np.isnan(outputs.reshape(len(outputs), -1)).all(axis=1) if outputs.dtype.kind == "f" else slice(None)
    got, want = outputs[ran], reference[ran]
    values = labels.values[ran] if labels is not None else None
    sorts = labels is not None and labels.classes
    itself = outputs is reference
    many = want.reshape(len(want), -1).shape[1]
    return {
        "machine": machine, "samples": len(got),
        "top1": top(got, values) if sorts and values is not None else None,
        "top5": top(got, values, TOP) if sorts and values is not None and many > TOP else None,
        "auc": auc(got, values) if sorts and values is not None else None,
        "metric": metric(got, values) if metric is not None and values is not None else None,
        "agree": None if itself else float((predicted(got) == predicted(want)).mean()),
        "rmse_over_largest": None if itself else relative_error(got, np.asarray(want, np.float32)),
        "cosine": None if itself else cosine(got, want),
    }  # fmt: skip


def _drop(scores: Sequence[Score]) -> float | None:
    """Return how much worse the C is than the first machine, in points of the metric, else of top-1."""
    own = next(s for s in scores if s["machine"] == "model, C on the host")
    pairs = ((scores[0]["metric"], own["metric"]), (scores[0]["top1"], own["top1"]))
    return next((100 * (a - b) for a, b in pairs if a is not None and b is not None), None)


def _worst(given: EvalSet, reference: np.ndarray, own: np.ndarray) -> list[WorstSample]:
    """Return the samples that the C loses, then the others; among each the largest error first."""
    largest = max(float(np.abs(reference).max()), 1e-30)
    difference = np.square(np.asarray(own, np.float64) - reference).reshape(given.count, -1)
    errors, want, got = np.sqrt(difference.mean(axis=1)) / largest, predicted(reference), predicted(own)
    labels = given.labels if given.labels is not None and given.labels.classes else None
    right = want if labels is None else labels.values
    lost = (want == right) & (got != right)
    order = np.lexsort((-errors, ~lost))[:WORST]
    name = labels.shown if labels is not None else str
    return [
        {
            "index": i, "file": str(given.files[i]), "label": name(int(right[i])) if labels is not None else None,
            "reference": name(int(want[i])), "predicted": name(int(got[i])), "rmse_over_largest": float(errors[i]),
        }
        for i in map(int, order)
    ]  # fmt: skip


def _layers(
    model: Path, info: BundleInfo, given: EvalSet, options: EvalOptions, progress: Progress
) -> list[LayerError]:
    """Return the error of each layer against the float model on the first samples."""
    if options.float_model is None:
        return []
    progress("comparing layers")
    some = {n: a[:LAYER_SAMPLES] for n, a in given.inputs.items()}
    return layer_errors(options.float_model, some, model, as_exported(info, some), options.compile)
