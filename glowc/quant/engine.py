"""Runs a network node by node, so that every value is seen and can be changed: for profiles and for simulations.

A node runs in onnxruntime where that is installed, else in glowc's own interpreter; both give the same values within
float32 rounding. Values carry a leading sample axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, ValueInfoProto

from glowc.errors import GlowcError, ModelError
from glowc.quant.net import Consts, Net, Port, label, model_of

Arrays = list[np.ndarray]
Values = dict[str, np.ndarray]
Run = Callable[[Values], Arrays]
Prepare = Callable[[onnx.ModelProto], Run]
_HALVES: dict[str, type[np.generic]] = {"tensor(float16)": np.float16, "tensor(double)": np.float64}
"""Inputs of a model that are read as float32 all the same."""
Hook = Callable[[str, np.ndarray], np.ndarray]


def prepare_onnxruntime(model: onnx.ModelProto) -> Run:
    """Return a function that runs a model in onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    halves = {i.name: _HALVES[i.type] for i in session.get_inputs() if i.type in _HALVES}
    return lambda feed: list(session.run(None, {n: a.astype(halves.get(n, a.dtype)) for n, a in feed.items()}))


def prepare_interpreter(model: onnx.ModelProto) -> Run:
    """Return a function that runs a model in glowc's interpreter."""
    from glowc.frontend import import_model
    from glowc.ops.interp import run_graph

    graph = import_model(model)

    def run(feed: Values) -> Arrays:
        done = run_graph(graph, {name: feed[name] for name in graph.inputs})
        return [done[name] for name in graph.outputs]

    return run


def has_onnxruntime() -> bool:
    """Say whether onnxruntime is installed."""
    return find_spec("onnxruntime") is not None


def default_prepare() -> Prepare:
    """Return the fastest engine that is installed."""
    return prepare_onnxruntime if has_onnxruntime() else prepare_interpreter


class Engine:
    """Runs nodes; what was made ready for one stays ready while the constants that it reads are the same arrays."""

    def __init__(self, prepare: Prepare | None = None) -> None:
        self._prepare = prepare or default_prepare()
        self._ready: dict[str, tuple[tuple[Any, ...], Consts, Run]] = {}

    def run_node(self, net: Net, node: NodeProto, feed: Values, consts: Consts) -> Arrays:
        """Return the outputs of one node for one sample."""
        read = {name: consts[name] for name in node.input if name in consts}
        given = {name: np.asarray(feed[name], order="C") for name in node.input if name and name not in consts}
        key = (*node.input, *(id(a) for a in read.values()), *((a.shape, a.dtype) for a in given.values()))
        known = self._ready.get(node.output[0])
        if known is None or known[0] != key:
            known = (key, read, self._made(net, node, given, read))  # `read` lives as long as the ids in the key
            self._ready[node.output[0]] = known
        return known[2](given)

    def _made(self, net: Net, node: NodeProto, given: Values, read: Consts) -> Run:
        inputs = [Port(name, a.shape, a.dtype) for name, a in given.items()]
        outputs = [ValueInfoProto(name=name) for name in node.output if name]
        try:
            return self._prepare(model_of(net, [node], inputs, outputs, read))
        except GlowcError:
            raise
        except Exception as error:  # of onnxruntime: its classes are not public
            raise ModelError(f"{label(node)} cannot be run", details=str(error).splitlines()[:2]) from error


def run_net(
    engine: Engine, net: Net, samples: Mapping[str, np.ndarray], hook: Hook = lambda _, array: array,
    *, nodes: Iterable[NodeProto] | None = None, consts: Consts | None = None,
) -> Values:  # fmt: skip
    """Return every value for all samples; `hook` may change each after it was computed.

    With `nodes`, `samples` must hold what they read.
    """
    known = net.consts if consts is None else consts
    values = dict(samples) if nodes is not None else {p.name: hook(p.name, samples[p.name]) for p in net.inputs}
    for node in net.nodes if nodes is None else nodes:
        arrays = all_samples(engine, net, node, values, known)
        for name, array in zip((n for n in node.output if n), arrays, strict=True):
            values[name] = hook(name, array)
    return values


def all_samples(engine: Engine, net: Net, node: NodeProto, values: Values, consts: Consts) -> Arrays:
    """Return the outputs of one node for all samples."""
    read = [name for name in node.input if name and name not in consts]
    count = len(next(iter(values.values())))
    results = [engine.run_node(net, node, {n: values[n][i] for n in read}, consts) for i in range(count)]
    return [np.stack(arrays) for arrays in zip(*results, strict=True)]
