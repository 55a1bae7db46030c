"""Finds the layer that is wrong: every layer on a board, beside the interpreter and what onnxruntime has of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
import onnx

from glowc.board import Board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled
from glowc.compiler.samples import load_samples
from glowc.errors import FileError, InputError
from glowc.frontend import tflite_bytes
from glowc.frontend.reader import load
from glowc.machine.deployed import check_whole, deployed, model_of_bundle
from glowc.machine.execute import BundleInfo, bundle_board
from glowc.machine.file_values import FileValues, plain_name
from glowc.machine.layer_error import all_values
from glowc.machine.taps import Arrays, Progress, Tapped, tapped, whole_layers
from glowc.machine.validate import compare
from glowc.quant.metrics import sqnr_db

_BARS = 9


class ValueCheck(TypedDict):
    """How a layer's result differs from another's: in its own units, in steps of its scale, in decibels."""

    equal_share: float
    max_abs: float
    max_steps: float | None
    sqnr_db: float
    histogram: dict[str, int]


class LayerCheck(TypedDict):
    """A layer's result on the board, against the interpreter, and against onnxruntime where it computes that value."""

    layer: int
    op: str
    nodes: list[str]
    kernel: str
    value: str
    ok: bool
    interpreter: ValueCheck
    onnxruntime: ValueCheck | None


class DebugResult(TypedDict):
    """Every layer, and the first that differs from the interpreter, if any does."""

    model: str
    board: str
    samples: int
    layers: list[LayerCheck]
    first_difference: int | None


class Debugged:
    """A model or bundle on a board, layer by layer; `result` is what `glowc debug --json` prints."""

    def __init__(
        self, model: Path, board: Board, compiled: Compiled, samples: Arrays, layers: Sequence[Tapped],
        options: CompileOptions,
    ) -> None:  # fmt: skip
        self.model, self.samples, self.layers = model, samples, layers
        self.reference = _reference(model, samples, options)
        self.values = FileValues(model, compiled.graph, self.reference)
        relative = float(compiled.report.get("float_tolerance", 0.0))
        rows = [_row(layer, self.values.of(layer), relative) for layer in self.layers]
        wrong = next((row["layer"] for row in rows if not row["ok"]), None)
        taken = len(next(iter(self.samples.values()), [0]))
        self.result: DebugResult = {
            "model": str(compiled.report["model"]), "board": board.name, "samples": taken, "layers": rows,
            "first_difference": wrong,
        }  # fmt: skip

    def taps(self, names: Sequence[str]) -> Arrays:
        """Return results on the board by the names of values, of the file or as they lie, or of nodes.

        A value that is asked for by its name in the file is in the file's layout. Raises InputError for unknown ones.
        """
        found: Arrays = {}
        for name in names:
            of_it = [t for t in self.layers if name == t.tap.value or name in t.nodes]
            found |= {t.tap.value: t.board for t in of_it}
            in_file = [] if of_it else [t for t in self.layers if name in self.values.names(t)]
            if in_file:
                found[name] = self.values.in_file(in_file[-1])
            if not of_it and not in_file:
                known = ", ".join(dict.fromkeys(self.values.names(t)[0] for t in self.layers))
                raise InputError(f'no layer leaves a value "{name}"', hint=f"known: {known}")
        return found


def debug_model(
    model: Path, board: Board, machine: Board, options: CompileOptions, inputs: Path, count: int, progress: Progress
) -> Debugged:
    """Compile a model for `board` and look at every layer on `machine`, which runs its code."""
    compiled = whole_layers(model, board, options, progress)
    samples = _first(load_samples(inputs, compiled.imported), count)
    layers = tapped(compiled, machine, samples, progress)
    progress("computing in onnxruntime")
    return Debugged(model, machine, compiled, samples, layers, options)


def debug_bundle(
    info: BundleInfo, model: Path | None, machine: Board, options: CompileOptions, inputs: Path, count: int,
    progress: Progress,
) -> Debugged:  # fmt: skip
    """Look at every layer of a bundle, its C as it is; `options` are those that it was compiled with."""
    check_whole(info)
    source = model_of_bundle(info, model)
    compiled = whole_layers(source, bundle_board(info), options, progress)
    samples = _first(load_samples(inputs, compiled.imported), count)
    layers = deployed(info, compiled, machine, samples, progress)
    progress("computing in onnxruntime")
    return Debugged(source, machine, compiled, samples, layers, options)


def _first(samples: Arrays, count: int) -> Arrays:
    return {name: array[:count] for name, array in samples.items()}


def _row(layer: Tapped, other: np.ndarray | None, relative: float) -> LayerCheck:
    same = compare(layer.tap.value, layer.board, layer.expected, relative)
    return {
        "layer": layer.tap.layer, "op": layer.op, "nodes": list(layer.nodes),
        "kernel": layer.kernel, "value": layer.tap.value, "ok": same["ok"],
        "interpreter": _check(layer.board, layer.expected),
        "onnxruntime": None if other is None else _check(layer.board, other),
    }  # fmt: skip


def _check(got: np.ndarray, want: np.ndarray) -> ValueCheck:
    row = compare("", got, want, 0.0)
    return {
        "equal_share": row["equal_share"], "max_abs": row["max_abs"], "max_steps": row["max_steps"],
        "sqnr_db": sqnr_db(got, want), "histogram": histogram(got, want),
    }  # fmt: skip


def histogram(got: np.ndarray, want: np.ndarray) -> dict[str, int]:
    """Return how many elements differ by how much: steps of integers (the largest as one), powers of ten of floats."""
    difference = got.astype(np.float64) - want.astype(np.float64)
    wrong = difference[difference != 0]
    if np.issubdtype(got.dtype, np.floating):
        found = Counter(f"1e{int(np.floor(np.log10(abs(d)))):+d}" for d in wrong.tolist() if np.isfinite(d))
        return dict(sorted(found.items(), key=lambda item: int(item[0][2:])))
    steps = Counter(int(np.clip(d, -_BARS, _BARS)) for d in wrong.tolist())
    return {f"{step:+d}" + (" and beyond" if abs(step) == _BARS else ""): steps[step] for step in sorted(steps)}


def _reference(model: Path, samples: Arrays, options: CompileOptions) -> Arrays:
    """Return every value that onnxruntime computes, samples first; none of what it cannot run."""
    if tflite_bytes(model) is not None or options.states:
        return {}
    try:
        return all_values(model, load(model).proto, samples, options)
    except Exception:  # what it raises is not ours, and the interpreter's column is there
        return {}


def write_repro(debugged: Debugged, layer: int, folder: Path) -> None:
    """Write the nodes of a layer as a model of their own, with inputs and the interpreter's results.

    Raises GlowcError for TensorFlow Lite files, for a layer whose inputs onnxruntime does not compute, and when the
    folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileError(f"{folder} is not empty", hint="choose another folder with --repro DIR")
    if tflite_bytes(debugged.model) is not None:
        raise InputError("one layer alone can be written of ONNX models only")
    found = next(t for t in debugged.layers if t.tap.layer == layer)
    proto, known = load(debugged.model).proto, {**debugged.reference, **debugged.samples}
    earlier = [plain_name(t.tap.value) for t in debugged.layers if t.tap.layer < layer]
    stops = {name: known[name] for name in (*debugged.samples, *earlier) if name in known}
    end = _left_by(found, proto)
    if end is None or end in stops:
        raise InputError(f"layer {layer} cannot be taken out of the model: its result is no value of the file")
    part, feed = _one_layer(proto, end, stops)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(part, folder / "model.onnx")
    np.savez(folder / "in.npz", **feed)  # type: ignore[arg-type]
    np.savez(folder / "results.npz", board=found.board, interpreter=found.expected)
    board = debugged.result["board"]
    (folder / "README.txt").write_text(
        f'Layer {layer} of {debugged.result["model"]}: {found.op} "{", ".join(found.nodes)}"\n'
        f"results.npz: what it gave on {board} inside the model, and what the interpreter says\n\n"
        f"    glowc debug model.onnx --board {board} --input in.npz\n",
        encoding="utf-8", newline="\n",
    )  # fmt: skip


def _left_by(layer: Tapped, proto: onnx.ModelProto) -> str | None:
    """Return the value of the file that a layer leaves: that of its name, or what quantises its last node's result."""
    nodes, name = list(proto.graph.node), plain_name(layer.tap.value)
    if any(name in node.output for node in nodes):
        return name
    own = [node.output[0] for node in nodes if node.name in layer.nodes]
    codes = [node.output[0] for node in nodes if node.op_type == "QuantizeLinear" and node.input[0] in own[-1:]]
    return next(iter([*codes, *own[-1:]]), None)


def _one_layer(proto: onnx.ModelProto, end: str, values: Mapping[str, np.ndarray]) -> tuple[onnx.ModelProto, Arrays]:
    """Return the nodes that lead to the value `end` from earlier layers' as a model, and its inputs from `values`.

    `values` are the results of earlier layers and the inputs of the model: what the way back stops at.
    """
    nodes, open_inputs, todo = [], dict[str, None](), [end]
    made_by = {name: node for node in proto.graph.node for name in node.output}
    consts = {c.name: c for c in proto.graph.initializer}
    while todo:
        name = todo.pop()
        if name in values:
            open_inputs[name] = None
        elif name in made_by and made_by[name] not in nodes:
            nodes.append(made_by[name])
            todo += [n for n in made_by[name].input if n]
    used = [consts[name] for name in dict.fromkeys(n for node in nodes for n in node.input) if name in consts]
    nodes.sort(key=list(proto.graph.node).index)
    inputs = {name: values[name] for name in open_inputs}
    graph = onnx.helper.make_graph(
        nodes, "layer", [_value(name, array) for name, array in inputs.items()],
        [onnx.ValueInfoProto(name=end)], used,
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=list(proto.opset_import), ir_version=proto.ir_version)
    return onnx.shape_inference.infer_shapes(model), inputs


def _value(name: str, samples: np.ndarray) -> onnx.ValueInfoProto:
    kind = onnx.helper.np_dtype_to_tensor_dtype(samples.dtype)
    return onnx.helper.make_tensor_value_info(name, kind, samples.shape[1:])
