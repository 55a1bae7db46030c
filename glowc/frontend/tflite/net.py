"""The graph that is being made of a TensorFlow Lite model: tensors become values, operators append nodes.

Quantised uint8 tensors become int8 (code - 128 is the same real number with zero point - 128), so that kernels know one
kind; the model's own inputs and outputs keep theirs, with a FlipSign between. float16 becomes float32, which holds all
of its values; C11 has no type for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from glowc.errors import InternalError
from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.reader import Blocks, Operator, Quantization, Subgraph, Tensor
from glowc.graph.attrs import AttrValue
from glowc.graph.graph import Graph, Node, State
from glowc.graph.types import LARGEST_TENSOR_BYTES, DType, QuantParams, TensorType, type_of
from glowc.ops.base import Call, MaybeTypes, OpError, Types
from glowc.ops.registry import get_op

NHWC: Mapping[str, AttrValue] = {"layout": "nhwc"}
_KINDS = {
    "float16": DType.F32, "float32": DType.F32, "float64": DType.F64, "int4": DType.S8, "int8": DType.S8,
    "uint8": DType.U8, "int16": DType.S16, "uint16": DType.U16, "int32": DType.S32, "uint32": DType.U32,
    "int64": DType.S64, "uint64": DType.U64, "bool": DType.BOOL,
}  # fmt: skip
COMPLEX, COMPLEX_OPERATORS = "complex64", ("RFFT2D", "COMPLEX_ABS", "REAL", "IMAG", "RESHAPE", "SQUEEZE", "EXPAND_DIMS")
_HALF = 128
_OF_NOTHING = {"ReduceSum": 0, "ReduceSumSquare": 0, "ReduceProd": 1, "MatMul": 0}
_EMPTY = "leave it out, or give another --input-shape"
LARGEST_FOLDED_BYTES = 1 << 16
MOST_LEVELS, MOST_CALLS = 16, 4096
_OF_WEIGHTS = frozenset({"DequantizeLinear", "DequantizeBlocks", "Reshape", "Transpose"})
WITH_STATE = frozenset({"FixedLstm", "LSTM", "Svdf"})


@dataclass(slots=True)
class Variable:
    """What the model keeps between inferences: the value that is read before an assignment, and what it is by now."""

    initial: np.ndarray | None = None
    value: str = ""
    now: str = ""


class Net:
    """Collects types, constants and nodes; `current` is the operator being imported."""

    def __init__(self, graph: Subgraph, subgraphs: Sequence[Subgraph] = ()) -> None:
        self.graph, self.subgraphs = graph, subgraphs
        self.types: dict[str, TensorType] = {}
        self.consts: dict[str, np.ndarray] = {}
        self.nodes: list[Node] = []
        self.current: Operator | None = None
        self.variables: dict[str, Variable] = {}
        self.handles: dict[int, str] = {}
        self._values: dict[int, str] = {}
        self._makers: dict[str, Node] = {}
        self._folded: dict[str, str] = {}
        self._depth = self._calls = 0
        self._taken: set[str] = set()
        self._node_names: set[str] = set()

    # tensors

    def tensor(self, index: int) -> Tensor:
        """Return a tensor of the file; NodeError for an input left out and for a tensor that cannot be read."""
        if index < 0:
            raise NodeError("an input is missing")
        found = self.graph.tensors[index]
        if found.problem is not None:
            raise found.problem
        return found

    def type(self, index: int) -> TensorType:
        """Return the type of a tensor as values have it: uint8 codes as int8, quantisation of integers only.

        The shape is that of the tensor's value where it is known by now, else the file's.
        """
        tensor = self.tensor(index)
        if tensor.blocks is not None:
            return TensorType(self._shape(index), DType.F32)
        if tensor.kind == COMPLEX and self.current is not None and self.current.code in COMPLEX_OPERATORS:
            known = index in self._values
            return TensorType(self._shape(index) if known else (*tensor.shape, 2), DType.F32)
        if tensor.kind not in _KINDS:
            raise NodeError(f'"{tensor.name}" has the element type {tensor.kind}')
        dtype = _KINDS[tensor.kind]
        quant = _params(tensor.quant, tensor.shape) if dtype.is_integer else None
        if quant is not None and dtype is DType.U8:
            quant = replace(quant, zero_point=tuple(z - _HALF for z in quant.zero_point))
            dtype = DType.S8
        if quant is not None and tensor.kind == "int4" and tensor.data is not None:
            quant = replace(quant, bits=4)
        return TensorType(self._shape(index), dtype, quant)

    def _shape(self, index: int) -> tuple[int, ...]:
        value = self._values.get(index)
        return self.types[value].shape if value is not None else self.graph.tensors[index].shape

    def is_open(self, out: int) -> bool:
        """Say whether a result's shape follows from the inputs: the file's is a placeholder, or theirs are others."""
        known = [i for i in (self.current.inputs if self.current else ()) if i in self._values]
        return self.tensor(out).is_open or any(self._shape(i) != self.graph.tensors[i].shape for i in known)

    def const(self, index: int) -> np.ndarray | None:
        """Return the elements of a constant tensor as its value has them; None for one that is computed."""
        value = self._values.get(index)
        if value is not None and self.folded(value) in self.consts:
            return self.consts[self.folded(value)]
        tensor = self.tensor(index)
        if tensor.blocks is not None:
            return self.consts.get(self.folded(self.value(index)))
        if tensor.data is None and 0 in tensor.shape and value is None and tensor.kind in _KINDS:
            return np.zeros(tensor.shape, self.type(index).dtype.numpy)
        if tensor.data is None:
            return None
        if tensor.kind == "uint8" and self.type(index).quant is not None:
            return np.asarray((tensor.data.astype(np.int16) - _HALF).astype(np.int8))
        return tensor.data.astype(np.float32) if tensor.kind == "float16" else tensor.data

    def need(self, index: int, what: str) -> np.ndarray:
        """Return the elements of a tensor that must be constant."""
        found = self.const(index)
        if found is None:
            raise NodeError(f'{what} "{self.tensor(index).name}" is computed at run time; glowc needs a constant')
        return found

    def value(self, index: int) -> str:
        """Return the value of a tensor that is known by now: an input, a constant or a result."""
        if index in self._values:
            return self._values[index]
        tensor = self.tensor(index)
        if tensor.blocks is not None:
            self._values[index] = self._of_blocks(tensor, tensor.blocks)
            return self._values[index]
        array = self.const(index)
        if array is None:
            raise NodeError(f'"{tensor.name}" is read before it is computed')
        self._values[index] = self.add_const(tensor.name, array, self.type(index))
        return self._values[index]

    def _of_blocks(self, tensor: Tensor, blocks: Blocks) -> str:
        """Return the floats that constant codes with a scale for each block of the last axis stand for."""
        codes, bits = tensor.data, 4 if tensor.kind == "int4" else 8
        size, rank = blocks.size, len(tensor.shape)
        if codes is None or tensor.kind not in ("int4", "int8") or not rank or size < 1 or tensor.shape[-1] % size:
            text = f"{tensor.kind}{list(tensor.shape)} quantized by blocks of {size}"
            raise NodeError(f'"{tensor.name}" is {text}', "only int4 and int8 constants of whole blocks are read")
        shape, half = (*tensor.shape[:-1], tensor.shape[-1] // size), 1 << (bits - 1)
        scale = self.need(blocks.scales, "the scales").astype(np.float32)
        points = blocks.zero_points
        zero = self.need(points, "the zero points") if points >= 0 else np.zeros(1, np.int32)
        if scale.size != math.prod(shape) or zero.size not in (1, scale.size):
            raise NodeError(f'"{tensor.name}" has scales {list(scale.shape)} for blocks {list(shape)}')
        arrays = (codes.astype(np.int16) + half, np.broadcast_to(zero.reshape(-1) + half, (scale.size,)).reshape(shape))
        unsigned, zeros = (self.add_const(f"{tensor.name}.codes", a.astype(np.uint8)) for a in arrays)
        scales = self.add_const(f"{tensor.name}.scales", scale.reshape(shape))
        attrs: dict[str, AttrValue] = {"axis": rank - 1, "block_size": size, "bits": bits}
        return self.emit("DequantizeBlocks", (unsigned, scales, zeros), attrs)

    def define(self, index: int, value: str) -> None:
        """Let a tensor be a value that exists."""
        self._values[index] = value

    # values

    def kept(self) -> dict[str, str]:
        """Return what every variable is by now."""
        return {name: variable.now for name, variable in self.variables.items()}

    def fresh(self, base: str) -> str:
        """Return a value name not in use."""
        name, number = base, 1
        while name in self._taken:
            name, number = f"{base}.{number}", number + 1
        self._taken.add(name)
        return name

    def add_const(self, base: str, array: np.ndarray, type_: TensorType | None = None) -> str:
        """Add a constant; its type is the array's own unless given."""
        name = self.fresh(base)
        self.consts[name], self.types[name] = np.ascontiguousarray(array).reshape(array.shape), type_ or type_of(array)
        return name

    def add_input(self, name: str, index: int, shape: Sequence[int]) -> str:
        """Declare a tensor as an input of the model, of the file's shape or another; returns the input's name."""
        tensor, type_ = self.tensor(index), self.type(index).with_shape(shape)
        if 0 in type_.shape:
            raise NodeError(f'the input "{name}" is {type_}: it has no elements', _EMPTY)
        value = self.fresh(name)
        own = tensor.kind == "uint8" and type_.quant is not None
        self.types[value] = _unsigned(type_) if own else type_
        self._values[index] = self.emit("FlipSign", (value,), type_=type_) if own else value
        return value

    def result(self, out: str, index: int) -> str:
        """Return an output's value under a name that `fresh` gave: the one that it has in the file."""
        value, type_ = self.value(index), self.type(index)
        if 0 in type_.shape:
            raise NodeError(f'the output "{out}" is {type_}: it has no elements', _EMPTY)
        own = self.tensor(index).kind == "uint8" and type_.quant is not None
        self.types[out] = _unsigned(type_) if own else self.types[value]
        op = "FlipSign" if own else "Identity"
        self.nodes.append(Node(self._node_name(out), op, (value,), (out,), {}, (out,)))
        return out

    def emit(
        self,
        op: str,
        inputs: Sequence[str],
        attrs: Mapping[str, AttrValue] | None = None,
        *,
        out: int | None = None,
        like: int | None = None,
        type_: TensorType | None = None,
        base: str | None = None,
    ) -> str:
        """Append a node whose result is the tensor `out`, or a new value of `type_` or like a tensor; return the value.

        Without any the type is what the operator's rule says. OpError when the rule gives another shape or kind, but
        for the shapes of tensors that follow from the inputs.
        """
        of = out if out is not None else like
        name = self.fresh(self.tensor(out).name if out is not None else base or self._base(op))
        node = self._append(op, inputs, attrs, (name,), (self.type(of) if of is not None else type_,),
                            of is not None and self.is_open(of))  # fmt: skip
        self._makers[name] = node
        if out is not None:
            self._values[out] = name
        return name

    def emit_several(
        self, op: str, inputs: Sequence[str], attrs: Mapping[str, AttrValue], outs: Sequence[int], *, follows: bool
    ) -> None:
        """Append a node whose results are the tensors `outs`; errors as of `emit`.

        `follows`: all shapes are those of the operator's rule.
        """
        names = tuple(self.fresh(self.tensor(out).name) for out in outs)
        is_open = follows or any(self.is_open(out) for out in outs)
        self._append(op, inputs, attrs, names, tuple(self.type(out) for out in outs), is_open)
        self._values.update(zip(outs, names, strict=True))

    def emit_new(self, op: str, inputs: Sequence[str], attrs: Mapping[str, AttrValue], count: int) -> tuple[str, ...]:
        """Append a node with several results that are no tensors of the file; return their values."""
        names = tuple(self.fresh(self._base(op)) for _ in range(count))
        self._append(op, inputs, attrs, names, (None,) * count)
        return names

    def _append(
        self,
        op: str,
        inputs: Sequence[str],
        attrs: Mapping[str, AttrValue] | None,
        names: tuple[str, ...],
        types: Sequence[TensorType | None],
        is_open: bool = False,
    ) -> Node:
        """Append a node with these results; the types are those of the operator's rule where none is given."""
        origin = (self.tensor(self.current.outputs[0]).name,) if self.current and self.current.outputs else ()
        node = Node(self._node_name(names[0]), op, tuple(inputs), names, dict(attrs or {}), origin)
        ruled = _ruled(node, tuple(self.types[n] if n else None for n in inputs))
        for name, given, found in zip(names, types, ruled, strict=True):
            wanted = given.with_shape(found.shape) if given and is_open else given or found
            if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
                raise OpError(f"the file says {wanted}, but {op} of its inputs gives {found}")
            if wanted.size_bytes > LARGEST_TENSOR_BYTES:
                raise NodeError(f"the result {wanted} is too large")
            self.types[name] = replace(wanted, layout=found.layout)
        if any(0 in self.types[name].shape for name in (*node.inputs, *names) if name):
            self._without_elements(node)
        else:
            self.nodes.append(node)
        return node

    def _without_elements(self, node: Node) -> None:
        """Let the results of a node be constants: nothing is to be computed, or only of nothing."""
        if all(0 in self.types[name].shape for name in node.outputs):
            self.consts.update({n: np.zeros(self.types[n].shape, self.types[n].dtype.numpy) for n in node.outputs})
            return
        codes = any(self.types[name].quant is not None for name in node.outputs)
        if node.op not in _OF_NOTHING or codes or any(name not in self.consts for name in node.inputs):
            shown = ", ".join(str(self.types[name]) for name in (*node.inputs, *node.outputs))
            raise NodeError(f"a tensor without elements among {shown}", "leave out the part that is empty")
        for type_, name in ((self.types[name], name) for name in node.outputs):
            self.consts[name] = np.full(type_.shape, _OF_NOTHING[node.op], type_.dtype.numpy)

    def _base(self, op: str) -> str:
        first = self.tensor(self.current.outputs[0]).name if self.current and self.current.outputs else "node"
        return f"{first}.{op.lower()}"

    def _node_name(self, base: str) -> str:
        name, number = base, 1
        while name in self._node_names:
            name, number = f"{base}.{number}", number + 1
        self._node_names.add(name)
        return name

    def plain(self, index: int) -> str:
        """Return the codes of a tensor as whole numbers without a meaning; a tensor that is not quantised itself."""
        value, type_ = self.value(index), self.type(index)
        if type_.quant is None:
            return value
        return self.emit("AssignQuant", (value,), type_=replace(type_, quant=None))

    def maker(self, value: str) -> Node | None:
        """Return the node that computes a value; None for constants and inputs of the model."""
        return self._makers.get(value)

    def folded(self, value: str) -> str:
        """Return the constant that a value is when it is computed of constants alone; else the value itself."""
        if value in self.consts or value not in self._makers:
            return self._folded.get(value, value)
        if value not in self._folded:
            self._folded[value] = self._evaluated(self._makers[value], value)
        return self._folded[value]

    def _evaluated(self, node: Node, value: str) -> str:
        inputs = [self.folded(name) for name in node.inputs]
        if (
            node.op in WITH_STATE
            or any(name not in self.consts for name in inputs)
            or (self.types[value].size_bytes > LARGEST_FOLDED_BYTES and node.op not in _OF_WEIGHTS)
        ):
            return value
        types = tuple(self.types[name] for name in inputs)
        call = Call(node, tuple(self.consts[name] for name in inputs), types, (self.types[value],))
        try:
            found = get_op(node.op).reference(call)[0]
        except OpError:  # no kernel computes it
            return value
        return self.add_const(f"{value}.folded", found.astype(self.types[value].dtype.numpy), self.types[value])

    @contextmanager
    def inside(self, graph: Subgraph) -> Iterator[None]:
        """Let tensors be those of a subgraph for a while."""
        if self._depth >= MOST_LEVELS:
            raise NodeError(f"subgraphs call each other more than {MOST_LEVELS} levels deep")
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise NodeError(f"branches and turns of loops are more than {MOST_CALLS}")
        kept = self.graph, self._values, self.current
        self.graph, self._values = graph, {}
        self._depth += 1
        try:
            yield
        finally:
            self.graph, self._values, self.current = kept
            self._depth -= 1

    def reshaped(self, value: str, shape: Sequence[int]) -> str:
        """Return a value in another shape; itself when it has it."""
        type_ = self.types[value]
        if type_.shape == tuple(shape):
            return value
        return self.emit("Reshape", (value,), {"shape": tuple(shape)}, type_=type_.with_shape(shape))

    def finish(self, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> Graph:
        """Return the graph of what the outputs need."""
        states = self._states()
        wanted, kept = {*outputs, *(state.next for state in states)}, []
        for node in reversed(self.nodes):
            if wanted & set(node.outputs):
                wanted.update(node.inputs)
                kept.append(node)
        used = wanted | set(inputs) | {state.value for state in states}
        return Graph(
            name, tuple(inputs), tuple(outputs), tuple(reversed(kept)),
            {value: type_ for value, type_ in self.types.items() if value in used},
            {value: array for value, array in self.consts.items() if value in used}, states,
        )  # fmt: skip

    def _states(self) -> tuple[State, ...]:
        """Return the variables that were read and assigned."""
        found = []
        for variable in self.variables.values():
            if variable.value and variable.now != variable.value:
                assert variable.initial is not None
                self.current = None
                after = self.emit(
                    "Identity", (variable.now,), type_=self.types[variable.value], base=f"{variable.value}.next"
                )
                found.append(State(variable.value, after, variable.initial))
            elif variable.value and variable.initial is not None:  # never assigned
                self.consts[variable.value] = variable.initial
        return tuple(found)


def _ruled(node: Node, in_types: MaybeTypes) -> Types:
    """Return the types that the operator's rule gives; NodeError where a rule cannot read the tensors of the file."""
    try:
        return get_op(node.op).infer(node, in_types)[: len(node.outputs)]
    except InternalError as error:
        raise NodeError(f"{node.op} cannot be made of {', '.join(map(str, in_types))}") from error


def _unsigned(type_: TensorType) -> TensorType:
    assert type_.quant is not None
    points = tuple(z + _HALF for z in type_.quant.zero_point)
    return replace(type_, dtype=DType.U8, quant=replace(type_.quant, zero_point=points))


def _params(quant: Quantization | None, shape: tuple[int, ...]) -> QuantParams | None:
    """Return the quantisation with scales as float32; per axis only where there are several."""
    if quant is None:
        return None
    scale = tuple(float(np.float32(s)) for s in quant.scale)
    if len(scale) == 1:
        return QuantParams(scale, quant.zero_point)
    return QuantParams(scale, quant.zero_point, quant.axis)
