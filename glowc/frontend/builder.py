"""The graph under construction: values with types, constants, nodes, and the rule for raw quantised integers.

ONNX operators between QuantizeLinear and DequantizeLinear see plain integers. Operators that only move data
(`MOVES`) keep the quantisation of their input in the type; before any other operator an AssignQuant takes it
off, so that the codes are read as the plain numbers that ONNX means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx

from glowc.frontend.fold import CODED_TYPES, ONNX_TYPES, infer_onnx
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError, UnsupportedOpError
from glowc.graph.attrs import Attr, AttrValue, Str
from glowc.graph.graph import Node
from glowc.graph.numerics import dequantize
from glowc.graph.types import LARGEST_TENSOR_BYTES, QuantParams, TensorType, type_of
from glowc.ops.base import OpDef
from glowc.ops.registry import find_op

MOVES = frozenset({
    "Reshape", "Transpose", "Slice", "Split", "Expand", "Tile", "Pad", "Identity", "Gather", "GatherElements",
    "GatherND", "DepthToSpace", "SpaceToDepth", "Resize", "MaxPool", "ReduceMax", "ReduceMin", "Concat",
})  # fmt: skip
# Read the codes as what they are: the quantisation itself, or an order that it does not change.
QUANT_READERS = frozenset({"DequantizeLinear", "AssignQuant", "ArgMax", "ArgMin"})
# Inputs of more elements than this are data, not settings that `--set-input` would fix.
SETTABLE = 16
# Attributes with this value mean nothing, whether the operator knows them or not.
HARMLESS: Mapping[str, float | str] = {
    "storage_order": 0, "antialias": 0, "stash_type": 1, "saturate": 1, "noop_with_empty_axes": 0,
    "allowzero": 0, "keep_aspect_ratio_policy": "stretch", "sorted": 1, "select_last_index": 0,
    "ceil_mode": 0, "layout": 0, "extrapolation_value": 0.0, "exclude_outside": 0, "cubic_coeff_a": -0.75,
    "input_forget": 0,
}  # fmt: skip


class _Names:
    """Names in use; a new one is its base with the first number that is free."""

    def __init__(self, names: Iterable[str]) -> None:
        self._used = set(names)
        self._next: dict[str, int] = {}  # where the search for a number goes on: names are never given back

    def fresh(self, base: str) -> str:
        """Return `base`, or `base.N` when that is in use."""
        name, index = base, self._next.get(base, 1)
        while name in self._used:
            name, index = f"{base}.{index}", index + 1
        self._used.add(name)
        self._next[base] = index
        return name


class Builder:
    """Collects the nodes of the new graph; `current` is the ONNX node being imported."""

    def __init__(self, names: Iterable[str], *, keep_unknown: bool = False) -> None:
        self.types: dict[str, TensorType] = {}
        self.consts: dict[str, np.ndarray] = {}
        self.exotic: dict[str, np.ndarray] = {}
        self.lists: dict[str, tuple[str, ...]] = {}  # sequences
        self.absent: set[str] = set()  # optionals without element
        self.nodes: list[Node] = []
        self.keep_unknown = keep_unknown
        self.current: OnnxNode | None = None
        self.read: set[str] = set()
        self.texts: dict[str, tuple[str, ...]] = {}  # of values whose numbers mean texts
        self._names, self._node_names = _Names(names), _Names(())
        self._producer: dict[str, Node] = {}
        self._known: dict[str, np.ndarray] = {}
        self.twins: dict[tuple[str, TensorType], str] = {}

    def type(self, name: str) -> TensorType:
        """Type of a value; NodeError when it has an element kind that glowc lacks."""
        if name in self.exotic and name not in self.types:
            kind = self.exotic[name].dtype.name
            raise NodeError(f'"{name}" has the element type {kind}, which is not supported')
        if name in self.lists or name in self.absent:
            what = "a sequence" if name in self.lists else "an optional without element"
            raise NodeError(f'"{name}" is {what}, and the operator takes a tensor')
        return self.types[name]

    def value(self, name: str) -> np.ndarray | None:
        """The array of a constant, also when it has passed a DequantizeLinear; None when it is computed."""
        if name in self.consts or name in self.exotic:
            return self.exotic.get(name, self.consts.get(name))
        node = self._producer.get(name)
        if name not in self._known and node is not None and node.op == "DequantizeLinear":
            source = node.inputs[0]
            quant = self.types[source].quant
            if source in self.consts and quant is not None:
                self._known[name] = dequantize(self.consts[source], quant)
        return self._known.get(name)

    def need_value(self, name: str, what: str) -> np.ndarray:
        """The array of a constant input; NodeError when it is computed at run time."""
        value = self.value(name)
        if value is None:
            text = f'{what} "{name}" is computed at run time; glowc needs a constant'
            raise NodeError(text, self._constant_hint(name))
        return value

    def _constant_hint(self, name: str) -> str:
        """Say which inputs a value depends on: where it is one or a few numbers, they may be known beforehand."""
        seen, front = {name}, [name]
        for value in front:
            node = self._producer.get(value)
            front += [i for i in node.inputs if i and i not in seen and i not in self.consts] if node else []
            seen.update(front)
        inputs = [v for v in front if v not in self._producer]
        if not inputs or any(self.types[v].elements > SETTABLE for v in inputs):
            return "simplify the model with fixed input shapes, e.g. with onnxsim"
        options = " ".join(f"--set-input {v}=NUMBER" for v in dict.fromkeys(inputs))
        return f"{options} makes a constant of what your program always passes"

    def producer(self, name: str) -> Node | None:
        """The node that computes a value."""
        return self._producer.get(name)

    def fresh(self, base: str) -> str:
        """Return a value name not in use."""
        return self._names.fresh(base)

    def set_const(self, name: str, array: np.ndarray) -> None:
        """Define the value `name` as a constant."""
        kind = array.dtype.name
        if kind in ("int4", "uint4", "int2", "uint2"):
            base = np.uint8 if kind.startswith("u") else np.int8
            self.consts[name] = array.astype(base)
            self.types[name] = TensorType(array.shape, ONNX_TYPES[kind])
        elif kind in ONNX_TYPES:
            self.consts[name] = array
            self.types[name] = type_of(array)
        else:
            self.exotic[name] = array
            if kind in CODED_TYPES:
                self.consts[name] = array.view(np.uint8)
                self.types[name] = TensorType(array.shape, CODED_TYPES[kind])

    def set_empty(self, name: str, type_: TensorType) -> None:
        """Define a value without elements; what reads it folds, or joins it with others."""
        self.set_const(name, np.zeros(type_.shape, type_.dtype.numpy))
        self.types[name] = replace(type_, quant=None) if type_.quant and type_.quant.per_axis else type_

    def add_const(self, base: str, array: np.ndarray) -> str:
        """Add a new constant and return its name."""
        name = self.fresh(base)
        self.set_const(name, np.ascontiguousarray(array).reshape(array.shape))
        return name

    def typed_const(self, name: str, array: np.ndarray, type_: TensorType) -> str:
        """Return the constant with the bytes of `name` and type `type_`, made once."""
        key = (name, type_)
        if key not in self.twins:
            self.twins[key] = twin = self.fresh(f"{name}.q")
            self.consts[twin], self.types[twin] = array, type_
        return self.twins[key]

    def assign_quant(self, name: str, quant: QuantParams | None) -> str:
        """Return `name` with its type's quantisation replaced: itself, or the output of an AssignQuant."""
        type_ = self.type(name)
        if type_.quant == quant:
            return name
        key = (name, replace(type_, quant=quant))
        if key not in self.twins:
            self.twins[key] = twin = self.fresh(f"{name}.{'q' if quant else 'raw'}")
            self._append("AssignQuant", (name,), (twin,), {}, (key[1],))
        return self.twins[key]

    def emit(
        self,
        op: str,
        inputs: Sequence[str],
        attrs: Mapping[str, AttrValue] | None = None,
        outputs: Sequence[str] | None = None,
        types: Sequence[TensorType] | None = None,
    ) -> str:
        """Append a node, return its first output; `outputs` are fresh and `types` inferred unless given."""
        names = self._plain_inputs(op, tuple(inputs))
        opdef = find_op(op)
        kept = dict(attrs or {})
        outs = tuple(outputs) if outputs is not None else (self.fresh(f"{self._base()}.{op.lower()}"),)
        if types is None and opdef is not None:
            kept = _known_attrs(opdef, kept)
            draft = Node(self._base(), op, names, outs, kept, self._origin())
            types = opdef.infer(draft, tuple(self.type(n) if n else None for n in names))
            _check_words(kept, opdef.attrs)
            types = self._moved(op, names, types)
        if types is None:
            types = self._unknown_types(op, names, outs)
        self._append(op, names, outs, kept, types)
        return outs[0]

    def take(
        self, op: str, inputs: tuple[str, ...], outputs: tuple[str, ...], attrs: Mapping[str, AttrValue],
        types: Sequence[TensorType],
    ) -> None:  # fmt: skip
        """Append a node as it stands."""
        self._append(op, inputs, outputs, attrs, types)

    def rollback(self, count: int) -> None:
        """Forget the nodes after the first `count`."""
        del self.nodes[count:]

    def _base(self) -> str:
        if self.current is None:
            return "node"
        return next((name for name in self.current.outputs if name), self.current.origin)

    def _origin(self) -> tuple[str, ...]:
        return (self.current.origin,) if self.current else ()

    def _append(
        self,
        op: str,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        attrs: Mapping[str, AttrValue],
        types: Sequence[TensorType],
    ) -> None:
        outs = list(outputs)
        for i, out in enumerate(outputs):
            if out and i < len(types) and 0 in types[i].shape:
                self.set_empty(out, types[i])  # nothing to compute
                outs[i] = ""
            elif out and i < len(types):
                _check_size(types[i])
                self.types[out] = types[i]
            elif out and out in self.read:
                raise NodeError(f'output {i} ("{out}") is not supported')
            else:
                outs[i] = ""
        if outputs and not any(outs):
            return
        if types and 0 in types[0].shape:
            raise NodeError(f"the result {types[0]} has no elements")
        node = Node(self._node_name(op), op, inputs, tuple(outs[: len(types)]), attrs, self._origin())
        self.nodes.append(node)
        self._producer.update((out, node) for out in outs if out)

    def _node_name(self, op: str) -> str:
        base = self.current.origin if self.current else op.lower()
        return self._node_names.fresh(base)

    def _plain_inputs(self, op: str, inputs: tuple[str, ...]) -> tuple[str, ...]:
        """Take the quantisation off inputs whose codes the operator would read as numbers."""
        if op in QUANT_READERS:
            return inputs
        quants = [self.type(name).quant for name in inputs if name]
        keeps = op in MOVES and quants and quants[0] is not None and not quants[0].per_axis
        if keeps and (op != "Concat" or all(q == quants[0] for q in quants)):
            return (inputs[0], *(self._raw(n) for n in inputs[1:])) if op != "Concat" else inputs
        return tuple(self._raw(name) for name in inputs)

    def _raw(self, name: str) -> str:
        return self.assign_quant(name, None) if name else name

    def _moved(self, op: str, inputs: tuple[str, ...], types: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Set the quantisation of outputs: the first input's for data movement, else none."""
        first = self.type(inputs[0]) if op in MOVES and inputs and inputs[0] else None
        return tuple(
            replace(t, quant=first.quant if first is not None and t.dtype == first.dtype else None) for t in types
        )

    def _unknown_types(self, op: str, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> tuple[TensorType, ...]:
        """Types of an operator that is not in the registry, by ONNX's rule; an error unless it is kept."""
        current = self.current
        assert current is not None
        if not self.keep_unknown:
            raise UnsupportedOpError(current.full_op)
        if outputs != current.outputs:
            return (self.type(inputs[0]),)
        return infer_onnx(current, self.types, self.consts) or (self.type(inputs[0]),)


def _check_size(type_: TensorType) -> None:
    if type_.size_bytes > LARGEST_TENSOR_BYTES:
        raise NodeError(f"the result {type_} is too large: a tensor has at most {LARGEST_TENSOR_BYTES:,} bytes")


def _known_attrs(op: OpDef, attrs: dict[str, AttrValue]) -> dict[str, AttrValue]:
    """Drop unknown attributes whose value means nothing; NodeError for what the operator's declaration excludes."""
    result: dict[str, AttrValue] = {}
    for key, value in attrs.items():
        known = op.attrs.get(key)
        if known is not None:
            if not isinstance(known, Str):  # the type rule says more of a word
                _check_kind(key, value, known)
            result[key] = value
        elif not _is_default(op.name, key, value):
            raise NodeError(f"attribute {key} = {_shown(value)} is not supported")
    if not op.required <= result.keys():
        raise NodeError(f"attribute {', '.join(sorted(op.required - result.keys()))} is missing")
    return result


def _check_words(attrs: Mapping[str, AttrValue], known: Mapping[str, Attr]) -> None:
    for key, value in attrs.items():
        _check_kind(key, value, known[key])


def _check_kind(key: str, value: AttrValue, known: Attr) -> None:
    if not known.accepts(value):
        raise NodeError(f"attribute {key} = {_shown(value)}: needs {known.wanted}")


def _is_default(op: str, key: str, value: AttrValue) -> bool:
    default = HARMLESS.get(key)
    if onnx.defs.has(op):
        schema = onnx.defs.get_schema(op).attributes.get(key)
        if schema is not None and schema.default_value.type:
            default = onnx.helper.get_attribute_value(schema.default_value)
    if isinstance(default, bytes):
        default = default.decode()
    return default is not None and value == default


def _shown(value: AttrValue) -> str:
    return str(list(value)) if isinstance(value, tuple) else repr(value)
