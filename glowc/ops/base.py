"""What an operator is to the compiler: `OpDef`, and what its functions are given.

An operator file in this folder defines `OP` (or `OPS`) and, when it brings kernels, `KERNELS`. The folder is
listed in sorted order by `registry`; nothing else has to be edited. It finds all that it needs here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from glowc.board import Cpu
from glowc.graph.attrs import Attr, AttrValue, Float, Str
from glowc.graph.graph import Node
from glowc.graph.types import QuantParams, TensorType
from glowc.program.kernel import Arrays as Arrays
from glowc.program.kernel import KernelDef as KernelDef
from glowc.program.params import NO_PARAMS
from glowc.program.params import Params as Params
from glowc.program.params import Printed as Printed

Types = tuple[TensorType, ...]
MaybeTypes = tuple[TensorType | None, ...]


class OpError(ValueError):
    """A node does not fit its operator's type rule; the text says what was seen."""


@dataclass(frozen=True, slots=True)
class Call:
    """One evaluation of an operator by the numpy interpreter: arrays, and the types that give them meaning."""

    node: Node
    inputs: tuple[np.ndarray | None, ...]
    in_types: MaybeTypes
    out_types: Types

    @property
    def attrs(self) -> Mapping[str, AttrValue]:
        """The node's attributes."""
        return self.node.attrs

    def array(self, index: int) -> np.ndarray:
        """Return input `index`, which must be present."""
        value = self.inputs[index]
        assert value is not None
        return value

    def optional(self, index: int) -> np.ndarray | None:
        """Return input `index`, or None when the node leaves it out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def quant(self, index: int) -> QuantParams | None:
        """Quantisation of input `index`, None for a float one."""
        type_ = self.in_types[index]
        return type_.quant if type_ is not None else None

    @property
    def out_quant(self) -> QuantParams | None:
        """Quantisation of the first output."""
        return self.out_types[0].quant


@dataclass(frozen=True, slots=True)
class Ref:
    """What a lowering passes to `emit`: a buffer or constant, and the tensor type seen there."""

    buffer: str
    type: TensorType


class LowerCtx(Protocol):
    """What a lowering may ask and do; `glowc.lower` implements it."""

    @property
    def cpu(self) -> Cpu:
        """The CPU compiled for."""
        ...

    def type(self, value: str) -> TensorType:
        """Type of a graph value."""
        ...

    def const_value(self, value: str) -> np.ndarray | None:
        """The array of a graph constant, None when the value is computed at run time."""
        ...

    def is_used(self, value: str) -> bool:
        """True when a node reads the graph value or it is an output of the model."""
        ...

    def read(self, value: str) -> Ref:
        """Operand that reads a graph value (a constant is added to the weights)."""
        ...

    def write(self, value: str) -> Ref:
        """Operand that writes a graph value."""
        ...

    def const(self, array: np.ndarray, name: str) -> Ref:
        """Add a constant; equal constants are stored once."""
        ...

    def temp(self, type_: TensorType, name: str) -> Ref:
        """Add an intermediate tensor that is no graph value."""
        ...

    def state(self, name: str, type_: TensorType, initial: np.ndarray) -> Ref:
        """Add a tensor that keeps its value between inferences; `initial` is what a reset writes."""
        ...

    def kept(self, value: str, initial: np.ndarray) -> Ref:
        """Let a graph value keep its bytes between inferences; another buffer when it is an output of the model."""
        ...

    def emit(
        self,
        kernel: str,
        operands: Mapping[str, Ref],
        params: Params = NO_PARAMS,
        *,
        rows: tuple[int, int] | None = None,
        macs: int = 0,
    ) -> None:
        """Append one instruction for the node being lowered; the variant is chosen here."""
        ...


@dataclass(frozen=True, slots=True)
class OpDef:
    """An operator of the graph IR.

    `infer(node, in_types)` returns the output types (shape and dtype are binding; quantisation is the
    graph's) and raises OpError; `lower(node, ctx)` emits instructions; `reference(call)` evaluates it in numpy,
    nearly always `glowc.ops.derived.derived`, which runs what `lower` emits. `attrs` are the attributes that the
    operator knows, those that passes put on it included, with kind and default: `{"alpha": Float(0.01)}`. Another
    one is an error at import and after every pass. `max_version` is the newest ONNX opset version whose
    definition is known (its since_version). `int8` says that QDQ around it folds to integers.
    """

    name: str
    infer: Callable[[Node, MaybeTypes], Types]
    reference: Callable[[Call], tuple[np.ndarray, ...]]
    lower: Callable[[Node, LowerCtx], None]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    domain: str = ""
    max_version: int = 0
    int8: bool = False
    doc: str = ""
    required: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse a mere set of names; note the attributes that every node must have."""
        if not isinstance(self.attrs, Mapping):
            raise TypeError(f"operator {self.name}: attrs needs kinds and defaults, {{'alpha': Float(0.01)}}")
        object.__setattr__(self, "required", frozenset(key for key, attr in self.attrs.items() if attr.required))


CLAMP: Mapping[str, Attr] = {"act_min": Float(-math.inf), "act_max": Float(math.inf)}
"""Attributes of an operator that can clamp its result."""
LAYOUT = Str("nchw", words=("nchw", "nhwc"))


def clamp_of(node: Node) -> tuple[float, float]:
    """Return the bounds that a node clamps its result to."""
    return node.float_("act_min"), node.float_("act_max")
