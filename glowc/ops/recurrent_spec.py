"""What an ONNX LSTM, GRU or RNN node says: attributes as a `Cell`, sizes as a `Shape`; OpError when they clash."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from glowc.graph.graph import Node
from glowc.graph.types import DType, TensorType
from glowc.ops.base import MaybeTypes, OpError
from glowc.ops.recurrent_cell import ACTIVATIONS, Activation, Cell, Chosen

GATES: Mapping[str, int] = {"lstm": 4, "gru": 3, "rnn": 1}
DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "lstm": ("Sigmoid", "Tanh", "Tanh"), "gru": ("Sigmoid", "Tanh"), "rnn": ("Tanh",),
}  # fmt: skip
DYNAMIC = "DynamicQuantizeLSTM"
DIRECTIONS = ("forward", "reverse", "bidirectional")
X, W, R, B, LENS, H0, C0, P = range(8)
"""Inputs of the ONNX operators."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of one layer; `batch_first` is ONNX's layout 1."""

    seq: int
    batch: int
    in_k: int
    hidden: int
    dirs: int
    batch_first: bool

    @property
    def y(self) -> tuple[int, ...]:
        """Shape of the output of all steps."""
        first = (self.batch, self.seq, self.dirs) if self.batch_first else (self.seq, self.dirs, self.batch)
        return (*first, self.hidden)

    @property
    def state(self) -> tuple[int, ...]:
        """Shape of the hidden and cell state."""
        first = (self.batch, self.dirs) if self.batch_first else (self.dirs, self.batch)
        return (*first, self.hidden)


def kind_of(node: Node) -> str:
    """Return lstm, gru or rnn."""
    return "lstm" if node.op.endswith("LSTM") else node.op.lower()


def shape_of(node: Node, in_types: MaybeTypes) -> Shape:
    """Return the sizes, having checked every input against them."""
    kind = kind_of(node)
    x, r = _needed(in_types, X, "X"), _needed(in_types, R, "R")
    if x.rank != 3 or r.rank != 3:
        raise OpError(f"input {x} and recurrence weights {r}: need rank 3")
    if not x.dtype.is_float:
        raise OpError(f"{node.op} of {x}: needs floats")
    batch_first = node.int_("batch_first") == 1
    batch, seq = x.shape[:2] if batch_first else x.shape[1::-1]
    dynamic = node.op == DYNAMIC
    hidden = node.int_("hidden_size") if "hidden_size" in node.attrs else r.shape[1 if dynamic else 2]
    shape = Shape(seq, batch, x.shape[2], hidden, len(_directions(node)), batch_first)
    gates = GATES[kind] * hidden
    for index, name, columns in ((W, "W", shape.in_k), (R, "R", hidden)):
        wanted = (shape.dirs, columns, gates) if dynamic else (shape.dirs, gates, columns)
        _check(in_types, index, name, wanted, _needed(in_types, index, name).dtype if dynamic else x.dtype)
    _check(in_types, B, "B", (shape.dirs, 2 * gates), x.dtype)
    _check(in_types, LENS, "sequence_lens", (batch,), DType.S32)
    _check(in_types, H0, "initial_h", shape.state, x.dtype)
    if kind == "lstm":
        _check(in_types, C0, "initial_c", shape.state, x.dtype)
        _check(in_types, P, "P", (shape.dirs, 3 * hidden), x.dtype)
    return shape


def _directions(node: Node) -> range:
    direction = node.str_("direction")
    if direction not in DIRECTIONS:
        raise OpError(f"direction {direction!r}: needs one of {', '.join(DIRECTIONS)}")
    return range(2 if direction == "bidirectional" else 1)


def _needed(in_types: MaybeTypes, index: int, name: str) -> TensorType:
    type_ = in_types[index] if index < len(in_types) else None
    if type_ is None:
        raise OpError(f"input {name} is missing")
    return type_


def _check(in_types: MaybeTypes, index: int, name: str, shape: tuple[int, ...], dtype: DType) -> None:
    type_ = _needed(in_types, index, name) if index in (W, R) else in_types[index] if index < len(in_types) else None
    if type_ is not None and (type_.shape != shape or type_.dtype is not dtype):
        raise OpError(f"{name} is {type_}, needs {TensorType(shape, dtype)}")


def cell_of(node: Node) -> Cell:
    """Return the cell: activations per direction, clips and the switches."""
    kind, directions = kind_of(node), _directions(node)
    clip = node.float_("clip")
    cell_clip = node.float_("cell_clip") if "cell_clip" in node.attrs else math.inf
    if not min(clip, cell_clip) > 0:
        raise OpError(f"clip {min(clip, cell_clip)}: needs a positive number")
    return Cell(
        kind, _functions(node, kind, len(directions)), clip if clip < math.inf else None,
        cell_clip=cell_clip if cell_clip < math.inf else None,
        coupled=kind == "lstm" and node.int_("input_forget") != 0,
        linear_before_reset=kind == "gru" and node.int_("linear_before_reset") != 0,
        reverse=node.str_("direction") == "reverse",
    )  # fmt: skip


def _functions(node: Node, kind: str, dirs: int) -> tuple[tuple[Chosen, ...], ...]:
    """Alpha and beta are consumed, in order, by those activations that have them."""
    per_dir = len(DEFAULTS[kind])
    names = list(node.strs("activations")) or [*DEFAULTS[kind]] * dirs
    if kind == "rnn":
        names = names[:dirs]  # exporters write ONNX's default, which has two whatever the direction
    if len(names) != per_dir * dirs:
        raise OpError(f"{len(names)} activations {names}: needs {per_dir} for each of {dirs} directions")
    alphas, betas = list(node.floats("activation_alpha")), list(node.floats("activation_beta"))
    chosen = []
    for name in names:
        entry = ACTIVATIONS.get(name.lower())
        if entry is None:
            raise OpError(f"activation {name!r}: needs one of {', '.join(ACTIVATIONS)}")
        chosen.append(_choose(name, entry, alphas, betas))
    used = [ACTIVATIONS[c.name] for c in chosen]
    if (alphas and any(a.alpha for a in used)) or (betas and any(a.beta for a in used)):
        raise OpError(f"more values in activation_alpha or activation_beta than activations {names} take")
    return tuple(tuple(chosen[d * per_dir : (d + 1) * per_dir]) for d in range(dirs))


def _choose(name: str, entry: Activation, alphas: list[float], betas: list[float]) -> Chosen:
    values = []
    for key, defaults, given in (("alpha", entry.alpha, alphas), ("beta", entry.beta, betas)):
        value: float | None = 0.0
        if defaults:
            value = given.pop(0) if given else defaults[0]
        if value is None:
            raise OpError(f"activation {name} without activation_{key}: ONNX and onnxruntime read it differently")
        if not math.isfinite(value):
            raise OpError(f"activation_{key} {value} of {name}")
        values.append(value)
    return Chosen(name.lower(), *values)
