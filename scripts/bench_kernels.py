#!/usr/bin/env python3
"""Measure single layers on emulated boards against the kernel libraries. Runs as `make bench-kernels`.

    scripts/bench_kernels.py
    scripts/bench_kernels.py --boards mps2-an386 mps3-an547 linux-aarch64/cortex-a53 --layers pw

Prints executed instructions per MAC (exact, counted by QEMU; packing, padding, requantisation and stores included)
of each layer of the MLPerf Tiny models, beside what CMSIS-NN (Cortex-M) or XNNPACK (Cortex-A) needs, what must be
reached, and the best that is known. Every output is compared with the numpy interpreter. Writes everything to
build/bench_kernels.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import TensorProto
from rich.console import Console
from rich.table import Table

from glowc.board import Board, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.machine.execute import bench, execute, load_bundle, read_inputs
from glowc.ops.interp import run_graph

ROOT = Path(__file__).resolve().parent.parent
CPUS = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55")
DSP = ("cortex-m4", "cortex-m7", "cortex-m33")


@dataclass(frozen=True)
class Layer:
    """A layer shape, and instructions per MAC: of the peer, wanted (`must`) and best known, by CPU.

    `opt` is how it is compiled whatever --opt says.
    """

    name: str
    in_hwc: tuple[int, int, int]
    out_c: int
    k: tuple[int, int] = (1, 1)
    stride: int = 1
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    depthwise: bool = False
    peer: tuple[float, ...] = ()  # CMSIS-NN on CPUS
    must: tuple[float, float] = (0.0, 0.0)  # DSP, cortex-m55
    best: tuple[float, float] = (0.0, 0.0)
    xnnpack: float = 0.0  # on cortex-a53
    opt: str = ""

    @property
    def is_fc(self) -> bool:
        """True for a fully connected layer."""
        return self.in_hwc[:2] == (1, 1)

    def figures(self, cpu: str) -> tuple[float, float, float]:
        """Return (peer, must, best) for a CPU; 0: not known."""
        peer = dict(zip(CPUS, self.peer, strict=False)).get(cpu, 0.0)
        column = 0 if cpu in DSP else 1 if cpu == "cortex-m55" else None
        if cpu == "cortex-a53":
            return self.xnnpack, 0.0, 0.0
        return (peer, 0.0, 0.0) if column is None else (peer, self.must[column], self.best[column])


SAME = (1, 1, 1, 1)
LAYERS = (
    Layer("IC conv3x3 3->16 @32", (32, 32, 3), 16, (3, 3), 1, SAME, False,
          (11.70, 5.49, 4.77, 4.88, 4.77, 1.416), (2.0, 0.0), (1.458, 0.0)),
    Layer("IC conv3x3 16->16 @32", (32, 32, 16), 16, (3, 3), 1, SAME, False,
          (7.55, 3.34, 2.33, 2.35, 2.34, 0.399), (1.0, 0.17), (0.794, 0.134), 0.388),
    Layer("IC conv3x3 16->32 s2", (32, 32, 16), 32, (3, 3), 2, (0, 0, 1, 1), False,
          (7.13, 3.07, 2.14, 2.15, 2.14, 0.335), (1.0, 0.17)),
    Layer("IC conv3x3 32->32 @16", (16, 16, 32), 32, (3, 3), 1, SAME, False,
          (6.70, 2.87, 1.93, 1.93, 1.93, 0.256), (1.0, 0.17), (0.739, 0.0), 0.370),
    Layer("IC conv1x1 16->32 s2", (32, 32, 16), 32, (1, 1), 2, peer=(12.53, 5.11, 4.30, 4.25, 4.27, 1.080)),
    Layer("IC conv3x3 64->64 @8", (8, 8, 64), 64, (3, 3), 1, SAME, False,
          (6.33, 2.67, 1.76, 1.76, 1.76, 0.207), (1.0, 0.17), (0.783, 0.134), 0.361),
    Layer("IC conv1x1 32->64 s2", (16, 16, 32), 64, (1, 1), 2, peer=(9.74, 4.14, 3.21, 3.18, 3.20, 0.621)),
    Layer("VWW conv3x3 3->8 s2 @96", (96, 96, 3), 8, (3, 3), 2, (0, 0, 1, 1), False,
          (13.65, 6.94, 6.12, 6.34, 6.11, 2.110), (2.0, 0.0), (1.729, 0.0)),
    Layer("VWW dw3x3 8 @48", (48, 48, 8), 8, (3, 3), 1, SAME, True,
          (40.20, 10.50, 8.86, 8.86, 8.86, 5.409), (3.0, 1.2), (1.861, 0.0)),
    Layer("VWW pw 8->16 @48", (48, 48, 8), 16, peer=(18.22, 7.07, 6.63, 6.69, 6.60, 2.176),
          must=(2.3, 0.0), best=(2.047, 0.0)),
    Layer("VWW dw3x3 64 @12", (12, 12, 64), 64, (3, 3), 1, SAME, True,
          (36.93, 9.41, 7.88, 7.88, 7.88, 2.328), (3.0, 1.2), (1.938, 0.951), 0.827),
    Layer("VWW pw 64->128 @6", (6, 6, 64), 128, peer=(7.65, 3.17, 2.15, 2.12, 2.15, 0.392),
          must=(1.1, 0.2), best=(0.862, 0.164), xnnpack=0.385),
    Layer("VWW pw 256->256 @3", (3, 3, 256), 256, peer=(6.90, 3.10, 1.97, 1.95, 1.97, 0.248), must=(1.1, 0.2)),
    Layer("KWS conv10x4 1->64 s2", (49, 10, 1), 64, (10, 4), 2, (4, 1, 5, 1), False,
          (9.42, 4.30, 3.49, 3.55, 3.49, 0.957), (2.0, 0.0)),
    Layer("KWS dw3x3 64 @25x5", (25, 5, 64), 64, (3, 3), 1, SAME, True,
          (35.68, 9.23, 7.79, 7.79, 7.79, 2.343), (3.0, 1.2), (2.235, 0.0)),
    Layer("KWS pw 64->64 @25x5", (25, 5, 64), 64, peer=(7.56, 3.11, 2.09, 2.05, 2.08, 0.396),
          must=(1.1, 0.2), best=(0.884, 0.165), xnnpack=0.395),
    Layer("AD FC 640->128", (1, 1, 640), 128, peer=(5.55, 3.45, 1.97, 1.97, 1.97, 0.496),
          must=(1.15, 0.0), best=(0.916, 0.0)),
    Layer("AD FC 128->128", (1, 1, 128), 128, peer=(6.24, 3.73, 2.33, 2.33, 2.33, 0.605),
          must=(1.15, 0.0), best=(0.963, 0.0)),
    Layer("AD FC 128->640", (1, 1, 128), 640, peer=(6.19, 3.68, 2.33, 2.33, 2.33, 0.596),
          must=(1.15, 0.0), best=(0.950, 0.0)),
    *(
        Layer(f"conv3x3 {c}->{c} @{size}, speed", (size, size, c), c, (3, 3), 1, SAME, peer=peer, must=(must, 0.0),
              best=(best, 0.0), opt="speed")
        for c, size, peer, must, best in (
            (16, 32, (7.55, 3.34, 2.33, 2.35, 2.34, 0.399), 1.0, 0.794),
            (32, 16, (6.70, 2.87, 1.93, 1.93, 1.93, 0.256), 0.6, 0.561),
            (64, 8, (6.33, 2.67, 1.76, 1.76, 1.76, 0.207), 0.45, 0.431),
        )
    ),
)  # fmt: skip


def model_of(layer: Layer) -> onnx.ModelProto:
    """Return the layer as an ONNX model in the QDQ form: random weights, a scale per channel, relu."""
    rng = np.random.default_rng(0)
    h, w, c = layer.in_hwc
    taps = layer.k[0] * layer.k[1] * (1 if layer.depthwise else c)
    shape = (layer.out_c, c) if layer.is_fc else (layer.out_c, 1 if layer.depthwise else c, *layer.k)
    w_scale = rng.uniform(0.5, 1.5, layer.out_c) * 0.01
    consts = {
        "x_s": np.float32(0.02), "x_z": np.int8(-128), "w_q": rng.integers(-127, 128, shape, dtype=np.int8),
        "w_s": w_scale.astype(np.float32), "w_z": np.zeros(layer.out_c, np.int8),
        "b_q": rng.integers(-2000, 2000, layer.out_c, dtype=np.int32), "b_z": np.zeros(layer.out_c, np.int32),
        "b_s": (np.float32(0.02) * w_scale.astype(np.float32)).astype(np.float32),
        "y_s": np.float32(0.02 * 0.01 * 74 * 147 * np.sqrt(taps) / 80), "y_z": np.int8(-128),
    }  # fmt: skip
    nodes = [
        oh.make_node("DequantizeLinear", ["x_q", "x_s", "x_z"], ["x"]),
        oh.make_node("DequantizeLinear", ["w_q", "w_s", "w_z"], ["w"], axis=0),
        oh.make_node("DequantizeLinear", ["b_q", "b_s", "b_z"], ["b"], axis=0),
        oh.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1) if layer.is_fc else oh.make_node(
            "Conv", ["x", "w", "b"], ["y"], kernel_shape=layer.k, strides=(layer.stride,) * 2, pads=layer.pads,
            group=c if layer.depthwise else 1,
        ),
        oh.make_node("QuantizeLinear", ["y", "y_s", "y_z"], ["y_q"]),
    ]  # fmt: skip
    graph = oh.make_graph(
        nodes,
        "layer",
        [oh.make_tensor_value_info("x_q", TensorProto.INT8, (1, c) if layer.is_fc else (1, c, h, w))],
        [oh.make_tensor_value_info("y_q", TensorProto.INT8, None)],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in consts.items()],
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=9)


def measure(layer: Layer, board: Board, opt: str) -> dict[str, Any]:
    """Compile the layer alone, run it, compare its outputs, and return the measured row."""
    with tempfile.TemporaryDirectory(prefix="glowc-layer-") as folder:
        path = Path(folder) / "layer.onnx"
        onnx.save(model_of(layer), path)
        # A first convolution reads the planar image of the camera; the others stand between layers, in NHWC.
        planar = layer.is_fc or layer.in_hwc[2] <= 3
        options = CompileOptions(opt=layer.opt or opt, io_layout="exported" if planar else "nhwc")
        compiled = compile_model(path, board, options)
        write_bundle(compiled, Path(folder) / "bundle")
        info = load_bundle(Path(folder) / "bundle")
        shape = compiled.imported.types["x_q"].shape
        x = np.random.default_rng(1).integers(-128, 128, (1, *shape), dtype=np.int8)
        np.savez(Path(folder) / "in.npz", x_q=x)
        inputs = read_inputs(info, Path(folder) / "in.npz")
        got = execute(info, board, inputs).outputs["y_q"][0]
        want = run_graph(compiled.graph, {"x_q": inputs["x_q"][0]})["y_q"]  # integers, as the kernels
        report = bench(info, board, inputs)
    row = next(entry for entry in report["layers"] if entry["macs"])
    peer, must, best = layer.figures(board.cpu.name)
    return {
        "layer": layer.name, "kernel": row["kernel"], "macs": row["macs"], "insns": row["insns"],
        "insns_per_mac": row["insns"] / row["macs"], "peer": peer, "must": must, "best": best,
        "text_bytes": report["text_bytes"], "equal": bool((got.reshape(-1) == want.reshape(-1)).all()),
        "scratch_bytes": sum(
            o.type.size_bytes for i in compiled.program.instrs for o in i.operands if o.role == "scratch"
        ),
        "weights_bytes": report["weights_bytes"],
    }  # fmt: skip


def show(rows: Sequence[dict[str, Any]], board: Board, console: Console) -> None:
    """Print one board's table."""
    table = Table(title=f"instructions per MAC on {board.name} ({board.cpu.name})", box=None)
    for column in ("layer", "kernel", "MACs", "insns/MAC", "peer", "ratio", "must", "best known", "scratch", "code",
                   "constants"):  # fmt: skip
        table.add_column(column, justify="left" if column in ("layer", "kernel") else "right")
    for r in rows:
        ok = "" if not r["must"] else "green" if r["insns_per_mac"] <= r["must"] else "red"
        value = f"{r['insns_per_mac']:.3f}" + ("" if r["equal"] else " WRONG")
        table.add_row(
            r["layer"], r["kernel"], f"{r['macs']:,}", f"[{ok}]{value}[/]" if ok else value,
            f"{r['peer']:.2f}" if r["peer"] else "-",
            f"{r['insns_per_mac'] / r['peer']:.2f}" if r["peer"] else "-", f"{r['must']:.2f}" if r["must"] else "-",
            f"{r['best']:.2f}" if r["best"] else "-", str(r["scratch_bytes"]), f"{r['text_bytes']:,}",
            f"{r['weights_bytes']:,}",
        )  # fmt: skip
    console.print(table)


def main() -> int:
    """Measure the layers on the boards; exit status 1 when an output is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--boards", nargs="+", default=["mps2-an386"], metavar="BOARD[/CPU]")
    parser.add_argument("--layers", default="", help="only layers whose name contains this")
    parser.add_argument("--opt", default="balanced", choices=("size", "balanced", "speed"))
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "bench_kernels.json")
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    results: dict[str, list[dict[str, Any]]] = {}
    try:
        for name in args.boards:
            board_name, _, cpu = name.partition("/")
            board = load_board(board_name, cpu or None)
            results[name] = [measure(layer, board, args.opt) for layer in LAYERS if args.layers in layer.name]
            show(results[name], board, console)
    except GlowcError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["equal"] for rows in results.values() for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
