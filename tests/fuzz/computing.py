"""Draws layers that compute: products, sums, functions, pools, reductions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.fuzz.build import RANGE, numbers
from tests.fuzz.dice import (
    MOST_ELEMENTS,
    Dice,
    Net,
    Span,
    activation,
    bias_of,
    bounded,
    const_of,
    moments,
    products,
    scale_for,
    value_like,
)  # fmt: skip
from tests.fuzz.recipe import Const, Layer, Value


def draw_conv(net: Net, i: int) -> bool:
    """Conv of 1-D or 2-D images, depthwise and grouped too."""
    dice, x = net.dice, net.values[i]
    if len(x.shape) not in (3, 4):
        return False
    channels, size = x.shape[1], x.shape[2:]
    kernel = [dice.pick([1, 3, 2, 5, 1]) for _ in size]
    stride = [dice.pick([1, 1, 2, 3]) for _ in size]
    dilation = [dice.pick([1, 1, 1, 2]) for _ in size]
    pads = [dice.whole(0, min(k * d // 2 + 1, 3)) for k, d in zip(kernel * 2, dilation * 2, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    out = [(n + a + b - r) // s + 1 for n, a, b, r, s in
           zip(size, pads, pads[len(size):], reach, stride, strict=False)]  # fmt: skip
    if min(out) < 1:
        return False
    groups = dice.pick([1, 1, channels, *(g for g in (2, 4) if channels % g == 0)])
    multiple = dice.pick([1, 1, 2, 3]) if groups == channels and groups > 1 else 0
    out_c = channels * multiple if multiple else groups * dice.pick([4, 1, 8, 3, 16, 5])
    if out_c * math.prod(out) > MOST_ELEMENTS:
        return False
    weights = const_of(dice, x, (out_c, channels // groups, *kernel), 0)
    consts = [weights] + ([bias_of(dice, x, weights, out_c)] if dice.chance(2) else [])
    taps = channels // groups * math.prod(kernel)
    span = products(net.spans[i], weights, taps)
    form = "qop" if dice.chance(4) else "qdq"
    act = None if form == "qop" else activation(dice, span[1])
    y = value_like(dice, (1, out_c, *out), x.dtype, bounded(span, act), mixed=False)
    attrs = {"kernel_shape": kernel, "strides": stride, "dilations": dilation, "pads": pads, "group": groups}
    net.add(Layer("Conv", (i,), (y,), form, attrs, tuple(consts), act), span)
    return True


def draw_dense(net: Net, i: int) -> bool:
    """MatMul or Gemm by constant weights."""
    dice, x = net.dice, net.values[i]
    if len(x.shape) < 2 or x.shape[-1] > 600:
        return False
    inner, outer = x.shape[-1], dice.pick([8, 1, 4, 10, 17, 32])
    gemm = len(x.shape) == 2 and dice.chance(2)
    turned = gemm and dice.chance(2)
    weights = const_of(dice, x, (outer, inner) if turned else (inner, outer), 0 if turned else 1)
    span = products(net.spans[i], weights, inner)
    y = value_like(dice, (*x.shape[:-1], outer), x.dtype, span, mixed=False)
    if math.prod(y.shape) > MOST_ELEMENTS:
        return False
    if gemm:
        consts = (weights, bias_of(dice, x, weights, outer)) if dice.chance(2) else (weights,)
        form = "qop" if dice.chance(4) else "qdq"
        attrs: dict[str, Any] = {"transB": int(turned)}
        act = None if form == "qop" else activation(dice, span[1])
        net.add(Layer("Gemm", (i,), (y,), form, attrs, consts, act), span)
    else:
        form = "qop" if dice.chance(4) else "qdq"
        net.add(Layer("MatMul", (i,), (y,), form, {}, (weights,), None), span)
    return True


def draw_product(net: Net, i: int) -> bool:
    """MatMul of two activations: a tensor by one whose rows fit."""
    dice, values = net.dice, net.values
    x = values[i]
    if len(x.shape) < 2:
        return False
    fits = [j for j, v in enumerate(values) if len(v.shape) == len(x.shape) and v.shape[-2] == x.shape[-1]
            and v.shape[:-2] == x.shape[:-2] and v.dtype in ("s8", x.dtype) and j not in net.unused]  # fmt: skip
    if not fits:
        perm = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
        turned = Value(tuple(x.shape[p] for p in perm), x.dtype, x.scale, x.zero_point)
        net.add(Layer("Transpose", (i,), (turned,), "qdq", {"perm": perm}), net.spans[i])
        fits = [len(net.values) - 1]
    j = dice.pick(fits)
    w = net.values[j]
    count, (mean, deviation), (other, spread) = x.shape[-1], moments(net.spans[i]), moments(net.spans[j])
    reach = 2.5 * math.sqrt(count) * (math.hypot(mean, deviation) * spread + deviation * abs(other))
    span = count * mean * other - reach, count * mean * other + reach
    shape = (*x.shape[:-1], w.shape[-1])
    if math.prod(shape) > MOST_ELEMENTS:
        return False
    net.add(Layer("MatMul", (i, j), (value_like(dice, shape, x.dtype, span, mixed=False),), "qdq"), span)
    return True


def draw_binary(net: Net, i: int) -> bool:
    """Add, Mul, Sub, Div, Min, Max by another tensor or a constant, with broadcasting."""
    dice, values = net.dice, net.values
    x = values[i]
    op = dice.pick(["Add", "Mul", "Add", "Mul", "Sub", "Div", "Min", "Max"])
    form = "qop" if op in ("Add", "Mul") and dice.chance(3) else "qdq"
    fits = [
        j
        for j, v in enumerate(values)
        if j not in net.unused and _broadcasts(v.shape, x.shape) and (form == "qdq" or v.dtype == x.dtype)
    ]
    if dice.chance(2) or op == "Div":
        shape = _operand_shape(dice, x.shape)
        scale, zero = scale_for(dice, x.dtype, net.spans[i])
        const = Const(Value(shape, x.dtype, scale, zero), dice.seed(), "large" if op == "Div" else "random")
        if op == "Div":  # a divisor whose codes never stand for 0
            const = Const(Value(shape, x.dtype, scale, RANGE[x.dtype][0]), dice.seed(), "small")
            if RANGE[x.dtype][0] in _codes(const):
                return False
        other, consts = (), (const,)
        low, high = ((code - const.value.zero_point) * scale for code in RANGE[x.dtype])
        second = (scale, 3 * scale) if op == "Div" else (low, high)
    else:
        j = dice.pick(fits)
        other, consts, second = (j,), (), net.spans[j]
    corners = [COMBINE[op](a, b) for a in net.spans[i] for b in second]
    span = min(corners), max(corners)
    y = value_like(dice, x.shape, x.dtype, span)
    if form == "qop":
        y = Value(y.shape, x.dtype, y.scale, y.zero_point if y.dtype == x.dtype else x.zero_point)
    attrs = {"_const_first": True} if consts and op != "Div" and dice.chance(4) else {}
    act = activation(dice, span[1]) if form == "qdq" else None
    net.add(Layer(op, (i, *other), (y,), form, attrs, consts, act), span)
    return True


def _codes(const: Const) -> set[int]:

    return set(numbers(const).reshape(-1).tolist())


def _broadcasts(shape: Sequence[int], out: Sequence[int]) -> bool:
    if len(shape) > len(out):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(out), strict=False))


def _operand_shape(dice: Dice, shape: tuple[int, ...]) -> tuple[int, ...]:
    kind = dice.whole(0, 3)
    if kind == 0:
        return ()
    if kind == 1 and len(shape) > 1:
        return (shape[1], *(1 for _ in shape[2:]))
    return shape if kind == 2 else (shape[-1],)


UNARY = (
    "Relu", "Sigmoid", "LeakyRelu", "Clip", "Tanh", "HardSwish", "HardSigmoid", "Elu", "Abs", "Neg", "Erf", "Softplus",
    "Gelu", "Floor", "Sign", "Sin", "Softsign", "Selu", "ThresholdedRelu",
)  # fmt: skip
FUNCTION_SPANS: dict[str, Callable[[float, float], Span]] = {
    "Relu": lambda a, b: (max(a, 0.0), max(b, 0.0)), "Sigmoid": lambda a, b: (_sigmoid(a), _sigmoid(b)),
    "Tanh": lambda a, b: (math.tanh(a), math.tanh(b)), "Erf": lambda a, b: (math.erf(a), math.erf(b)),
    "HardSigmoid": lambda a, b: (0.0, 1.0), "Sin": lambda a, b: (-1.0, 1.0), "Sign": lambda a, b: (-1.0, 1.0),
    "Softsign": lambda a, b: (a / (1 + abs(a)), b / (1 + abs(b))), "Neg": lambda a, b: (-b, -a),
    "Abs": lambda a, b: (0.0, max(abs(a), abs(b))), "Softplus": lambda a, b: (0.0, max(b, 0.7)),
    "HardSwish": lambda a, b: (-0.375, max(b, 0.1)), "Gelu": lambda a, b: (-0.17, max(b, 0.1)),
    "Elu": lambda a, b: (max(a, -0.5), max(b, 0.1)), "Selu": lambda a, b: (max(2 * a, -1.76), max(b, 0.1)),
    "ThresholdedRelu": lambda a, b: (0.0, max(b, 0.1)), "LeakyRelu": lambda a, b: (a / 4, max(b, 0.1)),
}  # fmt: skip
COMBINE: dict[str, Callable[[float, float], float]] = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: a / b,
    "Min": min, "Max": max,
}  # fmt: skip


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-min(max(x, -50.0), 50.0)))


def draw_unary(net: Net, i: int) -> bool:
    """Elementwise functions."""
    dice, x = net.dice, net.values[i]
    op = dice.pick(UNARY)
    attrs: dict[str, Any] = {}
    if op in ("LeakyRelu", "Elu"):
        attrs["alpha"] = dice.pick([0.1, 0.5, 0.01])
    form = "qop" if op in ("Sigmoid", "LeakyRelu") and dice.chance(3) else "qdq"
    low, high = net.spans[i]
    act = (low + (high - low) / 4, high - (high - low) / 8) if op == "Clip" else None
    span = FUNCTION_SPANS.get(op, lambda a, b: (a, b))(low, high)
    y = value_like(dice, x.shape, x.dtype, span)
    if form == "qop" and y.dtype != x.dtype:
        y = Value(y.shape, x.dtype, y.scale, x.zero_point)
    net.add(Layer(op, (i,), (y,), form, attrs, (), act), span)
    return True


def draw_pool(net: Net, i: int) -> bool:
    """MaxPool, AveragePool and their global forms."""
    dice, x = net.dice, net.values[i]
    if len(x.shape) != 4:
        return False
    op = dice.pick(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
    if op == "GlobalMaxPool":
        net.add(Layer(op, (i,), (replace(x, shape=(*x.shape[:2], 1, 1)),)), net.spans[i])
        return True
    if op == "GlobalAveragePool":
        y = value_like(dice, (*x.shape[:2], 1, 1), x.dtype, net.spans[i])
        form = "qop" if dice.chance(3) and y.dtype == x.dtype else "qdq"
        attrs: dict[str, Any] = {"channels_last": 0} if form == "qop" else {}
        net.add(Layer(op, (i,), (y,), form, attrs), net.spans[i])
        return True
    kernel = [dice.pick([2, 3, 1]) for _ in range(2)]
    stride = [dice.pick([2, 1, 3]) for _ in range(2)]
    pads = [dice.whole(0, k - 1) for k in kernel * 2]
    ceil = int(dice.chance(4))
    rounded = math.ceil if ceil else math.floor
    size = [n + a + b - k for n, a, b, k in zip(x.shape[2:], pads, pads[2:], kernel, strict=False)]
    if min(size) < 0:
        return False
    out = [rounded(n / s) + 1 for n, s in zip(size, stride, strict=True)]
    out = [o - 1 if (o - 1) * s >= n + a else o
           for o, s, n, a in zip(out, stride, x.shape[2:], pads, strict=False)]  # fmt: skip
    attrs = {"kernel_shape": kernel, "strides": stride, "pads": pads, "ceil_mode": ceil}
    same = Value((*x.shape[:2], *out), x.dtype, x.scale, x.zero_point)
    if op == "AveragePool":
        attrs["count_include_pad"] = int(dice.chance(3))
        same = value_like(dice, same.shape, x.dtype, net.spans[i])
    form = "qop" if op == "AveragePool" and same.dtype == x.dtype and dice.chance(4) else "qdq"
    net.add(Layer(op, (i,), (same,), form, attrs), net.spans[i])
    return True


def draw_softmax(net: Net, i: int) -> bool:
    """Softmax over the last axis, with the usual output quantisation or another."""
    dice, x = net.dice, net.values[i]
    if x.shape[-1] < 2:
        return False
    low = RANGE[x.dtype][0]
    scale = dice.pick([1 / 256, 1 / 128, 0.004, 0.01])
    form = "qop" if dice.chance(4) else "qdq"
    attrs = {"axis": -1, "opset": 13} if form == "qop" else {"axis": -1}
    y = Value(x.shape, x.dtype, scale, low if dice.chance(2) else low + 64)
    net.add(Layer("Softmax", (i,), (y,), form, attrs), (0.0, 4 / x.shape[-1]))
    return True


def draw_reduce(net: Net, i: int) -> bool:
    """ReduceMean, ReduceMax, ReduceMin, ReduceSum over one or two axes."""
    dice, x = net.dice, net.values[i]
    op = dice.pick(["ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"])
    axes = sorted({dice.whole(0, len(x.shape) - 1) for _ in range(2)})
    keep = dice.whole(0, 1)
    dims = [1 if k in axes else d for k, d in enumerate(x.shape) if keep or k not in axes]
    if not dims:
        return False
    span, count = net.spans[i], math.prod(x.shape) // math.prod(dims)
    if op == "ReduceSum":
        mean, deviation = moments(span)
        reach = 2.5 * deviation * math.sqrt(count)
        span = count * mean - reach, count * mean + reach
    y = value_like(dice, dims, x.dtype, span)
    net.add(Layer(op, (i,), (y,), "qdq", {"keepdims": keep, "_i0": axes}), span)
    return True


def draw_normalised(net: Net, i: int) -> bool:
    """BatchNormalization by stored statistics, LayerNormalization of rows, PRelu with a slope per channel."""
    dice, x = net.dice, net.values[i]
    op = dice.pick(["BatchNormalization", "LayerNormalization", "PRelu"])
    if len(x.shape) < 3 and op != "LayerNormalization":
        return False
    count = x.shape[-1 if op == "LayerNormalization" else 1]
    if op == "PRelu":
        slopes = Const(
            Value((count, *(1 for _ in x.shape[2:])), x.dtype, *scale_for(dice, x.dtype, (-1.0, 1.0))), dice.seed()
        )
        y = value_like(dice, x.shape, x.dtype, net.spans[i], mixed=False)
        net.add(Layer(op, (i,), (y,), "qdq", {}, (slopes,)), net.spans[i])
        return True
    rng = random.Random(dice.seed())
    rows = [[rng.uniform(0.25, 2.0) for _ in range(count)] for _ in range(4)]
    attrs: dict[str, Any] = {"_f0": rows[0], "_f1": [v - 1 for v in rows[1]], "epsilon": dice.pick([1e-5, 1e-3])}
    if op == "BatchNormalization":
        mean, deviation = moments(net.spans[i])
        attrs |= {"_f2": [mean + (v - 1) * deviation for v in rows[2]], "_f3": [v * deviation**2 for v in rows[3]]}
    else:
        attrs["axis"] = -1
    net.add(Layer(op, (i,), (value_like(dice, x.shape, x.dtype, (-4.0, 4.0), mixed=False),), "qdq", attrs), (-4.0, 4.0))
    return True


def draw_conv_transpose(net: Net, i: int) -> bool:
    """ConvTranspose of images."""
    dice, x = net.dice, net.values[i]
    if len(x.shape) != 4:
        return False
    kernel, stride = [dice.pick([2, 3, 1]) for _ in range(2)], [dice.pick([2, 1]) for _ in range(2)]
    pads = [dice.whole(0, (k - 1) // 2) for k in kernel] * 2
    size = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(x.shape[2:], stride, kernel, pads, strict=False)]
    out_c = dice.pick([4, 1, 8, 3])
    if min(size) < 1 or out_c * math.prod(size) > MOST_ELEMENTS:
        return False
    weights = const_of(dice, x, (x.shape[1], out_c, *kernel), 1)
    consts = (weights, bias_of(dice, x, weights, out_c)) if dice.chance(2) else (weights,)
    span = products(net.spans[i], weights, x.shape[1] * math.prod(kernel))
    y = value_like(dice, (1, out_c, *size), x.dtype, span, mixed=False)
    attrs = {"kernel_shape": kernel, "strides": stride, "pads": pads}
    net.add(Layer("ConvTranspose", (i,), (y,), "qdq", attrs, consts, activation(dice, span[1])), span)
    return True
