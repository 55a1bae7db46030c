"""The elementwise functions: each as a C expression and as numpy, of x and up to two parameters a and b.

In C, `F(` ends the name of a libm function (expF( becomes expf( or exp(), `K(c)` is a constant of the element
type, T the type and U its unsigned twin. The numpy form works on arrays and scalars of any float type, and
evaluates the same expression in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowc.graph.few_bits import round_bfloat16, round_half

Function = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Unary:
    """One function; `params` are attribute names and defaults, in the order a, b."""

    doc: str
    c: str
    function: Function
    params: tuple[tuple[str, float], ...] = ()
    c_int: str = ""


def _kind(x: Any) -> type[Any]:
    """The scalar type of an array or scalar, for constants of its precision."""
    return np.asarray(x).dtype.type


def _erf(x: Any, a: Any = 0, b: Any = 0) -> Any:
    x = np.asarray(x)
    return np.asarray([math.erf(float(v)) for v in x.reshape(-1)], np.float64).astype(x.dtype).reshape(x.shape)


def _sigmoid(x: Any, a: Any = 0, b: Any = 0) -> Any:
    k = _kind(x)
    return k(1) / (k(1) + np.exp(-x))


def _softplus(x: Any, a: Any = 0, b: Any = 0) -> Any:
    k = _kind(x)
    return np.maximum(x, k(0)) + np.log1p(np.exp(-np.abs(x)))


def _selu(x: Any, a: Any, b: Any) -> Any:
    k = _kind(x)
    return b * np.where(x > 0, x, a * (np.exp(np.minimum(x, k(0))) - k(1)))


def _gelu(x: Any, a: Any, b: Any) -> Any:
    k = _kind(x)
    return k(0.5) * x * (k(1) + _erf(x * k(math.sqrt(0.5))))


def _gelu_tanh(x: Any, a: Any, b: Any) -> Any:
    k = _kind(x)
    return k(0.5) * x * (k(1) + np.tanh(k(math.sqrt(2 / math.pi)) * (x + k(0.044715) * x * x * x)))


def _hard_sigmoid(x: Any, a: Any, b: Any) -> Any:
    k = _kind(x)
    return np.maximum(k(0), np.minimum(k(1), a * x + b))


def _half(x: Any, a: Any, b: Any) -> Any:
    return round_half(np.asarray(x).astype(np.float32)).astype(_kind(x))


def _bfloat16(x: Any, a: Any, b: Any) -> Any:
    return round_bfloat16(np.asarray(x).astype(np.float32)).astype(_kind(x))


def _swish(x: Any, a: Any, b: Any) -> Any:
    return x / (_kind(x)(1) + np.exp(-a * x))


_SWISH = "x / (K(1.0) + expF(-a * x))"
_SIXTH = 1.0 / 6.0
_ALPHA, _GAMMA = 1.67326319217681884765625, 1.05070102214813232421875

FUNCTIONS: Mapping[str, Unary] = {
    "relu": Unary("max(x, 0)", "x < 0 ? 0 : x", lambda x, a, b: np.where(x < 0, 0, x), c_int="(T)(x < 0 ? 0 : x)"),
    "clip": Unary(
        "min(max(x, min), max)", "x < a ? a : (x > b ? b : x)",
        lambda x, a, b: np.where(x < a, a, np.where(x > b, b, x)),
        (("min", -math.inf), ("max", math.inf)), "x < a ? a : (x > b ? b : x)"),
    "sigmoid": Unary("1 / (1 + exp(-x))", "K(1.0) / (K(1.0) + expF(-x))", _sigmoid),
    "tanh": Unary("tanh(x)", "tanhF(x)", lambda x, a, b: np.tanh(x)),
    "hard_swish": Unary(
        "x * max(0, min(1, x / 6 + 0.5))", "x * fmaxF(K(0.0), fminF(K(1.0), x * K(0.16666666666666666) + K(0.5)))",
        lambda x, a, b: x * _hard_sigmoid(x, _kind(x)(_SIXTH), _kind(x)(0.5))),
    "hard_sigmoid": Unary(
        "max(0, min(1, alpha * x + beta))", "x != x ? x : fmaxF(K(0.0), fminF(K(1.0), a * x + b))", _hard_sigmoid,
        (("alpha", 0.2), ("beta", 0.5))),
    "leaky_relu": Unary(
        "x or alpha * x below 0", "x < 0 ? a * x : x", lambda x, a, b: np.where(x < 0, a * x, x), (("alpha", 0.01),)),
    "elu": Unary(
        "x or alpha * (exp(x) - 1) below 0", "x < 0 ? a * (expF(x) - K(1.0)) : x",
        lambda x, a, b: np.where(x < 0, a * (np.exp(np.minimum(x, 0)) - _kind(x)(1)), x), (("alpha", 1.0),)),
    "selu": Unary(
        "gamma * (x or alpha * (exp(x) - 1) below 0)", "b * (x > 0 ? x : a * (expF(x) - K(1.0)))", _selu,
        (("alpha", _ALPHA), ("gamma", _GAMMA))),
    "celu": Unary(
        "max(0, x) + min(0, alpha * (exp(x / alpha) - 1))", "x < 0 ? a * (expF(x / a) - K(1.0)) : x",
        lambda x, a, b: np.where(x < 0, a * (np.exp(np.minimum(x, 0) / a) - _kind(x)(1)), x), (("alpha", 1.0),)),
    "thresholded_relu": Unary(
        "x above alpha, else 0", "x > a ? x : 0", lambda x, a, b: np.where(x > a, x, 0), (("alpha", 1.0),)),
    "softplus": Unary("log(1 + exp(x))", "fmaxF(x, K(0.0)) + log1pF(expF(-fabsF(x)))", _softplus),
    "softsign": Unary(  # the product is onnxruntime's, which decides ties of codes
        "x / (1 + |x|)", "x * (K(1.0) / (K(1.0) + fabsF(x)))",
        lambda x, a, b: x * (_kind(x)(1) / (_kind(x)(1) + np.abs(x)))),
    "mish": Unary(
        "x * tanh(softplus(x))", "x * tanhF(fmaxF(x, K(0.0)) + log1pF(expF(-fabsF(x))))",
        lambda x, a, b: x * np.tanh(_softplus(x))),
    "gelu": Unary(
        "x * normal distribution(x)", "K(0.5) * x * (K(1.0) + erfF(x * K(0.70710678118654757)))", _gelu),
    "gelu_tanh": Unary(
        "Gelu by tanh",
        "K(0.5) * x * (K(1.0) + tanhF(K(0.79788456080286541) * (x + K(0.044715) * x * x * x)))", _gelu_tanh),
    "quick_gelu": Unary("x * sigmoid(alpha * x)", _SWISH, _swish, (("alpha", 1.702),)),
    "swish": Unary("x * sigmoid(alpha * x)", _SWISH, _swish, (("alpha", 1.0),)),
    "erf": Unary("error function", "erfF(x)", _erf),
    "exp": Unary("exp(x)", "expF(x)", lambda x, a, b: np.exp(x)),
    "log": Unary("log(x)", "logF(x)", lambda x, a, b: np.log(x)),
    "sqrt": Unary("square root", "sqrtF(x)", lambda x, a, b: np.sqrt(x)),
    "reciprocal": Unary("1 / x", "K(1.0) / x", lambda x, a, b: _kind(x)(1) / x),
    "abs": Unary("|x|", "fabsF(x)", lambda x, a, b: np.abs(x), c_int="(T)(x < 0 ? (U)0 - (U)x : (U)x)"),
    "neg": Unary("-x", "-x", lambda x, a, b: -x, c_int="(T)((U)0 - (U)x)"),
    "floor": Unary("rounded down", "floorF(x)", lambda x, a, b: np.floor(x)),
    "ceil": Unary("rounded up", "ceilF(x)", lambda x, a, b: np.ceil(x)),
    "round": Unary("rounded half to even", "rintF(x)", lambda x, a, b: np.rint(x)),
    "sign": Unary(
        "-1, 0 or 1", "x > 0 ? K(1.0) : (x < 0 ? -K(1.0) : x)", lambda x, a, b: np.sign(x),
        c_int="(T)((x > 0) - (x < 0))"),
    "round_half": Unary("rounded to float16", "glow_half((float)x)", _half),
    "round_bfloat16": Unary("rounded to bfloat16", "glow_bfloat16((float)x)", _bfloat16),
    "bit_not": Unary("bitwise complement", "", lambda x, a, b: np.invert(x), c_int="(T)~x"),
    "shrink": Unary(
        "x drawn to 0: 0 within lambd, else bias nearer", "x < -a ? x + b : (x > a ? x - b : 0)",
        lambda x, a, b: np.where(x < -a, x + b, np.where(x > a, x - b, 0)), (("lambd", 0.5), ("bias", 0.0))),
    "not": Unary("boolean complement", "", lambda x, a, b: np.logical_not(x), c_int="(uint8_t)(x == 0)"),
    **{
        name: Unary(f"{name}(x)", f"{c}F(x)", function)
        for name, c, function in (
            ("sin", "sin", lambda x, a, b: np.sin(x)), ("cos", "cos", lambda x, a, b: np.cos(x)),
            ("tan", "tan", lambda x, a, b: np.tan(x)), ("asin", "asin", lambda x, a, b: np.arcsin(x)),
            ("acos", "acos", lambda x, a, b: np.arccos(x)), ("atan", "atan", lambda x, a, b: np.arctan(x)),
            ("sinh", "sinh", lambda x, a, b: np.sinh(x)), ("cosh", "cosh", lambda x, a, b: np.cosh(x)),
            ("asinh", "asinh", lambda x, a, b: np.arcsinh(x)), ("acosh", "acosh", lambda x, a, b: np.arccosh(x)),
            ("atanh", "atanh", lambda x, a, b: np.arctanh(x)),
        )
    },
}  # fmt: skip
