"""Floats of 8 and 4 bits: every code and many numbers as in ml_dtypes and ONNX's numpy_helper; cases of cast_few."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest
from onnx.numpy_helper import saturate_cast, to_float8e8m0

from glowc.frontend.fold import CODED_TYPES
from glowc.graph.few_bits import ROUND_MODES, decode, encode, round_bfloat16
from glowc.graph.types import CODED, DType
from glowc.ops.base import OpError
from glowc.ops.cast import KINDS, coded, decoded
from tests.kernels.case import Case, make_case
from tests.ops.one_node import check, graph_of

ENDS = [np.nan, np.inf, 0, 448, 449, 464, 465, 240, 248, 249, 57344, 61440, 61441, 65536, 5, 6, 7, 2.0**-127, 2.0**-10]
SIGNED = [(name, kind) for name, kind in CODED_TYPES.items() if kind != DType.E8M0]


def numbers() -> np.ndarray:
    rng = np.random.default_rng(0)
    ends = np.asarray([*ENDS, *(-v for v in ENDS)], np.float32)
    any_bits = rng.integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32)
    return np.concatenate([ends, any_bits, *(rng.normal(size=4000).astype(np.float32) * s for s in (0.01, 1, 300))])


@pytest.mark.parametrize(("name", "kind"), CODED_TYPES.items())
def test_every_code_has_its_number(name: str, kind: DType) -> None:
    codes = np.arange(16 if kind == DType.E2M1 else 256, dtype=np.uint8)
    want = codes.view(getattr(ml_dtypes, name)).astype(np.float32)
    np.testing.assert_array_equal(decode(codes, kind), want)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize(("name", "kind"), SIGNED)
def test_numbers_get_the_nearest_code(name: str, kind: DType, saturate: bool) -> None:
    x, dtype = numbers(), np.dtype(getattr(ml_dtypes, name))
    with np.errstate(all="ignore"):
        want = (saturate_cast(x, dtype) if saturate and kind != DType.E2M1 else x.astype(dtype)).astype(np.float32)
    np.testing.assert_array_equal(decode(encode(x, kind, saturate=saturate), kind), want)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("mode", ROUND_MODES)
def test_exponents_round_as_onnx_says(mode: str, saturate: bool) -> None:
    x = numbers()
    want = to_float8e8m0(x, saturate, mode).view(np.uint8)
    np.testing.assert_array_equal(encode(x, DType.E8M0, saturate=saturate, mode=mode), want)


def test_bfloat16_is_ml_dtypes() -> None:
    x = numbers()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(round_bfloat16(x), x.astype(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize("to", [number for number, kind in KINDS.items() if kind in CODED])
def test_integers_and_floats_are_cast_to_codes(to: int) -> None:
    whole = np.arange(-128, 128, dtype=np.int8)
    np.testing.assert_array_equal(check("Cast", [whole], {"to": to})[0], encode(whole.astype(np.float32), KINDS[to]))
    x = numbers()
    got = check("Cast", [x], {"to": to, "saturate": 0})[0]
    np.testing.assert_array_equal(got, encode(x, KINDS[to], saturate=False))
    with pytest.raises(OpError, match="cast to float32 between"):
        graph_of("Cast", [x.astype(np.float64)], {"to": to})


def kernel_cases() -> Iterator[Case]:
    """Every code, and numbers around the ends of each kind."""
    x, codes = numbers()[:600], np.arange(256, dtype=np.uint8)
    for kind in CODED_TYPES.values():
        given = codes[:16] if kind == DType.E2M1 else codes
        yield make_case(
            "cast_few", {"in": given}, {"n": given.size, "expr": decoded(kind)}, out={"out": (given.shape, DType.F32)}
        )
        for mode in ROUND_MODES if kind == DType.E8M0 else ("up",):
            for saturate in (False, True):
                text = coded(kind, saturate=saturate, mode=mode)
                yield make_case("cast_few", {"in": x}, {"n": x.size, "expr": text}, out={"out": (x.shape, DType.U8)})
