"""Tanh and Sigmoid between int16 codes: integers against floats for every code; the kernel cases of tanh_s16."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from glowc.board import load_cpu
from glowc.graph.tanh_codes import CODES, FUNCTIONS, exact_codes, results, sums, tanh_codes, tanh_table
from glowc.graph.types import DType, quant
from glowc.lower.lowering import lower_graph
from tests.kernels.case import Case, make_case
from tests.ops.one_node import graph_of, lowered

SCALES = (1e-9, 3e-5, 2.0**-13, 2.1e-4, 2.0**-12, 2.5e-4, 6e-4, 0.01, 3.0)
OUT_SCALES = (2.0**-15, 1 / 32767, 1e-4, 0.02)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("out_scale", OUT_SCALES)
def test_every_code_is_that_of_floats(function: str, scale: float, out_scale: float) -> None:
    made = tanh_codes(function, scale, out_scale)
    assert made is not None
    total = sums(CODES, tanh_table(), made.mul, made.shift, made.scale, made.start)
    got = results(total, CODES, made.near, np.asarray(made.fixes))
    np.testing.assert_array_equal(got, exact_codes(function, scale, out_scale))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_scales_of_more_than_15_bits_are_computed_in_floats(function: str) -> None:
    assert tanh_codes(function, 2.5e-4, 2.0**-15) is not None
    assert tanh_codes(function, 2.5e-4, float(np.nextafter(np.float32(2.0**-15), np.float32(0)))) is None


@pytest.mark.parametrize(
    ("op", "zero", "in_integers"),
    [("Tanh", 0, True), ("Sigmoid", 0, True), ("Tanh", 5, False), ("Erf", 0, False)],
)
def test_codes_around_0_are_computed_in_integers(op: str, zero: int, in_integers: bool) -> None:
    graph = graph_of(op, [CODES.astype(np.int16)], quants=[quant(2.5e-4, zero)], out_quants=[quant(2.0**-15, 0)])
    kernels = [instr.kernel for instr in lower_graph(graph, load_cpu("cortex-m4")).instrs]
    assert (kernels == ["tanh_s16"]) == in_integers
    if in_integers:
        (got,) = lowered(graph, [CODES.astype(np.int16)])
        np.testing.assert_array_equal(got, exact_codes(op.lower(), 2.5e-4, 2.0**-15))


def case(function: str, scale: float, out_scale: float, x: np.ndarray) -> Case:
    """Return a case of tanh_s16."""
    made = tanh_codes(function, scale, out_scale)
    assert made is not None
    fixes = np.asarray(made.fixes or (0,), np.int16)
    params = {
        "n": x.size, "mul": made.mul, "shift": made.shift, "scale": made.scale, "start": made.start,
        "near": made.near, "fixes": len(made.fixes),
    }  # fmt: skip
    arrays = {"in": x.astype(np.int16), "table": tanh_table().reshape(-1), "fixes": fixes}
    return make_case("tanh_s16", arrays, params, out={"out": (x.shape, DType.S16)})


def kernel_cases() -> Iterator[Case]:
    """Lengths around a block; codes that are corrected and those beside them, the ends, and some of all."""
    for n in (1, 3, 4, 7, 8, 9, 16, 29):
        yield case("tanh", 2.5e-4, 2.0**-15, np.resize([-32768, 32767, 0, -1, 1, 12000, -5431, 800, 31999], n))
    for function in FUNCTIONS:
        for scale in SCALES[::2]:
            for out_scale in OUT_SCALES[:3]:
                made = tanh_codes(function, scale, out_scale)
                assert made is not None
                near = [code + k for code in made.fixes for k in (-1, 0, 1)]
                x = np.concatenate(([-32768, 32767], near, np.arange(-32768, 32768, 251)))
                yield case(function, scale, out_scale, np.clip(x, -32768, 32767))
