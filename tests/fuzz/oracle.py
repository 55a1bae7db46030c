"""What onnxruntime's integer kernels answer to a model, and where glowc answers otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import onnx
from onnx import helper


def onnxruntime_answers(
    model: onnx.ModelProto, samples: Mapping[str, np.ndarray], *, unsigned: bool = True
) -> dict[str, np.ndarray]:
    """Return the outputs by name with a leading sample axis. Raises what onnxruntime raises.

    `unsigned`: there may be uint8 codes, whose sums are to be exact.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # 16-bit codes stay as they are
    if unsigned and not multiplies_exactly():
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    count = len(next(iter(samples.values())))
    rows = [session.run(names, {key: array[n] for key, array in samples.items()}) for n in range(count)]
    return {name: np.stack([row[k] for row in rows]) for k, name in enumerate(names)}


@cache
def multiplies_exactly() -> bool:
    """Say whether onnxruntime's sums of uint8 by int8 are exact here.

    On x86 without VNNI a sum of two products saturates at int16, unless constant weights are made uint8
    (session.x64quantprecision); int8 codes that a network computes stay as they are.
    """
    import onnxruntime as ort

    codes = np.full((1, 4), 255, np.uint8), np.full((4, 1), 127, np.int8)
    scales = {"one": np.float32(1), "sum": np.float32(1024), "za": np.uint8(0), "zb": np.int8(0)}
    node = helper.make_node("QLinearMatMul", ["a", "one", "za", "b", "one", "zb", "sum", "za"], ["y"])
    infos = [_info(n, c) for n, c in zip("ab", codes, strict=True)]
    held = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in scales.items()]
    graph = helper.make_graph([node], "probe", infos, [_info("y", codes[0][:, :1])], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (y,) = session.run(None, dict(zip("ab", codes, strict=True)))
    return int(y[0, 0]) == round(4 * 255 * 127 / 1024)


def _info(name: str, codes: np.ndarray) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(codes.dtype), codes.shape)


def steps_apart(got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return how many steps each code differs by, for the outputs that differ."""
    apart = {name: np.abs(got[name].astype(np.int64) - want[name].astype(np.int64)) for name in want}
    return {name: a for name, a in apart.items() if a.any()}
