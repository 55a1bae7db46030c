"""The numpy meaning of an operator that writes none: its own lowering, each instruction run where it is emitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from glowc.errors import InternalError
from glowc.graph.types import TensorType, type_of
from glowc.ops.base import Call, MaybeTypes, OpError, Ref
from glowc.program.kernel import find_kernel
from glowc.program.params import NO_PARAMS, Params

if TYPE_CHECKING:
    from glowc.board import Cpu


_IMAGES = ("AveragePool", "Conv", "MaxPool")
"""Operators whose kernels have images with interleaved channels, while models have planes."""
_VOLUME = 5


def derived(call: Call) -> tuple[np.ndarray, ...]:
    """Return what the operator's lowering computes; states begin as a reset leaves them. OpError as `lower` has it.

    An output that the node leaves out has no elements.
    """
    from glowc.ops.registry import get_op  # which needs all operators

    node = call.node
    image = call.array(0).ndim < _VOLUME and not any(node.outputs[1:])
    if image and node.op in _IMAGES and not node.is_nhwc:
        return tuple(np.moveaxis(y, -1, 1) for y in derived(_interleaved(call)))
    run = Run(call)
    get_op(node.op).lower(node, run)
    return tuple(run.array(run.read(name)) if name else np.zeros(0) for name in node.outputs)


def _interleaved(call: Call) -> Call:
    """Return the call with channels last, those of weights, too; a Conv with a bias."""
    inputs = tuple(x if x is None or x.ndim < 3 else np.moveaxis(x, 1, -1) for x in call.inputs)
    node = replace(call.node, attrs={**call.node.attrs, "layout": "nhwc"})
    types = _moved(call.in_types)
    if node.op == "Conv" and call.optional(2) is None:
        is_float = call.array(0).dtype.kind == "f"
        bias = np.zeros(call.array(1).shape[0], call.array(0).dtype if is_float else np.int32)
        inputs, types = (*inputs[:2], bias), (*types[:2], type_of(bias))
        node = replace(node, inputs=(*node.inputs[:2], f"{node.name}_bias"))
    return Call(node, inputs, types, tuple(t for t in _moved(call.out_types) if t is not None))


def _moved(types: MaybeTypes) -> MaybeTypes:
    return tuple(t if t is None or t.rank < 3 else t.with_shape((t.shape[0], *t.shape[2:], t.shape[1])) for t in types)


@dataclass(slots=True)
class Run:
    """A lowering that runs what is emitted (`glowc.ops.base.LowerCtx`): every input is known."""

    call: Call
    types: dict[str, TensorType] = field(init=False)
    memory: dict[str, np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        """Hold the inputs, and room for the outputs."""
        node = self.call.node
        given = zip(node.inputs, self.call.inputs, strict=False)
        self.memory = {name: np.ascontiguousarray(array) for name, array in given if name and array is not None}
        pairs = zip(node.inputs, self.call.in_types, strict=False)
        self.types = {name: type_ for name, type_ in pairs if name and type_ is not None}
        self.types |= zip((name for name in node.outputs if name), self.call.out_types, strict=True)

    def array(self, ref: Ref) -> np.ndarray:
        """Return what an operand sees."""
        type_ = ref.type
        if ref.buffer not in self.memory:
            self.memory[ref.buffer] = np.zeros(type_.shape, type_.dtype.numpy)
        return self.memory[ref.buffer].reshape(-1).view(type_.dtype.numpy).reshape(type_.shape)

    @property
    def cpu(self) -> Cpu:
        """No lowering asks: what an operator means is the same on every CPU."""
        raise InternalError(
            f"{self.call.node.label}: its lowering asks for the CPU, and its meaning is derived from it"
        )

    def type(self, value: str) -> TensorType:
        """Type of a graph value."""
        return self.types[value]

    def const_value(self, value: str) -> np.ndarray | None:
        """The array of an input."""
        return self.memory.get(value)

    def is_used(self, value: str) -> bool:
        """Compute every output that has a name."""
        return bool(value)

    def read(self, value: str) -> Ref:
        """Operand that reads a graph value."""
        return Ref(value, self.types[value])

    write = read

    def const(self, array: np.ndarray, name: str) -> Ref:
        """Hold a constant."""
        return self.state(name, type_of(array), array)

    def temp(self, type_: TensorType, name: str) -> Ref:
        """Make room for an intermediate tensor."""
        return self.state(name, type_, np.zeros(type_.shape, type_.dtype.numpy))

    def state(self, name: str, type_: TensorType, initial: np.ndarray) -> Ref:
        """Make a tensor of a name of its own."""
        ref = Ref(f"{name}.{len(self.memory)}", type_)
        self.memory[ref.buffer] = np.array(initial, type_.dtype.numpy, order="C")
        return ref

    def kept(self, value: str, initial: np.ndarray) -> Ref:
        """Let a graph value begin as a reset leaves it."""
        self.memory[value] = np.array(initial, order="C")
        return self.read(value)

    def emit(
        self, kernel: str, operands: Mapping[str, Ref], params: Params = NO_PARAMS, *,
        rows: tuple[int, int] | None = None, macs: int = 0,
    ) -> None:  # fmt: skip
        """Run an instruction; what it may overwrite is copied first."""
        definition = find_kernel(kernel)
        if definition is None:
            raise OpError("no form of " + ", ".join(str(t) for t in self.call.in_types if t is not None))
        arrays = {role: self.array(ref) for role, ref in operands.items()}
        arrays |= {role: arrays[role].copy() for role in definition.in_place}
        definition.run_typed(arrays, params, rows)
