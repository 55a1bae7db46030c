"""Which layers of an optimised graph compute in float, and why: an analysis for reports and `--require-int8`."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.errors import FloatLayerError
from glowc.graph.graph import Graph, Node
from glowc.ops.registry import find_op

_CONVERT = frozenset(("QuantizeLinear", "DequantizeLinear", "AssignQuant", "FlipSign"))


@dataclass(frozen=True, slots=True)
class FloatLayer:
    """A layer that computes in float; `island` says that integers follow it, or that the model has none."""

    name: str
    op: str
    reason: str
    island: bool


def float_layers(graph: Graph) -> tuple[FloatLayer, ...]:
    """Return the float layers in order. Conversions and Reshapes compute nothing."""
    quantized = has_quantized_activations(graph)
    leading = _before_quantize(graph)
    return tuple(
        FloatLayer(node.origin[0] if node.origin else node.name, node.op, _reason(node, graph, quantized),
                   node.name in leading or not quantized)
        for node in graph.nodes
        if _is_float(node, graph) and node.op not in _CONVERT and node.op != "Reshape"
    )  # fmt: skip


def has_quantized_activations(graph: Graph) -> bool:
    """Say whether any value that is computed, or given, is quantised."""
    return any(t.quantized for name, t in graph.types.items() if name not in graph.consts)


def require_int8(graph: Graph) -> None:
    """Raise FloatLayerError naming every float layer between quantised parts, with the reason.

    A float tail, from the last DequantizeLinear to the outputs, is the model's own.
    """
    islands = [layer for layer in float_layers(graph) if layer.island]
    if not islands:
        return
    raise FloatLayerError(
        f"{len(islands)} layer{'s' if len(islands) > 1 else ''} of model {graph.name!r} would compute in float",
        details=[f'{layer.op} "{layer.name}": {layer.reason}' for layer in islands],
        hint="quantize these layers, inputs and outputs, or compile without --require-int8",
    )


def _is_float(node: Node, graph: Graph) -> bool:
    values = [name for name in (*node.inputs, *node.outputs) if name and name not in graph.consts]
    return any(graph.types[name].dtype.is_float for name in values)


def _before_quantize(graph: Graph) -> set[str]:
    """Return the names of the nodes whose result reaches a QuantizeLinear."""
    producers = graph.producers()
    stack = [node.inputs[0] for node in graph.nodes if node.op == "QuantizeLinear"]
    found: set[str] = set()
    while stack:
        node = producers.get(stack.pop())
        if node is not None and node.name not in found:
            found.add(node.name)
            stack.extend(name for name in node.inputs if name)
    return found


def _reason(node: Node, graph: Graph, quantized: bool) -> str:
    known, producers, users = find_op(node.op), graph.producers(), graph.users()
    if not quantized:
        return "the model has no quantized activations"
    if known is None or not known.int8:
        return f"{node.op} has no integer form"
    for name in node.inputs:
        if not name or name in graph.consts or not graph.types[name].dtype.is_float:
            continue
        source = producers.get(name)
        while source is not None and source.op in ("Reshape", "Transpose"):
            source = producers.get(source.inputs[0])
        if source is None:
            return f'its input "{name}" is float'
        if source.op != "DequantizeLinear":
            return f'its input is the float result of "{source.origin[0] if source.origin else source.name}"'
        codes = graph.types[source.inputs[0]]
        if codes.quant is not None and codes.quant.per_axis:
            return f'its input "{name}" is quantized per axis'
    for name in node.outputs:
        readers = [user for user in users.get(name, []) if user.op != "QuantizeLinear"]
        if name in graph.outputs:
            return f'its result "{name}" is a float output'
        if readers:
            return f'its result is read as float by "{readers[0].origin[0] if readers[0].origin else readers[0].name}"'
    return "its quantization has no integer form: codes of different kinds, or weights that are computed"
