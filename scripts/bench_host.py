"""Time of an inference on this machine, compared with onnxruntime in the same process, with --threads 2 of both.

MODEL is a file, or a name of scripts/known_nets.py. Both get the same inputs; the time is the median of 20 runs. With
one thread it is that of the calling thread, and both engines take turns; with several it is by the clock, one engine
after the other. onnxruntime runs a session without options, but for the number of threads.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnxruntime
from known_nets import model_of

import glowc
from glowc.board.flags import native_cpu
from glowc.compiler.options import CompileOptions

_ROUNDS = 20
_CALM_S = 0.2  # after which no thread looks for work
_MOST = "define GLOW_WIDE_MOST 3"

Shapes = Mapping[str, tuple[int, ...]]
"""Of inputs that the file of a model leaves open, by name."""


def _session(model: Path, threads: int, shapes: Shapes) -> tuple[Callable[[], object], dict[str, np.ndarray]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    rng, inputs = np.random.default_rng(0), {}
    for port in session.get_inputs():
        shape = shapes.get(port.name) or [n if isinstance(n, int) else 1 for n in port.shape]
        kind = port.type.removeprefix("tensor(").removesuffix(")")
        real = kind == "float"
        inputs[port.name] = (
            rng.standard_normal(shape).astype(np.float32) if real else rng.integers(0, 100, shape).astype(kind)
        )
    return lambda: session.run(None, inputs), inputs


def _seconds(call: Callable[[], object], calls: int, threads: int) -> float:
    clock = time.thread_time_ns if threads == 1 else time.perf_counter_ns
    begin = clock()
    for _ in range(calls):
        call()
    return (clock() - begin) / calls / 1e9


def measure(
    model: Path, threads: int, most: int, work: Path, shapes: Shapes = MappingProxyType({})
) -> tuple[float, float]:
    """Return the seconds of an inference by glowc and by onnxruntime."""
    other, inputs = _session(model, threads, shapes)
    options = CompileOptions(cores=threads, input_shapes=dict(shapes))
    bundle = glowc.compile(model, work, cpu=native_cpu(), options=options)
    for header in work.rglob("glow_wide.h"):
        text = header.read_text(encoding="utf-8").replace(_MOST, f"{_MOST[:-1]}{most}")
        header.write_text(text, encoding="utf-8", newline="\n")
    loaded = glowc.load(bundle)
    pairs = zip(inputs.values(), loaded.inputs, strict=True)
    arrays = [np.ascontiguousarray(a).reshape(port.shape).astype(port.dtype.numpy) for a, port in pairs]
    calls = [lambda: loaded(*arrays), other]
    often = max(1, int(0.002 / max(_seconds(other, 3, threads), 1e-7)))
    if threads == 1:
        rounds = [[_seconds(call, often, threads) for call in calls] for _ in range(_ROUNDS)]
        columns = list(zip(*rounds, strict=True))
    else:
        columns = [_alone(call, often, threads) for call in calls]
    own, theirs = map(statistics.median, columns)
    return own, theirs


def _alone(call: Callable[[], object], often: int, threads: int) -> tuple[float, ...]:
    """Return the seconds of all rounds of one engine: threads of the other look for work for a while after its turn."""
    time.sleep(_CALM_S)
    call()
    return tuple(_seconds(call, often, threads) for _ in range(_ROUNDS))


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--most", type=int, default=3, help="level of the instruction set: 1 is AVX2 (glow_wide.h)")
    args = parser.parse_args()
    for name in args.models:
        with tempfile.TemporaryDirectory(prefix="glowc-host-") as folder:
            model, title = model_of(name, Path(folder))
            own, theirs = measure(model, args.threads, args.most, Path(folder) / "net")
        print(f"{title:28} {own * 1e3:9.3f} ms, onnxruntime {theirs * 1e3:9.3f} ms: {own / theirs:6.2f}", flush=True)


if __name__ == "__main__":
    main()
