"""Time of an inference on this machine, one thread, compared with onnxruntime in the same process.

MODEL is a file, or a name of scripts/known_nets.py. Both get the same inputs; the time is that of the calling thread,
the median of 20 runs in turn. onnxruntime runs a session without options, but for one thread.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
from known_nets import NETS

import glowc

_ROUNDS = 20


def _session(model: Path) -> tuple[Callable[[], object], dict[str, np.ndarray]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    rng, inputs = np.random.default_rng(0), {}
    for port in session.get_inputs():
        shape = [n if isinstance(n, int) else 1 for n in port.shape]
        kind = port.type.removeprefix("tensor(").removesuffix(")")
        real = kind == "float"
        inputs[port.name] = (
            rng.standard_normal(shape).astype(np.float32) if real else rng.integers(0, 100, shape).astype(kind)
        )
    return lambda: session.run(None, inputs), inputs


def _thread_seconds(call: Callable[[], object], calls: int) -> float:
    begin = time.thread_time_ns()
    for _ in range(calls):
        call()
    return (time.thread_time_ns() - begin) / calls / 1e9


def measure(model: Path) -> tuple[float, float]:
    """Return the seconds of an inference by glowc and by onnxruntime."""
    other, inputs = _session(model)
    loaded = glowc.load(model)
    pairs = zip(inputs.values(), loaded.inputs, strict=True)
    arrays = [np.ascontiguousarray(a.reshape(port.shape)).astype(port.dtype.numpy) for a, port in pairs]
    calls = [lambda: loaded(*arrays), other]
    often = max(1, int(0.002 / max(_thread_seconds(other, 3), 1e-7)))
    rounds = [[_thread_seconds(call, often) for call in calls] for _ in range(_ROUNDS)]
    own, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    return own, theirs


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    for name in parser.parse_args().models:
        with tempfile.TemporaryDirectory(prefix="glowc-host-") as folder:
            model = Path(folder) / f"{name}.onnx" if name in NETS else Path(name)
            if name in NETS:
                NETS[name](model)
            own, theirs = measure(model)
        title = name if name in NETS else model.parent.name if model.stem == "model" else model.stem
        print(f"{title:28} {own * 1e3:9.3f} ms, onnxruntime {theirs * 1e3:9.3f} ms: {own / theirs:6.2f}", flush=True)


if __name__ == "__main__":
    main()
