"""make_case refuses what does not fit the KernelDef, and fills what the kernel has to write."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from glowc.graph.types import DType
from glowc.program.ir import ParamValue
from glowc.program.kernel import KernelDef
from glowc.program.params import Params
from tests.kernels.case import FILL, Case, compared, make_case


@dataclass(frozen=True)
class _ToyParams(Params):
    n: int
    alpha: float


_TOY = KernelDef(
    "toy",
    ("in x", "inout sum", "out scratch", "out y"),
    _ToyParams,
    lambda arrays, p: None,
)
_X = np.arange(4, dtype=np.int8)


def _make(params: dict[str, ParamValue], rows: tuple[int, int] | None = None) -> Case:
    out = {"sum": ((1,), DType.S32), "scratch": ((0,), DType.S8), "y": ((4,), DType.S16)}
    return make_case(_TOY, {"x": _X}, params, out=out, rows=rows)


def test_operands_are_in_argument_order_with_their_kinds() -> None:
    case = _make({"alpha": 0.1, "n": 4})
    assert [str(o.type) for o in case.instr.operands] == ["s8[4]", "s32[1]", "s8[0]", "s16[4]"]
    assert list(case.arrays) == ["x", "sum", "scratch", "y"]
    assert case.instr.params == {"n": 4, "alpha": float(np.float32(0.1))}
    assert compared(case) == ("sum", "y")


def test_outputs_are_filled_with_a_pattern() -> None:
    assert set(_make({"alpha": 0.1, "n": 4}).arrays["y"].tobytes()) == {FILL}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n": 4}, r"missing \['alpha'\]"),
        ({"n": 4, "alpha": 1.0, "beta": 2}, r"unknown \['beta'\]"),
        ({"n": 4.5, "alpha": 1.0}, "must be an integer"),
        ({"n": 2**31, "alpha": 1.0}, "no int32"),
    ],
)
def test_wrong_params_are_named(params: dict[str, ParamValue], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _make(params)


def test_rows_are_for_spatial_kernels_only() -> None:
    with pytest.raises(ValueError, match="rows must not be given"):
        _make({"n": 4, "alpha": 1.0}, rows=(0, 4))


def test_a_missing_operand_is_named() -> None:
    with pytest.raises(ValueError, match=r"missing \['sum', 'scratch', 'y'\]"):
        make_case(_TOY, {"x": _X}, {"n": 4, "alpha": 1.0})
