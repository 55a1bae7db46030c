"""TensorFlow Lite's functions of codes: the reference, the program and the kernels give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from glowc.graph.attrs import AttrValue
from glowc.graph.types import QuantParams, quant
from tests.kernels.case import Case
from tests.ops.one_node import graph_of, lowered, reference
from tests.ops.program_cases import cases_of

_KERNELS = frozenset((
    "squared_difference_s8q31", "squared_difference_s16q31", "div_s8q31", "prelu_s8q31", "compare_s8q31", "total_q31",
    "matmul_s8q31", "matmul_s16q15", "matmul_s16s8q15", "bilinear_q20", "log_softmax_s8q31", "softmax_s16",
    "l2_norm_s8q31", "rsqrt_s16q31", "reduce_mean_s8q31", "reduce_mean_s16q31", "rescale_q31",
))  # fmt: skip


@dataclass(frozen=True)
class One:
    """A node of codes."""

    op: str
    inputs: tuple[np.ndarray, ...]
    quants: tuple[QuantParams, ...]
    out: QuantParams | None
    attrs: dict[str, AttrValue] = field(default_factory=dict)


def _codes(rng: np.random.Generator, kind: str, *shape: int) -> np.ndarray:
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, endpoint=True).astype(kind)


def _pairs(rng: np.random.Generator) -> Iterator[One]:
    a, rows = quant(0.05, 7), quant(0.021, -30)
    for shape in ((3, 1, 5), (3, 4, 5)):
        both = _codes(rng, "int8", 3, 4, 5), _codes(rng, "int8", *shape)
        for op, out in (("FixedSquaredDifference", quant(0.3, -9)), ("FixedPrelu", quant(0.1, 3))):
            yield One(op, both, (a, rows), out)
        for relation in ("<", "<=", ">", ">=", "==", "!="):
            yield One("FixedCompare", both, (a, quant(0.05, 9)), None, {"relation": relation})
        yield One("FixedDiv", both, (a, rows), quant(0.04, 5), {"act_max": 6.0})
        yield One("FixedDiv", both, (quant(0.9, -128), quant(0.001, 3)), quant(0.5, 0))
    wide = _codes(rng, "int16", 4, 5), _codes(rng, "int16", 5)
    yield One("FixedSquaredDifference", wide, (quant(1e-4, 0), quant(3e-4, 0)), quant(2e-3, 0))


def _sums(rng: np.random.Generator) -> Iterator[One]:
    q, x = quant(0.05, -11), _codes(rng, "int8", 4, 6, 3)
    yield One("FixedAddN", (x, x[::-1].copy(), _codes(rng, "int8", 4, 6, 3)), (q,) * 3, quant(0.1, 4))
    for axis, exclusive, reverse in ((0, 0, 0), (1, 1, 0), (2, 0, 1)):
        attrs: dict[str, AttrValue] = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
        yield One("FixedCumSum", (x,), (q,), quant(0.2, 1), attrs)
    yield One("ReduceSum", (x,), (q,), quant(0.3, 2), {"axes": (0, 2), "keepdims": 0, "rounding": "tflite"})
    attrs = {"axes": (1,), "rounding": "tflite"}
    yield One("ReduceSum", (_codes(rng, "int16", 5, 4),), (quant(1e-4, 0),), quant(3e-4, 0), attrs)
    for kind, out in (("int8", quant(1.3, 4)), ("int16", quant(3e-3, 0))):
        scale = quant(0.04, 9) if kind == "int8" else quant(1e-4, 0)
        left, right = _codes(rng, kind, 2, 3, 7), _codes(rng, kind, 1, 5, 7)
        yield One("FixedMatMul", (left, right), (scale, scale), out, {"perm_b": (0, 2, 1)})
    for size, perm in (((2, 20, 24), (0, 1, 2)), ((2, 24, 20), (0, 2, 1))):
        left, right = _codes(rng, "int8", 2, 5, 20), _codes(rng, "int8", *size)
        yield One("FixedMatMul", (left, right), (quant(0.04, 9), quant(0.03, -3)), quant(0.6, 4), {"perm_b": perm})
    left, right = _codes(rng, "int16", 2, 3, 7), _codes(rng, "int8", 1, 7, 5)
    yield One("FixedMatMul", (left, right), (quant(1e-4, 0), quant(0.04, 0)), quant(3e-2, 0))
    yield One("FixedMatMul", (left, right[:, :, :1]), (quant(1e-4, 0), quant(0.04, 0)), quant(3e-2, 0))


def _rows(rng: np.random.Generator) -> Iterator[One]:
    for n in (1, 9, 40):
        x = _codes(rng, "int8", 6, n)
        x[0] = 5
        for scale in (0.001, 0.05, 1.0):
            yield One("LogSoftmax", (x,), (quant(scale, 5),), quant(1 / 16, 127), {"rounding": "tflite"})
        yield One("FixedL2Norm", (x,), (quant(0.05, 5),), quant(1 / 128, 0))
        for scale in (1e-5, 4e-4):
            wide = _codes(rng, "int16", 3, n)
            attrs: dict[str, AttrValue] = {"beta": 0.7, "rounding": "tflite"}
            yield One("Softmax", (wide,), (quant(scale, 0),), quant(2.0**-15, 0), attrs)


def _others(rng: np.random.Generator) -> Iterator[One]:
    roots = np.concatenate(([-3, 0, 1, 2, 3, 32767], _codes(rng, "int16", 60))).astype(np.int16)
    for scale in (1e-4, 2.0**-12):
        yield One("FixedRsqrt", (roots,), (quant(scale, 0),), quant(1e-3, 0))
    for alpha in (-1.0, 0.0):
        yield One("FixedRescale", (roots,), (quant(1e-4, 0),), quant(7e-5, 0), {"alpha": alpha, "dtype": "s16"})
    x = _codes(rng, "int8", 2, 5, 4, 3)
    for align, half in ((0, 0), (1, 0), (0, 1)):
        for sizes in ((7, 11), (1, 2)):
            attrs: dict[str, AttrValue] = {"sizes": sizes, "align": align, "half": half}
            yield One("FixedBilinear", (x,), (quant(0.1, 3),), quant(0.1, 3), attrs)


def nodes() -> list[One]:
    """Return all nodes; the same ones each time."""
    rng = np.random.default_rng(23)
    return [*_pairs(rng), *_sums(rng), *_rows(rng), *_others(rng)]


def kernel_cases() -> Iterator[Case]:
    """What the nodes lower to."""
    for one in nodes():
        yield from cases_of(_KERNELS, one.op, one.inputs, one.attrs, quants=one.quants, out_quants=(one.out,))


@pytest.mark.parametrize("one", nodes(), ids=lambda one: one.op)
def test_reference_and_program_agree(one: One) -> None:
    graph = graph_of(one.op, one.inputs, one.attrs, quants=one.quants, out_quants=(one.out,))
    np.testing.assert_array_equal(lowered(graph, one.inputs)[0], reference(graph, one.inputs)[0])


def test_a_quotient_by_zero_is_zero() -> None:
    x, zero = np.asarray([40], np.int8), np.asarray([3], np.int8)
    graph = graph_of("FixedDiv", (x, zero), quants=(quant(0.1, 0), quant(0.1, 3)), out_quants=(quant(0.1, 7),))
    assert lowered(graph, (x, zero))[0].tolist() == [7]
