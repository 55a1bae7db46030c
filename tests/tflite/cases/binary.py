"""Functions of two and more operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tests.tflite.cases.draw import (
    ACTIVATIONS,
    Case,
    Maker,
    Rng,
    data_of,
    finish,
    flag,
    pair_of_shapes,
    pick,
    q_of,
    shape_of,
)
from tests.tflite.writer import Build, Tensor, quant


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


def prelu(rng: Rng) -> Case:
    """PRELU with slopes per channel."""
    kind, build, shape = str(pick(rng, "float32", "int8")), Build(), shape_of(rng, 4)
    slopes = (1, 1, shape[3])
    x = build.input(shape, kind, q_of(rng, kind))
    alpha = build.const(data_of(rng, slopes, kind), q_of(rng, kind))
    build.op("PRELU", [x, alpha], Tensor(shape, kind, q_of(rng, kind)))
    return finish(build, rng, "PRELU")


def divide(rng: Rng) -> Case:
    """DIV; of codes only quotients which the runtime's C++ defines: it shifts to the right by at most 31 bits."""
    if flag(rng):
        return _binary("DIV", "float32", "int32", fused=True, nonzero=True)(rng)
    build, (a, b, y) = Build(), pair_of_shapes(rng)
    qa, qb = q_of(rng, "int8"), q_of(rng, "int8")
    assert qa is not None
    assert qb is not None
    out = quant(qa.scale[0] / qb.scale[0] * 2.0 ** rng.uniform(-6, -1.1), int(rng.integers(-128, 128)))
    divisor = np.where(data_of(rng, b, "int8") == qb.zero[0], 3 if qb.zero[0] != 3 else 5, data_of(rng, b, "int8"))
    divisor = np.where(divisor == qb.zero[0], 3 if qb.zero[0] != 3 else 5, divisor).astype(np.int8)
    x = build.input(a, "int8", qa)
    fused = int(pick(rng, *ACTIVATIONS))
    build.op("DIV", [x, build.const(divisor, qb)], Tensor(y, "int8", out), fusedActivationFunction=fused)
    data = data_of(rng, a, "int8")
    far = 100 if qa.zero[0] < 0 else -100
    data = np.where(np.abs(data.astype(int) - qa.zero[0]) < 16, far, data).astype(np.int8)
    return Case(f"DIV {a} {b} act {fused}", build.bytes(), ((data,),))


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
    kind = str(pick(rng, "float32", "int8", "int16"))
    return _product(rng, kind, kind)


def mixed_matmul(rng: Rng) -> Case:
    """BATCH_MATMUL of int16 by int8, as LiteRT has it: the right operand has zero point 0."""
    return _product(rng, "int16", "int8")


def _product(rng: Rng, kind: str, kind_b: str) -> Case:
    build = Build()
    m, k, n = (int(v) for v in rng.integers(1, 9, 3))
    lead = shape_of(rng, int(rng.integers(1, 3)), 3) if flag(rng) else ()
    lead_b = tuple(d if flag(rng) else 1 for d in lead) if flag(rng) else lead
    adj_x, adj_y = flag(rng), flag(rng)
    a = build.input((*lead, *((k, m) if adj_x else (m, k))), kind, q_of(rng, kind))
    right = (*lead_b, *((n, k) if adj_y else (k, n)))
    constant = flag(rng)
    qb = q_of(rng, kind_b)
    qb = qb if qb is None or kind == kind_b else replace(qb, zero=(0,))
    b = build.const(data_of(rng, right, kind_b), qb) if constant else build.input(right, kind_b, qb)
    out = q_of(rng, kind, -5, 2)
    build.op("BATCH_MATMUL", [a, b], Tensor((*lead, m, n), kind, out), adjX=adj_x, adjY=adj_y)
    return finish(build, rng, f"BATCH_MATMUL {kind_b}{right} const={constant} adj {adj_x} {adj_y}", rtol=1e-5)


_ARITHMETIC = ("float32", "int8", "int8", "int16", "int32")
_COMPARED = ("float32", "int8", "int32", "int64")
MAKERS: Mapping[str, Maker] = {
    "PRELU": prelu, "ADD": _binary("ADD", *_ARITHMETIC, fused=True),
    "SUB": _binary("SUB", *_ARITHMETIC, fused=True), "MUL": _binary("MUL", *_ARITHMETIC, fused=True), "DIV": divide,
    "FLOOR_DIV": _binary("FLOOR_DIV", "float32", nonzero=True),
    "FLOOR_MOD": _binary("FLOOR_MOD", "float32", nonzero=True),
    "SQUARED_DIFFERENCE": _binary("SQUARED_DIFFERENCE", "float32", "int8", "int16", "int32"),
    "MAXIMUM": _binary("MAXIMUM", "float32", "int8", "int16", "int32", "int64", same=True),
    "MINIMUM": _binary("MINIMUM", "float32", "int8", "int16", "int32", "int64", same=True),
    "EQUAL": _binary("EQUAL", *_COMPARED, "bool", result="bool"),
    "NOT_EQUAL": _binary("NOT_EQUAL", *_COMPARED, "bool", result="bool"),
    "LESS": _binary("LESS", *_COMPARED, result="bool"),
    "LESS_EQUAL": _binary("LESS_EQUAL", *_COMPARED, result="bool"),
    "GREATER": _binary("GREATER", *_COMPARED, result="bool"),
    "GREATER_EQUAL": _binary("GREATER_EQUAL", *_COMPARED, result="bool"),
    "LOGICAL_AND": _binary("LOGICAL_AND", "bool", result="bool"),
    "LOGICAL_OR": _binary("LOGICAL_OR", "bool", result="bool"), "ADD_N": add_n, "SELECT_V2": select_v2,
    "BATCH_MATMUL": batch_matmul,
}  # fmt: skip
LITERT: Mapping[str, Maker] = {"BATCH_MATMUL int16 int8": mixed_matmul}
"""What LiteRT has and the runtime for microcontrollers refuses."""
