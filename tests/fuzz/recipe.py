"""A random quantised network as plain data: what is drawn, stored as JSON, shrunk and built into ONNX."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

KINDS = {"s8": "int8", "u8": "uint8", "s16": "int16", "s32": "int32"}


@dataclass(frozen=True)
class Value:
    """A quantised tensor: static shape, element kind, and real = scale * (q - zero_point)."""

    shape: tuple[int, ...]
    dtype: str
    scale: float
    zero_point: int


@dataclass(frozen=True)
class Const:
    """Quantised numbers of a layer, made from a seed: weights, a bias or an operand.

    `scale` has one entry, or one per index of `axis`. `fill` is random, extreme (only the ends of the range), sparse
    (mostly zero points), large (random with the ends beside each other) or a small random range.
    """

    value: Value
    seed: int
    fill: str = "random"
    scales: tuple[float, ...] = ()
    axis: int | None = None


@dataclass(frozen=True)
class Layer:
    """One operator between codes; `inputs` count the network's inputs, then the outputs of the layers before.

    `form` is qdq (DequantizeLinear, operator, QuantizeLinear) or qop (the QLinear operator). `act` follows the operator
    in float: Relu, or Clip between two bounds. `unused` outputs are written and never read.
    """

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[Value, ...]
    form: str = "qdq"
    attrs: dict[str, Any] = field(default_factory=dict)
    consts: tuple[Const, ...] = ()
    act: tuple[float, ...] | None = None
    unused: tuple[int, ...] = ()


@dataclass(frozen=True)
class Exposed:
    """A tensor that is an output of the network besides being what it is: an input, a value between, a result.

    `form` is name (the tensor itself), identity (a copy of it), reshape (a view of it) or constant (an initializer of
    its shape, whatever it holds). `first`: it comes before the other outputs.
    """

    number: int
    form: str
    first: bool = False


@dataclass(frozen=True)
class Recipe:
    """A network. `float_inputs` enter through a QuantizeLinear; DequantizeLinear nodes are shared or one per reader."""

    inputs: tuple[Value, ...]
    layers: tuple[Layer, ...]
    float_inputs: bool = False
    shared_dequantize: bool = True
    seed: int = 0
    exposed: tuple[Exposed, ...] = ()

    @property
    def values(self) -> tuple[Value, ...]:
        """All tensors by their number."""
        return (*self.inputs, *(v for layer in self.layers for v in layer.outputs))

    @property
    def outputs(self) -> tuple[int, ...]:
        """The tensors that no layer reads, but for those meant to be unused."""
        read = {i for layer in self.layers for i in layer.inputs}
        number, skipped = len(self.inputs), set()
        for layer in self.layers:
            skipped |= {number + i for i in layer.unused}
            number += len(layer.outputs)
        found = tuple(i for i in range(len(self.inputs), number) if i not in read | skipped)
        return found or (number - 1,)


def to_json(recipe: Recipe) -> str:
    """Return the recipe as text that `from_json` reads."""
    return json.dumps(asdict(recipe), indent=1)


def from_json(text: str) -> Recipe:
    """Read a recipe. Raises KeyError or TypeError for a text that is none."""
    data = json.loads(text)
    return Recipe(
        tuple(map(_value, data["inputs"])), tuple(map(_layer, data["layers"])), data["float_inputs"],
        data["shared_dequantize"], data["seed"], tuple(Exposed(**e) for e in data.get("exposed", ())),
    )  # fmt: skip


def _value(data: dict[str, Any]) -> Value:
    return Value(tuple(data["shape"]), data["dtype"], data["scale"], data["zero_point"])


def _const(data: dict[str, Any]) -> Const:
    return Const(_value(data["value"]), data["seed"], data["fill"], tuple(data["scales"]), data["axis"])


def _layer(data: dict[str, Any]) -> Layer:
    act = tuple(data["act"]) if data["act"] is not None else None
    return Layer(
        data["op"], tuple(data["inputs"]), tuple(map(_value, data["outputs"])), data["form"], data["attrs"],
        tuple(map(_const, data["consts"])), act, tuple(data["unused"]),
    )  # fmt: skip
