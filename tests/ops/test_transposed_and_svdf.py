"""FixedConvTranspose and SVDF: the kernel cases of conv_transpose_*q31, conv_transpose_*q15 and svdf_*."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from glowc.graph.fixed_point import multipliers
from glowc.graph.types import DType
from tests.kernels.case import Case, make_case

RNG = np.random.default_rng(11)


def transposed(kind: DType, size: tuple[int, ...], k: tuple[int, int], stride: tuple[int, int], pad: int) -> Case:
    """Return a case of images [N, h, w, I] with O channels; every second one has one factor for all channels."""
    n, h, w, c, out_c = size
    out_h, out_w = h * stride[0] + 1, w * stride[1]
    mul, shift = multipliers([float(v) for v in RNG.uniform(0.5, 1.5, out_c if c % 2 else 1) * 2e-3 / math.sqrt(c)])
    arrays = {
        "in": RNG.integers(kind.qmin, kind.qmax, (n, h, w, c), endpoint=True).astype(kind.numpy),
        "weights": RNG.integers(-128, 128, (out_c, *k, c)).astype(np.int8),
        "bias": RNG.integers(-9000, 9000, out_c).astype(np.int32 if kind is DType.S8 else np.int64),
        "mul": mul, "shift": shift,
    }  # fmt: skip
    params = {
        "batch": n, "in_h": h, "in_w": w, "in_c": c, "out_h": out_h, "out_w": out_w, "out_c": out_c,
        "k_h": k[0], "k_w": k[1],
        "stride_h": stride[0], "stride_w": stride[1], "pad_top": pad, "pad_left": pad, "w_zp": 0,
        "in_zp": -128 if kind is DType.S8 else 0, "out_zp": 3 if kind is DType.S8 else 0,
        "out_min": kind.qmin + pad, "out_max": kind.qmax, "scale_step": c % 2,
    }  # fmt: skip
    kernel = "conv_transpose_s8q31" if kind is DType.S8 else "conv_transpose_s16q15"
    return make_case(kernel, arrays, params, out={"out": ((n, out_h, out_w, out_c), kind)})


def svdf(time: DType, batch: int, in_k: int, units: int, rank: int, memory: int) -> Case:
    """Return a case of SVDF in the middle of a sequence; of floats for the kind f32."""
    filters, coded = units * rank, not time.is_float
    shapes = {
        "in": (batch, in_k), "feature": (filters, in_k), "time": (filters, memory), "bias": (units,),
        "state": (batch, filters, memory),
    }  # fmt: skip
    params = {"batch": batch, "in_k": in_k, "units": units, "svdf_rank": rank, "memory": memory}
    if not coded:
        arrays = {role: RNG.standard_normal(shape).astype(np.float32) for role, shape in shapes.items()}
        return make_case(
            "svdf_f32", arrays, params | {"act_min": 0.0, "act_max": math.inf}, out={"out": ((batch, units), time)},
            atol=1e-5, rtol=1e-5, why="the sums run in another order than numpy's",
        )  # fmt: skip
    kinds = {"in": DType.S8, "feature": DType.S8, "time": time, "state": time}
    arrays = {
        role: RNG.integers(kinds[role].qmin, kinds[role].qmax, shape, endpoint=True).astype(kinds[role].numpy)
        for role, shape in shapes.items()
        if role != "bias"
    }
    arrays["bias"] = RNG.integers(-9000, 9000, units).astype(np.int32)
    if time is DType.S16:
        arrays["time"] //= 256  # the runtime's sums are of 32 bits
    (a, b), (c, d) = multipliers([time.qmax / (9000.0 * in_k), 60 / (time.qmax * 90.0 * math.sqrt(filters * memory))])
    params |= {"in_zp": -5, "state_zp": 0 if time is DType.S16 else 7, "out_zp": -2}
    params |= {"state_mul": int(a), "state_shift": int(c), "out_mul": int(b), "out_shift": int(d)}
    return make_case("svdf_s8q31", arrays, params, out={"out": ((batch, units), DType.S8)})


def kernel_cases() -> Iterator[Case]:
    """Steps smaller and larger than the window, padding, memories of one and more calls."""
    for kind in (DType.S8, DType.S16):
        for k in ((1, 1), (3, 3), (2, 5)):
            for stride in ((1, 1), (2, 3)):
                yield transposed(kind, (2, 3, 4, 5, 3), k, stride, min(k) // 2)
        yield transposed(kind, (1, 2, 2, 16, 8), (4, 4), (2, 2), 1)
    for time in (DType.S8, DType.S16, DType.F32):
        for sizes in ((1, 1, 1, 1, 1), (2, 7, 3, 2, 5), (1, 33, 4, 1, 10), (1, 12, 7, 1, 8), (2, 8, 5, 3, 1)):
            yield svdf(time, *sizes)
