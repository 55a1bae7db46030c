"""Evaluates a graph of one node three ways: by the operator's reference, by its lowering, and by onnx.reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from glowc.board import load_cpu
from glowc.graph.attrs import AttrValue
from glowc.graph.graph import Graph, Node
from glowc.graph.types import QuantParams, TensorType, type_of
from glowc.kernels.verify import verify_program
from glowc.lower.lowering import lower_graph
from glowc.ops.base import Call
from glowc.ops.registry import get_op
from glowc.ops.verify import verify
from glowc.program.interp import run_program
from tests.conftest import require_module

Quants = Sequence[QuantParams | None]


def graph_of(
    op: str,
    inputs: Sequence[np.ndarray | None],
    attrs: Mapping[str, AttrValue] | None = None,
    *,
    quants: Quants = (),
    out_quants: Quants = (None,),
    consts: Sequence[int] = (),
) -> Graph:
    """Return the graph; inputs listed in `consts` are constants; a quantisation makes a type quantised."""
    params = [*quants, *([None] * (len(inputs) - len(quants)))]
    names = tuple("" if a is None else f"x{i}" for i, a in enumerate(inputs))
    types = {n: type_of(a, q) for n, a, q in zip(names, inputs, params, strict=True) if a is not None}
    outs = tuple(f"y{i}" for i in range(len(out_quants)))
    node = Node("node", op, names, outs, dict(attrs or {}))
    inferred = get_op(op).infer(node, tuple(types.get(n) for n in names))
    for name, t, q in zip(outs, inferred, out_quants, strict=True):
        types[name] = TensorType(t.shape, t.dtype, q, t.layout)
    held = {f"x{i}": a for i in consts if (a := inputs[i]) is not None}
    runtime = tuple(n for n in names if n and n not in held)
    graph = Graph("g", runtime, outs, (node,), types, held)
    verify(graph)
    return graph


def reference(graph: Graph, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Evaluate by `OpDef.reference`; shapes and element kinds must be the inferred ones."""
    node = graph.nodes[0]
    out_types = tuple(graph.types[n] for n in node.outputs)
    ys = get_op(node.op).reference(Call(node, tuple(inputs), graph.in_types(node), out_types))
    for y, t in zip(ys, out_types, strict=True):
        assert y.shape == t.shape
        assert y.dtype == t.dtype.numpy
    return list(ys)


def lowered(graph: Graph, inputs: Sequence[np.ndarray | None], cpu: str = "cortex-m4") -> list[np.ndarray]:
    """Evaluate the lowered program in numpy."""
    program = lower_graph(graph, load_cpu(cpu))
    verify_program(program)
    given = {f"x{i}": a for i, a in enumerate(inputs) if a is not None and f"x{i}" in graph.inputs}
    ys = run_program(program, given)
    return [ys[name] for name in graph.outputs]


def check(
    op: str,
    inputs: Sequence[np.ndarray | None],
    attrs: Mapping[str, AttrValue] | None = None,
    *,
    quants: Quants = (),
    out_quants: Quants = (None,),
    consts: Sequence[int] = (),
    rtol: float = 0.0,
    atol: float = 0.0,
) -> list[np.ndarray]:
    """Return what the reference gives, having compared the lowered program with it."""
    graph = graph_of(op, inputs, attrs, quants=quants, out_quants=out_quants, consts=consts)
    want, got = reference(graph, inputs), lowered(graph, inputs)
    for w, g in zip(want, got, strict=True):
        assert w.dtype == g.dtype
        np.testing.assert_allclose(g, w, rtol=rtol, atol=atol, err_msg=f"{op} {attrs}: program and reference")
    return want


def ort_run(op: str, inputs: Sequence[np.ndarray], attrs: Mapping[str, object] | None = None) -> np.ndarray:
    """Evaluate a one-node ONNX model of one output with onnxruntime; skips when that is not installed."""
    ort = require_module("onnxruntime")
    names = [f"x{i}" for i in range(len(inputs))]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, inputs, strict=True)
    ]
    node = helper.make_node(op, names, ["y"], **dict(attrs or {}))
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    quiet = ort.SessionOptions()
    quiet.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), quiet)
    return np.asarray(session.run(None, dict(zip(names, inputs, strict=True)))[0])


def onnx_run(
    op: str, inputs: Sequence[np.ndarray | None], attrs: Mapping[str, object] | None = None, outputs: int = 1
) -> list[np.ndarray]:
    """Evaluate a one-node ONNX model with onnx.reference."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, inputs, strict=True)
        if a is not None
    ]
    outs = [f"y{i}" for i in range(outputs)]
    results = [helper.make_empty_tensor_value_info(name) for name in outs]
    node = helper.make_node(op, names, outs, **dict(attrs or {}))
    model = helper.make_model(
        helper.make_graph([node], "g", infos, results), opset_imports=[helper.make_opsetid("", 22)]
    )
    assert isinstance(model, onnx.ModelProto)
    feed = {n: a for n, a in zip(names, inputs, strict=True) if a is not None}
    return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, feed)]
