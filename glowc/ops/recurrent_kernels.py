"""The kernels lstm, gru and rnn: all time steps of all directions of one layer, in a loop, never unrolled.

`h` (and `c`) hold the state: initial before, final after the call, so that a layer whose state is kept between
inferences needs nothing else. Weights lie as in ONNX, the biases of input and recurrence added up unless `raw_bias`
(biases that are known only at run time). `lens`, `peephole` and `y` are read or written only when `has_lens`,
`has_peephole` and `has_y` say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from glowc.graph.types import DType
from glowc.ops.recurrent_cell import Cell, Step, Weights, float_steps, fold_bias, parse_chosen, run
from glowc.ops.recurrent_spec import GATES, Shape
from glowc.program.ir import ParamValue
from glowc.program.kernel import Arrays, KernelDef

# Printed C expressions, by what the cell's formula calls them.
EXPRESSIONS: Mapping[str, tuple[str, ...]] = {"lstm": ("f", "g", "out"), "gru": ("f", "g"), "rnn": ("f",)}
_SIZES = ("seq", "batch", "in_k", "hidden", "dirs")
_STRIDES = ("in_time", "in_batch", "y_time", "y_dir", "y_batch", "h_dir", "h_batch")
PARAMS = (*_SIZES, "reverse", *_STRIDES)
_FLAGS = ("functions", "has_clip", "raw_bias", "has_lens", "has_y", "clears")
FLAGS: Mapping[str, tuple[str, ...]] = {
    "lstm": (*_FLAGS, *EXPRESSIONS["lstm"], "has_peephole", "coupled"),
    "gru": (*_FLAGS, *EXPRESSIONS["gru"], "linear_before_reset"),
    "rnn": (*_FLAGS, *EXPRESSIONS["rnn"]),
}
"""What the templates print with. `clears`: a sequence of no steps ends with the state 0."""


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
) -> dict[str, ParamValue]:
    """Return all parameters of a kernel call."""
    s = shape
    flags: dict[str, ParamValue] = {
        "functions": " ".join("+".join(f.text for f in chosen) for chosen in cell.functions),
        "has_clip": int(cell.clip is not None), "raw_bias": int(raw_bias), "has_lens": int(has_lens),
        "has_y": int(has_y),
        "clears": int(clears and has_lens), "has_peephole": int(has_peephole), "coupled": int(cell.coupled),
        "linear_before_reset": int(cell.linear_before_reset), **_expressions(cell, dtype),
    }  # fmt: skip
    return {
        "seq": s.seq, "batch": s.batch, "in_k": s.in_k, "hidden": s.hidden, "dirs": s.dirs,
        "reverse": int(cell.reverse), "clip": cell.clip or 0.0, **_strides(shape),
        **{key: flags[key] for key in FLAGS[cell.kind]},
    }  # fmt: skip


def _strides(s: Shape) -> dict[str, ParamValue]:
    if s.batch_first:
        return {
            "in_time": s.in_k, "in_batch": s.seq * s.in_k, "y_time": s.dirs * s.hidden, "y_dir": s.hidden,
            "y_batch": s.seq * s.dirs * s.hidden, "h_dir": s.hidden, "h_batch": s.dirs * s.hidden,
        }  # fmt: skip
    return {
        "in_time": s.batch * s.in_k, "in_batch": s.in_k, "y_time": s.dirs * s.batch * s.hidden,
        "y_dir": s.batch * s.hidden, "y_batch": s.hidden, "h_dir": s.batch * s.hidden, "h_batch": s.hidden,
    }  # fmt: skip


def _expressions(cell: Cell, dtype: DType) -> dict[str, ParamValue]:
    """Return the C expression over x of each activation; directions that differ are told apart by d."""
    result: dict[str, ParamValue] = {}
    for i, key in enumerate(EXPRESSIONS[cell.kind]):
        texts = [chosen[i].c(dtype) for chosen in cell.functions]
        result[key] = texts[0] if len(set(texts)) == 1 else f"d == 0 ? ({texts[0]}) : ({texts[1]})"
    return result


def scratch_elements(cell: Cell, hidden: int) -> int:
    """Return how many numbers the kernel keeps besides the state: the next h; plain GRU also r * h."""
    return 2 * hidden if cell.kind == "gru" and not cell.linear_before_reset else hidden


def cell_from(kind: str, p: Mapping[str, ParamValue]) -> Cell:
    """Return the cell that the parameters describe."""
    functions = tuple(tuple(map(parse_chosen, part.split("+"))) for part in str(p["functions"]).split(" "))
    return Cell(
        kind, functions, float(p["clip"]) if p["has_clip"] else None, coupled=bool(p.get("coupled")),
        linear_before_reset=bool(p.get("linear_before_reset")), reverse=bool(p["reverse"]),
    )  # fmt: skip


def view(flat: np.ndarray, dims: Sequence[int], strides: Sequence[ParamValue]) -> np.ndarray:
    """Return the writable strided view of a flat array; strides count elements."""
    steps = [int(s) * flat.itemsize for s in strides]
    return np.lib.stride_tricks.as_strided(flat.reshape(-1), tuple(dims), steps)


def input_view(a: Arrays, p: Mapping[str, ParamValue]) -> np.ndarray:
    """Return the input as [T, B, I]."""
    sizes = tuple(int(p[key]) for key in ("seq", "batch", "in_k"))
    return view(a["in"], sizes, (p["in_time"], p["in_batch"], 1))


def interpret_layer(
    cell: Cell, a: Arrays, p: Mapping[str, ParamValue], functions: Sequence[Step], x: np.ndarray
) -> None:
    """Run the layer on x[T, B, I] and the flat operands, one function per direction."""
    seq, batch, _, hidden, dirs = (int(p[key]) for key in _SIZES)
    h_steps = (p["h_dir"], p["h_batch"], 1)
    y = None
    if p["has_y"]:
        y = view(a["y"], (seq, dirs, batch, hidden), (p["y_time"], p["y_dir"], p["y_batch"], 1))
    run(
        cell, x, functions, view(a["h"], (dirs, batch, hidden), h_steps),
        view(a["c"], (dirs, batch, hidden), h_steps) if cell.kind == "lstm" else None,
        y=y, lens=a["lens"] if p["has_lens"] else None, clears=bool(p["clears"]),
    )  # fmt: skip


def _interpreter(kind: str) -> Callable[[Arrays, Mapping[str, ParamValue]], None]:
    def interpret(a: Arrays, p: Mapping[str, ParamValue]) -> None:
        in_k, hidden, dirs = int(p["in_k"]), int(p["hidden"]), int(p["dirs"])
        rows = GATES[kind] * hidden
        w, r = a["w"].reshape(dirs, rows, in_k), a["r"].reshape(dirs, rows, hidden)
        cell, bias = cell_from(kind, p), a["bias"].reshape(dirs, -1)
        bias = fold_bias(kind, bias, cell.linear_before_reset) if p["raw_bias"] else bias
        peephole = a["peephole"].reshape(dirs, -1) if p.get("has_peephole") else None
        weights = [Weights(w[d], r[d], bias[d], None if peephole is None else peephole[d]) for d in range(dirs)]
        cell = cell_from(kind, p)
        interpret_layer(cell, a, p, float_steps(cell, weights), input_view(a, p))

    return interpret


def operands(kind: str, weights: tuple[str, ...] = ("in w", "in r")) -> tuple[str, ...]:
    """Return the operands of a kernel in argument order."""
    first = ("in in", *weights, "in bias", "in lens:s32")
    extra = ("in peephole",) if kind == "lstm" else ()
    cell_state = ("inout c",) if kind == "lstm" else ()
    return (*first, *extra, "inout h", *cell_state, "out y", "out scratch:*")


KERNELS = tuple(
    KernelDef(
        f"{kind}_{dtype.value}", operands(kind), PARAMS, _interpreter(kind), float_params=("clip",),
        print_params=FLAGS[kind], template=f"{kind}_f32", needs_math=True, kind=dtype.value,
        doc=f"{kind.upper()} layer over time",
    )
    for kind in GATES
    for dtype in (DType.F32, DType.F64)
)  # fmt: skip
