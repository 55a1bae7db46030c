"""The ONNX models of the layers that scripts/fit_costs.py measures (scripts/cost_layers.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx.helper as oh
from cost_layers import WIDTHS
from cost_sample import Sample
from onnx import TensorProto

CALM = "calm"  # inputs whose names begin so are small, as what comes from a norm and a dense layer, or fits codes
RECTIFIED = "relu"  # these are not negative, as what comes from a layer with ReLU: FPUs in software are fast at zeros
SPARSE = "few"  # and most of these are zeros, as what deep layers read
RGB = 3  # channels of images that a network begins with
LONG, SPREAD_OUT = 900, 36.0  # inputs of dense layers whose weights, as trained ones, are spread over more of the codes
_WEIGHTED = frozenset({"conv", "convw8", "dwconv", "fc"})


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

    def converted(self, at: int, sample: Sample, kind: str, _: bool) -> None:
        """Add a change of the width of codes."""
        wide = kind == "widen"
        before, after = (np.int8, np.int16)[:: 1 if wide else -1]
        name = self.input(f"x{at}", sample.hwc, TensorProto.INT8 if wide else TensorProto.INT16)
        value = self.dequantized(name, 0.0213172 if wide else 1.7e-4, 5 if wide else 0, before)
        s = self.const(f"{value}_qs", np.float32(1.7e-4 if wide else 0.0213172))  # type: ignore[arg-type]
        z = self.const(f"{value}_qz", np.asarray(0 if wide else 5, after))
        self.output(
            self.node("QuantizeLinear", (value, s, z), f"{value}_q"), TensorProto.INT16 if wide else TensorProto.INT8
        )

    def weights(self, sample: Sample, shape: Sequence[int]) -> np.ndarray:
        is_long = sample.kind == "fc" and sample.hwc[-1] > LONG
        return np.clip(self.rng.normal(0, SPREAD_OUT if is_long else 16, shape), -127, 127).astype(np.int8)

    def add(self, at: int, sample: Sample) -> None:
        """Add the layer number `at`."""
        name, is_float = f"x{at}", sample.kind.endswith("_f32")
        kind = sample.kind.removesuffix("_f32")
        shape = (1, sample.hwc[2], *sample.hwc[:2]) if len(sample.hwc) == 3 else (1, *sample.hwc)
        if kind == "fc" and len(sample.hwc) == 2:
            shape = sample.hwc
        if kind in _SPECIAL:
            _SPECIAL[kind](self, at, sample, kind, is_float)
            return
        if kind.endswith("rs"):
            self.shifted(at, sample, kind.removesuffix("rs"), shape)
            return
        if kind == "quantize":
            self.quantized(self.input(f"{CALM}{at}", shape, TensorProto.FLOAT), 0.02, 3)
            return
        if is_float:
            rectified = "x" if sample.signed or kind not in _WEIGHTED else SPARSE if sample.sparse else RECTIFIED
            name = f"{CALM if kind in ('gelu', 'erf') else rectified}{at}"
        elif kind.startswith("avg_pool"):
            name = f"{RECTIFIED}{at}"
        self.input(name, shape, TensorProto.FLOAT if is_float else TensorProto.INT8)
        zero = -128 if at % 2 or kind.startswith(("avg_pool", "max_pool", "mean")) else 5
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
        if kind.removesuffix("_loud") in _WEIGHTED:  # loud: sums that leave the range of codes by far
            scale = 0.02 * 0.01 * (3 if kind.endswith("_loud") else 60)
            return self._weighted(at, sample, kind.removesuffix("_loud"), x, is_float), scale
        if kind in ("add", "sub", "mul", "add_any", "sub_any", "mul_gate"):
            other, ties = f"z{at}", not kind.endswith("_any")  # simple ratios of scales make ties
            kind, shape = (kind, shape) if kind != "mul_gate" else ("mul", (*shape[:2], 1, 1))
            self.input(other, shape, TensorProto.FLOAT if is_float else TensorProto.INT8)
            z = other if is_float else self.dequantized(other, 0.03 if ties else 0.0217, -7, np.int8)
            return self.node(kind.removesuffix("_any").capitalize(), (x, z), out), 0.04 if ties else 0.0371
        if kind in ("avg_pool", "max_pool", "avg_pool_any", "avg_pool_low"):
            op = "MaxPool" if kind == "max_pool" else "AveragePool"
            scale = {"any": 0.0173, "low": 0.0264}.get(kind.rpartition("_")[2], 0.02)
            return self.node(op, (x,), out, kernel_shape=sample.k, strides=(sample.stride,) * 2), scale
        if kind == "mean":
            return self.mean(x, out, (2, 3)), 0.02
        op = {"sigmoid": "Sigmoid", "softmax": "Softmax", "relu": "Relu", "tanh": "Tanh", "gelu": "Gelu", "exp": "Exp",
              "sqrt": "Sqrt", "erf": "Erf"}[kind]  # fmt: skip
        return self.node(op, (x,), out), 1 / 256

    def mean(self, value: str, output: str, axes: tuple[int, ...]) -> str:
        """Add the mean over `axes`, which stay with one entry."""
        return self.node("ReduceMean", (value, self.const(f"{output}_a", np.array(axes, np.int64))), output, keepdims=1)

    def edge(self, name: str, shape: Sequence[int], is_float: bool, zero: int = 5) -> str:
        """Add an input of the model, in int8 with its DequantizeLinear where it is not `is_float`."""
        self.input(name, shape, TensorProto.FLOAT if is_float else TensorProto.INT8)
        return name if is_float else self.dequantized(name, 0.02, zero, np.int8)

    def end(self, value: str, is_float: bool, scale: float = 0.05) -> None:
        """End a layer in the form that it began in."""
        if is_float:
            self.output(value, TensorProto.FLOAT)
        else:
            self.quantized(value, scale, 3)

    def norm(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a layer norm of the rows of a matrix."""
        n = sample.hwc[1]
        x = self.edge(f"x{at}", (1, *sample.hwc), is_float)
        parts = [self.const(f"{v}{at}", self.rng.normal(1, 0.2, n).astype(np.float32)) for v in ("g", "b")]
        self.end(self.node("LayerNormalization", (x, *parts), f"y{at}", axis=-1), is_float)

    def product(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a product of two activations, the second one as it is, or transposed."""
        (m, k, n), heads, turned = sample.hwc, sample.out_c, kind.startswith("matmult")
        a = self.edge(f"x{at}", (heads, m, k), is_float)
        zero = 0 if kind.endswith("_even") else 5
        b = self.edge(f"z{at}", (heads, n, k) if turned else (heads, k, n), is_float, zero)
        if turned:
            b = self.node("Transpose", (b,), f"z{at}_t", perm=[0, 2, 1])
        self.end(self.node("MatMul", (a, b), f"y{at}"), is_float, 0.2)

    def moved(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a transposition of a matrix, a copy of it, or one with a row and a column more."""
        self.input(f"x{at}", (1, *sample.hwc), element := TensorProto.FLOAT if is_float else TensorProto.INT8)
        if kind == "transpose":
            y = self.node("Transpose", (f"x{at}",), f"y{at}", perm=[0, 2, 1])
        elif kind == "padded":
            y = self.node("Pad", (f"x{at}", self.const(f"p{at}", np.array([0, 0, 0, 0, 1, 1]))), f"y{at}")
        else:
            y = self.node("Flatten", (f"x{at}",), f"y{at}", axis=1)
        self.output(y, element)

    def gather(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a lookup of rows in a table of 100."""
        rows, n = sample.hwc
        self.input(f"x{at}", (1, rows), TensorProto.INT64)
        table = self.rng.integers(-100, 100, (100, n)).astype(np.float32 if is_float else np.int8)
        y = self.node("Gather", (self.const(f"w{at}", table), f"x{at}"), f"y{at}", axis=0)
        self.output(y, TensorProto.FLOAT if is_float else TensorProto.INT8)

    def reduced(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add the mean of each column of a matrix."""
        x = self.edge(f"x{at}", (1, *sample.hwc), is_float)
        self.end(self.mean(x, f"y{at}", (1,)), is_float)

    def recurrent(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a GRU or an LSTM in one or two directions."""
        (seq, n, hidden), dirs, gates = sample.hwc, sample.out_c, 3 if kind == "gru" else 4
        x = self.edge(f"{CALM}{at}", (seq, 1, n), is_float)
        shapes = {"w": (dirs, gates * hidden, n), "r": (dirs, gates * hidden, hidden), "b": (dirs, 2 * gates * hidden)}
        parts = [self.const(f"{v}{at}", self.rng.normal(0, 0.3, s).astype(np.float32)) for v, s in shapes.items()]
        if not is_float:
            codes = (self.const(f"{v}{at}_c", self.weights(sample, shapes[v])) for v in "wr")
            parts[:2] = [self.dequantized(name, 0.01, 0, np.int8) for name in codes]
        more = {"direction": "bidirectional" if dirs == 2 else "forward", "hidden_size": hidden}
        more |= {"linear_before_reset": 1} if kind == "gru" else {}
        self.end(self.node(kind.upper(), (x, *parts), f"y{at}", **more), is_float)

    def dynamic(self, at: int, sample: Sample, kind: str, is_float: bool) -> None:
        """Add a dense layer of integers whose input is quantised as it comes."""
        names = [f"x{at}_{part}" for part in ("q", "s", "z")]
        x = self.edge(f"x{at}", sample.hwc, True)
        self.nodes.append(oh.make_node("DynamicQuantizeLinear", [x], names, name=f"n_x{at}_q"))
        w = self.const(f"w{at}", self.weights(sample, (sample.hwc[1], sample.out_c)))
        zero = self.const(f"w{at}_z", np.int8(0))  # type: ignore[arg-type]
        scale = self.node("Mul", (names[1], self.const(f"w{at}_s", np.float32(0.01))), f"y{at}_s")  # type: ignore[arg-type]
        sums = self.node("MatMulInteger", (names[0], w, names[2], zero), f"y{at}_i")
        y = self.node("Mul", (self.node("Cast", (sums,), f"y{at}_c", to=TensorProto.FLOAT), scale), f"y{at}")
        self.output(y, TensorProto.FLOAT)

    def shift(self, value: str, output: str, channels: int = 0) -> str:
        """Add a RequantShift, of each channel of an image or of all alike."""
        shape = (channels, 1, 1) if channels else ()
        parts = [self.const(f"{output}_{v}", np.full(shape, n, np.float32)) for v, n in (("m", 514.0), ("a", 0.0))]
        values = {"div": 65536.0, "n_levels_out": 256.0, "signed": 0.0}
        tensors = {name: oh.make_tensor(name, TensorProto.FLOAT, (), [number]) for name, number in values.items()}
        return self.node("RequantShift", (value, *parts), output, **tensors)

    def interleaved(self, at: int, shape: Sequence[int]) -> str:
        """Add codes that a convolution made of an image of one channel: layers in the middle read them by pixels."""
        x, channels = self.edge(f"x{at}", (1, 1, *shape[2:]), True), shape[1]
        w = self.const(f"x{at}_w", self.rng.integers(-60, 61, (channels, 1, 1, 1)).astype(np.float32))
        return self.shift(self.node("Conv", (x, w), f"x{at}_c", kernel_shape=(1, 1)), f"x{at}_q", channels)

    def shifted(self, at: int, sample: Sample, kind: str, shape: Sequence[int]) -> None:
        """Add a layer of integers kept in floats, from codes to codes."""
        if sample.planar and shape[1] > RGB:
            x = self.interleaved(at, shape)
        else:
            x = self.edge(f"x{at}", shape, True)
            x = x if sample.planar else self.shift(x, f"x{at}_q")
        if kind == "add":
            z = self.shift(self.edge(f"z{at}", shape, True), f"z{at}_q")
            y = self.node("Add", (x, z), f"y{at}")
        elif kind == "fc":
            w = self.const(f"w{at}", self.weights(sample, (sample.out_c, sample.hwc[0])).astype(np.float32) // 3)
            y = self.node("Gemm", (x, w), f"y{at}", transB=1)
        else:
            group = sample.hwc[2] if kind == "dwconv" else 1
            taps = (sample.out_c, sample.hwc[2] // group, *sample.k)
            w = self.const(f"w{at}", (self.weights(sample, taps) // 3).astype(np.float32))
            y = self.node("Conv", (x, w), f"y{at}", group=group, kernel_shape=sample.k, strides=(sample.stride,) * 2,
                          pads=sample.pads)  # fmt: skip
        self.output(self.shift(y, f"y{at}_q", sample.out_c if kind in ("conv", "dwconv") else 0), TensorProto.FLOAT)

    def _weighted(self, at: int, sample: Sample, kind: str, x: str, is_float: bool) -> str:
        c, taps = sample.hwc[-1], sample.k
        shape: tuple[int, ...] = (
            (sample.out_c, c) if kind == "fc" else (sample.out_c, 1 if kind == "dwconv" else c, *taps)
        )
        weights = self.weights(sample, shape)
        scale = (self.rng.uniform(0.5, 1.5, sample.out_c) * 0.01).astype(np.float32)
        if kind == "convw8":
            w = self.dequantized(self.const(f"w{at}", weights), np.float32(0.01), 0, np.int8)
            b = self.const(f"b{at}", self.rng.normal(0, 1, sample.out_c).astype(np.float32))
        elif is_float:
            w = self.const(f"w{at}", (weights * 0.01).astype(np.float32))
            b = self.const(f"b{at}", self.rng.normal(0, 1, sample.out_c).astype(np.float32))
        else:
            zeros = np.zeros(sample.out_c, np.int32)
            kind_of, zero_of, bias_zero = np.int8, zeros, zeros
            if sample.wide:  # from -120 to 135, with one zero point for all
                weights = (weights.astype(np.int16) + 120).clip(0, 255).astype(np.uint8)
                weights[:2] = 255
                scale, kind_of, zero_of, bias_zero = scale[0], np.uint8, np.uint8(120), np.int32(0)
            elif sample.zero is not None:  # with one zero point for all
                weights = (2 * weights.astype(np.int16) + sample.zero).clip(0, 255).astype(np.uint8)
                weights.reshape(-1)[:2] = 0, 255
                scale, kind_of, zero_of, bias_zero = scale[0], np.uint8, np.uint8(sample.zero), np.int32(0)
            elif sample.one:
                scale, zero_of, bias_zero = scale[0], np.int8(0), np.int32(0)
            w = self.dequantized(self.const(f"w{at}", weights), scale, zero_of, kind_of)
            bias = self.rng.integers(-500, 500, sample.out_c, dtype=np.int32)
            b = self.dequantized(self.const(f"b{at}", bias), np.float32(0.02) * scale, bias_zero, np.int32)
        if kind == "fc":
            return self.node("Gemm", (x, w, b), f"y{at}", transB=1)
        more = {"kernel_shape": taps, "strides": (sample.stride,) * 2, "pads": sample.pads}
        more["dilations"] = (sample.dilation,) * 2
        return self.node("Conv", (x, w, b), f"y{at}", group=c if kind == "dwconv" else 1, **more)


_SPECIAL = {
    "layer_norm": _Builder.norm, "matmul": _Builder.product, "matmult": _Builder.product,
    "matmul_even": _Builder.product, "matmult_even": _Builder.product, "transpose": _Builder.moved,
    "flat": _Builder.moved, "padded": _Builder.moved, "gather": _Builder.gather, "reduce": _Builder.reduced,
    "gru": _Builder.recurrent, "lstm": _Builder.recurrent,
    "dynamic": _Builder.dynamic, "widen": _Builder.converted, "narrow": _Builder.converted,
}  # fmt: skip


def model_of(samples: Sequence[Sample]) -> onnx.ModelProto:
    """Return a model in which the layers stand side by side."""
    builder = _Builder()
    for at, sample in enumerate(samples):
        builder.add(at, sample)
    graph = oh.make_graph(builder.nodes, "layers", builder.inputs, builder.outputs, builder.consts)
    if samples[0].sixteen:
        _widen(graph)
    opset = 21 if any(s.sixteen or s.kind in WIDTHS for s in samples) else 20
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)], ir_version=10)


def _widen(graph: onnx.GraphProto) -> None:
    """Make the int8 codes between layers int16, with zero point 0; weights stay int8."""
    consts = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and node.input[0] not in consts:
            consts[node.input[2]].CopyFrom(onnx.numpy_helper.from_array(np.int16(0), node.input[2]))  # type: ignore[arg-type]
    for edge in (*graph.input, *graph.output):
        if edge.type.tensor_type.elem_type == TensorProto.INT8:
            edge.type.tensor_type.elem_type = TensorProto.INT16
