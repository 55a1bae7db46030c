"""Large models of random weights through `glowc compile` and the C compiler: seconds and memory of each step.

`resnet50` is ResNet-50 in int8 (25.6 M weights), `wide` a chain of fully connected layers with 54 MB of weights,
`deep` 4,000 convolutions of few channels. A step is a process of its own: its seconds are those of the clock, its
memory is the largest that it or a child of it had.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_SCALE = 0.02  # of weights; activations have it, too


class _Net:
    """A quantised network (QDQ) of random weights, layer by layer; `x` is what the last layer gave."""

    def __init__(self, name: str, *shape: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.consts: list[onnx.TensorProto] = []
        self._rng, self._name, self._shape = np.random.default_rng(0), name, shape
        self._constant("scale", np.float32(_SCALE))
        self._constant("zero", np.int8(0))
        self.x = self._dequantized("input")

    def _constant(self, name: str, value: np.ndarray | np.generic) -> str:
        self.consts.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _node(self, op: str, inputs: Sequence[str], **attributes: object) -> str:
        out = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [*inputs], [out], out, **attributes))
        return out

    def _dequantized(self, codes: str) -> str:
        return self._node("DequantizeLinear", [codes, "scale", "zero"])

    def _through_codes(self, real: str) -> str:
        return self._dequantized(self._node("QuantizeLinear", [real, "scale", "zero"]))

    def layer(self, op: str, shape: Sequence[int], *, relu: bool = True, **attributes: object) -> None:
        """Add a Conv or Gemm with random int8 weights of this shape."""
        number = len(self.nodes)
        codes = self._rng.integers(-127, 128, [*shape], np.int8)
        weights = self._dequantized(self._constant(f"w{number}", codes))
        factor = self._constant(f"s{number}", np.float32(_SCALE * _SCALE))
        bias = self._constant(f"b{number}", self._rng.integers(-1000, 1000, shape[0]).astype(np.int32))
        real = self._node("DequantizeLinear", [bias, factor])
        y = self._node(op, [self.x, weights, real], **attributes)
        self.x = self._through_codes(self._node("Relu", [y]) if relu else y)

    def other(self, op: str, *more: str, **attributes: object) -> None:
        """Add an operator without weights; `more` are inputs besides the last tensor."""
        self.x = self._through_codes(self._node(op, [self.x, *more], **attributes))

    def flatten(self) -> None:
        """Make one axis of all but the first."""
        self.x = self._node("Flatten", [self.x])

    def save(self, path: Path) -> None:
        """Write the model."""
        self._node("QuantizeLinear", [self.x, "scale", "zero"])
        result = self.nodes[-1].output[0]
        graph = helper.make_graph(
            self.nodes, self._name, [helper.make_tensor_value_info("input", TensorProto.INT8, self._shape)],
            [helper.make_tensor_value_info(result, TensorProto.INT8, None)], self.consts,
        )  # fmt: skip
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def resnet50(path: Path) -> None:
    """ResNet-50 for 224x224 pixels: blocks of 3, 4, 6 and 3."""
    net = _Net("resnet50", 1, 3, 224, 224)
    net.layer("Conv", (64, 3, 7, 7), strides=[2, 2], pads=[3, 3, 3, 3])
    net.other("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    in_c = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        mid = 64 << stage
        for block in range(blocks):
            stride, begin = 2 if block == 0 and stage else 1, net.x
            net.layer("Conv", (mid, in_c, 1, 1))
            net.layer("Conv", (mid, mid, 3, 3), strides=[stride] * 2, pads=[1, 1, 1, 1])
            net.layer("Conv", (4 * mid, mid, 1, 1), relu=False)
            main, net.x = net.x, begin
            if block == 0:
                net.layer("Conv", (4 * mid, in_c, 1, 1), relu=False, strides=[stride] * 2)
            net.other("Add", main)
            net.other("Relu")
            in_c = 4 * mid
    net.other("GlobalAveragePool")
    net.flatten()
    net.layer("Gemm", (1000, in_c), relu=False, transB=1)
    net.save(path)


def wide(path: Path) -> None:
    """A chain of fully connected layers with 54 MB of weights."""
    net = _Net("wide", 1, 3000)
    for _ in range(6):
        net.layer("Gemm", (3000, 3000), transB=1)
    net.save(path)


def deep(path: Path, count: int = 4000) -> None:
    """A chain of small convolutions."""
    net = _Net("deep", 1, 8, 8, 8)
    for _ in range(count):
        net.layer("Conv", (8, 8, 3, 3), pads=[1, 1, 1, 1])
    net.save(path)


MODELS = {"resnet50": resnet50, "wide": wide, "deep": deep}


def measured(argv: Sequence[str]) -> tuple[float, float, int]:
    """Run a command; return its seconds by the clock, those of processors, and its most bytes of memory."""
    begin = time.perf_counter()
    process = os.posix_spawn(argv[0], argv, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(f"error: {' '.join(argv)}")
    seconds = time.perf_counter() - begin
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> None:
    """Print a line for each step of each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--board", default="virt-a53")
    parser.add_argument("--weights", help="the form of the constants (default: what glowc takes)")
    parser.add_argument("--keep", type=Path, help="folder for models and bundles")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="glowc-large-") as temporary:
        work = args.keep or Path(temporary)
        for name in args.models or MODELS:
            path, bundle = work / f"{name}.onnx", work / name
            if not path.exists():
                MODELS[name](path)
            more = ["--weights", args.weights] if args.weights else []
            glowc = [sys.executable, "-m", "glowc", "-q"]
            steps = {
                "glowc compile": ["compile", str(path), "--board", args.board, *more, "-o", str(bundle)],
                "glowc build": ["build", str(bundle), "-o", str(work / f"{name}.elf")],
            }
            for step, arguments in steps.items():
                clock, cpu, memory = measured([*glowc, *arguments])
                size = path.stat().st_size
                print(f"{name:10} {size / 1e6:6.1f} MB  {step:14} {clock:6.1f} s, {cpu:6.1f} s of CPU, "
                      f"{memory / 1e6:7.0f} MB = {memory / size:4.1f} x model")  # fmt: skip


if __name__ == "__main__":
    main()
