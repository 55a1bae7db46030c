"""Cases of fully connected layers: of one row of inputs, and of several ones, which are convolutions of 1x1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from glowc.graph.types import DType
from glowc.ops.conv import pixels
from glowc.program.ir import ParamValue
from tests.kernels.case import Case, make_case


def make_dense(
    kernel: str, arrays: Mapping[str, np.ndarray], params: Mapping[str, ParamValue], *, out: DType, **more: Any
) -> Case:
    """Return the layer that weights[N, K] on in[rows, K] are, by the name of the kernel for one row."""
    (n, k), rows = arrays["weights"].shape, len(arrays["in"])
    if rows > 1:
        return over_pixels(kernel, arrays, params, out=out, **more)
    return make_case(kernel, arrays, {"in_k": k, "out_n": n, **params}, out={"out": ((1, n), out)}, **more)


def over_pixels(
    kernel: str, arrays: Mapping[str, np.ndarray], params: Mapping[str, ParamValue], *, out: DType, **more: Any
) -> Case:
    """Return the convolution of 1x1 whose pixels are the rows of inputs."""
    (n, k), rows = arrays["weights"].shape, len(arrays["in"])
    shape: dict[str, ParamValue] = asdict(pixels(rows, k, n))
    kernel = kernel.replace("fc_", "conv_")
    return make_case(kernel, arrays, {**shape, **params}, rows=(0, 1), out={"out": ((rows, n), out)}, **more)


def by_rows(
    kernel: str, arrays: Mapping[str, np.ndarray], params: Mapping[str, ParamValue], *, out: DType, **more: Any
) -> Iterator[Case]:
    """Yield the convolution, and a fully connected layer of each row."""
    yield over_pixels(kernel, arrays, params, out=out, **more)
    for row in arrays["in"]:
        yield make_dense(kernel, {**arrays, "in": row[None]}, params, out=out, **more)
