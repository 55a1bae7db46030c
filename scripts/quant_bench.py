#!/usr/bin/env python3
"""Compare glowc's quantiser with onnxruntime's on the float sample models. Runs as `make quant-bench`.

    scripts/quant_bench.py
    scripts/quant_bench.py --models mlperf_kws_dscnn_fp32 --no-compile
    scripts/quant_bench.py --other nncf --other-python /tmp/nncf/bin/python  # a venv with nncf, onnx and onnxruntime

Both calibrate on the even samples and are judged on the odd ones, then on all and judged on all: RMSE over the largest
magnitude of the float outputs, cosine, argmax agreement, in onnxruntime's integer kernels. Ours are models with float
inputs and outputs, whose last sums glowc does not round; "int8 edge" is the error of the model that `glowc quantize`
writes by default, whose outputs are codes. Of onnxruntime's quantiser (quantize_static, QDQ, per channel, int8) each
model shows the best of min-max, entropy and percentile. Outputs of its files are floats that were codes, rounded as
those of "int8 edge"; "onnxruntime, unrounded" is without that last pair, to be held against "ours". Then arena,
executed instructions and the arena of `--plan stream`, the least, of both on an emulated Cortex-M4, onnxruntime's also
with codes as inputs and outputs. `--other`
adds a further quantiser (scripts/quant_other.py), the best of its presets, on the same samples. Writes everything to
build/quant_bench.json.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from rich.console import Console
from rich.table import Table

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import InputError
from glowc.machine.execute import bench, load_bundle
from glowc.quant import QuantizeOptions, quantize_model
from glowc.quant.data import as_port
from glowc.quant.emit import edge_params
from glowc.quant.net import Port

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "models"
METHODS = {
    "min-max": (CalibrationMethod.MinMax, {}),
    "entropy": (CalibrationMethod.Entropy, {}),
    "percentile": (CalibrationMethod.Percentile, {"CalibPercentile": 99.999}),
}
SPLITS = {"odd": (slice(0, None, 2), slice(1, None, 2)), "all": (slice(None), slice(None))}
BOARD = "mps2-an386"
Arrays = dict[str, np.ndarray]
Costs = tuple[int, int, int]
COSTS = ("arena", "instructions", "least arena")


@dataclass(frozen=True, slots=True)
class Error:
    """How far outputs are from float."""

    rmse: float
    cosine: float
    argmax: float


class Reader(CalibrationDataReader):
    """Samples for onnxruntime's quantiser."""

    def __init__(self, samples: Sequence[Arrays]) -> None:
        self._left = iter(samples)

    def get_next(self) -> Arrays | None:
        return next(self._left, None)


def samples_of(arrays: Mapping[str, np.ndarray], chosen: slice) -> list[Arrays]:
    """Return the chosen samples as dicts."""
    count = len(next(iter(arrays.values())))
    return [{n: a[i] for n, a in arrays.items()} for i in range(count)[chosen]]


def outputs_of(model: onnx.ModelProto, samples: Sequence[Arrays]) -> np.ndarray:
    """Return the first output of all samples, with onnxruntime's integer kernels."""
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.stack([session.run(None, sample)[0] for sample in samples])


def outputs_of_codes(model: onnx.ModelProto, samples: Sequence[Arrays]) -> np.ndarray:
    """Return the first output, real values, of a model whose inputs and outputs are codes."""
    params, out = edge_params(model), model.graph.output[0].name
    coded = [{n: as_port(a, Port(n, a.shape, np.dtype(np.int8), params[n])) if n in params else a
              for n, a in sample.items()} for sample in samples]  # fmt: skip
    codes = outputs_of(model, coded)
    return (codes.astype(np.float32) - params[out].zero_point) * np.float32(params[out].scale)


def error_of(got: np.ndarray, want: np.ndarray) -> Error:
    """Return how far `got` is from the float outputs."""
    a, b = (x.reshape(len(x), -1).astype(np.float64) for x in (got, want))
    cosine = np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))
    rmse = np.sqrt(np.mean(np.square(a - b))) / np.abs(b).max()
    return Error(float(rmse), float(cosine), float(np.mean(a.argmax(1) == b.argmax(1))))


def onnxruntime_model(path: Path, samples: Sequence[Arrays], method: str) -> onnx.ModelProto:
    """Return the model as onnxruntime's quantiser makes it."""
    kind, extra = METHODS[method]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        out = Path(folder) / "q.onnx"
        quantize_static(
            str(path), str(out), Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QInt8, weight_type=QuantType.QInt8, calibrate_method=kind, extra_options=extra,
        )  # fmt: skip
        return onnx.load(out)


def unrounded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without the QuantizeLinear and DequantizeLinear in front of its first output."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    makers = {name: node for node in model.graph.node for name in node.output}
    last = makers[model.graph.output[0].name]
    if last.op_type != "DequantizeLinear" or makers[last.input[0]].op_type != "QuantizeLinear":
        return model
    before = makers[last.input[0]]
    maker, value = makers[before.input[0]], before.input[0]
    maker.output[:] = [last.output[0] if name == value else name for name in maker.output]
    for node in (last, before):
        model.graph.node.remove(node)
    return model


@dataclass(frozen=True, slots=True)
class Other:
    """A further quantiser, and the Python interpreter of the environment that has it."""

    name: str
    python: str

    def models(self, path: Path, samples: Sequence[Arrays]) -> dict[str, onnx.ModelProto]:
        """Return the model as it makes it, by preset. Raises CalledProcessError where it fails."""
        with tempfile.TemporaryDirectory() as folder:
            np.savez(Path(folder) / "in.npz", **{n: np.stack([s[n] for s in samples]) for n in samples[0]})
            command = [self.python, str(ROOT / "scripts" / "quant_other.py"), self.name, str(path)]
            subprocess.run([*command, f"{folder}/in.npz", folder], check=True, capture_output=True)
            return {file.stem: onnx.load(file) for file in sorted(Path(folder).glob("*.onnx"))}


def usable(name: str | None, python: str, console: Console) -> Other | None:
    """Return the further quantiser that is wanted; None, with a note, where its environment has none."""
    if name is None:
        return None
    with contextlib.suppress(OSError):
        if subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0:
            return Other(name, python)
    console.print(f"{python} has no {name}: left out")
    return None


def best_of(models: Mapping[str, onnx.ModelProto], samples: Sequence[Arrays], exact: np.ndarray) -> dict[str, object]:
    """Return the least error of some models, and which has it."""
    errors = {m: error_of(outputs_of(q, samples), exact) for m, q in models.items()}
    best = min(errors, key=lambda m: errors[m].rmse)
    return {**asdict(errors[best]), "method": best}


def cost_of(model: onnx.ModelProto, sample: Arrays, io_type: str) -> Costs:
    """Return arena bytes, executed instructions of one sample on the emulated Cortex-M4, bytes of the least arena."""
    board = load_board(BOARD)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        path.write_bytes(model.SerializeToString())
        write_bundle(compile_model(path, board, CompileOptions(io_type=io_type)), Path(folder) / "out")
        info = load_bundle(Path(folder) / "out")
        report = bench(info, board, {p.name: p.to_bundle(sample[p.name][None]) for p in info.inputs})
        least = compile_model(path, board, CompileOptions(io_type=io_type, plan="stream")).plan.arena_bytes
    return int(report["arena_bytes"]), int(report["insns"] or 0), least


def measured(
    name: str, compiles: bool, other: Other | None, options: QuantizeOptions, shuffle: int | None
) -> dict[str, object]:
    """Return everything about one model."""
    path = SHARED / name / "model.onnx"
    with np.load(SHARED / name / "inputs.npz") as file:
        arrays = {n: file[n] for n in file.files}
    if shuffle is not None:
        order = np.random.default_rng(shuffle).permutation(len(next(iter(arrays.values()))))
        arrays = {n: a[order] for n, a in arrays.items()}
    row: dict[str, object] = {split: errors_of(path, arrays, *both, other, options) for split, both in SPLITS.items()}
    if compiles:
        row["cost"] = costs_of(path, samples_of(arrays, slice(None)), options)
    return row


def errors_of(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    given: slice,
    judged: slice,
    other: Other | None,
    options: QuantizeOptions,
) -> dict[str, object]:
    """Return the errors of all quantisers on some samples, calibrated on others."""
    calibration, samples = samples_of(arrays, given), samples_of(arrays, judged)
    exact = outputs_of(onnx.load(path), samples)
    ours = quantize_model(path, calibration, replace(options, float_edge=True)).model
    coded = quantize_model(path, calibration, options).model
    theirs = {m: onnxruntime_model(path, calibration, m) for m in METHODS}
    found: dict[str, object] = {
        "ours": asdict(error_of(outputs_of(ours, samples), exact)),
        "int8 edge": asdict(error_of(outputs_of_codes(coded, samples), exact)),
        "onnxruntime": best_of(theirs, samples, exact),
        "onnxruntime, unrounded": best_of({m: unrounded(q) for m, q in theirs.items()}, samples, exact),
    }
    if other is not None:
        found[other.name] = best_of(other.models(path, calibration), samples, exact)
    return found


def costs_of(path: Path, samples: Sequence[Arrays], options: QuantizeOptions) -> dict[str, Costs]:
    """Return what both quantisers' models cost, with float edges and with codes."""
    theirs = onnxruntime_model(path, samples, "min-max")
    floats = quantize_model(path, samples, replace(options, float_edge=True)).model
    return {
        "ours, float edge": cost_of(floats, samples[0], "model"),
        "onnxruntime": cost_of(theirs, samples[0], "model"),
        "ours": cost_of(quantize_model(path, samples, options).model, samples[0], "model"),
        "onnxruntime, int8 edge": _cost_with_codes(theirs, samples[0]),
    }


def _cost_with_codes(model: onnx.ModelProto, sample: Arrays) -> Costs:
    """Return the cost with codes as inputs and outputs; with floats where the file has no codes right at an edge."""
    try:
        return cost_of(model, sample, "int8")
    except InputError:
        return cost_of(model, sample, "model")


def table_of(rows: Mapping[str, dict[str, dict[str, dict[str, float]]]], split: str) -> Table:
    """Return the errors of one split, the mean in the last line."""
    kinds = list(next(iter(rows.values()))[split])
    table = Table("model", *(f"{what}: {kind}" for what in ("RMSE", "cosine", "argmax") for kind in kinds), "best")
    for name, row in rows.items():
        found = [row[split][kind] for kind in kinds]
        shown = [f"{e[key]:.{digits}f}" for key, digits in (("rmse", 5), ("cosine", 6), ("argmax", 3)) for e in found]
        table.add_row(name, *shown, ", ".join(str(e["method"]) for e in found if "method" in e))
    means = [f"{np.mean([row[split][kind][key] for row in rows.values()]):.{digits}f}"
             for key, digits in (("rmse", 5), ("cosine", 5), ("argmax", 3)) for kind in kinds]  # fmt: skip
    table.add_row("mean", *means)
    return table


def verdict(rows: Mapping[str, dict[str, dict[str, dict[str, float]]]], split: str, ours: str, theirs: str) -> str:
    """Return how much less our outputs err in the mean of some models, and on which they err more or agree less."""
    pairs = {name: (row[split][ours], row[split][theirs]) for name, row in rows.items()}
    less = 1 - sum(a["rmse"] for a, _ in pairs.values()) / sum(b["rmse"] for _, b in pairs.values())
    worse = [n for n, (a, b) in pairs.items() if a["rmse"] > b["rmse"] or a["argmax"] < b["argmax"]]
    return f"{ours} beside {theirs}: error {100 * less:.1f} % less; worse on {', '.join(worse) or 'none'}"


def cost_table(rows: Mapping[str, dict[str, dict[str, Costs]]]) -> Table:
    """Return all costs, and the ratio of those whose inputs and outputs are codes."""
    kinds = ("ours, float edge", "onnxruntime", "ours", "onnxruntime, int8 edge")
    table = Table("model", *(f"{what}: {kind}" for what in COSTS for kind in (*kinds, "ratio")))
    for name, row in rows.items():
        costs = [[row["cost"][kind][i] for kind in kinds] for i in range(len(COSTS))]
        table.add_row(name, *(s for c in costs for s in (*(f"{n:,}" for n in c), f"{c[2] / c[3]:.4f}")))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", help="folders of ../shared/models (default: all *_fp32)")
    parser.add_argument("--no-compile", action="store_true", help="errors only")
    parser.add_argument("--other", choices=("nncf",), help="a further quantizer")
    parser.add_argument("--other-python", default=sys.executable, help="the interpreter that has it")
    parser.add_argument("--split-channels", type=float, default=0.0, help="as glowc quantize --split-channels")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="other halves: the samples in a random order")
    args = parser.parse_args()
    options = QuantizeOptions(split=args.split_channels)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    console = Console(width=320)
    other = usable(args.other, args.other_python, console)
    rows = {}
    for name in args.models or sorted(p.name for p in SHARED.glob("*_fp32")):
        rows[name] = measured(name, not args.no_compile, other, options, args.shuffle)
        console.print(name, json.dumps(rows[name]))
    for split, title in (("odd", "calibrated on even samples, judged on odd ones"), ("all", "all samples")):
        console.print(title, table_of(rows, split))  # type: ignore[arg-type]
        for pair in (("ours", "onnxruntime, unrounded"), ("int8 edge", "onnxruntime")):
            console.print(verdict(rows, split, *pair))  # type: ignore[arg-type]
    if not args.no_compile:
        console.print(f"on {BOARD}", cost_table(rows))  # type: ignore[arg-type]
    out = ROOT / "build" / "quant_bench.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
