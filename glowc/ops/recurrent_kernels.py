"""The kernels lstm, gru and rnn: all time steps of all directions of one layer, in a loop, never unrolled.

`h` (and `c`) hold the state: initial before, final after the call, so that a layer whose state is kept between
inferences needs nothing else. Weights lie as in ONNX, the biases of input and recurrence added up unless `raw_bias`
(biases that are known only at run time). `lens`, `peephole` and `y` are read or written only when `has_lens`,
`has_peephole` and `has_y` say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import DType
from glowc.ops.recurrent_cell import Cell, Step, Weights, float_steps, fold_bias, parse_chosen, run
from glowc.ops.recurrent_spec import GATES, Shape
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import P, Params, Printed


@dataclass(frozen=True, slots=True)
class Strides(Params):
    """Distances in elements between steps, samples and directions of input, output and state."""

    in_time: int
    in_batch: int
    y_time: int
    y_dir: int
    y_batch: int
    h_dir: int
    h_batch: int


@dataclass(frozen=True, slots=True)
class Layer(Params):
    """What all layers have: sizes, the activations of all directions as words, and which operands count.

    `clears`: a sequence of no steps ends with the state 0.
    """

    seq: int
    batch: int
    in_k: int
    hidden: int
    dirs: int
    reverse: int
    strides: Strides
    clip: float
    functions: str
    has_clip: Printed
    raw_bias: Printed
    has_lens: Printed
    has_y: Printed
    clears: Printed


@dataclass(frozen=True, slots=True)
class RnnParams(Params):
    """Of rnn_f32 and rnn_f64: the printed C expression over x that its formula calls f."""

    layer: Layer
    f: str


@dataclass(frozen=True, slots=True)
class GruParams(Params):
    """Of gru_f32 and gru_f64: the printed expressions f and g."""

    layer: Layer
    f: str
    g: str
    linear_before_reset: Printed


@dataclass(frozen=True, slots=True)
class LstmParams(Params):
    """Of lstm_f32, lstm_f64 and lstm_dynamic: the printed expressions f, g and h, the last one called out."""

    layer: Layer
    cell_clip: float
    f: str
    g: str
    out: str
    has_peephole: Printed
    coupled: Printed
    has_cell_clip: Printed

    @property
    def cell(self) -> Cell:
        """What the parameters describe."""
        bound = self.cell_clip if self.has_cell_clip else None
        return replace(cell_from("lstm", self.layer, coupled=self.coupled), cell_clip=bound)


def cell_params(
    cell: Cell,
    shape: Shape,
    dtype: DType,
    *,
    has_lens: bool,
    has_y: bool,
    clears: bool,
    has_peephole: bool = False,
    raw_bias: bool = False,
) -> RnnParams | GruParams | LstmParams:
    """Return all parameters of a kernel call."""
    s = shape
    layer = Layer(
        s.seq, s.batch, s.in_k, s.hidden, s.dirs, int(cell.reverse), _strides(shape), cell.clip or 0.0,
        functions=" ".join("+".join(f.text for f in chosen) for chosen in cell.functions),
        has_clip=int(cell.clip is not None), raw_bias=int(raw_bias), has_lens=int(has_lens), has_y=int(has_y),
        clears=int(clears and has_lens),
    )  # fmt: skip
    f, g, out = (*_expressions(cell, dtype), "", "")[:3]
    if cell.kind == "lstm":
        return LstmParams(
            layer, cell.cell_clip or 0.0, f, g, out, int(has_peephole), int(cell.coupled),
            int(cell.cell_clip is not None),
        )  # fmt: skip
    return GruParams(layer, f, g, int(cell.linear_before_reset)) if cell.kind == "gru" else RnnParams(layer, f)


def _strides(s: Shape) -> Strides:
    if s.batch_first:
        return Strides(
            in_time=s.in_k, in_batch=s.seq * s.in_k, y_time=s.dirs * s.hidden, y_dir=s.hidden,
            y_batch=s.seq * s.dirs * s.hidden, h_dir=s.hidden, h_batch=s.dirs * s.hidden,
        )  # fmt: skip
    return Strides(
        in_time=s.batch * s.in_k, in_batch=s.in_k, y_time=s.dirs * s.batch * s.hidden,
        y_dir=s.batch * s.hidden, y_batch=s.hidden, h_dir=s.batch * s.hidden, h_batch=s.hidden,
    )  # fmt: skip


def _expressions(cell: Cell, dtype: DType) -> list[str]:
    """Return the C expression over x of each activation; directions that differ are told apart by d."""
    result = []
    for i in range(len(cell.functions[0])):
        texts = [chosen[i].c(dtype) for chosen in cell.functions]
        result.append(texts[0] if len(set(texts)) == 1 else f"d == 0 ? ({texts[0]}) : ({texts[1]})")
    return result


def scratch_elements(cell: Cell, hidden: int) -> int:
    """Return how many numbers the kernel keeps besides the state: the next h; plain GRU also r * h."""
    return 2 * hidden if cell.kind == "gru" and not cell.linear_before_reset else hidden


def cell_from(kind: str, p: Layer, *, coupled: int = 0, linear_before_reset: int = 0) -> Cell:
    """Return the cell that the parameters describe."""
    functions = tuple(tuple(map(parse_chosen, part.split("+"))) for part in p.functions.split(" "))
    return Cell(
        kind, functions, p.clip if p.has_clip else None, coupled=bool(coupled),
        linear_before_reset=bool(linear_before_reset), reverse=bool(p.reverse),
    )  # fmt: skip


def view(flat: np.ndarray, dims: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """Return the writable strided view of a flat array; strides count elements."""
    steps = [s * flat.itemsize for s in strides]
    return np.lib.stride_tricks.as_strided(flat.reshape(-1), tuple(dims), steps)


def input_view(a: Arrays, p: Layer) -> np.ndarray:
    """Return the input as [T, B, I]."""
    return view(a["in"], (p.seq, p.batch, p.in_k), (p.strides.in_time, p.strides.in_batch, 1))


def interpret_layer(cell: Cell, a: Arrays, p: Layer, functions: Sequence[Step], x: np.ndarray) -> None:
    """Run the layer on x[T, B, I] and the flat operands, one function per direction."""
    s, states = p.strides, (p.dirs, p.batch, p.hidden)
    y = None
    if p.has_y:
        y = view(a["y"], (p.seq, p.dirs, p.batch, p.hidden), (s.y_time, s.y_dir, s.y_batch, 1))
    run(
        cell, x, functions, view(a["h"], states, (s.h_dir, s.h_batch, 1)),
        view(a["c"], states, (s.h_dir, s.h_batch, 1)) if cell.kind == "lstm" else None,
        y=y, lens=a["lens"] if p.has_lens else None, clears=bool(p.clears),
    )  # fmt: skip


def _interpret_rnn(a: Arrays, p: RnnParams) -> None:
    _interpret(a, p.layer, cell_from("rnn", p.layer), None)


def _interpret_gru(a: Arrays, p: GruParams) -> None:
    _interpret(a, p.layer, cell_from("gru", p.layer, linear_before_reset=p.linear_before_reset), None)


def _interpret_lstm(a: Arrays, p: LstmParams) -> None:
    peephole = a["peephole"].reshape(p.layer.dirs, -1) if p.has_peephole else None
    _interpret(a, p.layer, p.cell, peephole)


def _interpret(a: Arrays, p: Layer, cell: Cell, peephole: np.ndarray | None) -> None:
    rows = GATES[cell.kind] * p.hidden
    w, r = a["w"].reshape(p.dirs, rows, p.in_k), a["r"].reshape(p.dirs, rows, p.hidden)
    bias = a["bias"].reshape(p.dirs, -1)
    bias = fold_bias(cell.kind, bias, cell.linear_before_reset) if p.raw_bias else bias
    weights = [Weights(w[d], r[d], bias[d], None if peephole is None else peephole[d]) for d in range(p.dirs)]
    interpret_layer(cell, a, p, float_steps(cell, weights), input_view(a, p))


def operands(kind: str, weights: tuple[str, ...] = ("in w", "in r")) -> tuple[str, ...]:
    """Return the operands of a kernel in argument order."""
    first = ("in in", *weights, "in bias", "in lens:s32")
    extra = ("in peephole",) if kind == "lstm" else ()
    cell_state = ("inout c",) if kind == "lstm" else ()
    return (*first, *extra, "inout h", *cell_state, "out y", "out scratch:*")


def _kernels(kind: str, takes: type[P], interpret: Callable[[Arrays, P], None]) -> tuple[KernelDef[P], ...]:
    return tuple(
        KernelDef(
            f"{kind}_{dtype.value}", operands(kind), takes, interpret, template=f"{kind}_f32", needs_math=True,
            kind=dtype.value, doc=f"{kind.upper()} layer over time",
        )
        for dtype in (DType.F32, DType.F64)
    )  # fmt: skip


KERNELS = (
    *_kernels("lstm", LstmParams, _interpret_lstm),
    *_kernels("gru", GruParams, _interpret_gru),
    *_kernels("rnn", RnnParams, _interpret_rnn),
)
