"""A float model -> `Net`, in the form that quantises best: simplified by the compiler's own passes, as ONNX again.

Constants are folded, branches and loops decided, batch normalisations, biases and factors inside the layers before
them, chains of exporters one operator. What glowc does not know stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, numpy_helper

from glowc.errors import GroupError, ModelError
from glowc.frontend import import_model
from glowc.frontend.half import OTHER_FLOATS
from glowc.frontend.kept import first_values, noted_states
from glowc.frontend.reader import load
from glowc.frontend.writer import LEAST_OPSET, to_onnx
from glowc.graph.graph import Graph
from glowc.passes.clean.unneeded import DropIdentity, MergeReshape
from glowc.passes.fold.constants import ExactDivision, FoldBias, FoldConstants
from glowc.passes.fold.fold_batchnorm import FoldBatchNorm
from glowc.passes.fuse.fuse_gelu import FuseGelu
from glowc.passes.fuse.fuse_layer_norm import FuseLayerNorm
from glowc.passes.layout.canonicalize_fc import CanonicalizeFc
from glowc.passes.pipeline import Repeat, run_pipeline
from glowc.quant.factors import FactorIntoLayer
from glowc.quant.masked import with_finite_masks
from glowc.quant.net import Net, Port, label
from glowc.quant.plan import weights_of
from glowc.quant.weights import channel_axis

_STEPS = (
    Repeat((DropIdentity(), FuseGelu(), FuseLayerNorm(), FoldConstants(dequantize=True), MergeReshape(),
            CanonicalizeFc(), FoldBias(), FoldBatchNorm(as_conv=True), ExactDivision(inexact=True), FactorIntoLayer())),
)  # fmt: skip


def read_inputs(
    source: Path | bytes | onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]] | None = None,
    states: Collection[str] = (),
) -> tuple[Port, ...]:  # fmt: skip
    """Return the inputs of a model. Symbolic dimensions are 1 unless `shapes` says otherwise. Raises ModelError.

    `states` are states besides those that the file notes.
    """
    return _inputs(load(source).proto, shapes or {}, states)


def load_float(
    source: Path | bytes | onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]] | None = None,
    states: Mapping[str, str] | None = None,
) -> Net:  # fmt: skip
    """Read a float model and simplify it; `shapes` are those of inputs whose size it leaves open.

    `states` are inputs with the output that each is at the next step, besides those that the file notes. Raises
    ModelError, and InputError for states that are no such pairs.
    """
    loaded = load(source)
    _check_float(loaded.proto.graph.node, loaded.source)
    inputs = _inputs(loaded.proto, shapes or {}, states or ())
    sizes = {port.name: port.shape for port in inputs}
    graph = import_model(source, name=loaded.name, input_shapes=sizes, keep_unknown=True, float32=True)
    pairs = {**{s.value: s.next for s in graph.states}, **(states or {})}
    graph = replace(graph, inputs=graph.sources, outputs=graph.results, states=())
    _check_states(graph, pairs)
    graph = run_pipeline(graph, steps=_STEPS)
    opset = max([LEAST_OPSET, *(o.version for o in loaded.proto.opset_import if not o.domain)])
    net = _net(graph, to_onnx(graph, opset), inputs, _words(graph, loaded.proto.graph.node))
    return with_shared_weights(with_finite_masks(replace(net, states=pairs)))


def _check_states(graph: Graph, pairs: Mapping[str, str]) -> None:
    wrong = [
        f"{name}={out}" for name, out in pairs.items()
        if name not in graph.inputs or out not in graph.outputs or graph.types[name] != graph.types[out]
    ]  # fmt: skip
    twice = [f"{name}={out}" for name, out in pairs.items() if [*pairs.values()].count(out) > 1]
    if wrong or twice or (pairs and {*pairs.values()} == {*graph.outputs}):
        kinds = [", ".join(f"{n} {graph.types[n]}" for n in names) for names in (graph.inputs, graph.outputs)]
        raise GroupError(
            "--state names an input and the output of its type that it is at the next step, and leaves an output",
            details=wrong or twice, hint=f"inputs: {kinds[0]}; outputs: {kinds[1]}",
        )  # fmt: skip


def _inputs(
    proto: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]], states: Collection[str]
) -> tuple[Port, ...]:  # fmt: skip
    consts, states = {i.name for i in proto.graph.initializer}, {*states, *noted_states(proto)}
    ports = [_port(v, shapes) for v in proto.graph.input if v.name not in consts]
    first = first_values(proto)
    return tuple(
        replace(p, start=first.get(p.name, np.zeros(p.shape, p.dtype)).astype(p.dtype)) if p.name in states else p
        for p in ports
    )


def _port(value: onnx.ValueInfoProto, shapes: Mapping[str, tuple[int, ...]]) -> Port:
    tensor = value.type.tensor_type
    sizes = tuple(d.dim_value if d.dim_value > 0 else 1 for d in tensor.shape.dim)
    kind = onnx.TensorProto.FLOAT if tensor.elem_type in OTHER_FLOATS else tensor.elem_type
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
    if value.name in shapes:
        return Port(value.name, shapes[value.name], dtype)
    free = {axis: d.dim_param for axis, d in enumerate(tensor.shape.dim) if d.dim_value <= 0}
    return Port(value.name, sizes, dtype, free=free)


def _check_float(nodes: Iterable[NodeProto], source: str) -> None:
    """Raise ModelError for a model that is quantised already."""
    for node in nodes:
        if node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear") or node.op_type.startswith("QLinear"):
            raise ModelError(
                f"{source} is quantized already: it has {label(node)}",
                hint="give the float model, or compile this one as it is",
            )


def _words(graph: Graph, nodes: Iterable[NodeProto]) -> dict[str, frozenset[str]]:
    """Return what the model calls each node of the graph: names, operators and results of all that became it."""
    given = {node.name or next(iter(node.output), ""): {node.name, node.op_type, *node.output} for node in nodes}
    return {node.name: frozenset().union(*(given.get(name, ()) for name in node.origin)) for node in graph.nodes}


def _net(graph: Graph, proto: onnx.ModelProto, inputs: tuple[Port, ...], words: Mapping[str, frozenset[str]]) -> Net:
    outputs = tuple(Port(name, t.shape, np.dtype(t.dtype.numpy)) for name in graph.outputs for t in [graph.types[name]])
    return Net(
        graph.name, inputs, outputs, tuple(proto.graph.node),
        {i.name: numpy_helper.to_array(i) for i in proto.graph.initializer},
        {o.domain: o.version for o in proto.opset_import}, proto.ir_version, words,
    )  # fmt: skip


def with_shared_weights(net: Net) -> Net:
    """Give weights that are equal one name, so that layers which share them have the same codes."""
    first: dict[tuple[int, tuple[int, ...], bytes], str] = {}
    nodes = []
    for node in net.nodes:
        if (name := weights_of(net, node)) is not None:
            array = net.consts[name]
            known = first.setdefault((channel_axis(node, array), array.shape, array.tobytes()), name)
            if known != name:
                copy = NodeProto()
                copy.CopyFrom(node)
                copy.input[1], node = known, copy
        nodes.append(node)
    used = {name for node in nodes for name in node.input} | net.output_names()
    return replace(net, nodes=tuple(nodes), consts={n: a for n, a in net.consts.items() if n in used})
