"""Structured mutations of ONNX models: what exporters get wrong, what is cut off, and what is meant to hurt."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

Mutation = Callable[[onnx.ModelProto, random.Random], None]
INTS = (0, 1, -1, 2, 3, 7, 127, -128, 255, 65536, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, -(2**63), 2**63 - 1)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 1e-38, 1e38, 1e-7, 3.4e38, float("inf"), float("-inf"), float("nan"))
DIMS = (0, 1, 2, 3, -1, 5, 17, 1000, 2**20, 2**31 - 1, 2**31, 2**40, 2**62)
WORDS = (
    "", "NOTSET", "SAME_UPPER", "linear", "nope", "x" * 3000, "[/red]", "\x1b[31m",
    "ü–名", "a b", '"', "%s%n", "../x", "\n",
)  # fmt: skip
OPSETS = (-1, 0, 1, 7, 9, 10, 11, 12, 13, 17, 19, 21, 22, 23, 24, 99, 2**40)
OPS = tuple(sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""}))
KINDS = tuple(TensorProto.DataType.values())


def mutated(model: onnx.ModelProto, seed: int) -> tuple[onnx.ModelProto | bytes, list[str]]:
    """Return a changed copy, now and then as damaged bytes, and the names of what was done to it."""
    rng = random.Random(seed)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    names = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        mutation = rng.choice(MUTATIONS)
        names.append(mutation.__name__)
        try:
            mutation(result, rng)
        except (IndexError, ValueError, TypeError):  # nothing there to change, or protobuf cannot hold it
            names[-1] += " (nothing)"
    if rng.random() < 0.04:
        names.append("bytes")
        return damaged(result.SerializeToString(), rng), names
    return result, names


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return bytes that are cut off, or of which a few are changed, removed or repeated."""
    kind = rng.randrange(4)
    if kind == 0:
        return data[: rng.randrange(len(data) + 1)]
    copy = bytearray(data)
    at = rng.randrange(len(copy))
    if kind == 1:
        for _ in range(rng.randrange(1, 8)):
            copy[rng.randrange(len(copy))] = rng.randrange(256)
    elif kind == 2:
        del copy[at : at + rng.randrange(1, 64)]
    else:
        copy[at:at] = copy[at : at + rng.randrange(1, 64)]
    return bytes(copy)


def _node(model: onnx.ModelProto, rng: random.Random) -> onnx.NodeProto:
    return rng.choice(model.graph.node)


def _attribute(model: onnx.ModelProto, rng: random.Random, *kinds: int) -> AttributeProto:
    return rng.choice([a for n in model.graph.node for a in n.attribute if not kinds or a.type in kinds])


def _tensor(model: onnx.ModelProto, rng: random.Random) -> TensorProto:
    inner = [a.t for n in model.graph.node for a in n.attribute if a.type == AttributeProto.TENSOR]
    return rng.choice([*model.graph.initializer, *inner])


def _names(model: onnx.ModelProto) -> list[str]:
    graph = model.graph
    return [v.name for v in (*graph.input, *graph.initializer)] + [o for n in graph.node for o in n.output]


def drop_node(model: onnx.ModelProto, rng: random.Random) -> None:
    del model.graph.node[rng.randrange(len(model.graph.node))]


def repeat_node(model: onnx.ModelProto, rng: random.Random) -> None:
    model.graph.node.add().CopyFrom(_node(model, rng))


def repeat_node_with_new_outputs(model: onnx.ModelProto, rng: random.Random) -> None:
    node = model.graph.node.add()
    node.CopyFrom(_node(model, rng))
    node.output[:] = [f"{o}_again" for o in node.output]
    model.graph.output.add(name=node.output[0])


def shuffle_nodes(model: onnx.ModelProto, rng: random.Random) -> None:
    nodes = list(model.graph.node)
    rng.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def swap_inputs(model: onnx.ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    names = list(node.input)
    rng.shuffle(names)
    node.input[:] = names


def drop_input(model: onnx.ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    del node.input[rng.randrange(len(node.input))]


def drop_all_inputs(model: onnx.ModelProto, rng: random.Random) -> None:
    del _node(model, rng).input[:]


def repeat_input(model: onnx.ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    node.input.append(rng.choice(node.input))


def leave_out_input(model: onnx.ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    node.input[rng.randrange(len(node.input))] = ""


def read_another_value(model: onnx.ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    node.input[rng.randrange(len(node.input))] = rng.choice(_names(model))


def read_unknown_value(model: onnx.ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    node.input[rng.randrange(len(node.input))] = rng.choice(WORDS)


def rename_output(model: onnx.ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    node.output[rng.randrange(len(node.output))] = rng.choice((*WORDS, *_names(model)))


def add_output(model: onnx.ModelProto, rng: random.Random) -> None:
    _node(model, rng).output.append("extra")


def drop_output(model: onnx.ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    del node.output[rng.randrange(len(node.output))]


def another_operator(model: onnx.ModelProto, rng: random.Random) -> None:
    _node(model, rng).op_type = rng.choice(OPS)


def unknown_operator(model: onnx.ModelProto, rng: random.Random) -> None:
    _node(model, rng).op_type = rng.choice(WORDS)


def another_domain(model: onnx.ModelProto, rng: random.Random) -> None:
    _node(model, rng).domain = rng.choice(("com.microsoft", "ai.onnx.ml", "ai.onnx", *WORDS))


def rename_node(model: onnx.ModelProto, rng: random.Random) -> None:
    _node(model, rng).name = rng.choice(WORDS)


def drop_attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice([n for n in model.graph.node if n.attribute])
    del node.attribute[rng.randrange(len(node.attribute))]


def drop_all_attributes(model: onnx.ModelProto, rng: random.Random) -> None:
    del rng.choice([n for n in model.graph.node if n.attribute]).attribute[:]


def change_integer(model: onnx.ModelProto, rng: random.Random) -> None:
    _attribute(model, rng, AttributeProto.INT).i = rng.choice(INTS)


def change_one_of_integers(model: onnx.ModelProto, rng: random.Random) -> None:
    ints = _attribute(model, rng, AttributeProto.INTS).ints
    ints[rng.randrange(len(ints))] = rng.choice(INTS)


def resize_integers(model: onnx.ModelProto, rng: random.Random) -> None:
    ints = _attribute(model, rng, AttributeProto.INTS).ints
    ints[:] = [rng.choice(INTS[:6]) for _ in range(rng.randrange(8))]


def change_float(model: onnx.ModelProto, rng: random.Random) -> None:
    _attribute(model, rng, AttributeProto.FLOAT).f = rng.choice(FLOATS)


def change_string(model: onnx.ModelProto, rng: random.Random) -> None:
    _attribute(model, rng, AttributeProto.STRING).s = rng.choice((*(w.encode() for w in WORDS), b"\xff\xfe"))


def change_attribute_kind(model: onnx.ModelProto, rng: random.Random) -> None:
    _attribute(model, rng).type = rng.choice(tuple(AttributeProto.AttributeType.values()))


def rename_attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    _attribute(model, rng).name = rng.choice((*WORDS, "axis", "axes", "keepdims", "group", "perm", "alpha"))


def add_attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    node = _node(model, rng)
    schemas = onnx.defs.get_schema(node.op_type).attributes if onnx.defs.has(node.op_type) else {}
    name = rng.choice((*schemas, "extra"))
    value: object = rng.choice((rng.choice(INTS), rng.choice(FLOATS), [rng.choice(INTS)] * rng.randrange(1, 5), "text"))
    node.attribute.append(helper.make_attribute(name, value))


def change_dims_of_tensor(model: onnx.ModelProto, rng: random.Random) -> None:
    dims = _tensor(model, rng).dims
    dims[rng.randrange(len(dims))] = rng.choice(DIMS)


def change_rank_of_tensor(model: onnx.ModelProto, rng: random.Random) -> None:
    tensor = _tensor(model, rng)
    array = numpy_helper.to_array(tensor)
    shape: Sequence[int] = rng.choice(((-1,), (1, *array.shape), (*array.shape, 1), (1, -1), (-1, 1)))
    tensor.CopyFrom(numpy_helper.from_array(array.reshape(shape), tensor.name))


def shrink_tensor(model: onnx.ModelProto, rng: random.Random) -> None:
    tensor = _tensor(model, rng)
    array = numpy_helper.to_array(tensor).reshape(-1)[: rng.randrange(4)]
    tensor.CopyFrom(numpy_helper.from_array(array if rng.random() < 0.5 else np.asarray(array[0]), tensor.name))


def change_kind_of_tensor(model: onnx.ModelProto, rng: random.Random) -> None:
    _tensor(model, rng).data_type = rng.choice(KINDS)


def convert_tensor(model: onnx.ModelProto, rng: random.Random) -> None:
    tensor = _tensor(model, rng)
    kind = rng.choice(("float32", "int8", "uint8", "int16", "uint16", "int32", "int64", "float64", "bool", "float16"))
    with np.errstate(all="ignore"):
        array = numpy_helper.to_array(tensor).astype(kind)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def cut_data(model: onnx.ModelProto, rng: random.Random) -> None:
    tensor = _tensor(model, rng)
    tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data))]


def change_values(model: onnx.ModelProto, rng: random.Random) -> None:
    tensor = _tensor(model, rng)
    array = np.array(numpy_helper.to_array(tensor))
    flat = array.reshape(-1)
    floats = array.dtype.kind == "f"
    with np.errstate(all="ignore"):
        for _ in range(rng.choice((1, 1, 3, len(flat)))):
            value = np.float64(rng.choice(FLOATS)) if floats else np.int64(rng.choice(INTS))
            flat[rng.randrange(len(flat))] = value.astype(array.dtype)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def drop_tensor(model: onnx.ModelProto, rng: random.Random) -> None:
    del model.graph.initializer[rng.randrange(len(model.graph.initializer))]


def feed_tensor_at_run_time(model: onnx.ModelProto, rng: random.Random) -> None:
    tensors = model.graph.initializer
    tensor = tensors.pop(rng.randrange(len(tensors)))
    model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))


def repeat_tensor(model: onnx.ModelProto, rng: random.Random) -> None:
    model.graph.initializer.add().CopyFrom(rng.choice(model.graph.initializer))


def keep_tensor_outside(model: onnx.ModelProto, rng: random.Random) -> None:
    tensor = rng.choice(model.graph.initializer)
    tensor.data_location = TensorProto.EXTERNAL
    for key in ("location", "offset", "length"):
        if rng.random() < 0.7:
            tensor.external_data.add(key=key, value=rng.choice((*WORDS, "0", "-1", "w.bin", "99999999999999999999")))


def change_dims_of_input(model: onnx.ModelProto, rng: random.Random) -> None:
    shape = rng.choice(model.graph.input).type.tensor_type.shape
    rng.choice(shape.dim).dim_value = rng.choice(DIMS)


def name_dim_of_input(model: onnx.ModelProto, rng: random.Random) -> None:
    shape = rng.choice(model.graph.input).type.tensor_type.shape
    rng.choice(shape.dim).dim_param = rng.choice(WORDS)


def change_rank_of_input(model: onnx.ModelProto, rng: random.Random) -> None:
    dims = rng.choice(model.graph.input).type.tensor_type.shape.dim
    if rng.random() < 0.5:
        dims.add(dim_value=rng.choice(DIMS[:7]))
    else:
        del dims[rng.randrange(len(dims))]


def change_kind_of_input(model: onnx.ModelProto, rng: random.Random) -> None:
    rng.choice(model.graph.input).type.tensor_type.elem_type = rng.choice(KINDS)


def drop_graph_input(model: onnx.ModelProto, rng: random.Random) -> None:
    del model.graph.input[rng.randrange(len(model.graph.input))]


def drop_graph_output(model: onnx.ModelProto, rng: random.Random) -> None:
    del model.graph.output[rng.randrange(len(model.graph.output))]


def another_graph_output(model: onnx.ModelProto, rng: random.Random) -> None:
    model.graph.output.add(name=rng.choice(_names(model)))


def change_opset(model: onnx.ModelProto, rng: random.Random) -> None:
    rng.choice(model.opset_import).version = rng.choice(OPSETS)


def change_ir_version(model: onnx.ModelProto, rng: random.Random) -> None:
    model.ir_version = rng.choice((0, 1, 3, 7, 8, 9, 10, 11, 12, 99))


def rename_value(model: onnx.ModelProto, rng: random.Random) -> None:
    old, new = rng.choice(_names(model)), rng.choice(WORDS)
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        if value.name == old:
            value.name = new
    for node in model.graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
        node.output[:] = [new if name == old else name for name in node.output]


def make_cycle(model: onnx.ModelProto, rng: random.Random) -> None:
    first, last = sorted(rng.sample(range(len(model.graph.node)), 2))
    node = model.graph.node[first]
    node.input[rng.randrange(len(node.input))] = model.graph.node[last].output[0]


def wrap_in_if(model: onnx.ModelProto, rng: random.Random) -> None:
    index = rng.randrange(len(model.graph.node))
    node = model.graph.node[index]
    outs = [helper.make_empty_tensor_value_info(f"{o}_in") for o in node.output]
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.output[:] = [f"{o}_in" for o in node.output]
    body = helper.make_graph([inner], "branch", [], outs)
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(rng.random() < 0.5), f"cond{index}"))
    node.CopyFrom(helper.make_node("If", [f"cond{index}"], list(node.output), then_branch=body, else_branch=body))


def wrap_in_loop(model: onnx.ModelProto, rng: random.Random) -> None:
    index = rng.randrange(len(model.graph.node))
    node = model.graph.node[index]
    trips = rng.choice((0, 1, 3, 4096, 5000, 2**31, 2**62, -1))
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(trips, np.int64), f"trips{index}"))
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.input[0], inner.output[:] = "state", [f"{o}_in" for o in node.output]
    same = helper.make_node("Identity", ["go"], ["go_out"])
    ins = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
    ]
    body = helper.make_graph(
        [same, inner], "body", [*ins, helper.make_empty_tensor_value_info("state")],
        [helper.make_empty_tensor_value_info(n) for n in ("go_out", inner.output[0])],
    )  # fmt: skip
    node.CopyFrom(helper.make_node("Loop", [f"trips{index}", "", node.input[0]], [node.output[0]], body=body))


MUTATIONS: tuple[Mutation, ...] = (
    drop_node, repeat_node, repeat_node_with_new_outputs, shuffle_nodes, swap_inputs, drop_input, drop_all_inputs,
    repeat_input, leave_out_input, read_another_value, read_unknown_value, rename_output, add_output, drop_output,
    another_operator, unknown_operator, another_domain, rename_node, drop_attribute, drop_all_attributes,
    change_integer, change_one_of_integers, resize_integers, change_float, change_string, change_attribute_kind,
    rename_attribute, add_attribute, change_dims_of_tensor, change_rank_of_tensor, shrink_tensor,
    change_kind_of_tensor, convert_tensor, cut_data, change_values, drop_tensor, feed_tensor_at_run_time,
    repeat_tensor, keep_tensor_outside, change_dims_of_input, name_dim_of_input, change_rank_of_input,
    change_kind_of_input, drop_graph_input, drop_graph_output, another_graph_output, change_opset, change_ir_version,
    rename_value, make_cycle, wrap_in_if, wrap_in_loop, change_values, change_one_of_integers, read_another_value,
)  # fmt: skip
