"""Convolutions and fully connected layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from tests.tflite.cases.draw import (
    ACTIVATIONS,
    Case,
    Maker,
    Rng,
    data_of,
    finish,
    flag,
    int32,
    pick,
    q_of,
    weights_of,
)
from tests.tflite.writer import Build, Quant, Tensor, quant


def same_or_valid(rng: Rng, size: int, k: int, stride: int, dilation: int, padding: int) -> int:
    """Return the output size of a window."""
    if padding == 0:
        return -(-size // stride)
    return -(-(size - (k - 1) * dilation) // stride)


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


MAKERS: Mapping[str, Maker] = {
    "CONV_2D": conv("CONV_2D"), "DEPTHWISE_CONV_2D": conv("DEPTHWISE_CONV_2D"), "FULLY_CONNECTED": fully_connected,
    "TRANSPOSE_CONV": transpose_conv,
}  # fmt: skip
