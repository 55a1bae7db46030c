"""The layers that scripts/fit_costs.py measures: shapes around those of small networks, and their ONNX models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.helper as oh
from onnx import TensorProto

SAME = (1, 1, 1, 1)
LATER = (0, 0, 1, 1)  # what TensorFlow's SAME pads at stride 2
PLAIN = (0, 0, 0, 0)


@dataclass(frozen=True)
class Sample:
    """One layer. `hwc` is the input, (elements,) where the shape does not matter; `wide`: weights that need 16 bits
    beside another one; `planar`: an image in NCHW."""

    kind: str
    hwc: tuple[int, ...]
    out_c: int = 0
    k: tuple[int, int] = (1, 1)
    stride: int = 1
    pads: tuple[int, int, int, int] = PLAIN
    wide: bool = False
    planar: bool = False
    dilation: int = 1

    @property
    def bytes(self) -> int:
        """Bytes of its activations, roughly."""
        pixels = self.hwc[0] * self.hwc[1] if len(self.hwc) == 3 else 1
        size = int(np.prod(self.hwc)) + pixels // self.stride**2 * (self.out_c or self.hwc[-1])
        return size * (4 if self.kind.endswith("f32") else 2)


def conv(h: int, w: int, c: int, out_c: int, **more: object) -> Iterator[Sample]:
    """Yield a convolution, with narrow and with wide weights."""
    for wide in (False, True):
        yield Sample("conv", (h, w, c), out_c, wide=wide, **more)  # type: ignore[arg-type]


def _convolutions() -> Iterator[Sample]:
    for h, w, c, out_c, stride in (
        (10, 10, 64, 64, 1), (6, 6, 128, 128, 1), (20, 20, 8, 16, 1), (12, 12, 16, 32, 2), (3, 3, 256, 128, 1),
        (25, 5, 32, 64, 1), (7, 9, 30, 20, 1), (5, 5, 6, 10, 1), (24, 24, 16, 8, 1), (4, 4, 64, 256, 1),
        (8, 8, 12, 7, 1),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, stride=stride)
    for h, w, c, out_c, stride, pads in (
        (16, 16, 16, 16, 1, SAME), (12, 12, 32, 32, 1, SAME), (16, 16, 16, 32, 2, LATER), (6, 6, 64, 64, 1, SAME),
        (10, 6, 20, 12, 1, SAME), (9, 9, 4, 8, 1, PLAIN), (14, 14, 8, 24, 1, SAME), (5, 5, 32, 16, 1, SAME),
        (8, 8, 64, 64, 1, SAME), (7, 7, 64, 48, 1, SAME), (4, 8, 96, 32, 1, SAME), (24, 24, 12, 16, 1, SAME),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, k=(3, 3), stride=stride, pads=pads)
    yield from conv(12, 12, 8, 16, k=(5, 5), pads=(2, 2, 2, 2))
    yield from conv(8, 12, 16, 16, k=(1, 3), pads=(0, 1, 0, 1))
    for h, w, c, out_c, k, stride, pads in (
        (16, 16, 3, 8, (3, 3), 1, SAME), (24, 24, 3, 16, (3, 3), 2, LATER), (12, 10, 5, 6, (3, 3), 1, SAME),
        (49, 10, 1, 64, (10, 4), 2, (4, 1, 5, 1)), (20, 20, 2, 7, (5, 5), 1, PLAIN), (14, 14, 1, 8, (3, 3), 1, SAME),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, k=k, stride=stride, pads=pads)
    for h, w, c, out_c, k, stride, pads in (
        (16, 16, 3, 16, (3, 3), 1, SAME), (32, 32, 3, 8, (3, 3), 2, LATER), (20, 20, 3, 12, (3, 3), 1, PLAIN),
        (12, 12, 3, 8, (5, 5), 1, (2, 2, 2, 2)), (24, 24, 3, 16, (3, 3), 2, LATER),
        (16, 12, 2, 8, (7, 7), 2, (3, 3, 3, 3)), (20, 16, 3, 10, (5, 5), 2, PLAIN),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, k=k, stride=stride, pads=pads, planar=True)


def _others() -> Iterator[Sample]:
    for h, w, c, k, stride, pads in (
        (24, 24, 16, 3, 1, SAME), (12, 12, 64, 3, 1, SAME), (12, 12, 64, 3, 2, LATER), (25, 5, 64, 3, 1, SAME),
        (6, 6, 128, 3, 1, SAME), (3, 3, 256, 3, 1, SAME), (20, 20, 8, 3, 2, LATER), (10, 10, 12, 5, 1, (2, 2, 2, 2)),
        (9, 9, 7, 3, 1, PLAIN), (48, 8, 8, 3, 1, SAME), (8, 8, 24, 5, 2, (1, 1, 2, 2)), (14, 14, 32, 3, 2, PLAIN),
        (6, 6, 96, 3, 2, LATER),
    ):  # fmt: skip
        yield Sample("dwconv", (h, w, c), c, (k, k), stride, pads)
        yield Sample("dwconv_f32", (h, w, c), c, (k, k), stride, pads)
    for h, w, c, out_c, k, stride, dilation, pads in (
        (14, 14, 24, 24, (5, 5), 1, 1, (2, 2, 2, 2)), (14, 14, 40, 40, (5, 5), 2, 1, (1, 1, 2, 2)),
        (10, 10, 20, 20, (7, 7), 1, 1, (3, 3, 3, 3)), (14, 14, 32, 32, (3, 3), 1, 2, (2, 2, 2, 2)),
        (1, 64, 40, 40, (1, 9), 1, 1, (0, 4, 0, 4)), (12, 12, 16, 32, (3, 3), 1, 1, SAME),
        (7, 7, 112, 112, (3, 3), 1, 1, SAME), (24, 24, 24, 24, (3, 3), 2, 1, LATER), (16, 6, 9, 27, (3, 3), 1, 1, SAME),
    ):  # fmt: skip
        yield Sample("dwconv", (h, w, c), out_c, k, stride, pads, dilation=dilation)
    for n, out_n in ((640, 128), (128, 128), (128, 8), (8, 128), (64, 12), (256, 2), (100, 30), (30, 100), (400, 50)):
        yield Sample("fc", (n,), out_n)
        yield Sample("fc", (n,), out_n, wide=True)
        yield Sample("fc_f32", (n,), out_n)
    for h, w, c, out_c, k, pads in (
        (6, 6, 64, 64, 1, PLAIN), (10, 10, 8, 16, 1, PLAIN), (8, 8, 16, 16, 3, SAME), (12, 12, 3, 8, 3, SAME),
        (5, 5, 32, 24, 3, PLAIN), (7, 9, 30, 20, 1, PLAIN),
    ):  # fmt: skip
        yield Sample("conv_f32", (h, w, c), out_c, (k, k), 1, pads)
    kinds = "add sub mul sigmoid softmax quantize dequantize relu_f32 add_f32 softmax_f32"
    for n in (64, 500, 1001, 4096):
        yield from (Sample(kind, (n,)) for kind in kinds.split())
    for h, w, c, k, stride in (
        (8, 8, 64, 8, 1), (6, 6, 32, 2, 2), (25, 5, 64, 5, 1), (9, 9, 12, 3, 2), (3, 3, 256, 3, 1), (12, 12, 16, 3, 1),
        (16, 16, 8, 2, 2),
    ):  # fmt: skip
        for kind in ("avg_pool", "max_pool", "avg_pool_f32", "max_pool_f32"):
            yield Sample(kind, (h, w, c), 0, (min(h, k), min(w, k)), stride)
        yield Sample("mean", (h, w, c))


SAMPLES: tuple[Sample, ...] = (*_convolutions(), *_others())


class _Builder:
    """Collects the nodes, constants and edges of one model; every layer stands for itself."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.consts: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def const(self, name: str, value: np.ndarray) -> str:
        self.consts.append(onnx.numpy_helper.from_array(value, name))
        return name

    def node(self, op: str, inputs: Sequence[str], output: str, **attrs: object) -> str:
        self.nodes.append(oh.make_node(op, list(inputs), [output], name=f"n_{output}", **attrs))
        return output

    def dequantized(self, name: str, scale: float | np.ndarray, zero: int | np.ndarray, dtype: type) -> str:
        """Add a DequantizeLinear after the value `name`."""
        zeros = np.asarray(zero, dtype)
        s, z = self.const(f"{name}_s", np.asarray(scale, np.float32)), self.const(f"{name}_z", zeros)
        return self.node("DequantizeLinear", (name, s, z), f"{name}_f", **({"axis": 0} if zeros.ndim else {}))

    def input(self, name: str, shape: Sequence[int], dtype: int) -> str:
        self.inputs.append(oh.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, name: str, dtype: int) -> None:
        self.outputs.append(oh.make_tensor_value_info(name, dtype, None))

    def quantized(self, value: str, scale: float, zero: int) -> None:
        """End a layer in int8."""
        s, z = self.const(f"{value}_qs", np.float32(scale)), self.const(f"{value}_qz", np.int8(zero))  # type: ignore[arg-type]
        self.output(self.node("QuantizeLinear", (value, s, z), f"{value}_q"), TensorProto.INT8)

    def weights(self, sample: Sample, shape: Sequence[int]) -> np.ndarray:
        found = np.clip(self.rng.normal(0, 16, shape), -127, 127).astype(np.int8)
        if sample.wide:
            found[:2] = -128
        return found

    def add(self, at: int, sample: Sample) -> None:
        """Add the layer number `at`."""
        name, is_float = f"x{at}", sample.kind.endswith("_f32")
        kind = sample.kind.removesuffix("_f32")
        shape = (1, sample.hwc[2], *sample.hwc[:2]) if len(sample.hwc) == 3 else (1, *sample.hwc)
        if kind == "quantize":
            self.quantized(self.input(name, shape, TensorProto.FLOAT), 0.02, 3)
            return
        self.input(name, shape, TensorProto.FLOAT if is_float else TensorProto.INT8)
        zero = -128 if at % 2 or kind in ("avg_pool", "max_pool", "mean") else 5
        x = name if is_float else self.dequantized(name, 0.02, zero, np.int8)
        if kind == "dequantize":
            self.output(x, TensorProto.FLOAT)
            return
        y, scale = self._layer(at, sample, kind, x, shape, is_float)
        if is_float:
            self.output(y, TensorProto.FLOAT)
        else:
            self.quantized(y, scale, -128)

    def _layer(
        self, at: int, sample: Sample, kind: str, x: str, shape: Sequence[int], is_float: bool
    ) -> tuple[str, float]:
        out = f"y{at}"
        if kind in ("conv", "dwconv", "fc"):
            return self._weighted(at, sample, kind, x, is_float), 0.02 * 0.01 * 60
        if kind in ("add", "sub", "mul"):
            other = f"z{at}"
            self.input(other, shape, TensorProto.FLOAT if is_float else TensorProto.INT8)
            z = other if is_float else self.dequantized(other, 0.03, -7, np.int8)
            return self.node(kind.capitalize(), (x, z), out), 0.04
        if kind in ("avg_pool", "max_pool"):
            op = "AveragePool" if kind == "avg_pool" else "MaxPool"
            return self.node(op, (x,), out, kernel_shape=sample.k, strides=(sample.stride,) * 2), 0.02
        if kind == "mean":
            return self.node("ReduceMean", (x,), out, axes=[2, 3], keepdims=1), 0.02
        op = {"sigmoid": "Sigmoid", "softmax": "Softmax", "relu": "Relu"}[kind]
        return self.node(op, (x,), out), 1 / 256

    def _weighted(self, at: int, sample: Sample, kind: str, x: str, is_float: bool) -> str:
        c, taps = sample.hwc[-1], sample.k
        shape = (sample.out_c, c) if kind == "fc" else (sample.out_c, 1 if kind == "dwconv" else c, *taps)
        weights = self.weights(sample, shape)
        scale = (self.rng.uniform(0.5, 1.5, sample.out_c) * 0.01).astype(np.float32)
        if is_float:
            w = self.const(f"w{at}", (weights * 0.01).astype(np.float32))
            b = self.const(f"b{at}", self.rng.normal(0, 1, sample.out_c).astype(np.float32))
        else:
            zeros = np.zeros(sample.out_c, np.int32)
            w = self.dequantized(self.const(f"w{at}", weights), scale, zeros, np.int8)
            bias = self.rng.integers(-500, 500, sample.out_c, dtype=np.int32)
            b = self.dequantized(self.const(f"b{at}", bias), np.float32(0.02) * scale, zeros, np.int32)
        if kind == "fc":
            return self.node("Gemm", (x, w, b), f"y{at}", transB=1)
        more = {"kernel_shape": taps, "strides": (sample.stride,) * 2, "pads": sample.pads}
        more["dilations"] = (sample.dilation,) * 2
        return self.node("Conv", (x, w, b), f"y{at}", group=c if kind == "dwconv" else 1, **more)


def model_of(samples: Sequence[Sample]) -> onnx.ModelProto:
    """Return a model in which the layers stand side by side."""
    builder = _Builder()
    for at, sample in enumerate(samples):
        builder.add(at, sample)
    graph = oh.make_graph(builder.nodes, "layers", builder.inputs, builder.outputs, builder.consts)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=9)


def groups(samples: Sequence[Sample], room_bytes: int, most: int) -> list[list[Sample]]:
    """Return the samples cut into models: images of one layout together, at most `most`, activations that fit."""
    found: list[list[Sample]] = []
    for planar in (False, True):
        current: list[Sample] = []
        for sample in (s for s in samples if s.planar == planar and s.bytes <= room_bytes):
            if len(current) == most or sum(s.bytes for s in current) + sample.bytes > room_bytes:
                found.append(current)
                current = []
            current.append(sample)
        found += [current] if current else []
    return found
