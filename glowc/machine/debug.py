"""Finds the layer that is wrong: every layer on a board, beside the interpreter and what onnxruntime has of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
import onnx

from glowc.board import Board
from glowc.compiler.options import CompileOptions
from glowc.compiler.samples import load_samples
from glowc.errors import GlowcError, InputError
from glowc.frontend import tflite_bytes
from glowc.frontend.reader import load
from glowc.machine.layer_error import all_values
from glowc.machine.taps import Arrays, Progress, Tapped, tapped, whole_layers
from glowc.machine.validate import compare
from glowc.quant.metrics import sqnr_db

_NCHW = (0, 1, 4, 2, 3)  # of an NHWC tensor behind a leading axis of samples
_BARS = 9
_MADE = re.compile(r"(\.nhwc|\.t|\.\d+)+$")  # what passes add to the name of a value that they move


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
    """A model on a board, layer by layer; `result` is what `glowc debug --json` prints."""

    def __init__(
        self, model: Path, board: Board, options: CompileOptions, inputs: Path, count: int, progress: Progress
    ) -> None:
        compiled = whole_layers(model, board, options, progress)
        samples = load_samples(inputs, compiled.imported)
        self.samples = {name: array[:count] for name, array in samples.items()}
        self.model, self.layers = model, tapped(compiled, board, self.samples, progress)
        progress("computing in onnxruntime")
        self.reference = _reference(model, self.samples, options)
        relative = float(compiled.report.get("float_tolerance", 0.0))
        rows = [_row(layer, self.reference, relative) for layer in self.layers]
        wrong = next((row["layer"] for row in rows if not row["ok"]), None)
        taken = len(next(iter(self.samples.values()), [0]))
        self.result: DebugResult = {
            "model": str(compiled.report["model"]), "board": board.name, "samples": taken, "layers": rows,
            "first_difference": wrong,
        }  # fmt: skip

    def taps(self, names: Sequence[str]) -> Arrays:
        """Return results on the board by the names of values, or of nodes. Raises InputError for unknown ones."""
        found: Arrays = {}
        for name in names:
            of_it = [t for t in self.layers if name == t.tap.value or name in t.instr.origin]
            found |= {t.tap.value: t.board for t in of_it}
            if not of_it:
                known = ", ".join(dict.fromkeys(t.tap.value for t in self.layers))
                raise InputError(f'no layer leaves a value "{name}"', hint=f"known: {known}")
        return found


def _row(layer: Tapped, reference: Mapping[str, np.ndarray], relative: float) -> LayerCheck:
    other = _in_layout(reference.get(_plain(layer.tap.value)), layer.board)
    same = compare(layer.tap.value, layer.board, layer.expected, relative)
    return {
        "layer": layer.tap.layer, "op": layer.instr.op, "nodes": list(layer.instr.origin),
        "kernel": f"{layer.instr.kernel}__{layer.instr.variant}", "value": layer.tap.value, "ok": same["ok"],
        "interpreter": _check(layer.board, layer.expected),
        "onnxruntime": None if other is None else _check(layer.board, other),
    }  # fmt: skip


def _plain(value: str) -> str:
    """Return the name in the file of a value of the program, which passes may have moved."""
    return _MADE.sub("", value)


def _in_layout(array: np.ndarray | None, like: np.ndarray) -> np.ndarray | None:
    """Return a value of onnxruntime as the board has it: perhaps in NHWC; None where it is no such tensor."""
    if array is None or array.dtype != like.dtype:
        return None
    if array.ndim == 5 and array.shape != like.shape:
        array = array.transpose(np.argsort(_NCHW))
    return array if array.shape == like.shape else None


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
        raise GlowcError(f"{folder} is not empty", hint="choose another folder with --repro DIR")
    if tflite_bytes(debugged.model) is not None:
        raise GlowcError("one layer alone can be written of ONNX models only")
    found = next(t for t in debugged.layers if t.tap.layer == layer)
    proto, known = load(debugged.model).proto, {**debugged.reference, **debugged.samples}
    earlier = [_plain(t.tap.value) for t in debugged.layers if t.tap.layer < layer]
    stops = {name: known[name] for name in (*debugged.samples, *earlier) if name in known}
    end = _left_by(found, proto)
    if end is None or end in stops:
        raise GlowcError(f"layer {layer} cannot be taken out of the model: its result is no value of the file")
    part, feed = _one_layer(proto, end, stops)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(part, folder / "model.onnx")
    np.savez(folder / "in.npz", **feed)  # type: ignore[arg-type]
    np.savez(folder / "results.npz", board=found.board, interpreter=found.expected)
    board = debugged.result["board"]
    (folder / "README.txt").write_text(
        f'Layer {layer} of {debugged.result["model"]}: {found.instr.op} "{", ".join(found.instr.origin)}"\n'
        f"results.npz: what it gave on {board} inside the model, and what the interpreter says\n\n"
        f"    glowc debug model.onnx --board {board} --input in.npz\n"
    )


def _left_by(layer: Tapped, proto: onnx.ModelProto) -> str | None:
    """Return the value of the file that a layer leaves: that of its name, or what quantises its last node's result."""
    nodes, name = list(proto.graph.node), _plain(layer.tap.value)
    if any(name in node.output for node in nodes):
        return name
    own = [node.output[0] for node in nodes if node.name in layer.instr.origin]
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
