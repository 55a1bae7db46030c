"""Malformed variants of models: each gives one error that names the node or the tensor, never a crash."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.errors import GlowcError, InternalError
from glowc.frontend import import_model
from glowc.passes.pipeline import run_pipeline
from tests.conftest import SHARED_MODELS
from tests.unit.onnx_builders import f32, model, node, qdq_conv

Change = Callable[[onnx.ModelProto], None]
NAN, INF = float("nan"), float("inf")


def mlp() -> onnx.ModelProto:
    """Return a small float net with one of everything that can be broken."""
    rng = np.random.default_rng(0)
    consts: dict[str, Any] = {
        "w": rng.standard_normal((8, 6)).astype(np.float32), "b": rng.standard_normal(6).astype(np.float32),
        "shape": [1, 2, 3], "axes": [2], "starts": [0], "ends": [1],
    }  # fmt: skip
    nodes = [
        node("Gemm", "x w b", "g", name="dense"),
        node("Relu", "g", "r", name="act"),
        node("Reshape", "r shape", "s", name="shape3"),
        node("Slice", "s starts ends axes", "c", name="cut"),
        node("Transpose", "c", "t", name="turn", perm=[0, 2, 1]),
        node("Softmax", "t", "y", name="soft", axis=-1),
    ]
    return model(nodes, {"x": "f32[1,8]"}, "y", consts)


def find(proto: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(n for n in proto.graph.node if name in (n.name, n.output[0]))


def tensor(name: str, array: Any) -> Change:
    """Replace an initialiser."""

    def change(proto: onnx.ModelProto) -> None:
        old = next(t for t in proto.graph.initializer if t.name == name)
        old.CopyFrom(numpy_helper.from_array(np.asarray(array), name))

    return change


def attr(where: str, **values: Any) -> Change:
    """Set attributes of a node; None removes one."""

    def change(proto: onnx.ModelProto) -> None:
        target = find(proto, where)
        for key, value in values.items():
            kept = [a for a in target.attribute if a.name != key]
            del target.attribute[:]
            target.attribute.extend(kept)
            if value is not None:
                target.attribute.append(helper.make_attribute(key, value))

    return change


def wire(where: str, index: int, name: str) -> Change:
    """Let input `index` of a node read `name`."""

    def change(proto: onnx.ModelProto) -> None:
        find(proto, where).input[index] = name

    return change


def drop(name: str) -> Change:
    """Remove an initialiser."""

    def change(proto: onnx.ModelProto) -> None:
        proto.graph.initializer.remove(next(t for t in proto.graph.initializer if t.name == name))

    return change


def dims(*sizes: int | str) -> Change:
    """Give the graph input another shape."""

    def change(proto: onnx.ModelProto) -> None:
        kind = proto.graph.input[0].type.tensor_type.elem_type
        proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", kind, list(sizes)))

    return change


def kind(element: int) -> Change:
    """Give the graph input another element type."""

    def change(proto: onnx.ModelProto) -> None:
        proto.graph.input[0].type.tensor_type.elem_type = element

    return change


def op(where: str, name: str, domain: str = "") -> Change:
    """Change a node's operator."""

    def change(proto: onnx.ModelProto) -> None:
        find(proto, where).op_type, find(proto, where).domain = name, domain

    return change


def run(text: str) -> Change:
    """Execute a statement on `p`, the model, `g`, its graph, and `f`, which finds a node."""

    def change(proto: onnx.ModelProto) -> None:
        exec(text, {"p": proto, "g": proto.graph, "f": lambda n: find(proto, n), "T": TensorProto, "h": helper})

    return change


# model, change, what the message must name
CASES: dict[str, tuple[Callable[[], onnx.ModelProto], Change, str]] = {
    "scale nan": (qdq_conv, tensor("sx", f32(NAN)), "dq_x"),
    "scale inf": (qdq_conv, tensor("sx", f32(INF)), "dq_x"),
    "scale zero": (qdq_conv, tensor("sx", f32(0.0)), "dq_x"),
    "scale negative": (qdq_conv, tensor("sx", f32(-0.5)), "dq_x"),
    "scale subnormal of weights is zero": (qdq_conv, tensor("sw", f32(0.01, 0.0)), "dq_w"),
    "one scale of weights is nan": (qdq_conv, tensor("sw", f32(NAN, 0.02)), "dq_w"),
    "one scale of weights is negative": (qdq_conv, tensor("sw", f32(0.01, -0.02)), "dq_w"),
    "output scale zero": (qdq_conv, tensor("sy", f32(0.0)), "q_y"),
    "output scale nan": (qdq_conv, tensor("sy", f32(NAN)), "q_y"),
    "output scale inf": (qdq_conv, tensor("sy", f32(INF)), "q_y"),
    "three scales for two channels": (qdq_conv, tensor("sw", f32(0.1, 0.2, 0.3)), "dq_w"),
    "zero points of another length": (qdq_conv, tensor("zw", np.zeros(3, np.int8)), "dq_w"),
    "zero point of another type": (qdq_conv, tensor("zx", np.uint8(3)), "dq_x"),
    "zero point is a float": (qdq_conv, tensor("zx", f32(3.0)), "dq_x"),
    "int32 zero point is not 0": (qdq_conv, tensor("zb", np.asarray([0, 7], np.int32)), "dq_b"),
    "output zero point is int64": (qdq_conv, tensor("zy", np.int64(0)), "q_y"),
    "scale is int32": (qdq_conv, tensor("sx", np.int32(1)), "dq_x"),
    "scale is empty": (qdq_conv, tensor("sx", np.zeros(0, np.float32)), "dq_x"),
    "scale is missing": (qdq_conv, drop("sx"), "sx"),
    "weights are missing": (qdq_conv, drop("w"), '"w"'),
    "scale is computed": (qdq_conv, run("f('q_y').input[1] = 'x'"), "q_y"),
    "weight axis 1 has another length": (qdq_conv, attr("dq_w", axis=1), "dq_w"),
    "weight axis out of range": (qdq_conv, attr("dq_w", axis=7), "dq_w"),
    "weights are float16 codes": (qdq_conv, tensor("w", np.zeros((2, 3, 3, 3), np.float16)), "dq_w"),
    "weights of rank 3": (qdq_conv, tensor("w", np.zeros((2, 3, 9), np.int8)), "conv"),
    "weights for four channels": (qdq_conv, tensor("w", np.zeros((2, 4, 3, 3), np.int8)), "conv"),
    "bias of three": (qdq_conv, tensor("b", np.zeros(3, np.int32)), "dq_b"),
    "kernel_shape contradicts the weights": (qdq_conv, attr("conv", kernel_shape=[5, 5]), "conv"),
    "kernel larger than the image": (qdq_conv, attr("conv", pads=[0, 0, 0, 0], dilations=[9, 9]), "conv"),
    "stride 0": (qdq_conv, attr("conv", strides=[0, 1]), "conv"),
    "one stride": (qdq_conv, attr("conv", strides=[1]), "conv"),
    "negative dilation": (qdq_conv, attr("conv", dilations=[-1, 1]), "conv"),
    "three pads": (qdq_conv, attr("conv", pads=[1, 1, 1]), "conv"),
    "group does not divide": (qdq_conv, attr("conv", group=2), "conv"),
    "group 0": (qdq_conv, attr("conv", group=0), "conv"),
    "auto_pad is unknown": (qdq_conv, attr("conv", auto_pad="SAME_MIDDLE"), "conv"),
    "unknown attribute of Conv": (qdq_conv, attr("conv", padding=3), "conv"),
    "input is float": (qdq_conv, kind(TensorProto.FLOAT), "dq_x"),
    "input is a string": (qdq_conv, kind(TensorProto.STRING), '"x"'),
    "input is complex": (qdq_conv, kind(TensorProto.COMPLEX64), '"x"'),
    "input of rank 3": (qdq_conv, dims(1, 3, 16), "conv"),
    "input with no channels": (qdq_conv, dims(1, 0, 4, 4), "x"),
    "input with no columns": (qdq_conv, dims(1, 3, 4, 0), "x"),
    "undefined symbol": (qdq_conv, dims(1, 3, "height", 4), "height"),
    "cycle": (mlp, wire("act", 0, "t"), "cycle"),
    "node reads itself": (mlp, wire("act", 0, "r"), "act"),
    "undefined value": (mlp, wire("act", 0, "nowhere"), "nowhere"),
    "output nobody computes": (mlp, run("g.output[0].name = 'lost'"), "lost"),
    "no outputs": (mlp, run("del g.output[:]"), "no outputs"),
    "two nodes write one value": (mlp, run("f('turn').output[0] = 'c'; f('soft').input[0] = 'c'"), '"c"'),
    "two initializers of one name": (mlp, run("g.initializer.append(g.initializer[0])"), '"w"'),
    "two inputs of one name": (mlp, run("g.input.append(g.input[0])"), '"x"'),
    "a node writes an initializer": (mlp, run("f('act').output[0] = 'b'"), '"b"'),
    "a node writes the input": (mlp, run("f('act').output[0] = 'x'"), '"x"'),
    "inner dimensions of Gemm": (mlp, tensor("w", np.zeros((9, 6), np.float32)), "dense"),
    "Gemm weights of rank 1": (mlp, tensor("w", np.zeros(8, np.float32)), "dense"),
    "Gemm weights are int8": (mlp, tensor("w", np.zeros((8, 6), np.int8)), "dense"),
    "Gemm weights are double": (mlp, tensor("w", np.zeros((8, 6))), "dense"),
    "Gemm bias of seven": (mlp, tensor("b", np.zeros(7, np.float32)), "dense"),
    "Gemm without weights": (mlp, run("del f('dense').input[1:]"), "dense"),
    "Relu without input": (mlp, run("del f('act').input[:]"), "act"),
    "Reshape to another size": (mlp, tensor("shape", np.asarray([1, 2, 4])), "shape3"),
    "Reshape with two unknowns": (mlp, tensor("shape", np.asarray([-1, -1, 3])), "shape3"),
    "Reshape to a negative size": (mlp, tensor("shape", np.asarray([1, -2, 3])), "shape3"),
    "Reshape by floats": (mlp, tensor("shape", f32(1, 2, 3)), "shape3"),
    "Reshape by a computed shape": (mlp, wire("shape3", 1, "x"), "shape3"),
    "Slice of nothing": (mlp, tensor("ends", np.asarray([0])), 'output "y"'),
    "Slice axis out of range": (mlp, tensor("axes", np.asarray([5])), "cut"),
    "Slice starts and ends differ in length": (mlp, tensor("ends", np.asarray([1, 1])), "cut"),
    "Transpose twice the same axis": (mlp, attr("turn", perm=[0, 0, 1]), "turn"),
    "Transpose of another rank": (mlp, attr("turn", perm=[1, 0]), "turn"),
    "Softmax axis out of range": (mlp, attr("soft", axis=4), "soft"),
    "unknown attribute of Relu": (mlp, attr("act", alpha=0.5), "act"),
    "unknown operator": (mlp, op("act", "ReluSix"), "ReluSix"),
    "operator of an unknown domain": (mlp, op("act", "Relu", "com.example"), "com.example::Relu"),
    "opset of the future": (mlp, run("p.opset_import[0].version = 99"), "opset 99"),
    "opset of the past": (mlp, run("p.opset_import[0].version = 3"), "opset 3"),
    "no opset": (mlp, run("del p.opset_import[:]"), "opset"),
    "initializer too short": (mlp, run("g.initializer[0].raw_data = g.initializer[0].raw_data[:-4]"), '"w"'),
    "initializer too long": (mlp, run("g.initializer[0].raw_data += b'1234'"), '"w"'),
    "initializer with a negative size": (mlp, run("g.initializer[0].dims[0] = -8"), '"w"'),
    "initializer of an unknown type": (mlp, run("g.initializer[0].data_type = 77"), '"w"'),
    "attribute of another type": (mlp, attr("turn", perm="abc"), "turn"),
    "axis is a float": (mlp, attr("soft", axis=0.5), "soft"),
}  # fmt: skip


def check(data: bytes, named: str) -> None:
    """Expect an error of the user's kind that shows `named`."""
    with pytest.raises(GlowcError) as caught:
        run_pipeline(import_model(data, name="net"))
    assert not isinstance(caught.value, InternalError), str(caught.value)
    assert named in str(caught.value), str(caught.value)


def test_there_are_enough_cases_and_the_models_are_fine_before() -> None:
    assert len(CASES) >= 60
    for build in (mlp, qdq_conv):
        run_pipeline(import_model(build().SerializeToString(), name="net"))


@pytest.mark.parametrize("case", CASES)
def test_malformed_variant_names_what_is_wrong(case: str) -> None:
    build, change, named = CASES[case]
    proto = build()
    change(proto)
    check(proto.SerializeToString(), named)


@pytest.mark.parametrize("part", [0, 1, 10, 0.3, 0.5, 0.9, 0.99])
def test_truncated_file_is_damaged_or_incomplete(part: float) -> None:
    data = mlp().SerializeToString()
    with pytest.raises(GlowcError) as caught:
        import_model(data[: int(part if part > 1 or part in (0, 1) else part * len(data))], name="net")
    assert not isinstance(caught.value, InternalError)


SHARED = ("mlperf_kws_dscnn", "torch_tinybert_qdq", "emx_micro_kws_m_static_qoperator", "torch_tinybert_dyn")


@pytest.mark.shared
@pytest.mark.parametrize("name", SHARED)
def test_real_model_with_a_nan_scale(name: str) -> None:
    path = SHARED_MODELS / name / "model.onnx"
    if not path.is_file():
        pytest.skip(f"model {name} is not in {path.parent}")
    proto = onnx.load(path)
    used = next(n for n in proto.graph.node if n.op_type in ("DequantizeLinear", "QLinearConv"))
    scale = next(t for t in proto.graph.initializer if t.name == used.input[1])
    scale.CopyFrom(numpy_helper.from_array(np.full(tuple(scale.dims), NAN, np.float32), scale.name))
    check(proto.SerializeToString(), used.name)


@pytest.mark.shared
@pytest.mark.parametrize("name", SHARED)
def test_real_model_without_one_initialiser(name: str) -> None:
    path = SHARED_MODELS / name / "model.onnx"
    if not path.is_file():
        pytest.skip(f"model {name} is not in {path.parent}")
    proto = onnx.load(path)
    lost = proto.graph.initializer[len(proto.graph.initializer) // 2].name
    proto.graph.initializer.remove(next(t for t in proto.graph.initializer if t.name == lost))
    check(proto.SerializeToString(), re.sub(r"\s+", " ", lost))
