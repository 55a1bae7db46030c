"""Functions of one operand, changes of quantisation, softmax and what runs along an axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.tflite.cases.draw import (
    Case,
    Maker,
    Rng,
    Shape,
    data_of,
    finish,
    flag,
    int32,
    pick,
    q_of,
    scale_of,
    shape_of,
)
from tests.tflite.writer import Build, Quant, Tensor, quant


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


def quantize(rng: Rng) -> Case:
    """QUANTIZE of floats and of codes."""
    source, to = pick(
        rng, ("float32", "int8"), ("float32", "int16"), ("int8", "int8"), ("int16", "int16"), ("int8", "int16"),
        ("int16", "int8"), ("int8", "int32"), ("int16", "int32"), ("int8", "uint8"), ("uint8", "int8"),
        ("int32", "int16"), ("int32", "int8"),
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
    source = str(pick(rng, "float32", "int8", "int16", "int32", "uint32", "bool"))
    to = str(pick(rng, "float32", "int8", "int16", "int32", "uint32", "bool"))
    build, shape = Build(), shape_of(rng)
    x = build.input(shape, source)
    build.op("CAST", [x], Tensor(shape, to))
    data = rng.integers(0, 2, shape).astype(bool) if source == "bool" else rng.integers(-100, 100, shape)
    if source[0] == "u":
        data = np.abs(data)
    array = (data + 0.25).astype(source) if source == "float32" else np.asarray(data).astype(source)
    return Case(f"CAST {source}->{to} {shape}", build.bytes(), ((array,),))


def l2_normalization(rng: Rng) -> Case:
    """L2_NORMALIZATION along the last axis."""
    kind, build, shape = str(pick(rng, "float32", "int8")), Build(), shape_of(rng, largest=9)
    out = quant(1 / 128, 0) if kind == "int8" else None
    build.op("L2_NORMALIZATION", [build.input(shape, kind, q_of(rng, kind))], Tensor(shape, kind, out))
    return finish(build, rng, "L2_NORMALIZATION")


def cumsum(rng: Rng) -> Case:
    """CUMSUM."""
    kind, build, shape = str(pick(rng, "float32", "int8")), Build(), shape_of(rng)
    axis = int(rng.integers(-len(shape), len(shape)))
    x = build.input(shape, kind, q_of(rng, kind))
    options = {"exclusive": flag(rng), "reverse": flag(rng)}
    build.op("CUMSUM", [x, build.const(int32([axis]))], Tensor(shape, kind, q_of(rng, kind, -6, 1)), **options)
    return finish(build, rng, f"CUMSUM axis {axis} {options}")


MAKERS: Mapping[str, Maker] = {
    "ABS": _unary("ABS", "float32", "int8", "int16"), "NEG": _unary("NEG", "float32"),
    "EXP": _unary("EXP", "float32"), "LOG": _unary("LOG", "float32", positive=True),
    "SQRT": _unary("SQRT", "float32", positive=True),
    "RSQRT": _unary("RSQRT", "float32", "int8", "int16", positive=True), "SIN": _unary("SIN", "float32"),
    "COS": _unary("COS", "float32"), "SQUARE": _unary("SQUARE", "float32"), "FLOOR": _unary("FLOOR", "float32"),
    "CEIL": _unary("CEIL", "float32"), "ROUND": _unary("ROUND", "float32"),
    "LOGICAL_NOT": _unary("LOGICAL_NOT", "bool"), "RELU": _unary("RELU", "float32", "int8", "int16"),
    "RELU6": _unary("RELU6", "float32", "int8", "int16", same=True, low=-4, high=-2),
    "ELU": _unary("ELU", "float32", "int8", rtol=1e-5), "HARD_SWISH": hard_swish,
    "LEAKY_RELU": _unary("LEAKY_RELU", "float32", "int8", "int16",
                         options=lambda rng: {"alpha": float(np.float32(rng.uniform(0, 1.2)))}),
    "LOGISTIC": _unary("LOGISTIC", "float32", "int8", "int16", fixed=_SIGMOID, low=-10, high=-2),
    "TANH": _unary("TANH", "float32", "int8", "int16", fixed=_TANH, low=-10, high=-2), "QUANTIZE": quantize,
    "DEQUANTIZE": dequantize, "SOFTMAX": softmax, "LOG_SOFTMAX": log_softmax, "CAST": cast,
    "L2_NORMALIZATION": l2_normalization, "CUMSUM": cumsum,
}  # fmt: skip
