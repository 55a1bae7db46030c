#!/usr/bin/env python3
"""Compare int16 with int8 activations, for all layers and for a few, on the float sample models: `make sixteen-bench`.

    scripts/sixteen_bench.py
    scripts/sixteen_bench.py --models mlperf_ic_resnet8_fp32 --boards mps2-an386

Prints for each model the error of the outputs against float (root mean square over the largest magnitude), calibrated
on the even samples and judged on the odd ones, and on all of them both times (`digits` is examples/digits, whose 360
test images are the other samples); then executed instructions (exact,
counted by QEMU) and arena on each board, and their ratios int16 to int8. Between the two: the layers around 1, 2 and 4
tensors on int16 that gain most for their work, as the calibrating samples say, their number, and ratios to int8.
`--no-recurrent` ends there. Then the same of keyword models of one LSTM
and one GRU (scripts/recurrent_model.py) in float and on int8 codes: instructions of a multiply-accumulate, and how many
of 300 other words get the class that float gives them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
from bench import MODELS, measure, target
from recurrent_model import GATES, recurrent_model, words
from rich.console import Console
from rich.table import Table

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.ops.interp import run_graph
from glowc.quant import Activations, QuantizeOptions, quantize_model
from glowc.quant.emit import edge_params
from glowc.quant.engine import Engine
from glowc.quant.finer import as_wishes, finest, unions
from glowc.quant.load import load_float
from glowc.quant.net import Port
from glowc.quant.precision import Precision
from glowc.quant.profile import Profiler
from glowc.quant.quantizer import Gathered, Quantized, quantize_net
from glowc.quant.simulate import relative_error
from glowc.quant.tune import outputs_of

DEFAULT = (
    "mlperf_ic_resnet8_fp32", "mlperf_kws_dscnn_fp32", "mlperf_vww_mobilenetv1_fp32", "torch_resnet_tiny_fp32",
    "digits",
)  # fmt: skip
FEW = (1, 2, 4)  # tensors on int16
BOARDS = ("mps2-an386", "mps3-an547", "linux-aarch64/cortex-a53")
SPLITS = ((slice(0, None, 2), slice(1, None, 2)), (slice(None), slice(None)))
Sample = dict[str, np.ndarray]
Split = tuple[Sequence[Sample], Sequence[Sample]]  # given, judged
DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits"


def samples_of(path: Path, ports: Sequence[Port]) -> list[Sample]:
    """Return the samples of a file."""
    with np.load(path) as file:
        arrays = [file[n] for n in file.files][: len(ports)]
    if arrays[0].dtype == np.int8:  # the test images of digits, as the codes of digits.onnx
        codes = next(iter(edge_params(onnx.load(DIGITS / "digits.onnx")).values()))
        arrays = [((arrays[0].astype(np.float32) - codes.zero_point) * np.float32(codes.scale))]
    count = len(arrays[0])
    return [{p.name: a[i].reshape(p.shape) for p, a in zip(ports, arrays, strict=True)} for i in range(count)]


@dataclass(frozen=True)
class Row:
    """How a model is quantised: on int8 or int16, or the layers around so many tensors on int16."""

    kind: Activations = Activations.INT8
    tensors: int = 0


def quantised(path: Path, samples: Sequence[Sample], row: Row) -> Quantized:
    """Return a quantised model."""
    options = QuantizeOptions(activations=row.kind)
    if not row.tensors:
        return quantize_model(path, samples, options)
    engine = Engine()
    net = load_float(path)
    gathered = Gathered(Profiler(net, engine), [])
    for sample in samples:
        gathered.add(sample)
    profile = gathered.profiler.profile()
    sets = unions(finest(net, engine, profile, gathered.kept, options))
    wishes = Precision(activations_of=as_wishes(sets[min(row.tensors, len(sets)) - 1]))
    return quantize_net(net, engine, profile, gathered.kept, replace(options, precision=wishes), lambda _: None)


def errors(path: Path, ports: Sequence[Port], splits: Sequence[Split], row: Row) -> list[float]:
    """Return the error of each split."""
    found = []
    for given, judged in splits:
        exact = outputs_of(onnx.load(path), ports, judged)
        got = outputs_of(quantised(path, given, row).model, ports, judged)
        found.append(relative_error(got, exact))
    return found


def show(name: str, boards: Sequence[str], console: Console) -> None:
    """Print the table of one model."""
    path = DIGITS / "digits_fp32.onnx" if name == "digits" else MODELS / name / "model.onnx"
    ports = load_float(path).inputs
    if name == "digits":
        samples = samples_of(DIGITS / "digits_calibration.npz", ports)
        splits = [(samples, samples_of(DIGITS / "digits_test.npz", ports)), (samples, samples)]
    else:
        samples = samples_of(path.with_name("inputs.npz"), ports)
        splits = [(samples[given], samples[judged]) for given, judged in SPLITS]
    table = Table(name, "error, other samples", "error, all", *(f"{b}: insns, arena" for b in boards))
    first: list[float] = []
    for row in (Row(), *(Row(tensors=n) for n in FEW), Row(Activations.INT16)):
        done, numbers = quantised(path, samples, row), errors(path, ports, splits, row)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "net.onnx"
            file.write_bytes(done.model.SerializeToString())
            for board in boards:
                report = measure("net", file, target(board), "balanced")
                numbers += [report["insns"], report["arena_bytes"]]
        first = first or numbers
        label = f"int16 at {row.tensors}: {len(done.wide)} layers" if row.tensors else str(row.kind)
        cells = (f"{a:,} {b:,}" for a, b in zip(numbers[2::2], numbers[3::2], strict=True))
        table.add_row(label, *(f"{e:.5f}" for e in numbers[:2]), *cells)
        ratios = [b / a for a, b in zip(first, numbers, strict=True)]
        table.add_row("  to int8", *(f"{r:.3f}" for r in ratios[:2]),
                      *(f"{a:.3f} {b:.2f}" for a, b in zip(ratios[2::2], ratios[3::2], strict=True)))  # fmt: skip
    console.print(table)


def same_classes(model: onnx.ModelProto, exact: np.ndarray, words_given: np.ndarray, file: Path) -> int:
    """Return how many words get the class of float from what the compiler makes of a model."""
    codes = edge_params(model)["x"]
    graph = compile_model(file, load_board("host"), CompileOptions()).graph
    got = [run_graph(graph, {"x": codes.codes(x)})[graph.outputs[0]].argmax() for x in words_given]
    return int(np.sum(np.asarray(got) == exact.reshape(len(exact), -1).argmax(axis=1)))


def show_recurrent(op: str, boards: Sequence[str], console: Console) -> None:
    """Print the table of the LSTM or the GRU."""
    net = recurrent_model(op)
    ports = load_float(net).inputs
    model = quantize_model(net, [{"x": x} for x in words(64, 2)[0]]).model
    others = words(300, 9)[0]
    exact = outputs_of(net, ports, [{"x": x} for x in others])
    table = Table(f"{op} of 64 cells", "as float", *(f"{b}: insns/MAC, arena" for b in boards))
    with tempfile.TemporaryDirectory() as folder:
        for name, proto in (("float", net), ("int8", model)):
            file = Path(folder) / f"{name}.onnx"
            file.write_bytes(proto.SerializeToString())
            reports = [measure("net", file, target(board), "balanced") for board in boards]
            same = same_classes(proto, exact, others, file) if name == "int8" else len(others)
            cells = (f"{r['insns'] / r['macs']:.3f} {r['arena_bytes']:,}" for r in reports)
            table.add_row(name, f"{same} of {len(others)}", *cells)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(DEFAULT))
    parser.add_argument("--boards", nargs="+", default=list(BOARDS))
    parser.add_argument("--no-recurrent", action="store_true", help="leave the LSTM and the GRU out")
    args = parser.parse_args()
    console = Console(width=160)
    for name in args.models:
        show(name, args.boards, console)
    for op in () if args.no_recurrent else GATES:
        show_recurrent(op, args.boards, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
