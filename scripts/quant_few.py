#!/usr/bin/env python3
"""Quantise networks drawn from seeds on few samples, and compare with onnxruntime's quantiser: `make quant-few`.

Both calibrate on the same samples (six, unless --samples says another number). Their error is that of the outputs
against float, root mean square over that of the float outputs, on other samples (200). onnxruntime's is the file of
quantize_static as users call it: QDQ, int8, weights per channel, min-max, after its own preprocessing, whose outputs
are codes; `glowc quantize` writes such outputs by default. Prints every ratio, the median and the worst.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization.shape_inference import quant_pre_process

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from glowc.quant import QuantizeOptions, quantize_model  # noqa: E402
from scripts.quant_bench import METHODS, onnxruntime_model, outputs_of, outputs_of_codes  # noqa: E402
from tests.fuzz.trained import Net, draw_net  # noqa: E402


def relative(got: np.ndarray, want: np.ndarray) -> float:
    """Return the root mean square error over the root mean square of the float outputs."""
    got, want = (a.reshape(len(a), -1).astype(np.float64) for a in (got, want))
    return float(np.sqrt(np.mean((got - want) ** 2) / np.mean(want**2)))


def theirs_of(net: Net, samples: list[dict[str, np.ndarray]], method: str) -> onnx.ModelProto:
    """Return the network as onnxruntime's quantizer makes it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        given, ready = Path(folder) / "net.onnx", Path(folder) / "ready.onnx"
        onnx.save(net.model, given)
        quant_pre_process(str(given), str(ready), skip_symbolic_shape=True)
        return onnxruntime_model(ready, samples, method)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=40, help="networks")
    parser.add_argument("--seeds", type=int, nargs="+", help="these networks")
    parser.add_argument("--samples", type=int, default=6, help="that calibrate")
    parser.add_argument("--judged", type=int, default=200, help="other samples")
    parser.add_argument("--calibration", default="auto", help="of glowc")
    parser.add_argument("--method", default="min-max", choices=METHODS, help="of onnxruntime")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    ratios, by_family = {}, defaultdict(list)
    for seed in args.seeds or range(args.first, args.first + args.count):
        net = draw_net(seed)
        calibration, judged = net.samples(2 * seed, args.samples), net.samples(2 * seed + 1, args.judged)
        exact = outputs_of(net.model, judged)
        begin = time.perf_counter()
        options = QuantizeOptions(calibration=args.calibration)
        ours = relative(outputs_of_codes(quantize_model(net.model, calibration, options).model, judged), exact)
        took = time.perf_counter() - begin
        theirs = relative(outputs_of(theirs_of(net, calibration, args.method), judged), exact)
        ratios[seed] = ours / theirs
        by_family[net.family].append(ratios[seed])
        print(f"{seed:6} {net.family:12} {ours:8.4f} {theirs:8.4f} {ratios[seed]:6.2f} {took:6.1f} s", flush=True)
    print("median by family: " + ", ".join(f"{f} {np.median(r):.2f}" for f, r in by_family.items()))
    above = {seed: f"{r:.2f}" for seed, r in sorted(ratios.items(), key=lambda pair: -pair[1]) if r > 1}
    print(f"above 1: {above}")
    values = list(ratios.values())
    print(f"{len(values)} networks, {args.samples} samples: median {np.median(values):.3f}, worst {max(values):.2f}")


if __name__ == "__main__":
    main()
