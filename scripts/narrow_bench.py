#!/usr/bin/env python3
"""What weights of 4 and 2 bits, numbers or places in a palette, save and cost on sample models, beside those of 8 bits.
Runs as `make narrow-bench`.

    scripts/narrow_bench.py
    scripts/narrow_bench.py --models mlperf_ic_resnet8_fp32 --boards mps2-an386
    scripts/narrow_bench.py --pruned  # why there is no other form: two of four weights are 0, all numbers are floats

Each float model is quantised on its samples, compiled and measured under QEMU: bytes of constants and of the arena,
executed instructions, and the error of its outputs (RMSE over the largest): in simulation on these samples, and on each
half of the samples of a model quantised on the other half (the mean of both). The status is 3 where the
first model with weights of 4 bits takes more than is wanted of it (LIMITS).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from rich.console import Console
from rich.table import Table

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.kernels.records import FEWEST
from glowc.machine.execute import bench, load_bundle
from glowc.quant import QuantizeOptions, quantize_model
from glowc.quant.load import read_inputs
from glowc.quant.net import int_of
from glowc.quant.precision import Precision
from glowc.quant.tune import outputs_of
from glowc.quant.weight_types import WeightType

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "models"
MODELS = ("mlperf_ic_resnet8_fp32", "mlperf_kws_dscnn_fp32", "mlperf_ad_autoencoder_fp32")
BOARDS = ("mps2-an386", "mps3-an547", "linux-aarch64")
CONSTANTS = 0.55
LIMITS = {"mps2-an386": 1.25, "mps3-an547": 1.15, "linux-aarch64": 1.15}
"""Of MODELS[0] in 4 bits: most constants and most instructions, as multiples of those in 8 bits."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A model on a board."""

    constants_bytes: int
    arena_bytes: int
    insns: int


def quantised(model: str, kind: WeightType, folder: Path) -> tuple[Path, float]:
    """Write a quantised model; return its path and the error of its outputs."""
    done = quantize_model(SHARED / model / "model.onnx", samples_of(model), options_of(kind))
    path = folder / f"{model}_{kind}.onnx"
    path.write_bytes(done.model.SerializeToString())
    return path, done.error or 0.0


def samples_of(model: str) -> list[dict[str, np.ndarray]]:
    """Return the samples of a model."""
    with np.load(SHARED / model / "inputs.npz") as data:
        arrays = dict(data)
    return [{name: a[i] for name, a in arrays.items()} for i in range(len(next(iter(arrays.values()))))]


def options_of(kind: WeightType) -> QuantizeOptions:
    """Return how a model is quantised."""
    return QuantizeOptions(precision=Precision(kind))


def error_of_halves(model: str, kind: WeightType) -> float:
    """Return the error of the outputs on the half of the samples that had no say, the mean of both halves."""
    path, samples = SHARED / model / "model.onnx", samples_of(model)
    exact, errors = onnx.load(path), []
    inputs = read_inputs(exact)
    for first in (0, 1):
        done = quantize_model(path, samples[first::2], options_of(kind))
        wanted, got = (outputs_of(m, inputs, samples[1 - first :: 2]) for m in (exact, done.model))
        errors.append(float(np.sqrt(np.square(got - wanted).mean()) / np.abs(wanted).max()))
    return float(np.mean(errors))


def pruned_error(model: str) -> float:
    """Return the error of the outputs where two of four adjacent inputs have weight 0: the smaller ones.

    Two int8 codes and their places take 0.625 of the bytes of four. All else is float.
    """
    exact, pruned = (onnx.load(SHARED / model / "model.onnx") for _ in range(2))
    axes = {n.input[1]: _input_axis(n) for n in exact.graph.node if n.op_type in ("Conv", "Gemm", "MatMul")}
    for tensor in pruned.graph.initializer:
        array, axis = numpy_helper.to_array(tensor), axes.get(tensor.name)
        if axis is not None and array.shape[axis] % 4 == 0 and array.size >= FEWEST:
            tensor.CopyFrom(numpy_helper.from_array(two_of_four(array, axis), tensor.name))
    wanted, got = (outputs_of(m, read_inputs(exact), samples_of(model)) for m in (exact, pruned))
    return float(np.sqrt(np.square(got - wanted).mean()) / np.abs(wanted).max())


def _input_axis(node: onnx.NodeProto) -> int | None:
    """Return the axis of inputs of the weights of a layer; None of one with groups."""
    if node.op_type == "Conv":
        return 1 if int_of(node, "group", 1) == 1 else None
    return 1 if int_of(node, "transB", 0) else 0


def two_of_four(array: np.ndarray, axis: int) -> np.ndarray:
    """Return weights with the two smaller ones of four adjacent ones along an axis set to 0."""
    fours = np.moveaxis(array, axis, -1)
    rank = np.abs(fours).reshape(*fours.shape[:-1], -1, 4).argsort(axis=-1).argsort(axis=-1)
    return np.ascontiguousarray(np.moveaxis(fours * (rank >= 2).reshape(fours.shape), -1, axis))


def measured(path: Path, board_name: str, folder: Path) -> Measured:
    """Compile and run a model."""
    board = load_board(board_name)
    compiled = compile_model(path, board, CompileOptions(name="net"))
    out = folder / f"{path.stem}_{board_name}"
    write_bundle(compiled, out)
    report = bench(load_bundle(out), board)
    assert report["insns"] is not None
    return Measured(report["weights_bytes"], report["arena_bytes"], report["insns"])


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table for each model; return 3 where a limit is passed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--boards", nargs="+", default=list(BOARDS))
    parser.add_argument("--pruned", action="store_true", help="the error of two of four weights, and nothing else")
    given = parser.parse_args(argv)
    if given.pruned:
        for model in given.models:
            print(f"{model}: error {100 * pruned_error(model):.1f} %, constants 0.625 of those of 8 bits")
        return 0
    over = []
    with tempfile.TemporaryDirectory() as name:
        for model in given.models:
            over += _one(model, given.boards, Path(name))
    for line in over:
        print(f"over its limit: {line}", file=sys.stderr)
    return 3 if over else 0


def _one(model: str, boards: Sequence[str], folder: Path) -> list[str]:
    """Measure a model; return where it takes more than is wanted."""
    table, over = Table("weights", "error", "of halves", title=model), []
    for board in boards:
        table.add_column(board, justify="right")
    base: dict[str, Measured] = {}
    for kind in WeightType:
        path, error = quantised(model, kind, folder)
        cells = []
        for board in boards:
            found = measured(path, board, folder)
            base.setdefault(board, found)
            cells.append(_cell(found, base[board]))
            over += _over(model, kind, board, found, base[board])
        table.add_row(str(kind), f"{100 * error:.2f} %", f"{100 * error_of_halves(model, kind):.2f} %", *cells)
    Console(width=160).print(table)
    return over


def _cell(found: Measured, base: Measured) -> str:
    share = (found.constants_bytes / base.constants_bytes, found.insns / base.insns)
    return (
        f"constants {found.constants_bytes:,} ({share[0]:.3f})\narena {found.arena_bytes:,}\n"
        f"insns {found.insns:,} ({share[1]:.3f})"
    )


def _over(model: str, kind: WeightType, board: str, found: Measured, base: Measured) -> list[str]:
    if model != MODELS[0] or kind is not WeightType.INT4:
        return []
    shares = {"constants": (found.constants_bytes / base.constants_bytes, CONSTANTS),
              "instructions": (found.insns / base.insns, LIMITS.get(board, float("inf")))}  # fmt: skip
    return [f"{model} on {board}: {what} {share:.3f}, wanted {most}" for what, (share, most) in shares.items()
            if share > most]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
