"""The values of a quantised model beside those of the float model that it was made from, layer by layer.

A value of the float model is found in the quantised one by its name, or its name and `_float`; where a QuantizeLinear
reads it, what its codes stand for is compared. Channels that the quantiser divided by a factor are multiplied again,
copies are added up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import onnx
from onnx import NodeProto, ValueInfoProto, numpy_helper

from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import import_graph
from glowc.frontend.kept import noted_states
from glowc.frontend.reader import load
from glowc.graph.scope import scoped
from glowc.ops.interp import run_graph
from glowc.quant.emit import FACTORS_KEY, SOURCES_KEY
from glowc.quant.engine import default_prepare, has_onnxruntime
from glowc.quant.masked import MASK, vanishing
from glowc.quant.metrics import cosine, sqnr_db
from glowc.quant.simulate import relative_error
from glowc.quant.split import joined

Arrays = dict[str, np.ndarray]
_RESULT_SCALE = {"QLinearConv": 6, "QLinearMatMul": 6, "QLinearAdd": 6, "QLinearMul": 6}  # zero point behind it
_ENDINGS = ("_float", "")
_FLOAT_DB = 100  # and more: the values of both models differ by float32's rounding at most


class LayerError(TypedDict):
    """How far one value is from float. `lost_db` is what this layer loses: its ratio below the worst of its inputs'.

    Inputs that are still in float are left out: what their codes lose is not the layer's.
    """

    value: str
    op: str
    node: str
    sqnr_db: float
    lost_db: float
    cosine: float
    rmse_over_largest: float
    max_over_largest: float


@dataclass(frozen=True, slots=True)
class _Scale:
    """How codes of a value become numbers."""

    scale: np.ndarray
    zero_point: np.ndarray


def layer_errors(
    float_model: Path, float_inputs: Mapping[str, np.ndarray], model: Path, inputs: Mapping[str, np.ndarray],
    options: CompileOptions,
) -> list[LayerError]:  # fmt: skip
    """Return the error of every float value that both models have, in the order in which they are computed."""
    exact_proto, proto = load(float_model).proto, load(model).proto
    exact = all_values(float_model, exact_proto, float_inputs, options)
    got = real_values(proto, all_values(model, proto, inputs, options), exact)
    found: dict[str, float] = {}
    hidden, rows = vanishing(exact_proto.graph.node, [o.name for o in exact_proto.graph.output]), []
    for node in exact_proto.graph.node:
        for name in node.output:
            if name in got and got[name].shape == exact[name].shape:
                # what a mask hides is no loss
                seen = exact[name] > MASK if name in hidden else np.isfinite(exact[name])
                rows.append(_row(node, name, got[name][seen], exact[name][seen], found))
                if rows[-1]["sqnr_db"] < _FLOAT_DB:
                    found[name] = rows[-1]["sqnr_db"]
    return rows


def _row(node: NodeProto, name: str, got: np.ndarray, exact: np.ndarray, before: Mapping[str, float]) -> LayerError:
    ratio = sqnr_db(got, exact)
    largest = max(float(np.abs(exact).max(initial=0)), 1e-30)
    return {
        "value": name, "op": node.op_type, "node": node.name or name, "sqnr_db": ratio,
        "lost_db": max(0.0, min((before[n] for n in node.input if n in before), default=ratio) - ratio),
        "cosine": cosine(got, exact), "rmse_over_largest": relative_error(got, exact),
        "max_over_largest": float(np.abs(got - exact.astype(np.float64)).max(initial=0) / largest),
    }  # fmt: skip


@scoped
def all_values(
    model: Path, proto: onnx.ModelProto, inputs: Mapping[str, np.ndarray], options: CompileOptions
) -> Arrays:  # fmt: skip
    """Return every value of a model on samples: in onnxruntime without its optimisations, else in the interpreter.

    The samples of a model whose states are noted in its metadata are steps of one sequence.
    """
    count = len(next(iter(inputs.values())))
    if has_onnxruntime():
        names = [n for node in proto.graph.node for n in node.output if n]
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        del copy.graph.output[:]
        copy.graph.output.extend(ValueInfoProto(name=n) for n in names)
        prepared = default_prepare()(copy)
        run: Callable[[Arrays], Arrays] = lambda feed: dict(zip(names, prepared(feed), strict=True))  # noqa: E731
    else:
        graph = import_graph(model, options)
        run = lambda feed: run_graph(graph, feed, keep_all=True, states=dict(feed))  # noqa: E731
    states = import_graph(model, options).states if noted_states(proto) else ()
    kept = {state.value: state.initial for state in states}
    results = []
    for i in range(count):
        results.append(run({**kept, **{n: a[i] for n, a in inputs.items()}}))
        kept = {state.value: results[-1][state.next] for state in states}
    return {name: np.stack([r[name] for r in results]) for name in results[0]}


def real_values(proto: onnx.ModelProto, values: Mapping[str, np.ndarray], wanted: Iterable[str]) -> Arrays:
    """Return what a quantised model has of the wanted values, as real numbers after rounding to codes."""
    scales, rounded = _scales(proto), _rounded(proto)
    notes = {p.key: p.value for p in proto.metadata_props}
    by = {name: np.array(f, np.float32) for name, f in json.loads(notes.get(FACTORS_KEY, "{}")).items()}
    sources = {name: np.array(f) for name, f in json.loads(notes.get(SOURCES_KEY, "{}")).items()}
    found = {}
    for name in wanted:
        known = [name + end for end in _ENDINGS if name + end in values]
        if not known:
            continue
        codes = rounded.get(known[0], known[0])
        array = _real(values.get(codes, values[known[0]]), scales.get(codes))
        if array is not None and name in sources:
            array = joined(array, sources[name])
        if array is not None:
            found[name] = array * by[name].reshape(-1, *[1] * (array.ndim - 3)) if name in by else array
    return found


def _real(array: np.ndarray, scale: _Scale | None) -> np.ndarray | None:
    """Return float values; None for integers that are no codes."""
    if array.dtype.kind == "f":
        return array
    if scale is None or scale.scale.size != 1:
        return None
    return np.asarray((array.astype(np.float32) - np.float32(scale.zero_point)) * np.float32(scale.scale))


def _rounded(proto: onnx.ModelProto) -> dict[str, str]:
    """Return for each value that a QuantizeLinear reads the name of its codes."""
    return {n.input[0]: n.output[0] for n in proto.graph.node if n.op_type == "QuantizeLinear"}


def _scales(proto: onnx.ModelProto) -> dict[str, _Scale]:
    """Return the quantisation of values that are codes."""
    consts = {i.name: i for i in proto.graph.initializer}
    found: dict[str, _Scale] = {}
    for node in proto.graph.node:
        at = 1 if node.op_type in ("QuantizeLinear", "DequantizeLinear") else _RESULT_SCALE.get(node.op_type)
        if at is None or len(node.input) <= at or node.input[at] not in consts:
            continue
        scale = numpy_helper.to_array(consts[node.input[at]])
        zero = consts.get(node.input[at + 1]) if len(node.input) > at + 1 else None
        name = node.input[0] if node.op_type == "DequantizeLinear" else node.output[0]
        zeros = numpy_helper.to_array(zero) if zero is not None else np.zeros_like(scale)
        found[name] = _Scale(scale, zeros)
    return found
