"""Parameters of kernel cases as mappings, from what makes them for the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import MAX_RANK, axis_keys
from glowc.ops import recurrent_kernels, spatial, unary
from glowc.program.ir import ParamValue
from glowc.program.params import as_mapping

Values = dict[str, ParamValue]


def row_params(x: TensorType, y: TensorType, *, planar: bool = False) -> Values:
    """Return the rows of whole tensors."""
    return as_mapping(spatial.row_params(x, y, planar=planar))


def axis_params(letter: str, values: Sequence[int], default: int) -> Values:
    """Return the per-axis parameters of a collapsed access, filled up with `default`."""
    return dict(zip(axis_keys(letter), (*values, *([default] * (MAX_RANK - len(values)))), strict=True))


def cell_params(*args: Any, **kwargs: Any) -> Values:
    """Return all parameters of a recurrent layer."""
    return as_mapping(recurrent_kernels.cell_params(*args, **kwargs))


def words(name: str, dtype: DType, a: float, b: float) -> Values:
    """Return what `unary` prints with, without the number of elements."""
    found = as_mapping(unary.words(0, name, dtype, a, b))
    return {key: value for key, value in found.items() if key != "n"}
