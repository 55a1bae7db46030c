"""Operators with bodies: If, Scan and Loop.

If: the branch that a known condition takes, or both and a choice between their results. A branch only computes: what
the other one would give does no harm and is not chosen.

Scan and Loop whose trip count is known, of Loop the largest at least: the body once per iteration. The body's values
get fresh names; scan inputs are read by Gather, scan outputs joined by Concat. An LSTM, GRU or RNN is never taken
apart like this; it has a kernel that loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx

from glowc.frontend.builder import Builder
from glowc.frontend.functions import inline_graph, renamed_graph
from glowc.frontend.onnx_model import OnnxNode, convert_node, to_array
from glowc.frontend.problems import NodeError
from glowc.frontend.symbols import ELEMENT_TYPES

WHERE = 16  # opset of the choice
Import = Callable[[list[OnnxNode]], None]


def import_if(node: OnnxNode, b: Builder, opsets: Mapping[str, int], import_nodes: Import) -> None:
    """Import an If; one whose condition is computed at run time needs branches of equal types."""
    condition = b.value(node.inputs[0])
    if condition is not None:
        if condition.size != 1:
            raise NodeError(f"the condition has {condition.size} elements")
        taken = "then_branch" if condition.reshape(-1)[0] else "else_branch"
        import_nodes(inline_graph(node.attrs[taken], node, opsets, b.fresh))
        return
    if b.type(node.inputs[0]).elements != 1:
        raise NodeError(f"the condition is {b.type(node.inputs[0])}")
    outs = [tuple(b.fresh(f"{out}.{word}") if out else "" for out in node.outputs) for word in ("then", "else")]
    for key, names in zip(("then_branch", "else_branch"), outs, strict=True):
        import_nodes(inline_graph(node.attrs[key], replace(node, outputs=names), opsets, b.fresh))
    import_nodes(_choices(node, b, outs))


def _choices(node: OnnxNode, b: Builder, outs: list[tuple[str, ...]]) -> list[OnnxNode]:
    """Return a Where for every result."""
    flag = b.fresh(f"{node.origin}.condition")
    shape = b.add_const(f"{node.origin}.shape", np.zeros(0, np.int64))
    nodes = [replace(node.new("Reshape", (node.inputs[0], shape), (flag,)), version=WHERE)]
    for out, one, other in zip(node.outputs, *outs, strict=True):
        if not out:
            continue
        types = [b.type(name) for name in (one, other)]
        if types[0].shape != types[1].shape or types[0].dtype != types[1].dtype:
            raise NodeError(
                f'the condition is computed at run time, and the branches give "{out}" the types '
                f"{types[0]} and {types[1]}: they must be equal"
            )
        nodes.append(replace(node.new("Where", (flag, one, other), (out,)), version=WHERE))
    return nodes


MOST_NODES = 4096
Opsets = Mapping[str, int]


def unroll_scan(node: OnnxNode, b: Builder, opsets: Opsets, import_nodes: Import) -> None:
    """Import a Scan of opset 9 and up."""
    if node.version < 9:
        raise NodeError("Scan of opset 8 is not supported", "export with opset_version=9 or newer")
    body, count = node.attrs["body"], node.int_("num_scan_inputs", 0)
    states, scanned = list(node.inputs[: len(node.inputs) - count]), node.inputs[len(node.inputs) - count :]
    axes = node.ints("scan_input_axes") or (0,) * count
    backward = node.ints("scan_input_directions") or (0,) * count
    trips = {b.type(name).shape[axis] for name, axis in zip(scanned, axes, strict=True)}
    if len(trips) != 1:
        raise NodeError(f"scan inputs have {sorted(trips)} steps")
    steps = trips.pop()
    made: list[list[str]] = [[] for _ in range(len(body.output) - len(states))]
    for step in range(steps):
        _check_size(body, steps)
        nodes, items = [], []
        for name, axis, back in zip(scanned, axes, backward, strict=True):
            at = b.add_const(f"{node.origin}.step", np.asarray(steps - 1 - step if back else step, np.int64))
            items.append(b.fresh(f"{name}.step"))
            nodes.append(node.new("Gather", (name, at), (items[-1],), axis=axis))
        inner, outs = iteration(node, b, opsets, body, [*states, *items], step)
        import_nodes([*nodes, *inner])
        states = outs[: len(states)]
        for kept, value in zip(made, outs[len(states) :], strict=True):
            kept.append(value)
    count_out = len(made)
    out_axes = node.ints("scan_output_axes") or (0,) * count_out
    reverse = node.ints("scan_output_directions") or (0,) * count_out
    if not steps:
        made = _no_results(node, b, len(states), body.output[len(states) :])
    import_nodes(list(_results(node, b, states, made, out_axes, reverse)))


def unroll_loop(node: OnnxNode, b: Builder, opsets: Opsets, import_nodes: Import) -> None:
    """Import a Loop whose trip count and conditions are known, or whose conditions are computed and trip count known.

    As ONNX says: without M it ends by its condition, without cond the condition is ignored. Of computed conditions all
    trips run, and the states stay as they are from the one on whose condition is false.
    """
    body, asked = node.attrs["body"], bool(node.input(1))
    if not node.input(0) and not asked:
        raise NodeError("a loop without trip count and condition never ends")
    trips = int(b.need_value(node.inputs[0], "the trip count").reshape(-1)[0]) if node.input(0) else None
    condition = node.input(1) or b.add_const(f"{node.origin}.condition", np.asarray(True))
    states, step = list(node.inputs[2:]), 0
    made: list[list[str]] = [[] for _ in range(len(body.output) - 1 - len(states))]
    if trips is not None and not asked:
        _check_size(body, trips)
    going = ""  # the truth of all conditions so far, once one is computed
    while (trips is None or step < trips) and not (asked and _ended(condition, b, trips)):
        _check_size(body, step + 1)
        if asked and b.value(condition) is None:
            going = _all_true(node, b, going, condition, import_nodes)
        number = b.add_const(f"{node.origin}.iteration", np.asarray(step, np.int64))
        inner, outs = iteration(node, b, opsets, body, [number, condition, *states], step)
        import_nodes(inner)
        before, condition, states = states, outs[0], outs[1 : 1 + len(states)]
        if going:
            if any(out and out in b.read for out in node.outputs[len(states) :]):
                raise NodeError("it joins what each trip gives, and the number of trips is computed at run time")
            states = _kept(node, b, going, before, states, import_nodes)
        for kept, value in zip(made, outs[1 + len(states) :], strict=True):
            kept.append(value)
        step += 1
    zeros = (0,) * len(made)
    if not step:
        made = _no_results(node, b, len(states), body.output[1 + len(states) :])
    import_nodes(list(_results(node, b, states, made, zeros, zeros)))


def _ended(condition: str, b: Builder, trips: int | None) -> bool:
    if trips is not None and b.value(condition) is None:
        return False
    return not b.need_value(condition, "the condition").reshape(-1)[0]


def _all_true(node: OnnxNode, b: Builder, going: str, condition: str, import_nodes: Import) -> str:
    """Return the truth of the conditions of this trip and all before."""
    shape = b.add_const(f"{node.origin}.shape", np.zeros(0, np.int64))
    flag = b.fresh(f"{node.origin}.going")
    nodes = [replace(node.new("Reshape", (condition, shape), (flag,)), version=WHERE)]
    if going:
        nodes.append(replace(node.new("And", (going, flag), (b.fresh(f"{node.origin}.going"),)), version=WHERE))
    import_nodes(nodes)
    return nodes[-1].outputs[0]


def _kept(
    node: OnnxNode, b: Builder, going: str, before: Sequence[str], after: Sequence[str], import_nodes: Import
) -> list[str]:
    """Return the states after a trip: those before it where the loop has ended."""
    result = []
    for old, new in zip(before, after, strict=True):
        if b.type(old) != b.type(new):
            raise NodeError(f"a state is {b.type(old)}, then {b.type(new)}, and the number of trips is computed")
        result.append(b.fresh(f"{new}.kept"))
        import_nodes([replace(node.new("Where", (going, new, old), (result[-1],)), version=WHERE)])
    return result


def _no_results(node: OnnxNode, b: Builder, states: int, declared: Sequence[onnx.ValueInfoProto]) -> list[list[str]]:
    """Define what a loop of no iteration joins: tensors [0, ...] of the shapes that the body declares."""
    for out, value in zip(node.outputs[states:], declared, strict=False):
        if not out or out not in b.read:
            continue
        tensor = value.type.tensor_type
        kind, dims = ELEMENT_TYPES.get(tensor.elem_type), [d.dim_value for d in tensor.shape.dim]
        if kind is None or not tensor.HasField("shape"):
            raise NodeError(f'no iteration gives "{out}" elements, and the body does not declare its shape')
        b.set_const(out, np.zeros((0, *dims), kind.numpy))
    return []


def _check_size(body: onnx.GraphProto, steps: int) -> None:
    if steps * max(len(body.node), 1) > MOST_NODES:
        raise NodeError(f"{steps} iterations of {len(body.node)} operators cannot be unrolled (at most {MOST_NODES})")


def iteration(
    node: OnnxNode, b: Builder, opsets: Opsets, body: onnx.GraphProto, inputs: Sequence[str], step: int
) -> tuple[list[OnnxNode], list[str]]:
    """Return the nodes of one iteration and the names of its outputs."""
    names = dict(zip((v.name for v in body.input), inputs, strict=True))
    result: list[OnnxNode] = []
    for tensor in body.initializer:
        names[tensor.name] = b.fresh(f"{node.origin}/{tensor.name}")
        result.append(node.new("Constant", (), (names[tensor.name],), value=to_array(tensor)))
    for index, proto in enumerate(body.node):
        inner = convert_node(proto, opsets, index)
        attrs = {
            k: renamed_graph(v, names, {}) if isinstance(v, onnx.GraphProto) else v for k, v in inner.attrs.items()
        }
        reads = tuple(names.get(name, name) for name in inner.inputs)
        for out in filter(None, inner.outputs):
            names[out] = b.fresh(f"{node.origin}/{out}")
        writes = tuple(names.get(name, "") for name in inner.outputs)
        origin = f"{node.origin}/{inner.origin}.{step}"
        result.append(replace(inner, inputs=reads, outputs=writes, attrs=attrs, origin=origin))
    return result, [names.get(v.name, v.name) for v in body.output]


def _results(
    node: OnnxNode, b: Builder, states: Sequence[str], made: Sequence[Sequence[str]], axes: Sequence[int],
    reverse: Sequence[int],
) -> Iterator[OnnxNode]:  # fmt: skip
    """Name the last states, and join what every iteration gave."""
    for state, out in zip(states, node.outputs, strict=False):
        if out:
            yield node.new("Identity", (state,), (out,))
    for parts, axis, back, out in zip(made, axes, reverse, node.outputs[len(states) :], strict=False):
        if not out:
            continue
        wide = []
        for part in reversed(parts) if back else parts:
            wide.append(b.fresh(f"{part}.wide"))
            where = b.add_const(f"{part}.axis", np.asarray([axis], np.int64))
            yield replace(node.new("Unsqueeze", (part, where), (wide[-1],)), version=13)
        yield node.new("Concat", wide, (out,), axis=axis)
