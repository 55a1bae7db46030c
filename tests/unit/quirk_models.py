"""What the tests of quantised forms share: onnxruntime's integer kernels as the judge, and short model pieces."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.frontend import import_model
from glowc.graph.graph import Graph
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline
from tests.conftest import require_module
from tests.e2e.models import outputs_on
from tests.unit.onnx_builders import f32, model, node

Arrays = Mapping[str, np.ndarray]
RNG = np.random.default_rng(11)


def onnxruntime_outputs(proto: onnx.ModelProto, feeds: Arrays) -> dict[str, np.ndarray]:
    """Return what onnxruntime's integer kernels give."""
    found = require_module("onnxruntime.capi.onnxruntime_pybind11_state")
    try:
        session = _session(proto, "1")
    except (found.NotImplemented, found.Fail):  # some convolutions of uint8 by int8 have no other form
        session = _session(proto, "0")
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, dict(feeds)), strict=True))


def _session(proto: onnx.ModelProto, precise: str) -> Any:
    """Return a session; `precise` "1": without VNNI, x86 does not add products of uint8 and int8 in 16 bits."""
    ort = require_module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.add_session_config_entry("session.x64quantprecision", precise)
    return ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def optimised(proto: onnx.ModelProto, **options: Any) -> Graph:
    """Return the graph after the passes."""
    return run_pipeline(import_model(proto.SerializeToString(), name="net", **options))


def assert_same(got: Arrays, wanted: Arrays, tolerance: float = 0.0, steps: int = 0) -> None:
    """Integers must be equal but for `steps`, floats within `tolerance` of the largest magnitude."""
    for name, expected in wanted.items():
        assert got[name].shape == expected.shape
        assert got[name].dtype == expected.dtype
        atol = tolerance * float(np.abs(expected).max(initial=0)) if expected.dtype.kind == "f" else steps
        np.testing.assert_allclose(got[name].astype(np.float64), expected.astype(np.float64), rtol=0, atol=atol)


def same_as_onnxruntime(
    proto: onnx.ModelProto,
    feeds: Arrays,
    *,
    tolerance: float = 0.0,
    judge: onnx.ModelProto | None = None,
    in_c: bool = False,
    imported_steps: int | None = 1,
    steps: int = 0,
    **options: Any,
) -> Graph:
    """Compare the imported graph, the optimised one and, when `in_c`, the C program with onnxruntime.

    The imported graph still computes in float between DequantizeLinear and QuantizeLinear: a step may differ, or more
    where onnxruntime quantises weights itself; None where its integer operator means something else. `steps` is what
    the others may differ by, where onnxruntime computes in float too and a near tie can round the other way.
    """
    wanted = onnxruntime_outputs(judge or proto, feeds)
    if imported_steps is not None:
        imported = import_model(proto.SerializeToString(), name="net", **options)
        assert_same(run_graph(imported, feeds), wanted, max(tolerance, 0.02), steps=imported_steps)
    graph = optimised(proto, **options)
    assert_same(run_graph(graph, feeds), wanted, tolerance, steps)
    if in_c:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.onnx"
            onnx.save(proto, path)
            compiled = compile_model(path, load_board("host", None), CompileOptions(name="net", **options))
        got = outputs_on(compiled, {name: array[None] for name, array in feeds.items()})
        assert_same({name: array[0] for name, array in got.items()}, wanted, max(tolerance, 1e-5), steps)
    return graph


def codes(*shape: int, dtype: type = np.int8) -> np.ndarray:
    """Return random codes."""
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


class Net:
    """A QDQ model in the making; every tensor has its own scale."""

    def __init__(self, opset: int = 17) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.consts: dict[str, Any] = {}
        self.inputs: dict[str, str] = {}
        self.opset = opset

    def const(self, name: str, value: Any) -> str:
        """Add an initialiser."""
        self.consts[name] = np.asarray(value)
        return name

    def input(self, name: str, text: str) -> str:
        """Add a graph input."""
        self.inputs[name] = text
        return name

    def op(self, op: str, inputs: str, out: str, **attrs: Any) -> str:
        """Add a node."""
        self.nodes.append(node(op, inputs, out, name=f"{op}_{out}", **attrs))
        return out

    def dq(self, x: str, scale: Any, zero: Any, out: str = "", **attrs: Any) -> str:
        """Add a DequantizeLinear."""
        s, z = self.const(f"{x}_s", np.asarray(scale, np.float32)), self.const(f"{x}_z", zero)
        return self.op("DequantizeLinear", f"{x} {s} {z}", out or f"{x}_r", **attrs)

    def q(self, x: str, scale: float, zero: Any, out: str) -> str:
        """Add a QuantizeLinear."""
        s, z = self.const(f"{out}_s", f32(scale)), self.const(f"{out}_z", zero)
        return self.op("QuantizeLinear", f"{x} {s} {z}", out)

    def qdq(self, x: str, scale: float, zero: Any) -> str:
        """Add QuantizeLinear and DequantizeLinear."""
        return self.dq(self.q(x, scale, zero, f"{x}_q"), scale, zero, f"{x}_qr")

    def build(self, outputs: Mapping[str, str], domains: tuple[str, ...] = ()) -> onnx.ModelProto:
        """Return the model."""
        return model(self.nodes, self.inputs, outputs, self.consts, opset=self.opset, domains=domains)


def conv_net(act: tuple[str, dict[str, Any]] | None = None, zero: int = -3, **bias: Any) -> Net:
    """Return DQ -> Conv -> (act) -> Q on x[1,3,6,6] with per-channel weights."""
    net = Net()
    net.input("x", "s8[1,3,6,6]")
    net.const("w", codes(4, 3, 3, 3))
    net.dq("x", 0.03, np.int8(5))
    net.dq("w", [0.01, 0.02, 0.015, 0.005], np.zeros(4, np.int8), axis=0)
    net.const("b", bias.get("values", RNG.integers(-900, 900, 4).astype(np.int32)))
    net.dq(
        "b", bias.get("scale", f32(0.0003, 0.0006, 0.00045, 0.00015)), bias.get("zero", np.zeros(4, np.int32)), axis=0
    )
    y = net.op("Conv", "x_r w_r b_r", "c", pads=[1, 1, 1, 1])
    if act is not None:
        y = net.op(act[0], f"{y} {act[1].get('inputs', '')}", "a")
    net.q(y, 0.09, np.int8(zero), "y")
    return net


def feed(text: str, dtype: type = np.int8) -> dict[str, np.ndarray]:
    """Return random codes for input x of the shape in `text`."""
    return {"x": codes(*map(int, text.split(",")), dtype=dtype)}


def ops(graph: Graph) -> list[str]:
    """Return the operators of the graph, in order."""
    return [n.op for n in graph.nodes]
