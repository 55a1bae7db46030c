"""Seeded one-operator models with inputs: for every operator, shapes, types, options, scales and zero points at random.

    case = make_case("CONV_2D", seed)      # the same case each time

Each maker draws what TFLM takes; what it refuses is a mistake of the maker, which a test shows.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tests.tflite.writer import Build, Quant, Tensor, quant

Rng = np.random.Generator
Shape = tuple[int, ...]
Arrays = tuple[np.ndarray, ...]
ACTIVATIONS = (0, 1, 2, 3)
INT_MIN, INT_MAX = -(2**31), 2**31 - 1


@dataclass(frozen=True)
class Case:
    """A model, the inputs of one or several calls; floats are compared within `rtol` of the largest magnitude."""

    label: str
    model: bytes
    calls: tuple[Arrays, ...]
    rtol: float = 1e-6


def pick(rng: Rng, *choices: object) -> object:
    """Return one of several things."""
    return choices[int(rng.integers(len(choices)))]


def flag(rng: Rng) -> bool:
    """Return a coin's side."""
    return bool(rng.integers(2))


def shape_of(rng: Rng, rank: int = 0, largest: int = 6) -> Shape:
    """Return a shape of 1 to 4 axes, or of `rank`."""
    return tuple(int(d) for d in rng.integers(1, largest + 1, rank or int(rng.integers(1, 5))))


def scale_of(rng: Rng, low: float = -8, high: float = -1) -> float:
    """Return a scale between two powers of two."""
    return float(np.float32(2.0 ** rng.uniform(low, high)))


def q_of(rng: Rng, kind: str, low: float = -8, high: float = -1) -> Quant | None:
    """Return a random quantisation of a kind; None for floats; int16 is symmetric."""
    if kind == "int8":
        return quant(scale_of(rng, low, high), int(pick(rng, -128, 127, 0, int(rng.integers(-128, 128)))))
    if kind == "uint8":
        return quant(scale_of(rng, low, high), int(rng.integers(0, 256)))
    return quant(scale_of(rng, low - 8, high - 8), 0) if kind == "int16" else None


def data_of(rng: Rng, shape: Shape, kind: str, spread: float = 4.0) -> np.ndarray:
    """Return random elements; whole ranges of 8 and 16 bits."""
    if kind.startswith("float"):
        return rng.normal(0, spread, shape).astype(kind)
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    info = np.iinfo(kind)
    low, high = (info.min, info.max) if info.bits <= 16 else (-1000, 1000)
    return rng.integers(low, high, shape, endpoint=True).astype(kind)


def int32(*values: int | Sequence[int]) -> np.ndarray:
    """Return whole numbers as TensorFlow Lite takes shapes and axes."""
    return np.asarray(values[0] if len(values) == 1 and not isinstance(values[0], int) else values, np.int32)


def finish(build: Build, rng: Rng, label: str, *, calls: int = 1, rtol: float = 1e-6, spread: float = 4.0) -> Case:
    """Return the case with random inputs."""
    inputs = [build.tensors[i] for i in build.inputs]
    data = tuple(tuple(data_of(rng, t.shape, t.kind, spread) for t in inputs) for _ in range(calls))
    shown = " ".join(f"{t.kind}{list(t.shape)}" for t in inputs)
    return Case(f"{label} {shown}", build.bytes(), data, rtol)


# one operand


def _unary(code: str, *kinds: str, fixed: Mapping[str, Quant] | None = None, spread: float = 4.0,
           positive: bool = False, rtol: float = 1e-6, options: Callable[[Rng], dict[str, object]] = lambda _: {},
           same: bool = False, low: float = -8, high: float = -1) -> Callable[[Rng], Case]:  # fmt: skip
    """Return the maker of an elementwise function; all codes are among the inputs of int8."""

    def make(rng: Rng) -> Case:
        kind, build = str(pick(rng, *kinds)), Build()
        q = q_of(rng, kind, low, high)
        if positive and q is not None:
            q = quant(q.scale[0], np.iinfo(kind).min if kind == "int8" else 0)
        shape: Shape = (16, 16) if kind in ("int8", "uint8") else (4, 64)
        x = build.input(shape, kind, q)
        out = q if same else (fixed or {}).get(kind, q_of(rng, kind, low, high))
        drawn = options(rng)
        build.op(code, [x], Tensor(shape, kind, out), **drawn)
        data = data_of(rng, shape, kind, spread)
        if kind in ("int8", "uint8"):
            data = np.arange(256).reshape(shape).astype(np.uint8).view(kind)
        elif positive:
            data = np.abs(data) + np.asarray(0 if kind == "int16" else 0.01, data.dtype)
        return Case(f"{code} {kind}{list(shape)} {drawn} {q}->{out}", build.bytes(), ((data,),), rtol)

    return make


_SIGMOID = {"int8": quant(1 / 256, -128), "int16": quant(1 / 32768, 0), "uint8": quant(1 / 256, 0)}
_TANH = {"int8": quant(1 / 128, 0), "int16": quant(1 / 32768, 0), "uint8": quant(1 / 128, 128)}


def hard_swish(rng: Rng) -> Case:
    """HARD_SWISH needs an output scale of at least 1/128 of the input's."""
    kind, build = str(pick(rng, "float32", "int8")), Build()
    q, out = q_of(rng, kind, -7, 0), q_of(rng, kind, -7, 0)
    x = build.input((16, 16), kind, q)
    build.op("HARD_SWISH", [x], Tensor((16, 16), kind, out))
    data = data_of(rng, (16, 16), kind)
    if kind == "int8":
        data = np.arange(256).reshape(16, 16).astype(np.uint8).view(np.int8)
    return Case(f"HARD_SWISH {kind} {q}->{out}", build.bytes(), ((data,),))


def prelu(rng: Rng) -> Case:
    """PRELU with slopes per channel."""
    kind, build, shape = str(pick(rng, "float32", "int8")), Build(), shape_of(rng, 4)
    slopes = (1, 1, shape[3])
    x = build.input(shape, kind, q_of(rng, kind))
    alpha = build.const(data_of(rng, slopes, kind), q_of(rng, kind))
    build.op("PRELU", [x, alpha], Tensor(shape, kind, q_of(rng, kind)))
    return finish(build, rng, "PRELU")


def quantize(rng: Rng) -> Case:
    """QUANTIZE of floats and of codes."""
    source, to = pick(
        rng, ("float32", "int8"), ("float32", "int16"), ("int8", "int8"), ("int16", "int16"), ("int8", "int16"),
        ("int16", "int8"), ("int8", "int32"), ("int16", "int32"), ("int8", "uint8"), ("uint8", "int8"),
        ("int32", "int16"), ("int32", "int8"), ("float32", "uint8"),
    )  # fmt: skip
    build, shape = Build(), shape_of(rng)
    q = quant(scale_of(rng)) if source == "int32" else q_of(rng, source)
    out = quant(scale_of(rng, -12, -6)) if to == "int32" else q_of(rng, to)
    build.op("QUANTIZE", [build.input(shape, source, q)], Tensor(shape, to, out))
    return finish(build, rng, f"QUANTIZE {to}", spread=40.0)


def dequantize(rng: Rng) -> Case:
    """DEQUANTIZE."""
    kind, build, shape = str(pick(rng, "int8", "int16", "uint8")), Build(), shape_of(rng)
    build.op("DEQUANTIZE", [build.input(shape, kind, q_of(rng, kind))], Tensor(shape, "float32"))
    return finish(build, rng, "DEQUANTIZE")


def softmax(rng: Rng) -> Case:
    """SOFTMAX along the last axis."""
    source, to = pick(rng, ("float32", "float32"), ("int8", "int8"), ("int8", "int16"), ("int16", "int16"))
    build, shape = Build(), shape_of(rng, largest=12)
    outs = {("int8", "int8"): quant(1 / 256, -128), ("int8", "int16"): quant(1 / 65536, -32768)}
    out = None if to == "float32" else outs.get((source, to), quant(1 / 32768, 0))
    q = q_of(rng, source, -10, 1)
    beta = float(pick(rng, 1.0, float(np.float32(rng.uniform(0.1, 3)))))
    build.op("SOFTMAX", [build.input(shape, source, q)], Tensor(shape, to, out), beta=beta)
    return finish(build, rng, f"SOFTMAX {to}")


def log_softmax(rng: Rng) -> Case:
    """LOG_SOFTMAX along the last axis."""
    kind, build, shape = str(pick(rng, "float32", "int8")), Build(), shape_of(rng, largest=12)
    out = quant(16 / 256, 127) if kind == "int8" else None
    build.op("LOG_SOFTMAX", [build.input(shape, kind, q_of(rng, kind, -8, 1))], Tensor(shape, kind, out))
    return finish(build, rng, "LOG_SOFTMAX")


def cast(rng: Rng) -> Case:
    """CAST."""
    source = str(pick(rng, "float32", "int8", "int16", "int32", "uint32", "bool", "uint8"))
    to = str(pick(rng, "float32", "int8", "int16", "int32"))
    build, shape = Build(), shape_of(rng)
    x = build.input(shape, source)
    build.op("CAST", [x], Tensor(shape, to))
    data = rng.integers(0, 2, shape).astype(bool) if source == "bool" else rng.integers(-100, 100, shape)
    if source[0] == "u":
        data = np.abs(data)
    array = (data + 0.25).astype(source) if source == "float32" else np.asarray(data).astype(source)
    return Case(f"CAST {source}->{to} {shape}", build.bytes(), ((array,),))


# two operands


def pair_of_shapes(rng: Rng) -> tuple[Shape, Shape, Shape]:
    """Return two shapes that broadcast, and the result's."""
    shape = shape_of(rng)
    mode = int(rng.integers(4))
    if mode < 2:
        return shape, shape, shape
    other = tuple(d if flag(rng) else 1 for d in shape)
    if mode == 3:
        other = other[int(rng.integers(len(shape))) :]
    return (shape, other, shape) if flag(rng) else (other, shape, shape)


def _binary(code: str, *kinds: str, result: str = "", fused: bool = False, same: bool = False,
            nonzero: bool = False, rtol: float = 1e-6, full: bool = False) -> Callable[[Rng], Case]:  # fmt: skip
    """Return the maker of an operator of two operands; one of them may be constant."""

    def make(rng: Rng) -> Case:
        kind, build = str(pick(rng, *kinds)), Build()
        a, b, y = pair_of_shapes(rng)
        if full:
            b = y = a
        qa = q_of(rng, kind)
        qb = qa if same else q_of(rng, kind)
        x = build.input(a, kind, qa)
        other = data_of(rng, b, kind)
        if nonzero:
            other = np.where(other == (qb.zero[0] if qb else 0), np.asarray(3, other.dtype), other)
            if qb is not None and qb.zero[0] == 3:
                other = np.where(other == 3, np.asarray(5, other.dtype), other)
        constant = nonzero or flag(rng)
        z = build.const(other, qb) if constant else build.input(b, kind, qb)
        order = [x, z] if nonzero or flag(rng) else [z, x]
        options = {"fusedActivationFunction": int(pick(rng, *ACTIVATIONS))} if (fused and kind[0] != "i") or (
            fused and qa is not None) else {}  # fmt: skip
        out = Tensor(y, result or kind, None if result else (qa if same else q_of(rng, kind)))
        build.op(code, order, out, **options)
        return finish(build, rng, f"{code} {b}{' const' if constant else ''} {options}", rtol=rtol)

    return make


def add_n(rng: Rng) -> Case:
    """ADD_N."""
    kind, build, shape = str(pick(rng, "float32", "int8")), Build(), shape_of(rng)
    q = q_of(rng, kind)
    inputs = [build.input(shape, kind, q) for _ in range(int(rng.integers(2, 5)))]
    build.op("ADD_N", inputs, Tensor(shape, kind, q_of(rng, kind)))
    return finish(build, rng, "ADD_N")


def select_v2(rng: Rng) -> Case:
    """SELECT_V2 with broadcasting."""
    kind, build = str(pick(rng, "float32", "int8", "int16")), Build()
    a, b, y = pair_of_shapes(rng)
    q = q_of(rng, kind)
    condition = y if flag(rng) else tuple(d if flag(rng) else 1 for d in y)
    inputs = [build.input(condition, "bool"), build.input(a, kind, q), build.input(b, kind, q)]
    build.op("SELECT_V2", inputs, Tensor(y, kind, q))
    return finish(build, rng, "SELECT_V2")


def batch_matmul(rng: Rng) -> Case:
    """BATCH_MATMUL, adjoint or not, of leading axes that broadcast."""
    kind, build = str(pick(rng, "float32", "int8", "int16")), Build()
    m, k, n = (int(v) for v in rng.integers(1, 9, 3))
    lead = shape_of(rng, int(rng.integers(1, 3)), 3) if flag(rng) else ()
    lead_b = tuple(d if flag(rng) else 1 for d in lead) if flag(rng) else lead
    adj_x, adj_y = flag(rng), flag(rng)
    a = build.input((*lead, *((k, m) if adj_x else (m, k))), kind, q_of(rng, kind))
    right = (*lead_b, *((n, k) if adj_y else (k, n)))
    constant = flag(rng)
    qb = q_of(rng, kind)
    b = build.const(data_of(rng, right, kind), qb) if constant else build.input(right, kind, qb)
    out = q_of(rng, kind, -5, 2)
    build.op("BATCH_MATMUL", [a, b], Tensor((*lead, m, n), kind, out), adjX=adj_x, adjY=adj_y)
    return finish(build, rng, f"BATCH_MATMUL {right} const={constant} adj {adj_x} {adj_y}", rtol=1e-5)


# layers


def same_or_valid(rng: Rng, size: int, k: int, stride: int, dilation: int, padding: int) -> int:
    """Return the output size of a window."""
    if padding == 0:
        return -(-size // stride)
    return -(-(size - (k - 1) * dilation) // stride)


def weights_of(
    rng: Rng, shape: Shape, axis: int, *, kind: str = "int8", per_axis: bool = True, q_zero: int = 0
) -> tuple[np.ndarray, Quant]:
    """Return int8 (or int4) codes with one scale, or one per index of an axis."""
    low, high = (-7, 7) if kind == "int4" else (-127, 127)
    data = rng.integers(low, high, shape, endpoint=True).astype(np.int8)
    count = shape[axis] if per_axis else 1
    return data, Quant(tuple(scale_of(rng, -10, -5) for _ in range(count)), (q_zero,) * count, axis)


def _layer_out(rng: Rng, kind: str, x: Quant, w: Quant, terms: int) -> Quant:
    """Return a quantisation in which most results do not saturate."""
    size = x.scale[0] * float(np.mean(w.scale)) * math.sqrt(terms) * 5000
    if kind == "int16":
        return quant(size * 256 / 30000 * 2.0 ** rng.uniform(-1, 1), 0)
    return quant(size / 100 * 2.0 ** rng.uniform(-1, 1), int(rng.integers(-128, 128)))


def _bias(rng: Rng, build: Build, kind: str, x: Quant, w: Quant, count: int, wide: bool, axis: int = 0) -> int:
    scales = tuple(float(np.float32(x.scale[0] * s)) for s in w.scale)
    bias_kind = "int64" if wide else "int32"
    data = rng.integers(-20000, 20000, count).astype(bias_kind)
    return build.const(data, Quant(scales, (0,) * len(scales), axis))


def conv(code: str) -> Callable[[Rng], Case]:
    """Return the maker of CONV_2D or DEPTHWISE_CONV_2D."""

    def make(rng: Rng) -> Case:
        kind, build = str(pick(rng, "float32", "int8", "int8", "int16")), Build()
        n, h, w, c = 1 if flag(rng) else 2, int(rng.integers(3, 9)), int(rng.integers(3, 9)), int(rng.integers(1, 6))
        k_h, k_w = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        stride, dilation = (int(rng.integers(1, 3)), int(rng.integers(1, 3))), (1, 1)
        if stride == (1, 1) and flag(rng):
            dilation = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
        padding = int(rng.integers(2))
        if padding == 1 and ((k_h - 1) * dilation[0] >= h or (k_w - 1) * dilation[1] >= w):
            padding = 0
        depthwise = code == "DEPTHWISE_CONV_2D"
        multiplier, groups = int(rng.integers(1, 4)), 1
        out_c = c * multiplier if depthwise else int(rng.integers(1, 6))
        if not depthwise and kind == "int8" and c % 2 == 0 and flag(rng):
            groups, out_c = 2, 2 * out_c
        shape = (1, k_h, k_w, out_c) if depthwise else (out_c, k_h, k_w, c // groups)
        axis = 3 if depthwise else 0
        options: dict[str, object] = {
            "padding": padding, "strideH": stride[0], "strideW": stride[1], "dilationHFactor": dilation[0],
            "dilationWFactor": dilation[1], "fusedActivationFunction": int(pick(rng, *ACTIVATIONS)),
        }  # fmt: skip
        if depthwise:
            options["depthMultiplier"] = multiplier
        sizes = [
            same_or_valid(rng, *v, padding)
            for v in ((h, k_h, stride[0], dilation[0]), (w, k_w, stride[1], dilation[1]))
        ]
        q = q_of(rng, kind)
        x = build.input((n, h, w, c), kind, q)
        inputs = [x]
        if q is None:
            inputs += [build.const(data_of(rng, shape, kind, 0.5)), build.const(data_of(rng, (out_c,), kind))]
            out = None
        else:
            packed = "int4" if kind == "int8" and rng.integers(6) == 0 else "int8"
            data, wq = weights_of(rng, shape, axis, kind=packed, per_axis=flag(rng) or depthwise)
            inputs.append(build.const(data, wq, packed))
            if flag(rng):
                # the runtime takes every bias of a depthwise layer on int16 for one of 64 bits
                wide = kind == "int16" and (flag(rng) or depthwise)
                inputs.append(_bias(rng, build, kind, q, wq, out_c, wide))
            out = _layer_out(rng, kind, q, wq, k_h * k_w * (1 if depthwise else c))
        build.op(code, inputs, Tensor((n, *sizes, out_c), kind, out), **options)
        return finish(build, rng, f"{code} w{list(shape)} {options} inputs {len(inputs)}", rtol=1e-5)

    return make


def fully_connected(rng: Rng) -> Case:
    """FULLY_CONNECTED with one scale or one per row."""
    kind, build = str(pick(rng, "float32", "int8", "int8", "int16")), Build()
    rows, k, n = int(rng.integers(1, 5)), int(rng.integers(1, 40)), int(rng.integers(1, 20))
    q = q_of(rng, kind)
    shape = (rows, k)
    inputs = [build.input(shape, kind, q)]
    fused = int(pick(rng, *ACTIVATIONS))
    if q is None:
        inputs += [build.const(data_of(rng, (n, k), kind, 0.5)), build.const(data_of(rng, (n,), kind))]
        out = None
    else:
        packed = "int4" if kind == "int8" and rng.integers(6) == 0 else "int8"
        data, wq = weights_of(rng, (n, k), 0, kind=packed, per_axis=kind == "int8" and flag(rng))
        inputs.append(build.const(data, wq, packed))
        if flag(rng) or kind == "int16":
            inputs.append(_bias(rng, build, kind, q, wq, n, kind == "int16"))
        out = _layer_out(rng, kind, q, wq, k)
    build.op("FULLY_CONNECTED", inputs, Tensor((rows, n), kind, out), fusedActivationFunction=fused)
    return finish(build, rng, f"FULLY_CONNECTED w[{n},{k}] act {fused} inputs {len(inputs)}", rtol=1e-5)


def transpose_conv(rng: Rng) -> Case:
    """TRANSPOSE_CONV: the output's shape comes first."""
    kind, build = str(pick(rng, "float32", "int8", "int16")), Build()
    n, h, w, c, out_c = (int(v) for v in (pick(rng, 1, 2), *rng.integers(1, 6, 4)))
    k_h, k_w, s_h, s_w = (int(v) for v in (*rng.integers(1, 5, 2), *rng.integers(1, 4, 2)))
    padding = int(rng.integers(2))
    sizes = (h * s_h, w * s_w) if padding == 0 else (max(k_h - s_h, 0) + h * s_h, max(k_w - s_w, 0) + w * s_w)
    q = q_of(rng, kind)
    shape = (out_c, k_h, k_w, c)
    first = build.const(int32(n, *sizes, out_c))
    wq = None
    if q is None:
        weights = build.const(data_of(rng, shape, kind, 0.5))
    else:
        data, wq = weights_of(rng, shape, 0)
        weights = build.const(data, wq)
    inputs = [first, weights, build.input((n, h, w, c), kind, q)]
    out = None
    if wq is not None and q is not None:
        out = _layer_out(rng, kind, q, wq, k_h * k_w * c)
    if flag(rng):
        inputs.append(
            build.const(data_of(rng, (out_c,), kind)) if q is None or wq is None
            else _bias(rng, build, kind, q, wq, out_c, kind == "int16")
        )  # fmt: skip
    build.op("TRANSPOSE_CONV", inputs, Tensor((n, *sizes, out_c), kind, out), padding=padding, strideH=s_h, strideW=s_w)
    return finish(build, rng, f"TRANSPOSE_CONV w{list(shape)} stride {s_h},{s_w} padding {padding}", rtol=1e-5)


def pool(code: str, *kinds: str) -> Callable[[Rng], Case]:
    """Return the maker of a pooling."""

    def make(rng: Rng) -> Case:
        kind, build = str(pick(rng, *kinds)), Build()
        n, h, w, c = int(rng.integers(1, 3)), *(int(v) for v in rng.integers(3, 9, 2)), int(rng.integers(1, 6))
        k_h, k_w, s_h, s_w = (int(v) for v in (*rng.integers(1, 4, 2), *rng.integers(1, 4, 2)))
        padding, fused = int(rng.integers(2)), int(pick(rng, 0, 1, 3))
        if code == "L2_POOL_2D":
            fused = 0
        sizes = [same_or_valid(rng, h, k_h, s_h, 1, padding), same_or_valid(rng, w, k_w, s_w, 1, padding)]
        q = q_of(rng, kind)
        out = Tensor((n, *sizes, c), kind, q)
        build.op(
            code, [build.input((n, h, w, c), kind, q)], out, filterHeight=k_h, filterWidth=k_w, strideH=s_h,
            strideW=s_w, padding=padding, fusedActivationFunction=fused,
        )  # fmt: skip
        return finish(build, rng, f"{code} {k_h}x{k_w} stride {s_h},{s_w} padding {padding} act {fused}", rtol=1e-5)

    return make


def reducer(code: str, *kinds: str, same: bool = False) -> Callable[[Rng], Case]:
    """Return the maker of a reduction."""

    def make(rng: Rng) -> Case:
        kind, build, shape = str(pick(rng, *kinds)), Build(), shape_of(rng, 4)
        count = int(rng.integers(1, 4))
        axes = sorted(int(a) for a in rng.choice(4, count, replace=False))
        keep = flag(rng)
        left = tuple(1 if a in axes else d for a, d in enumerate(shape) if keep or a not in axes)
        q = q_of(rng, kind)
        out = q if same else q_of(rng, kind)
        if code == "SUM" and q is not None:
            out = q_of(rng, kind, -4, 2)
        drawn = [a - 4 if flag(rng) else a for a in axes]
        build.op(code, [build.input(shape, kind, q), build.const(int32(drawn))], Tensor(left, kind, out), keepDims=keep)
        return finish(build, rng, f"{code} axes {drawn} keep {keep}", rtol=1e-5)

    return make


def arg(code: str) -> Callable[[Rng], Case]:
    """Return the maker of ARG_MAX or ARG_MIN."""

    def make(rng: Rng) -> Case:
        kind, build, shape = str(pick(rng, "float32", "int8")), Build(), shape_of(rng)
        axis = int(rng.integers(-len(shape), len(shape)))
        left = tuple(d for i, d in enumerate(shape) if i != axis % len(shape))
        x = build.input(shape, kind, q_of(rng, kind))
        build.op(code, [x, build.const(int32([axis]))], Tensor(left, "int32"), outputType=2)
        return finish(build, rng, f"{code} axis {axis}")

    return make


def l2_normalization(rng: Rng) -> Case:
    """L2_NORMALIZATION along the last axis."""
    kind, build, shape = str(pick(rng, "float32", "int8")), Build(), shape_of(rng, largest=9)
    out = quant(1 / 128, 0) if kind == "int8" else None
    build.op("L2_NORMALIZATION", [build.input(shape, kind, q_of(rng, kind))], Tensor(shape, kind, out))
    return finish(build, rng, "L2_NORMALIZATION")


def resize(code: str, *kinds: str) -> Callable[[Rng], Case]:
    """Return the maker of a resize of rows and columns."""

    def make(rng: Rng) -> Case:
        kind, build, shape = str(pick(rng, *kinds)), Build(), shape_of(rng, 4, 7)
        size = tuple(int(v) for v in rng.integers(1, 12, 2))
        mode = int(rng.integers(3))
        q = q_of(rng, kind)
        x = build.input(shape, kind, q)
        out = Tensor((shape[0], *size, shape[3]), kind, q)
        options = {"alignCorners": mode == 1, "halfPixelCenters": mode == 2}
        build.op(code, [x, build.const(int32(size))], out, **options)
        return finish(build, rng, f"{code} to {size} {options}", rtol=1e-5)

    return make


def cumsum(rng: Rng) -> Case:
    """CUMSUM."""
    kind, build, shape = str(pick(rng, "float32", "int8")), Build(), shape_of(rng)
    axis = int(rng.integers(-len(shape), len(shape)))
    x = build.input(shape, kind, q_of(rng, kind))
    options = {"exclusive": flag(rng), "reverse": flag(rng)}
    build.op("CUMSUM", [x, build.const(int32([axis]))], Tensor(shape, kind, q_of(rng, kind, -6, 1)), **options)
    return finish(build, rng, f"CUMSUM axis {axis} {options}")


# moves


def _moved(rng: Rng, kinds: Sequence[str] = ("float32", "int8", "int16")) -> tuple[Build, str, Quant | None]:
    kind = str(pick(rng, *kinds))
    return Build(), kind, q_of(rng, kind)


def reshape(rng: Rng) -> Case:
    """RESHAPE."""
    build, kind, q = _moved(rng)
    shape = shape_of(rng)
    to = (int(np.prod(shape)),) if flag(rng) else (1, *reversed(shape))
    build.op("RESHAPE", [build.input(shape, kind, q), build.const(int32(to))], Tensor(to, kind, q), newShape=list(to))
    return finish(build, rng, f"RESHAPE {to}")


def squeeze(rng: Rng) -> Case:
    """SQUEEZE."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    shape = shape_of(rng, 2)
    x = build.input((shape[0], 1, shape[1]), kind, q)
    build.op("SQUEEZE", [x], Tensor(shape, kind, q), squeezeDims=[1])
    return finish(build, rng, "SQUEEZE")


def expand_dims(rng: Rng) -> Case:
    """EXPAND_DIMS."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    shape = shape_of(rng, 3)
    axis = int(rng.integers(0, 4))
    to = (*shape[:axis], 1, *shape[axis:])
    build.op("EXPAND_DIMS", [build.input(shape, kind, q), build.const(int32([axis]))], Tensor(to, kind, q))
    return finish(build, rng, f"EXPAND_DIMS {axis}")


def concatenation(rng: Rng) -> Case:
    """CONCATENATION; operands are quantised alike."""
    build, kind, q = _moved(rng)
    shape = shape_of(rng)
    axis = int(rng.integers(0, len(shape)))
    lengths = [int(v) for v in rng.integers(1, 5, int(rng.integers(2, 5)))]
    parts = [build.input((*shape[:axis], n, *shape[axis + 1 :]), kind, q) for n in lengths]
    out = Tensor((*shape[:axis], sum(lengths), *shape[axis + 1 :]), kind, q)
    build.op("CONCATENATION", parts, out, axis=axis)
    return finish(build, rng, f"CONCATENATION axis {axis}")


def pack(rng: Rng) -> Case:
    """PACK."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    shape, count = shape_of(rng, 3), int(rng.integers(1, 4))
    axis = int(rng.integers(0, 4))
    out = Tensor((*shape[:axis], count, *shape[axis:]), kind, q)
    build.op("PACK", [build.input(shape, kind, q) for _ in range(count)], out, axis=axis, valuesCount=count)
    return finish(build, rng, f"PACK axis {axis}")


def unpack(rng: Rng) -> Case:
    """UNPACK."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    shape = shape_of(rng, 3, 4)
    axis = int(rng.integers(0, 3))
    out = tuple(d for i, d in enumerate(shape) if i != axis)
    outs = [Tensor(out, kind, q)] * shape[axis]
    build.op("UNPACK", [build.input(shape, kind, q)], outs, axis=axis, num=shape[axis])
    return finish(build, rng, f"UNPACK axis {axis}")


def split(rng: Rng) -> Case:
    """SPLIT into equal parts."""
    build, kind, q = _moved(rng)
    shape, count = list(shape_of(rng, 3)), int(rng.integers(1, 4))
    axis = int(rng.integers(0, 3))
    part = tuple(shape)
    shape[axis] *= count
    inputs = [build.const(int32([axis])), build.input(tuple(shape), kind, q)]
    build.op("SPLIT", inputs, [Tensor(part, kind, q)] * count, numSplits=count)
    return finish(build, rng, f"SPLIT axis {axis}")


def split_v(rng: Rng) -> Case:
    """SPLIT_V."""
    build, kind, q = _moved(rng)
    shape = list(shape_of(rng, 3))
    lengths = [int(v) for v in rng.integers(1, 4, int(rng.integers(1, 4)))]
    axis = int(rng.integers(0, 3))
    outs = [Tensor((*shape[:axis], n, *shape[axis + 1 :]), kind, q) for n in lengths]
    shape[axis] = sum(lengths)
    inputs = [build.input(tuple(shape), kind, q), build.const(int32(lengths)), build.const(int32([axis]))]
    build.op("SPLIT_V", inputs, outs, numSplits=len(lengths))
    return finish(build, rng, f"SPLIT_V axis {axis} {lengths}")


def slice_(rng: Rng) -> Case:
    """SLICE."""
    build, kind, q = _moved(rng)
    shape = shape_of(rng)
    begin = [int(rng.integers(0, d)) for d in shape]
    size = [int(rng.integers(1, d - b + 1)) for d, b in zip(shape, begin, strict=True)]
    drawn = [-1 if b + s == d and flag(rng) else s for d, b, s in zip(shape, begin, size, strict=True)]
    inputs = [build.input(shape, kind, q), build.const(int32(begin)), build.const(int32(drawn))]
    build.op("SLICE", inputs, Tensor(tuple(size), kind, q))
    return finish(build, rng, f"SLICE {begin} {drawn}")


def strided_slice(rng: Rng) -> Case:
    """STRIDED_SLICE with masks of begin, end and axes that vanish."""
    build, kind, q = _moved(rng)
    shape = shape_of(rng)
    begin, end, step, out = [], [], [], []
    begin_mask = end_mask = shrink = 0
    for axis, d in enumerate(shape):
        first = int(rng.integers(0, d))
        if len(out) + len(shape) - axis > 1 and rng.integers(5) == 0:
            shrink |= 1 << axis
            begin.append(first), end.append(first + 1), step.append(1)
            continue
        stride = int(pick(rng, 1, 1, 2, -1))
        last = int(rng.integers(first + 1, d + 1)) if stride > 0 else int(rng.integers(-1, first))
        masked = (stride > 0 and last == d and flag(rng)) or last < 0
        end_mask |= int(masked) << axis
        if stride > 0 and first == 0 and flag(rng):
            begin_mask |= 1 << axis
        (
            begin.append(first - d if flag(rng) else first),
            end.append(0 if masked and flag(rng) else last),
            step.append(stride),
        )
        out.append(len(range(first, last, stride)))
    inputs = [build.input(shape, kind, q), *(build.const(int32(v)) for v in (begin, end, step))]
    options = {"beginMask": begin_mask, "endMask": end_mask, "shrinkAxisMask": shrink}
    build.op("STRIDED_SLICE", inputs, Tensor(tuple(out), kind, q), **options)
    return finish(build, rng, f"STRIDED_SLICE {begin} {end} {step} {options}")


def transpose(rng: Rng) -> Case:
    """TRANSPOSE."""
    build, kind, q = _moved(rng, ("float32", "int8", "int16"))
    shape = shape_of(rng)
    perm = [int(a) for a in rng.permutation(len(shape))]
    inputs = [build.input(shape, kind, q), build.const(int32(perm))]
    build.op("TRANSPOSE", inputs, Tensor(tuple(shape[a] for a in perm), kind, q))
    return finish(build, rng, f"TRANSPOSE {perm}")


def pad(code: str) -> Callable[[Rng], Case]:
    """Return the maker of PAD or PADV2."""

    def make(rng: Rng) -> Case:
        build, kind, q = _moved(rng, ("float32", "int8", "int16") if code == "PAD" else ("float32", "int8"))
        shape = shape_of(rng, 4)
        amounts = rng.integers(0, 3, (4, 2)).astype(np.int32)
        out = Tensor(tuple(int(d + a.sum()) for d, a in zip(shape, amounts, strict=True)), kind, q)
        inputs = [build.input(shape, kind, q), build.const(amounts)]
        if code == "PADV2":
            inputs.append(build.const(data_of(rng, (1,), kind), q))
        build.op(code, inputs, out)
        return finish(build, rng, f"{code} {amounts.tolist()}")

    return make


def mirror_pad(rng: Rng) -> Case:
    """MIRROR_PAD, REFLECT and SYMMETRIC."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    shape = tuple(int(d) for d in rng.integers(3, 6, 3))
    mode = int(rng.integers(2))
    amounts = rng.integers(0, 3, (3, 2)).astype(np.int32)
    out = Tensor(tuple(int(d + a.sum()) for d, a in zip(shape, amounts, strict=True)), kind, q)
    build.op("MIRROR_PAD", [build.input(shape, kind, q), build.const(amounts)], out, mode=mode)
    return finish(build, rng, f"MIRROR_PAD mode {mode} {amounts.tolist()}")


def gather(rng: Rng) -> Case:
    """GATHER along an axis."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    shape = shape_of(rng, 3)
    axis = int(rng.integers(0, 3))
    index = rng.integers(0, shape[axis], int(rng.integers(1, 5))).astype(np.int32)
    inputs = [build.input(shape, kind, q), build.const(index)]
    build.op("GATHER", inputs, Tensor((*shape[:axis], index.size, *shape[axis + 1 :]), kind, q), axis=axis)
    return finish(build, rng, f"GATHER axis {axis} {index.tolist()}")


def gather_nd(rng: Rng) -> Case:
    """GATHER_ND."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    shape = shape_of(rng, 3)
    depth = int(rng.integers(1, 4))
    index = np.stack([rng.integers(0, shape[i], 3) for i in range(depth)], axis=-1).astype(np.int32)
    inputs = [build.input(shape, kind, q), build.const(index)]
    build.op("GATHER_ND", inputs, Tensor((3, *shape[depth:]), kind, q))
    return finish(build, rng, f"GATHER_ND depth {depth}")


def depth_to_space(rng: Rng) -> Case:
    """DEPTH_TO_SPACE."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    (n, h, w, c), block = shape_of(rng, 4, 4), int(rng.integers(1, 4))
    x = build.input((n, h, w, c * block * block), kind, q)
    build.op("DEPTH_TO_SPACE", [x], Tensor((n, h * block, w * block, c), kind, q), blockSize=block)
    return finish(build, rng, f"DEPTH_TO_SPACE {block}")


def space_to_depth(rng: Rng) -> Case:
    """SPACE_TO_DEPTH."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    (n, h, w, c), block = shape_of(rng, 4, 4), int(rng.integers(1, 4))
    x = build.input((n, h * block, w * block, c), kind, q)
    build.op("SPACE_TO_DEPTH", [x], Tensor((n, h, w, c * block * block), kind, q), blockSize=block)
    return finish(build, rng, f"SPACE_TO_DEPTH {block}")


def space_to_batch(rng: Rng) -> Case:
    """SPACE_TO_BATCH_ND."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    n, h, w, c = shape_of(rng, 4, 4)
    b_h, b_w = (int(v) for v in rng.integers(1, 4, 2))
    pads = np.asarray([[rng.integers(0, 3), 0], [rng.integers(0, 3), 0]], np.int32)
    pads[0, 1], pads[1, 1] = -(h + pads[0, 0]) % b_h, -(w + pads[1, 0]) % b_w
    out = (n * b_h * b_w, (h + int(pads[0].sum())) // b_h, (w + int(pads[1].sum())) // b_w, c)
    inputs = [build.input((n, h, w, c), kind, q), build.const(int32(b_h, b_w)), build.const(pads)]
    build.op("SPACE_TO_BATCH_ND", inputs, Tensor(out, kind, q))
    return finish(build, rng, f"SPACE_TO_BATCH_ND {b_h},{b_w} {pads.tolist()}")


def batch_to_space(rng: Rng) -> Case:
    """BATCH_TO_SPACE_ND."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    n, h, w, c = shape_of(rng, 4, 4)
    b_h, b_w = (int(v) for v in rng.integers(1, 4, 2))
    crops = np.asarray([[rng.integers(0, b_h), 0], [0, rng.integers(0, b_w)]], np.int32)
    out = (n, h * b_h - int(crops[0].sum()), w * b_w - int(crops[1].sum()), c)
    inputs = [build.input((n * b_h * b_w, h, w, c), kind, q), build.const(int32(b_h, b_w)), build.const(crops)]
    build.op("BATCH_TO_SPACE_ND", inputs, Tensor(out, kind, q))
    return finish(build, rng, f"BATCH_TO_SPACE_ND {b_h},{b_w} {crops.tolist()}")


def reverse(rng: Rng) -> Case:
    """REVERSE_V2 along one axis."""
    build, kind, q = _moved(rng, ("float32", "int8", "int16"))
    shape = shape_of(rng)
    axis = int(rng.integers(0, len(shape)))
    build.op("REVERSE_V2", [build.input(shape, kind, q), build.const(int32([axis]))], Tensor(shape, kind, q))
    return finish(build, rng, f"REVERSE_V2 {axis}")


def broadcast_to(rng: Rng) -> Case:
    """BROADCAST_TO."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    to = shape_of(rng)
    shape = tuple(d if flag(rng) else 1 for d in to)
    build.op("BROADCAST_TO", [build.input(shape, kind, q), build.const(int32(to))], Tensor(to, kind, q))
    return finish(build, rng, f"BROADCAST_TO {to}")


def broadcast_args(rng: Rng) -> Case:
    """BROADCAST_ARGS of two constant shapes, added to an input so that the model has one."""
    build = Build()
    a, b, y = pair_of_shapes(rng)
    x = build.input((len(y),), "int32")
    made = build.op("BROADCAST_ARGS", [build.const(int32(a)), build.const(int32(b))], Tensor((len(y),), "int32"))
    build.op("ADD", [x, made], Tensor((len(y),), "int32"))
    return finish(build, rng, f"BROADCAST_ARGS {a} {b}")


def fill(rng: Rng) -> Case:
    """FILL with an input."""
    build, kind, q = _moved(rng, ("float32", "int8", "int32"))
    to = shape_of(rng)
    build.op("FILL", [build.const(int32(to)), build.input((), kind, q)], Tensor(to, kind, q))
    return finish(build, rng, f"FILL {to}")


def shape(rng: Rng) -> Case:
    """SHAPE, added to an input."""
    build, drawn = Build(), shape_of(rng)
    x, other = build.input(drawn, "float32"), build.input((len(drawn),), "int32")
    made = build.op("SHAPE", [x], Tensor((len(drawn),), "int32"), outType=2)
    build.op("ADD", [other, made], Tensor((len(drawn),), "int32"))
    return finish(build, rng, "SHAPE")


def zeros_like(rng: Rng) -> Case:
    """ZEROS_LIKE, added to the input."""
    build, kind, _ = _moved(rng, ("float32", "int32"))
    drawn = shape_of(rng)
    x = build.input(drawn, kind)
    made = build.op("ZEROS_LIKE", [x], Tensor(drawn, kind))
    build.op("ADD", [x, made], Tensor(drawn, kind))
    return finish(build, rng, "ZEROS_LIKE")


def dynamic_update_slice(rng: Rng) -> Case:
    """DYNAMIC_UPDATE_SLICE; the place is clamped into the operand."""
    build, kind, q = _moved(rng, ("float32", "int8"))
    drawn = shape_of(rng)
    update = tuple(int(rng.integers(1, d + 1)) for d in drawn)
    at = int32([int(rng.integers(-2, d + 2)) for d in drawn])
    place = build.const(at) if flag(rng) else build.input(at.shape, "int32")
    build.op("DYNAMIC_UPDATE_SLICE", [build.input(drawn, kind, q), build.input(update, kind, q), place],
             Tensor(drawn, kind, q))  # fmt: skip
    case = finish(build, rng, f"DYNAMIC_UPDATE_SLICE {update} at {at.tolist()}")
    if len(build.inputs) == 2:
        return case
    arrays = {build.inputs.index(place): at}
    calls = tuple(tuple(arrays.get(i, a) for i, a in enumerate(call)) for call in case.calls)
    return Case(case.label, case.model, calls, case.rtol)


def embedding_lookup(rng: Rng) -> Case:
    """EMBEDDING_LOOKUP of floats."""
    build = Build()
    table = data_of(rng, (7, int(rng.integers(1, 9))), "float32")
    index = build.input((4,), "int32")
    build.op("EMBEDDING_LOOKUP", [index, build.const(table)], Tensor((4, table.shape[1]), "float32"))
    return Case("EMBEDDING_LOOKUP", build.bytes(), ((rng.integers(0, 7, 4).astype(np.int32),),))


# layers with state


def svdf(rng: Rng) -> Case:
    """SVDF over several calls."""
    kind, build = str(pick(rng, "float32", "int8", "int8")), Build()
    batch, in_k, rank = int(rng.integers(1, 3)), int(rng.integers(1, 12)), int(rng.integers(1, 4))
    units, memory = int(rng.integers(1, 6)), int(rng.integers(1, 8))
    filters = rank * units
    if kind == "float32":
        tensors = [
            build.input((batch, in_k), kind), build.const(data_of(rng, (filters, in_k), kind, 0.3)),
            build.const(data_of(rng, (filters, memory), kind, 0.3)), build.const(data_of(rng, (units,), kind)),
            build.variable((batch, memory * filters), kind),
        ]  # fmt: skip
        fused, out = int(pick(rng, 0, 1, 3)), None
    else:
        q = q_of(rng, kind)
        assert q is not None
        wq, tq = quant(scale_of(rng, -10, -6)), quant(scale_of(rng, -12, -8))
        time_kind = str(pick(rng, "int16", "int8"))
        state_scale = q.scale[0] * wq.scale[0] * math.sqrt(in_k) * 5000 / (100 if time_kind == "int8" else 25000)
        sq = quant(state_scale, 0)
        bias_q = quant(sq.scale[0] * tq.scale[0])
        time = rng.integers(-127, 128, (filters, memory)).astype(time_kind) * (1 if time_kind == "int8" else 200)
        tensors = [
            build.input((batch, in_k), kind, q),
            build.const(rng.integers(-127, 128, (filters, in_k)).astype(np.int8), wq),
            build.const(time.astype(time_kind), tq),
            build.const(rng.integers(-9000, 9000, units).astype(np.int32), bias_q),
            build.variable((batch, memory * filters), time_kind, sq),
        ]
        size = (
            sq.scale[0]
            * tq.scale[0]
            * (20000 if time_kind == "int16" else 60)
            * (15000 if time_kind == "int16" else 75)
        )
        out, fused = quant(size * math.sqrt(memory * rank) / 100, int(rng.integers(-128, 128))), 1
    build.op("SVDF", tensors, Tensor((batch, units), kind, out), rank=rank, fusedActivationFunction=fused)
    return finish(build, rng, f"SVDF rank {rank} units {units} memory {memory}", calls=5, rtol=1e-5)


def lstm(rng: Rng) -> Case:
    """UNIDIRECTIONAL_SEQUENCE_LSTM over several calls."""
    kind, build = str(pick(rng, "float32", "int8", "int8", "int16")), Build()
    batch, steps, in_k, hidden = (int(v) for v in (pick(rng, 1, 2), *rng.integers(1, 7, 3)))
    major = flag(rng)
    shape = (steps, batch, in_k) if major else (batch, steps, in_k)
    q = q_of(rng, kind, -7, -4)
    x = build.input(shape, kind, q)
    clip = 0.0 if kind == "float32" or flag(rng) else float(np.float32(rng.uniform(0.2, 3)))
    if q is None:
        weights = [build.const(data_of(rng, (hidden, n), kind, 0.5)) for n in (*(in_k,) * 4, *(hidden,) * 4)]
        biases = [build.const(data_of(rng, (hidden,), kind, 0.5)) for _ in range(4)]
        states = [build.variable((batch, hidden), kind) for _ in range(2)]
        out = None
    else:
        sq = quant(1 / 128, int(rng.integers(-20, 20))) if kind == "int8" else quant(1 / 32768)
        weights, biases = [], []
        for n in (*(in_k,) * 4, *(hidden,) * 4):
            data, wq = weights_of(rng, (hidden, n), 0, per_axis=False)
            weights.append(build.const(data, quant(scale_of(rng, -9, -6))))
        for i in range(4):
            wq = build.tensors[weights[i]].quant
            assert wq is not None
            data = rng.integers(-3000, 3000, hidden).astype("int32" if kind == "int8" else "int64")
            biases.append(build.const(data, quant(q.scale[0] * wq.scale[0])))
        states = [build.variable((batch, hidden), kind, sq), build.variable((batch, hidden), "int16", quant(2.0**-11))]
        out = sq
    inputs = [x, *weights, -1, -1, -1, *biases, -1, -1, *states, -1, -1, -1, -1]
    result = Tensor((*shape[:2], hidden), kind, out)
    options = {"fusedActivationFunction": 4, "cellClip": clip, "timeMajor": major}
    build.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, result, **options)
    return finish(build, rng, f"LSTM hidden {hidden} clip {clip} major {major}", calls=3, rtol=1e-5, spread=1.0)


_ARITHMETIC = ("float32", "int8", "int8", "int16", "int32")
_COMPARED = ("float32", "int8", "int32", "int64")

MAKERS: Mapping[str, Callable[[Rng], Case]] = {
    "ABS": _unary("ABS", "float32", "int8", "int16"),
    "NEG": _unary("NEG", "float32"),
    "EXP": _unary("EXP", "float32"),
    "LOG": _unary("LOG", "float32", positive=True),
    "SQRT": _unary("SQRT", "float32", positive=True),
    "RSQRT": _unary("RSQRT", "float32", "int8", positive=True),
    "SIN": _unary("SIN", "float32"), "COS": _unary("COS", "float32"), "SQUARE": _unary("SQUARE", "float32"),
    "FLOOR": _unary("FLOOR", "float32"), "CEIL": _unary("CEIL", "float32"), "ROUND": _unary("ROUND", "float32"),
    "LOGICAL_NOT": _unary("LOGICAL_NOT", "bool"),
    "RELU": _unary("RELU", "float32", "int8", "int16"),
    "RELU6": _unary("RELU6", "float32", "int8", "int16", same=True, low=-4, high=-2),
    "ELU": _unary("ELU", "float32", "int8", rtol=1e-5), "HARD_SWISH": hard_swish,
    "LOGISTIC": _unary("LOGISTIC", "float32", "int8", "int16", fixed=_SIGMOID, low=-10, high=-2),
    "TANH": _unary("TANH", "float32", "int8", "int16", fixed=_TANH, low=-10, high=-2),
    "LEAKY_RELU": _unary("LEAKY_RELU", "float32", "int8", "int16",
                         options=lambda rng: {"alpha": float(np.float32(rng.uniform(0, 1.2)))}),
    "PRELU": prelu, "QUANTIZE": quantize, "DEQUANTIZE": dequantize, "SOFTMAX": softmax, "LOG_SOFTMAX": log_softmax,
    "CAST": cast,
    "ADD": _binary("ADD", *_ARITHMETIC, fused=True), "SUB": _binary("SUB", *_ARITHMETIC, fused=True),
    "MUL": _binary("MUL", *_ARITHMETIC, fused=True),
    "DIV": _binary("DIV", "float32", "int8", fused=True, nonzero=True),
    "FLOOR_DIV": _binary("FLOOR_DIV", "float32", nonzero=True),
    "FLOOR_MOD": _binary("FLOOR_MOD", "float32", nonzero=True),
    "SQUARED_DIFFERENCE": _binary("SQUARED_DIFFERENCE", "float32", "int8", "int32"),
    "MAXIMUM": _binary("MAXIMUM", "float32", "int8", "int16", "int32", "int64", same=True),
    "MINIMUM": _binary("MINIMUM", "float32", "int8", "int16", "int32", "int64", same=True),
    "EQUAL": _binary("EQUAL", *_COMPARED, "bool", result="bool"),
    "NOT_EQUAL": _binary("NOT_EQUAL", *_COMPARED, "bool", result="bool"),
    "LESS": _binary("LESS", *_COMPARED, result="bool"), "LESS_EQUAL": _binary("LESS_EQUAL", *_COMPARED, result="bool"),
    "GREATER": _binary("GREATER", *_COMPARED, result="bool"),
    "GREATER_EQUAL": _binary("GREATER_EQUAL", *_COMPARED, result="bool"),
    "LOGICAL_AND": _binary("LOGICAL_AND", "bool", result="bool"),
    "LOGICAL_OR": _binary("LOGICAL_OR", "bool", result="bool"),
    "ADD_N": add_n, "SELECT_V2": select_v2, "BATCH_MATMUL": batch_matmul,
    "CONV_2D": conv("CONV_2D"), "DEPTHWISE_CONV_2D": conv("DEPTHWISE_CONV_2D"), "FULLY_CONNECTED": fully_connected,
    "TRANSPOSE_CONV": transpose_conv,
    "AVERAGE_POOL_2D": pool("AVERAGE_POOL_2D", "float32", "int8", "int16"),
    "MAX_POOL_2D": pool("MAX_POOL_2D", "float32", "int8", "int16"), "L2_POOL_2D": pool("L2_POOL_2D", "float32"),
    "MEAN": reducer("MEAN", "float32", "int8", "int16"), "SUM": reducer("SUM", "float32", "int8", "int16"),
    "REDUCE_MAX": reducer("REDUCE_MAX", "float32", "int8", "int16", same=True),
    "REDUCE_MIN": reducer("REDUCE_MIN", "float32", "int8", "int16", same=True),
    "ARG_MAX": arg("ARG_MAX"), "ARG_MIN": arg("ARG_MIN"), "L2_NORMALIZATION": l2_normalization,
    "RESIZE_BILINEAR": resize("RESIZE_BILINEAR", "float32", "int8"),
    "RESIZE_NEAREST_NEIGHBOR": resize("RESIZE_NEAREST_NEIGHBOR", "float32", "int8", "int16"), "CUMSUM": cumsum,
    "RESHAPE": reshape, "SQUEEZE": squeeze, "EXPAND_DIMS": expand_dims, "CONCATENATION": concatenation, "PACK": pack,
    "UNPACK": unpack, "SPLIT": split, "SPLIT_V": split_v, "SLICE": slice_, "STRIDED_SLICE": strided_slice,
    "TRANSPOSE": transpose, "PAD": pad("PAD"), "PADV2": pad("PADV2"), "MIRROR_PAD": mirror_pad, "GATHER": gather,
    "GATHER_ND": gather_nd, "DEPTH_TO_SPACE": depth_to_space, "SPACE_TO_DEPTH": space_to_depth,
    "SPACE_TO_BATCH_ND": space_to_batch, "BATCH_TO_SPACE_ND": batch_to_space, "REVERSE_V2": reverse,
    "BROADCAST_TO": broadcast_to, "BROADCAST_ARGS": broadcast_args, "FILL": fill, "SHAPE": shape,
    "ZEROS_LIKE": zeros_like, "DYNAMIC_UPDATE_SLICE": dynamic_update_slice, "EMBEDDING_LOOKUP": embedding_lookup,
    "SVDF": svdf, "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
}  # fmt: skip


def make_case(code: str, seed: int) -> Case:
    """Return the case of an operator that a seed stands for."""
    return MAKERS[code](np.random.default_rng([zlib.crc32(code.encode()), seed]))
