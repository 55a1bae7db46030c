"""What onnxruntime's integer kernels answer to a model, and where glowc answers otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import onnx


def onnxruntime_answers(model: onnx.ModelProto, samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs by name with a leading sample axis. Raises what onnxruntime raises."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    if not _multiplies_exactly():
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    count = len(next(iter(samples.values())))
    rows = [session.run(names, {key: array[n] for key, array in samples.items()}) for n in range(count)]
    return {name: np.stack([row[k] for row in rows]) for k, name in enumerate(names)}


@cache
def _multiplies_exactly() -> bool:
    """Without VNNI, onnxruntime's products of uint8 by int8 saturate on x86, unless it makes the weights uint8."""
    path = Path("/proc/cpuinfo")
    text = path.read_text() if path.exists() else ""
    return "vnni" in text or "avx" not in text


def steps_apart(got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return how many steps each code differs by, for the outputs that differ."""
    apart = {name: np.abs(got[name].astype(np.int64) - want[name].astype(np.int64)) for name in want}
    return {name: a for name, a in apart.items() if a.any()}
