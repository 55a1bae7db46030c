"""Layers of random kind and shape, and models of them (scripts/cliffs.py, scripts/fit_costs.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import onnx
import onnx.compose
from onnx import TensorProto
from onnx import helper as oh

from tests.tflite.writer import Build, Quant, Tensor, quant

Rng = np.random.Generator
KINDS = ("conv", "pointwise", "depthwise", "dense", "time", "time_depthwise", "stem", "product", "add", "mul", "pool")
MOST_MACS, LEAST_MACS = 400_000, 20_000
ELEMENTWISE = ("add", "mul")
SAME, VALID = 0, 1  # TensorFlow Lite's numbers
STEEP = 0.15  # share of layers with factors of 1/2 and more


@dataclass(frozen=True)
class Drawn:
    """One layer: `h` x `w` x `c` in, a window of `k_h` x `k_w`; dense layers have `h` rows, products are h x c x out_c.

    `bits` are those of activations, `weights` their kind: s8, s4, u8 (with a zero point). `factor` is the binary
    logarithm of the factor from sums to codes; `planar`: an image of the network's input in NCHW.
    """

    form: str
    kind: str
    h: int
    w: int
    c: int
    out_c: int
    k_h: int = 1
    k_w: int = 1
    stride: int = 1
    dilation: int = 1
    padding: int = SAME
    bits: int = 8
    weights: str = "s8"
    zero: int = 0
    factor: float = -9.0
    planar: bool = False
    seed: int = 0

    def __str__(self) -> str:
        size, window = f"{self.h}x{self.w}x{self.c} -> {self.out_c}", self.k_h * self.k_w > 1
        more = {
            f"k {self.k_h}x{self.k_w}": window, f"stride {self.stride}": self.stride > 1,
            "valid": self.padding == VALID,
            f"dilation {self.dilation}": self.dilation > 1, f"s{self.bits}": self.bits > 8, "planar": self.planar,
            self.weights: self.weights != "s8", f"zero {self.zero}": True, f"factor 2^{self.factor:.1f}": True,
        }  # fmt: skip
        return " ".join([self.form, self.kind, size, *(word for word, holds in more.items() if holds)])

    @property
    def family(self) -> str:
        """The kind, with the bits of codes where these are 16."""
        return f"{self.kind}_16" if self.bits > 8 else self.kind

    @property
    def depthwise(self) -> bool:
        """Whether each channel has a window of its own."""
        return self.kind.endswith("depthwise")

    @property
    def windowed(self) -> bool:
        """Whether it is a convolution."""
        return self.kind in ("conv", "pointwise", "depthwise", "time", "time_depthwise", "stem")

    @cached_property
    def out_hw(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        if not self.windowed and self.kind != "pool":
            return self.h, self.w
        sizes = []
        for n, k in ((self.h, self.k_h), (self.w, self.k_w)):
            reach = 0 if self.padding == SAME else (k - 1) * self.dilation
            sizes.append(-(-(n - reach) // self.stride))
        return sizes[0], sizes[1]

    @property
    def results(self) -> int:
        """Elements of the result."""
        return self.out_hw[0] * self.out_hw[1] * self.out_c

    @property
    def macs(self) -> int:
        """Multiply-accumulates, with those of padding; additions of a pool, elements of an elementwise layer."""
        alone = self.depthwise or self.kind in ("add", "mul", "pool")
        return self.results * self.k_h * self.k_w * (1 if alone else self.c)

    @property
    def bytes(self) -> int:
        """Bytes of its activations."""
        other = self.results if self.kind in ELEMENTWISE else self.c * self.out_c * (self.kind == "product")
        return (self.h * self.w * self.c + other + self.results) * self.bits // 8


def draw(
    rng: Rng, count: int, only: Sequence[str] = (), macs: tuple[int, int] = (LEAST_MACS, MOST_MACS)
) -> list[Drawn]:
    """Return `count` layers that a generator draws, of so many multiply-accumulates."""
    found: list[Drawn] = []
    while len(found) < count:
        layer = _drawn(rng, only or KINDS)
        few = macs[0] // 10 if layer.kind in ELEMENTWISE else macs[0]
        if min(layer.out_hw) > 0 and few <= layer.macs <= macs[1]:
            found.append(layer)
    return found


def _pick(rng: Rng, *choices: int) -> int:
    return int(choices[int(rng.integers(len(choices)))])


def _drawn(rng: Rng, kinds: Sequence[str]) -> Drawn:
    kind, form = kinds[int(rng.integers(len(kinds)))], ("onnx", "tflite")[int(rng.integers(2))]
    channels = _pick(rng, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, int(rng.integers(2, 130)))
    out = _pick(rng, 4, 8, 10, 16, 24, 32, 64, 96, int(rng.integers(2, 130)))
    h, w = (_pick(rng, 4, 6, 8, 12, 16, 24, int(rng.integers(3, 40))) for _ in range(2))
    values: dict[str, object] = {"h": h, "w": w, "c": channels, "out_c": out}
    if kind in ("conv", "depthwise", "stem", "pool"):
        k = _pick(rng, 3, 3, 3, 5, 7, 2, 4) if kind != "pool" else _pick(rng, 2, 3, 4)
        values |= {"k_h": k, "k_w": k if rng.random() < 0.8 else _pick(rng, 1, 2, 3, 5)}
        values |= {"stride": _pick(rng, 1, 1, 2, 2 if kind != "stem" else k)}
        if values["stride"] == 1 and kind != "pool" and rng.random() < 0.25:
            values["dilation"] = _pick(rng, 2, 4)
    if kind.startswith("time"):
        values |= {"h": 1, "w": _pick(rng, 16, 32, 49, 64, 100, 128), "k_w": _pick(rng, 3, 5, 7, 9, 2, 15)}
        if rng.random() < 0.4:
            values["dilation"] = _pick(rng, 2, 4, 8)
    if kind == "stem":
        values |= {"c": _pick(rng, 1, 2, 3, 3, 3, 4), "planar": form == "onnx"}
    if kind == "dense":
        values |= {
            "h": _pick(rng, 1, 1, 1, 4, 9, 32),
            "w": 1,
            "c": _pick(rng, 64, 128, 256, 400, 640, int(rng.integers(20, 700))),
        }
    if kind == "product":
        values |= {"w": 1, "h": _pick(rng, 1, 4, 16, 32, int(rng.integers(1, 50)))}
    if kind.endswith("depthwise") or kind in ("add", "mul", "pool"):
        values["out_c"] = values["c"]
    values["padding"] = VALID if rng.random() < 0.3 else SAME
    bits = 16 if rng.random() < 0.2 else 8
    weights = "s8" if rng.random() < 0.75 else ("s4", "u8")[int(rng.integers(2))]
    if (form == "tflite" and weights == "u8") or bits == 16 or kind in ("product", "add", "mul", "pool"):
        weights = "s8"
    whole = form == "tflite" and bits == 16
    zero = 0 if whole else _pick(rng, -128, 0, int(rng.integers(-128, 128))) * (37 if bits == 16 else 1)
    factor = rng.uniform(-1, 1.5) if rng.random() < STEEP else rng.uniform(-12, -4) - (bits - 8) / 2
    values |= {"bits": bits, "weights": weights, "zero": zero, "factor": float(factor)}
    return Drawn(form, kind, seed=int(rng.integers(1 << 30)), **values)  # type: ignore[arg-type]


def model_bytes(layer: Drawn) -> bytes:
    """Return a file of the layer."""
    if layer.form == "tflite":
        build = Build()
        _tflite(layer, build)
        return build.bytes()
    return bytes(_onnx(layer).SerializeToString())


def models_bytes(layers: Sequence[Drawn]) -> bytes:
    """Return a file of layers of one form, each for itself; the name of the n-th one begins with n_y<n>."""
    if layers[0].form == "tflite":
        build, outputs = Build(), list[int]()
        for at, layer in enumerate(layers):
            _tflite(layer, build)
            build.tensors[build.outputs[0]] = replace(build.tensors[build.outputs[0]], name=f"n_y{at}")
            outputs += build.outputs
        build.outputs = outputs
        return build.bytes()
    first, *others = (onnx.compose.add_prefix(_onnx(x), f"n_y{at}_") for at, x in enumerate(layers))
    for other in others:
        for part in ("node", "input", "output", "initializer"):
            getattr(first.graph, part).extend(getattr(other.graph, part))
    return bytes(first.SerializeToString())


def _scales(layer: Drawn, rng: Rng, count: int) -> tuple[float, np.ndarray, float]:
    """Return the scales of the input, of the weights of each channel, and of the result."""
    x, w = 0.021 * 2.0 ** (8 - layer.bits), (0.004 * rng.uniform(0.6, 1.4, count)).astype(np.float32)
    return x, w, float(x * 0.004 * 2.0**-layer.factor)


def _codes(layer: Drawn, rng: Rng, shape: Sequence[int]) -> np.ndarray:
    if layer.weights == "s4":
        return np.clip(rng.normal(0, 3, shape), -7, 7).astype(np.int8)
    if layer.weights == "u8":
        return np.clip(rng.normal(120, 40, shape), 0, 255).astype(np.uint8)
    return np.clip(rng.normal(0, 30, shape), -127, 127).astype(np.int8)


def _tflite(layer: Drawn, build: Build) -> None:
    rng, kind = np.random.default_rng(layer.seed), f"int{layer.bits}"
    x_scale, w_scales, y_scale = _scales(layer, rng, layer.out_c)
    x_q, y_q = quant(x_scale, layer.zero), quant(y_scale, 0 if layer.bits == 16 else int(rng.integers(-128, 128)))
    flat = layer.kind in ("dense", "product")
    shape = (layer.h, layer.c) if flat else (1, layer.h, layer.w, layer.c)
    x = build.input(shape, kind, x_q)
    out = Tensor((layer.h, layer.out_c) if flat else (1, *layer.out_hw, layer.out_c), kind, y_q)
    if layer.kind == "product":
        out = Tensor(out.shape, kind, quant(x_scale**2 * 2.0**-layer.factor, y_q.zero[0]))
        build.op("BATCH_MATMUL", (x, build.input((layer.c, layer.out_c), kind, x_q)), out)
    elif layer.kind in ("add", "mul"):
        build.op(layer.kind.upper(), (x, build.input(shape, kind, quant(x_scale * 0.7, layer.zero // 2))),
                 Tensor(shape, kind, quant(x_scale * 1.3, y_q.zero[0])))  # fmt: skip
    elif layer.kind == "pool":
        build.op("AVERAGE_POOL_2D", (x,), Tensor(out.shape, kind, x_q), padding=layer.padding, strideH=layer.stride,
                 strideW=layer.stride, filterHeight=layer.k_h, filterWidth=layer.k_w)  # fmt: skip
    else:
        _weighted(layer, build, x, out, rng, (x_scale, w_scales))


def _weighted(
    layer: Drawn, build: Build, x: int, out: Tensor, rng: Rng, scales: tuple[float, np.ndarray]
) -> None:  # fmt: skip
    depthwise, dense = layer.depthwise, layer.kind == "dense"
    shape: tuple[int, ...] = (
        (1, layer.k_h, layer.k_w, layer.out_c) if depthwise else (layer.out_c, layer.k_h, layer.k_w, layer.c)
    )
    shape = (layer.out_c, layer.c) if dense else shape
    x_scale, each = scales
    each = np.full_like(each, each[0]) if dense else each
    w_scales = tuple(map(float, each[:1] if dense else each))
    zeros, axis = (0,) * len(w_scales), 3 if depthwise else 0
    w = build.const(
        _codes(layer, rng, shape), Quant(w_scales, zeros, axis), "int4" if layer.weights == "s4" else "int8"
    )
    bias = rng.integers(-9000, 9000, layer.out_c).astype(np.int64 if layer.bits == 16 else np.int32)
    b = build.const(bias, Quant(tuple(float(np.float32(x_scale * s)) for s in w_scales), zeros, 0))
    if dense:
        build.op("FULLY_CONNECTED", (x, w, b), out)
        return
    options: dict[str, Any] = {
        "padding": layer.padding, "strideH": layer.stride, "strideW": layer.stride,
        "dilationHFactor": layer.dilation, "dilationWFactor": layer.dilation,
        **({"depthMultiplier": 1} if depthwise else {}),
    }  # fmt: skip
    build.op("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", (x, w, b), out, **options)


_ELEMENTS: Mapping[str, int] = {"s8": TensorProto.INT8, "u8": TensorProto.UINT8, "s4": TensorProto.INT4}


class _Qdq:
    """The nodes and constants of one ONNX layer between codes."""

    def __init__(self, layer: Drawn) -> None:
        self.layer, self.rng = layer, np.random.default_rng(layer.seed)
        self.nodes: list[onnx.NodeProto] = []
        self.consts: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.element = TensorProto.INT16 if layer.bits == 16 else TensorProto.INT8

    def const(self, name: str, value: object, element: int = TensorProto.FLOAT) -> str:
        array = np.asarray(value)
        self.consts.append(oh.make_tensor(name, element, array.shape, array.reshape(-1).tolist()))
        return name

    def node(self, op: str, inputs: Sequence[str], output: str, **attrs: Any) -> str:
        self.nodes.append(oh.make_node(op, list(inputs), [output], name=output, **attrs))
        return output

    def decoded(self, name: str, scale: object, zero: object, element: int, **attrs: Any) -> str:
        parts = self.const(f"{name}_s", scale), self.const(f"{name}_z", zero, element)
        return self.node("DequantizeLinear", (name, *parts), f"{name}_f", **attrs)

    def edge(self, name: str, shape: Sequence[int], scale: float, image: bool) -> str:
        """Add an input of the model; an image that is no network's input comes by pixels."""
        turned = image and not self.layer.planar
        given = (shape[0], *shape[2:], shape[1]) if turned else shape
        self.inputs.append(oh.make_tensor_value_info(name, self.element, given))
        value = self.decoded(name, scale, self.layer.zero, self.element)
        return self.node("Transpose", (value,), f"{name}_t", perm=(0, 3, 1, 2)) if turned else value

    def weighted(self, x: str, x_scale: float, scales: np.ndarray) -> str:
        layer, rng = self.layer, self.rng
        dense = layer.kind == "dense"
        shape = (layer.out_c, 1 if layer.depthwise else layer.c, layer.k_h, layer.k_w)
        one = layer.weights == "u8"
        each = float(scales[0]) if one else scales
        zero = 120 if one else np.zeros(layer.out_c, np.int64)
        codes = _codes(layer, rng, shape[:2] if dense else shape)
        element = _ELEMENTS[layer.weights]
        w = self.decoded(self.const("w", codes, element), each, zero, element, **({} if one else {"axis": 0}))
        bias = rng.integers(-9000, 9000, layer.out_c)
        b_scale = np.float32(x_scale) * (np.full(layer.out_c, each, np.float32) if one else scales)
        b = self.decoded(self.const("b", bias, TensorProto.INT32), b_scale, np.zeros(layer.out_c, np.int64),
                         TensorProto.INT32, axis=0)  # fmt: skip
        if dense:
            return self.node("Gemm", (x, w, b), "y", transB=1)
        pads = _pads(layer)
        return self.node("Conv", (x, w, b), "y", group=layer.c if layer.depthwise else 1, pads=pads,
                         kernel_shape=(layer.k_h, layer.k_w), strides=(layer.stride,) * 2,
                         dilations=(layer.dilation,) * 2)  # fmt: skip


def _pads(layer: Drawn) -> tuple[int, ...]:
    if layer.padding == VALID:
        return 0, 0, 0, 0
    needs = [
        max(0, (o - 1) * layer.stride + (k - 1) * layer.dilation + 1 - n)
        for o, k, n in zip(layer.out_hw, (layer.k_h, layer.k_w), (layer.h, layer.w), strict=True)
    ]
    return needs[0] // 2, needs[1] // 2, needs[0] - needs[0] // 2, needs[1] - needs[1] // 2


def _onnx(layer: Drawn) -> onnx.ModelProto:
    made = _Qdq(layer)
    x_scale, scales, y_scale = _scales(layer, made.rng, layer.out_c)
    flat = layer.kind in ("dense", "product")
    shape = (layer.h, layer.c) if flat else (1, layer.c, layer.h, layer.w)
    x = made.edge("x", shape, x_scale, not flat)
    if layer.kind == "product":
        z = made.edge("z", (layer.c, layer.out_c), x_scale, False)
        y, y_scale = made.node("MatMul", (x, z), "y"), x_scale**2 * 2.0**-layer.factor
    elif layer.kind in ("add", "mul"):
        z = made.edge("z", shape, x_scale * 0.7, True)
        y, y_scale = made.node(layer.kind.capitalize(), (x, z), "y"), x_scale * 1.3
    elif layer.kind == "pool":
        y = made.node("AveragePool", (x,), "y", kernel_shape=(layer.k_h, layer.k_w), strides=(layer.stride,) * 2,
                      pads=_pads(layer))  # fmt: skip
        y_scale = x_scale
    else:
        y = made.weighted(x, x_scale, scales)
    if not flat and not layer.planar:
        y = made.node("Transpose", (y,), "y_t", perm=(0, 2, 3, 1))
    ends = made.const("q_s", y_scale), made.const("q_z", 0 if layer.bits == 16 else 3, made.element)
    made.node("QuantizeLinear", (y, *ends), "q")
    out = [oh.make_tensor_value_info("q", made.element, None)]
    graph = oh.make_graph(made.nodes, "layer", made.inputs, out, made.consts)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)], ir_version=10)
