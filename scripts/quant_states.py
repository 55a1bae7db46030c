#!/usr/bin/env python3
"""Quantise streaming LSTM and GRU networks drawn from seeds: `make quant-states`.

Each is calibrated on 1,000 calls in a row. Then the integers of the compiled graph see another sequence (400 calls)
with states of their own, and so does float: the error is the root mean square over that of the float outputs, on the
first and on the last quarter. Without drift both are alike. Instructions of one call are those executed on an emulated
Cortex-M4: in float, with the layers float between int8 ones (`--keep-float`), and with all on codes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from bench import measure, target
from onnx import helper

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from glowc.frontend import import_model  # noqa: E402
from glowc.frontend.kept import STATES_KEY, noted_states  # noqa: E402
from glowc.ops.interp import run_graph  # noqa: E402
from glowc.passes.pipeline import run_pipeline  # noqa: E402
from glowc.quant import QuantizeOptions, quantize_model  # noqa: E402
from glowc.quant.emit import edge_params  # noqa: E402
from glowc.quant.engine import default_prepare  # noqa: E402
from tests.fuzz.streaming import Stream, draw_stream  # noqa: E402

Samples = list[dict[str, np.ndarray]]
CALIBRATION = 1000  # calls


def float_outputs(stream: Stream, calls: Samples) -> np.ndarray:
    """Return the outputs of all calls in float."""
    run, names = default_prepare()(stream.model), [o.name for o in stream.model.graph.output]
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in stream.model.graph.input}
    states, found = {name: np.zeros(shapes[name], np.float32) for name in stream.states}, []
    for call in calls:
        done = dict(zip(names, run({**call, **states}), strict=True))
        states = {name: done[out] for name, out in stream.states.items()}
        found.append(done["y"])
    return np.stack(found)


def coded_outputs(model: onnx.ModelProto, calls: Samples) -> np.ndarray:
    """Return the outputs of all calls as the compiled graph has them, as real values."""
    params, graph = edge_params(model), run_pipeline(import_model(model))
    states: dict[str, np.ndarray] = {}
    found = [run_graph(graph, {"x": params["x"].codes(call["x"])}, states=states)["y"] for call in calls]
    return params["y"].values(np.stack(found))


def relative(got: np.ndarray, want: np.ndarray) -> float:
    """Return the root mean square error over the root mean square of the float outputs."""
    return float(np.sqrt(np.mean(np.square(got - want, dtype=np.float64)) / np.mean(np.square(want, dtype=np.float64))))


def insns(model: onnx.ModelProto, states: dict[str, str]) -> int:
    """Return the executed instructions of a call on Cortex-M4."""
    noted = onnx.ModelProto()
    noted.CopyFrom(model)
    if not noted_states(noted):
        helper.set_model_props(noted, {STATES_KEY: json.dumps(states)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        path.write_bytes(noted.SerializeToString())
        return int(measure("net", path, target("mps2-an386"), "balanced")["insns"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=24, help="networks")
    parser.add_argument("--calls", type=int, default=400, help="that are judged")
    parser.add_argument("--no-insns", action="store_true", help="errors only")
    args = parser.parse_args()
    errors, ratios = [], []
    for seed in range(args.first, args.first + args.count):
        stream = draw_stream(seed)
        given, calls = stream.sequence(2 * seed, CALIBRATION), stream.sequence(2 * seed + 1, args.calls)
        done = quantize_model(stream.model, given, QuantizeOptions(states=stream.states)).model
        want, got, quarter = float_outputs(stream, calls), coded_outputs(done, calls), args.calls // 4
        errors.append([relative(got[part], want[part]) for part in (slice(quarter), slice(-quarter, None))])
        line = f"{seed:6} {stream.op:5} {errors[-1][0]:7.4f} {errors[-1][1]:7.4f}"
        if not args.no_insns:
            options = QuantizeOptions(states=stream.states, keep_float=(stream.op,))
            before = quantize_model(stream.model, given, options).model
            counts = [insns(model, stream.states) for model in (stream.model, before, done)]
            ratios.append([counts[2] / counts[0], counts[2] / counts[1]])
            line += "".join(f" {n:10,}" for n in counts) + f" {ratios[-1][0]:5.2f}"
        print(line, flush=True)
    first, last = np.median(errors, axis=0)
    drift = max(b / a for a, b in errors)
    print(f"median error: first quarter {first:.4f}, last {last:.4f}; last over first at most {drift:.2f}")
    if ratios:
        whole, part = np.median(ratios, axis=0)
        print(f"instructions, median: {whole:.2f} of float, {part:.2f} of int8 with the layers in float")


if __name__ == "__main__":
    main()
