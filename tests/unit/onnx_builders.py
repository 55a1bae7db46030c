"""Small helpers that make ONNX models for tests: `model(nodes, inputs, outputs, consts)` and `node(...)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ELEMENTS = {
    "f16": TensorProto.FLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "s8": TensorProto.INT8,
    "u8": TensorProto.UINT8, "s16": TensorProto.INT16, "u16": TensorProto.UINT16, "s32": TensorProto.INT32,
    "s64": TensorProto.INT64, "bool": TensorProto.BOOL, "str": TensorProto.STRING,
}  # fmt: skip


def node(op: str, inputs: str, outputs: str, *, domain: str = "", name: str = "", **attrs: Any) -> onnx.NodeProto:
    """Return a node; inputs and outputs are names separated by blanks, "_" for one left out."""
    return helper.make_node(op, _names(inputs), _names(outputs), name=name, domain=domain, **attrs)


def _names(text: str) -> list[str]:
    return ["" if name == "_" else name for name in text.split()]


def value(name: str, text: str) -> onnx.ValueInfoProto:
    """Return a value info from e.g. `f32[1,3,N,?]`; `f32` alone has no shape."""
    kind, bracket, dims = text.partition("[")
    if not bracket:
        return helper.make_tensor_value_info(name, ELEMENTS[kind], None)
    shape: list[int | str | None] = []
    for dim in filter(None, dims.rstrip("]").split(",")):
        shape.append(int(dim) if dim.lstrip("-").isdigit() else None if dim == "?" else dim)
    return helper.make_tensor_value_info(name, ELEMENTS[kind], shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, str],
    outputs: str | Mapping[str, str],
    consts: Mapping[str, np.ndarray | Sequence[int] | onnx.TensorProto] | None = None,
    *,
    opset: int = 21,
    ir_version: int = 10,
    domains: Sequence[str] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """Return a model; a list of integers among `consts` is an int64 vector."""
    tensors = [_tensor(name, array) for name, array in (consts or {}).items()]
    outs = dict.fromkeys(outputs.split(), "f32") if isinstance(outputs, str) else outputs
    graph = helper.make_graph(
        list(nodes),
        "net",
        [value(n, t) for n, t in inputs.items()],
        [value(n, t) for n, t in outs.items()],
        tensors,
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, functions=list(functions))


def _tensor(name: str, array: np.ndarray | Sequence[int] | onnx.TensorProto) -> onnx.TensorProto:
    if isinstance(array, onnx.TensorProto):
        array.name = name
        return array
    wide = array if isinstance(array, np.ndarray | np.generic) else np.asarray(array, np.int64)
    return numpy_helper.from_array(np.asarray(wide), name)


def f32(*values: float) -> np.ndarray:
    """Return a float32 vector; one value gives a scalar."""
    return np.asarray(values[0] if len(values) == 1 else values, np.float32)


def qdq_conv(*, clip: str = "") -> onnx.ModelProto:
    """Return DQ -> Conv -> (Relu or so) -> Q with per-channel weights, as exporters write it."""
    rng = np.random.default_rng(0)
    nodes = [
        node("DequantizeLinear", "x sx zx", "xr", name="dq_x"),
        node("DequantizeLinear", "w sw zw", "wr", name="dq_w", axis=0),
        node("DequantizeLinear", "b sb zb", "br", name="dq_b", axis=0),
        node("Conv", "xr wr br", "yr", name="conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        *([node(clip, "yr", "cr", name="act")] if clip else []),
        node("QuantizeLinear", f"{'cr' if clip else 'yr'} sy zy", "y", name="q_y"),
    ]
    sw = np.asarray([0.01, 0.02], np.float32)
    w = rng.integers(-127, 128, (2, 3, 3, 3)).astype(np.int8)
    consts: dict[str, Any] = {
        "sx": f32(0.5), "zx": np.int8(3), "w": w, "sw": sw, "zw": np.zeros(2, np.int8), "sy": f32(0.25),
        "b": np.asarray([5, -7], np.int32), "sb": 0.5 * sw, "zb": np.zeros(2, np.int32), "zy": np.int8(-1),
    }  # fmt: skip
    return model(nodes, {"x": "s8[1,3,4,4]"}, {"y": "s8"}, consts)
