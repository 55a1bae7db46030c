"""Conv: the reference against onnx.reference and the integer formula; the kernel cases of conv_* and dwconv_*."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx.reference import ReferenceEvaluator

from glowc.graph.graph import Node
from glowc.graph.types import DType, QuantParams, TensorType, quant
from glowc.ops.base import Call, OpError
from glowc.ops.conv import OP
from tests.kernels.case import Case, make_case
from tests.kernels.params import row_params

FLOAT_WHY = "the sum of a window runs in another order than numpy's matrix product"


def geometry(
    rng: np.random.Generator,
    *,
    h: int = 5,
    w: int = 6,
    c: int = 3,
    out_c: int = 4,
    k: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    group: int = 1,
    batch: int = 1,
    planar: bool = False,
    dtype: DType = DType.S8,
    w_dtype: DType = DType.S8,
    x_zp: int = -128,
    w_zp: int = 0,
    y_zp: int = 3,
    extreme: bool = False,
    clamp: tuple[int, int] | None = None,
    per_channel: bool = True,
    rows: tuple[int, int] | None = None,
    in_ring: int | None = None,
    out_ring: int | None = None,
    descending: int = 0,
    label: str = "",
) -> Case:
    """Return one convolution case with random data; depthwise when group == c."""
    out_h = (h + pads[0] + pads[2] - dilation[0] * (k[0] - 1) - 1) // stride[0] + 1
    out_w = (w + pads[1] + pads[3] - dilation[1] * (k[1] - 1) - 1) // stride[1] + 1
    shape = (batch, c, h, w) if planar else (batch, h, w, c)
    x_type, y_type = TensorType(shape, dtype), TensorType((batch, out_h, out_w, out_c), dtype)
    params = row_params(x_type, y_type, planar=planar) | {
        "k_h": k[0], "k_w": k[1], "stride_h": stride[0], "stride_w": stride[1], "dil_h": dilation[0],
        "dil_w": dilation[1], "pad_top": pads[0], "pad_left": pads[1], "groups": group, "descending": descending,
    }  # fmt: skip
    if in_ring is not None:
        params["in_ring"] = in_ring
    if out_ring is not None:
        params["out_ring"] = out_ring
    depthwise = group == c and group > 1
    w_shape = (k[0], k[1], out_c) if depthwise else (out_c, k[0], k[1], c // group)
    kernel = ("dwconv_" if depthwise else "conv_") + dtype.value
    rows = rows or (0, out_h)
    out = {"out": (y_type.shape, dtype)}
    if dtype.is_float:
        arrays = {
            "in": rng.standard_normal(shape).astype(dtype.numpy),
            "weights": rng.standard_normal(w_shape).astype(dtype.numpy),
            "bias": rng.standard_normal(out_c).astype(dtype.numpy),
        }  # fmt: skip
        bounds = {"act_min": 0.0 if clamp else -math.inf, "act_max": 6.0 if clamp else math.inf}
        tolerance = 1e-5 if dtype is DType.F32 else 1e-12
        return make_case(
            kernel,
            arrays,
            params | bounds,
            rows=rows,
            out=out,
            atol=tolerance,
            rtol=tolerance,
            why=FLOAT_WHY,
            name=label,
        )
    low, high = (dtype.qmin, dtype.qmax + 1)
    x = rng.choice([dtype.qmin, dtype.qmax], shape) if extreme else rng.integers(low, high, shape)
    wide = w_dtype is DType.S16
    weights = (
        rng.integers(-255, 256, w_shape)
        if wide
        else rng.choice([-128, 127], w_shape)
        if extreme
        else rng.integers(-127, 128, w_shape)
    )
    taps = k[0] * k[1] * (c // group)
    spread = 40.0 if dtype is DType.S8 else 9000.0
    scale = rng.uniform(0.5, 1.5, out_c if per_channel else 1) * spread / (math.sqrt(taps) * 74 * (dtype.qmax * 0.6))
    arrays = {
        "in": x.astype(dtype.numpy), "weights": weights.astype(w_dtype.numpy),
        "bias": rng.integers(-3000, 3000, out_c).astype(np.int32), "scale": scale.astype(np.float32),
    }  # fmt: skip
    out_min, out_max = clamp or (dtype.qmin, dtype.qmax)
    params |= {
        "in_zp": x_zp, "w_zp": w_zp, "out_zp": y_zp, "out_min": out_min, "out_max": out_max,
        "scale_step": int(per_channel and out_c > 1),
    }  # fmt: skip
    return make_case(kernel + ("w16" if wide else ""), arrays, params, rows=rows, out=out, name=label)


def kernel_cases() -> Iterator[Case]:
    """Every stride, pad, dilation and tail; zero points at both ends; rings, ranges and directions."""
    rng = np.random.default_rng(1)
    for k, s, p in itertools.product(((1, 1), (3, 3), (2, 5)), (1, 2, 3), (0, 1)):
        for c, out_c, group in ((3, 4, 1), (8, 5, 1), (6, 6, 6), (4, 8, 4), (6, 4, 2)):
            yield geometry(rng, h=7, w=8, c=c, out_c=out_c, k=k, stride=(s, s), pads=(p, p, p, p), group=group)
    for c in (*range(1, 21), 31, 32, 33, 47, 48, 64, 70):
        yield geometry(rng, h=3, w=4, c=c, out_c=5, pads=(1, 1, 1, 1), label=f"channels {c}")
        yield geometry(rng, h=3, w=3, c=4, out_c=c, k=(1, 1), label=f"outputs {c}")
        if c > 1:
            yield geometry(rng, h=4, w=4, c=c, out_c=c, group=c, pads=(1, 1, 1, 1), label=f"depthwise {c}")
    for (c, k_w), pad in itertools.product(((1, 4), (2, 2), (4, 1)), (0, 1, 3, 5)):
        base = {"w": 5 + k_w, "c": c, "k": (3, k_w), "pads": (1, pad, 2, pad), "x_zp": 7 * pad - 9}
        yield geometry(rng, **base, dilation=(2, 1), batch=2, label=f"rows of a word, columns {k_w}, pad {pad}")
        yield geometry(rng, **base | {"w": k_w}, stride=(1, 2), label=f"one word, columns {k_w}, pad {pad}")
    base = {"h": 6, "c": 1, "k": (3, 4), "pads": (1, 1, 1, 1)}
    yield geometry(rng, **base, rows=(2, 5), in_ring=4, out_ring=2, label="ring of words")
    for c, k, s, pad in ((3, (3, 3), 1, 1), (3, (3, 3), 2, 1), (1, (3, 5), 1, 2), (5, (2, 3), 1, 1), (7, (4, 1), 2, 0)):
        base = {"h": 6, "c": c, "k": k, "out_c": 5, "stride": (s, s), "pads": (1, pad, 1, pad)}
        yield geometry(rng, **base, w=16, x_zp=-7, label="rows and rests of groups")
        yield geometry(rng, **base, w=11 * s, batch=2, rows=(1, 3), in_ring=5, out_ring=3, label="ring of rests")
    for width in range(1, 12):
        yield geometry(rng, h=2, w=width, c=8, out_c=4, k=(1, 1), label=f"pixels {width}")
        yield geometry(rng, h=3, w=width, c=4, out_c=4, pads=(1, 1, 1, 1), label=f"width {width}")
        yield geometry(rng, h=3, w=width, c=4, out_c=4, group=4, pads=(1, 1, 1, 1), label=f"depthwise width {width}")
    for x_zp, y_zp in itertools.product((-128, 0, 127), (-128, 127)):
        yield geometry(rng, x_zp=x_zp, y_zp=y_zp, pads=(1, 1, 1, 1), extreme=True)
        yield geometry(rng, x_zp=x_zp, y_zp=y_zp, pads=(1, 1, 1, 1), extreme=True, c=4, out_c=4, group=4)
        yield geometry(rng, x_zp=x_zp, y_zp=y_zp, k=(1, 1), extreme=True, c=16, out_c=6)
    for c, k_h, s in ((3, 3, 1), (3, 3, 2), (2, 2, 2), (3, 1, 3), (7, 3, 1)):
        for w, pads in ((9, (1, 1, 1, 1)), (8, (0, 0, 1, 1)), (11, (2, 2, 0, 3))):
            yield geometry(
                rng, h=6, w=w, c=c, out_c=6, k=(k_h, 3), stride=(s, s), pads=pads, planar=True, batch=2, label="planar"
            )
    for w, s, pads in ((5, 1, (1, 1, 1, 1)), (14, 1, (1, 1, 1, 1)), (13, 2, (0, 0, 1, 1)), (10, 3, (1, 2, 1, 2))):
        for k, dilation in (((3, 3), (1, 1)), ((2, 5), (1, 1)), ((3, 2), (2, 3)), ((1, 1), (1, 1)), ((3, 7), (1, 1))):
            yield geometry(
                rng, h=7, w=w, c=9, out_c=9, group=9, k=k, dilation=dilation, stride=(s, s), label="depthwise tiles",
                pads=(pads[0] + 1, pads[1] + 1, pads[2] + 1, pads[3] + 1) if k[1] > 2 else pads,
            )  # fmt: skip
    for zp, channel, value in itertools.product((-128, 5), (0, 1, 2), (1 << 30, -(1 << 30))):  # constant channels
        case = geometry(rng, k=(1, 1), c=8, y_zp=zp, label="large bias")
        case.arrays["bias"][channel] = value
        yield case
    for c, out_c, zp in ((8, 9, -1813), (5, 18, 32767), (16, 8, -32768), (3, 10, 77)):
        planar = c == 3
        yield geometry(rng, c=c, out_c=out_c, dtype=DType.S16, pads=(1, 2, 0, 1), x_zp=zp, y_zp=-9, planar=planar)
        far = geometry(rng, c=c, out_c=out_c, dtype=DType.S16, pads=(1, 1, 1, 1), x_zp=zp, y_zp=5, dilation=(2, 2))
        far.arrays["bias"][0] = 1 << 30  # sums of codes around 0 fit 32 bits, those of all codes do not
        yield far
    for group in (1, 4):
        base = {"c": 4, "out_c": 4, "group": group}
        yield geometry(rng, **base, w_zp=-7, pads=(1, 0, 2, 1))
        yield geometry(rng, **base, dilation=(2, 3), h=9, w=9, pads=(2, 3, 1, 0))
        yield geometry(rng, **base, batch=2, pads=(1, 1, 1, 1), per_channel=False)
        yield geometry(rng, **base, planar=True, pads=(1, 1, 0, 2), batch=2)
        yield geometry(rng, **base, w_dtype=DType.S16, pads=(1, 1, 1, 1))
        yield geometry(rng, **base, dtype=DType.S16, pads=(1, 1, 1, 1), x_zp=0, y_zp=0)
        yield geometry(rng, **base, dtype=DType.S16, w_dtype=DType.S16, x_zp=5, y_zp=-9)
        yield geometry(rng, **base, clamp=(3, 50))
        yield geometry(rng, **base, k=(10, 4), h=20, w=10, stride=(2, 2), pads=(4, 1, 5, 1))
        for kind in (DType.F32, DType.F64):
            yield geometry(rng, **base, dtype=kind, pads=(1, 2, 0, 1), stride=(2, 1))
            yield geometry(rng, **base, dtype=kind, clamp=(0, 6), planar=True, batch=2)
        for rows, ring, out_ring, down in (
            ((0, 2), 3, 1, 0),
            ((2, 5), 4, 2, 0),
            ((3, 6), 6, 6, 1),
            ((1, 2), 3, 1, 1),
        ):
            yield geometry(
                rng,
                **base,
                h=6,
                pads=(1, 1, 1, 1),
                rows=rows,
                in_ring=ring,
                out_ring=out_ring,
                descending=down,
            )

    yield from vector_cases(np.random.default_rng(2))
    yield from tie_cases(np.random.default_rng(3))
    yield from few_input_cases(np.random.default_rng(3))
    yield from round_cases(np.random.default_rng(4))
    yield from run_cases(np.random.default_rng(5))


def run_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Windows whose adjacent inputs are few, an odd or an even number, and partly or all outside of the image."""
    dense, spread = ((4, 4), (4, 1), (3, 4)), (((1, 5), (1, 2)), ((2, 2), (2, 3)), ((2, 3), (1, 4)))
    windows = (*((k, (1, 1)) for k in dense), *spread)
    images = ((2, True), (3, True), (3, False), (4, False), (5, False))
    for (c, planar), (k, dilation), dtype in itertools.product(images, windows, (DType.S8, DType.S16)):
        base: dict[str, Any] = {"c": c, "planar": planar, "k": k, "dilation": dilation, "dtype": dtype, "batch": 2}
        zero = {"x_zp": 0, "y_zp": 0} if dtype is DType.S16 and c == 3 else {"x_zp": 45}
        yield geometry(rng, h=6, w=5, out_c=5, **base, **zero, pads=(3, 4, 2, 9), label="runs")
        if dilation == (1, 1):
            rows: dict[str, Any] = {"rows": (1, 3), "in_ring": 6, "out_ring": 2, "stride": (2, 2), "batch": 1}
            yield geometry(rng, h=8, w=9, out_c=4, **base | rows, **zero, pads=(1, 2, 1, 1), label="runs, ring")


def tie_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Scales that make ties, are 0.25 and more or next to nothing; sums that float32 does not hold."""
    scales = np.asarray([2**-6, 2**-3, 0.24, 0.25, 0.49, 0.5, 0.75, 2**-31.5, 2**-33, 3 * 2**-8], np.float32)
    for c, out_c, group, k in ((8, 10, 1, (1, 1)), (5, 10, 1, (3, 3)), (10, 10, 10, (3, 3)), (10, 10, 10, (1, 5))):
        for bias in (0, 1 << 24):
            case = geometry(rng, h=5, w=7, c=c, out_c=out_c, group=group, k=k, pads=(1, 1, 1, 1), label="ties")
            case.arrays["in"][:] //= 16
            case.arrays["weights"][:] //= 16
            case.arrays["scale"][:] = scales
            case.arrays["bias"][:] = case.arrays["bias"] // 64 + bias * (scales < 2**-20)
            yield case
    steep = np.asarray([0.2499, 0.25, 0.9, 3.3, 31.7, 127.9, 255.9, 256, 999, 2**-5], np.float32)
    for c, group, k in ((8, 1, (1, 1)), (10, 10, (3, 3)), (10, 10, (1, 5))):
        case = geometry(rng, h=5, w=7, c=c, out_c=10, group=group, k=k, pads=(1, 1, 1, 1), label="steep")
        case.arrays["weights"][:] //= 64
        case.arrays["scale"][:] = steep
        case.arrays["bias"][:] //= np.maximum(steep * 16, 1).astype(np.int32)
        yield case


def vector_cases(rng: np.random.Generator) -> Iterator[Case]:
    """What kernels that take 16 channels, pairs of pixels or whole vectors may get wrong."""
    edge: dict[str, tuple[int, int, int, int]] = {"pads": (1, 1, 1, 1)}
    part: dict[str, int | tuple[int, int]] = {"rows": (1, 4), "in_ring": 4, "out_ring": 3}
    for c, stride in itertools.product((8, 20, 33), (1, 2)):
        base = {"h": 5, "w": 9, "c": c, "out_c": c, "group": c, "stride": (stride, stride)}
        yield geometry(rng, **base, **edge, label=f"depthwise {c}, width 9")  # type: ignore[arg-type]
        yield geometry(rng, **base, label=f"depthwise {c}, no edge, batch", batch=2, clamp=(-20, 90))  # type: ignore[arg-type]
        yield geometry(rng, **base, **edge, extreme=True, label=f"depthwise {c}, extreme")  # type: ignore[arg-type]
    for c, down in itertools.product((8, 16, 20), (0, 1)):
        for group, out_c in ((c, c), (1, 6)):
            base = {"h": 6, "w": 9, "c": c, "out_c": out_c, "group": group, "descending": down}
            yield geometry(rng, **base, **edge, **part, label=f"ring {c}")  # type: ignore[arg-type]
    for c, k, w_zp in itertools.product((16, 18), ((1, 1), (3, 3)), (-128, 9, 127)):
        yield geometry(rng, h=4, w=8, c=c, out_c=7, k=k, w_zp=w_zp, label=f"weights from {w_zp}")
    for c, k, stride, (planar, w) in itertools.product(
        (1, 3, 9), ((1, 1), (3, 3), (2, 4)), (1, 2), ((False, 9), (True, 10))
    ):
        base = {"h": 5, "w": w, "c": c, "out_c": 6, "k": k, "stride": (stride, stride), "dtype": DType.F32}
        yield geometry(rng, **base, **edge, planar=planar, batch=2, label="float blocks")  # type: ignore[arg-type]
        if not planar and stride == 1 and k == (3, 3):
            yield geometry(rng, **base, **edge, **part, label="float, ring")  # type: ignore[arg-type]
    for c, k, stride in itertools.product((8, 19), ((3, 3), (2, 2)), (1, 2)):
        base = {"h": 6, "w": 7, "c": c, "out_c": c, "group": c, "k": k, "stride": (stride, stride), "dtype": DType.F32}
        yield geometry(rng, **base, **edge, label=f"float depthwise {c}", dilation=(1, 3))  # type: ignore[arg-type]
        yield geometry(rng, **base, **edge, **part, descending=1, label="float rows")  # type: ignore[arg-type]
    for clamp, zp in itertools.product((None, (-128, 60), (-20, 127), (-20, 60)), (-128, 5)):
        for c, k in ((48, (1, 1)), (50, (1, 1)), (12, (3, 3)), (3, (3, 3))):  # every ending of four pixels' products
            base = {"h": 4, "w": 8, "c": c, "out_c": 6, "k": k, "clamp": clamp, "y_zp": zp, "planar": c == 3}
            yield geometry(rng, **base, **(edge if k == (3, 3) else {}), label=f"endings {c}")  # type: ignore[arg-type]
    for c, out_c in ((16, 7), (20, 9), (48, 4), (64, 13)):
        for stride in (1, 2, 3):
            base = {"h": 6, "w": 10, "c": c, "out_c": out_c, "stride": (stride, stride)}
            yield geometry(rng, **base, **edge, clamp=(-7, 101), label=f"rows of {c}")  # type: ignore[arg-type]
            yield geometry(rng, **base, k=(1, 1), batch=2, label=f"points of {c}, batch")  # type: ignore[arg-type]
    for k in ((5, 5), (1, 3), (3, 1), (8, 2)):
        yield geometry(rng, h=9, w=11, c=10, out_c=5, k=k, pads=(2, 1, 2, 1), label=f"kernel {k}")
        yield geometry(rng, h=9, w=11, c=10, out_c=10, group=10, k=k, pads=(2, 1, 2, 1), label=f"depthwise kernel {k}")
    yield geometry(rng, h=9, w=9, c=20, out_c=5, dilation=(2, 2), pads=(2, 2, 2, 2), label="dilated, many channels")
    yield geometry(rng, h=12, w=13, c=3, out_c=9, planar=True, stride=(2, 2), pads=(0, 0, 1, 1), label="planar image")


def few_input_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Windows of few inputs over rows that blocks of four and eight pixels fill well."""
    ring: dict[str, Any] = {"rows": (1, 4), "in_ring": 5, "out_ring": 3}
    for c, out_c in ((8, 8), (9, 13), (15, 3), (16, 24), (20, 8), (23, 9), (24, 5), (40, 8), (48, 11)):
        base: dict[str, Any] = {"c": c, "out_c": out_c, "k": (1, 1), "batch": 2}
        yield geometry(rng, h=3, w=15, **base, label=f"few inputs, points of {c}")
        yield geometry(rng, h=5, w=29, stride=(2, 2), **base, y_zp=-128, label=f"few inputs, stride, {c}")
        yield geometry(rng, h=6, w=8, **base, **ring, clamp=(-100, 88), label=f"few inputs, ring, {c}")
        yield geometry(rng, h=2, w=8, **base, extreme=True, x_zp=127, y_zp=7, label=f"few inputs, extreme, {c}")
    for c, k, w_zp in itertools.product((6, 20, 40), ((1, 1), (3, 3)), (-128, 127)):
        far: dict[str, Any] = {"c": c, "out_c": 9, "k": k, "w_zp": w_zp, "batch": 2}
        yield geometry(rng, h=4, w=11, **far, extreme=True, pads=(1, 1, 1, 1), label=f"weights from {w_zp}")
        yield geometry(rng, h=6, w=21, **far, stride=(2, 2), label=f"weights from {w_zp}, stride")
    for k, stride in itertools.product(((2, 2), (3, 2), (2, 3), (4, 3)), (1, 2)):
        small: dict[str, Any] = {"c": 25, "out_c": 25, "group": 25, "k": k, "stride": (stride, stride)}
        yield geometry(rng, h=7, w=9, **small, pads=(2, 1, 2, 2), clamp=(-90, 80), label=f"depthwise window {k}")
        yield geometry(
            rng, h=7, w=9, **small, pads=(1, 0, 3, 1), extreme=True, y_zp=-128, label=f"depthwise extreme {k}"
        )
    for c, k, stride in itertools.product((1, 3, 4), ((3, 3), (10, 4), (1, 7)), (1, 2, 3)):
        image: dict[str, Any] = {"h": 12, "w": 15 * stride + k[1], "c": c, "k": k, "pads": (1, 2, 2, 1)}
        image["stride"] = (stride, stride)
        planar, many = stride != 2, 11 if c == 4 else 4
        yield geometry(rng, **image, planar=planar, out_c=many, batch=2, label=f"few channels {c}, {k}, {stride}")
    for c, down in itertools.product((2, 3, 5), (0, 1)):
        image = {"h": 6, "w": 16, "c": c, "out_c": 9, "descending": down}
        same: dict[str, Any] = {"pads": (1, 1, 1, 1)}
        dilated: dict[str, Any] = {"pads": (2, 1, 2, 1), "dilation": (2, 1), "clamp": (0, 90)}
        yield geometry(rng, **image, **dilated, label=f"few channels, row dilation {c}")
        yield geometry(rng, **image, **same, **ring, y_zp=-128, label=f"few channels, ring {c}")
        yield geometry(rng, **image, **same, extreme=True, planar=True, label=f"few channels, extreme {c}")


def round_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Points of so many inputs that the second step is at each seam of a round of glow_dsp_quad.h, or next to one."""
    for c, w_zp in itertools.product((14, 16, 26, 28, 34, 36), (0, 9)):  # 16 steps of two inputs a round, 12 or 6
        yield geometry(rng, h=1, w=5, c=c, out_c=6, k=(1, 1), w_zp=w_zp, label=f"second step, {c} inputs from {w_zp}")


def _one_node(x: np.ndarray, w: np.ndarray, b: np.ndarray, attrs: dict[str, object]) -> np.ndarray:
    node = oh.make_node("Conv", ["x", "w", "b"], ["y"], **attrs)
    f32 = onnx.TensorProto.FLOAT
    infos = [oh.make_tensor_value_info(n, f32, a.shape) for n, a in (("x", x), ("w", w), ("b", b))]
    graph = oh.make_graph([node], "g", infos, [oh.make_tensor_value_info("y", f32, None)])
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)])
    return np.asarray(ReferenceEvaluator(model).run(None, {"x": x, "w": w, "b": b})[0])


@pytest.mark.parametrize(("c", "o", "group"), [(3, 4, 1), (4, 4, 4), (4, 8, 4), (6, 4, 2)])
@pytest.mark.parametrize("attrs", [
    {}, {"strides": (2, 1), "pads": (1, 0, 2, 1)}, {"dilations": (2, 2), "pads": (2, 2, 2, 2)},
])  # fmt: skip
def test_conv_float_equals_onnx_reference(c: int, o: int, group: int, attrs: dict[str, tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, c, 7, 6)).astype(np.float32)
    w = rng.standard_normal((o, c // group, 3, 2)).astype(np.float32)
    b = rng.standard_normal(o).astype(np.float32)
    full = {
        "strides": (1, 1),
        "pads": (0, 0, 0, 0),
        "dilations": (1, 1),
        "kernel_shape": (3, 2),
        "group": group,
    } | attrs
    want = _one_node(x, w, b, full)
    node = Node("n", "Conv", ("x", "w", "b"), ("y",), full)
    types = tuple(TensorType(a.shape, DType.F32) for a in (x, w, b))
    out = OP.infer(node, types)
    assert out[0].shape == want.shape
    got = OP.reference(Call(node, (x, w, b), types, out))[0]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_conv_integer_rounds_half_to_even_in_float32() -> None:
    node = Node("n", "Conv", ("x", "w", "b"), ("y",), {"kernel_shape": (1, 1)})
    x = np.asarray([[[[1, 3, 5, -1]]]], np.int8)
    w, b = np.asarray([[[[1]]]], np.int8), np.asarray([0], np.int32)
    types = (
        TensorType(x.shape, DType.S8, quant(0.5, 0)),
        TensorType(w.shape, DType.S8, QuantParams((1.0,), (0,))),
        TensorType((1,), DType.S32),
    )
    out = (TensorType(x.shape, DType.S8, quant(1.0, 7)),)
    got = OP.reference(Call(node, (x, w, b), types, out))[0]
    assert got.reshape(-1).tolist() == [7, 9, 9, 7]  # 0.5, 1.5, 2.5, -0.5 to even, plus 7


def test_conv_refuses_channels_that_do_not_fit() -> None:
    node = Node("n", "Conv", ("x", "w"), ("y",), {"kernel_shape": (3, 3)})
    with pytest.raises(OpError, match="4 input channels"):
        OP.infer(node, (TensorType((1, 4, 8, 8), DType.F32), TensorType((2, 3, 3, 3), DType.F32)))


def test_conv_refuses_a_kernel_larger_than_its_input() -> None:
    node = Node("n", "Conv", ("x", "w"), ("y",), {"kernel_shape": (3, 3)})
    with pytest.raises(OpError, match="larger than the padded input"):
        OP.infer(node, (TensorType((1, 3, 2, 8), DType.F32), TensorType((2, 3, 3, 3), DType.F32)))
