"""Random LSTM, GRU and RNN layers as arrays and as ONNX models, and what onnxruntime makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from glowc.ops.recurrent_spec import GATES

OPS = ("LSTM", "GRU", "RNN")
NAMES = ("x", "w", "r", "b", "lens", "h0", "c0", "p")
CONSTS = (1, 2, 3, 7)


@dataclass(frozen=True)
class Layer:
    """One layer: inputs in ONNX order (None: left out) and attributes."""

    op: str
    inputs: tuple[np.ndarray | None, ...]
    attrs: Mapping[str, object] = field(default_factory=dict)

    @property
    def outputs(self) -> int:
        """How many outputs the operator has."""
        return 3 if self.op == "LSTM" else 2


def layer(
    op: str,
    *,
    seq: int = 5,
    batch: int = 2,
    in_k: int = 3,
    hidden: int = 4,
    bias: bool = True,
    lens: Sequence[int] | None = None,
    initial: bool = False,
    peephole: bool = False,
    batch_first: bool = False,
    dtype: str = "float32",
    seed: int = 0,
    **attrs: object,
) -> Layer:
    """Return a layer with random weights; `attrs` are ONNX attributes."""
    rng = np.random.default_rng(seed)
    dirs, gates = (2 if attrs.get("direction") == "bidirectional" else 1), GATES[op.lower()] * hidden

    def draw(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 0.5).astype(dtype)

    def state(*shape: int) -> np.ndarray:
        return draw(*((shape[1], shape[0], shape[2]) if batch_first else shape))

    x = draw(batch, seq, in_k) if batch_first else draw(seq, batch, in_k)
    w, r, b = draw(dirs, gates, in_k), draw(dirs, gates, hidden), draw(dirs, 2 * gates)
    inputs: list[np.ndarray | None] = [x, w, r, b if bias else None]
    inputs.append(np.asarray(lens, np.int32) if lens is not None else None)
    inputs.append(state(dirs, batch, hidden) if initial else None)
    if op == "LSTM":
        inputs.append(state(dirs, batch, hidden) if initial else None)
        inputs.append(draw(dirs, 3 * hidden) if peephole else None)
    while inputs[-1] is None:
        inputs.pop()
    extra = {"layout": 1} if batch_first else {}
    return Layer(op, tuple(inputs), {"hidden_size": hidden, **attrs, **extra})


def model_of(
    one: Layer, *, const: Sequence[int] = CONSTS, outputs: Sequence[str] | None = None, opset: int = 17
) -> onnx.ModelProto:
    """Return the ONNX model; inputs numbered in `const` are initialisers; an output named "" is left out."""
    given = {NAMES[i]: a for i, a in enumerate(one.inputs) if a is not None}
    held = {NAMES[i] for i in const}
    outs = list(outputs) if outputs is not None else ["y", "y_h", "y_c"][: one.outputs]
    names = [NAMES[i] if a is not None else "" for i, a in enumerate(one.inputs)]
    kind = helper.np_dtype_to_tensor_dtype(one.inputs[0].dtype)  # type: ignore[union-attr]
    graph = helper.make_graph(
        [helper.make_node(one.op, names, outs, name="layer", **dict(one.attrs))],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in given.items()
            if n not in held
        ],
        [helper.make_tensor_value_info(o, kind, None) for o in outs if o],
        [numpy_helper.from_array(a, n) for n, a in given.items() if n in held],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def by_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs by name."""
    import onnxruntime as ort

    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    wanted = {i.name for i in session.get_inputs()}
    results = session.run(names, {n: a for n, a in feeds.items() if n in wanted})
    return dict(zip(names, map(np.asarray, results), strict=True))


def feeds_of(one: Layer) -> dict[str, np.ndarray]:
    """Return the inputs by name."""
    return {NAMES[i]: a for i, a in enumerate(one.inputs) if a is not None}
