"""The parameters that families of kernels share: what the rooms of operators and of instruction sets agree on.

Each is a dataclass; its fields are the parameters of the kernels, and those of the C struct in that order.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Self

from glowc.program.ir import Instr
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class Shape(Params):
    """Whole numbers that an instruction has among its parameters."""

    @classmethod
    @cache
    def names(cls) -> tuple[str, ...]:
        """Return the names of the parameters, in order."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def of(cls, instr: Instr) -> Self:
        """Return those of an instruction; KeyError where it lacks one."""
        params = instr.params
        return cls(*[int(params[name]) for name in cls.names()])


@dataclass(frozen=True, slots=True)
class Rows(Shape):
    """A spatial kernel: images, distances in elements, rings of rows (glowc/ops/spatial.py), order of the rows."""

    batch: int
    in_h: int
    in_w: int
    in_c: int
    out_h: int
    out_w: int
    out_c: int
    in_batch: int
    in_row: int
    in_col: int
    in_ch: int
    in_ring: int
    out_batch: int
    out_row: int
    out_ring: int
    descending: int


@dataclass(frozen=True, slots=True)
class Windows(Rows):
    """A spatial kernel whose outputs read windows: sizes, steps and padding of the window in rows and columns."""

    k_h: int
    k_w: int
    stride_h: int
    stride_w: int
    dil_h: int
    dil_w: int
    pad_top: int
    pad_left: int

    @property
    def taps(self) -> int:
        """Columns of all rows of the window."""
        return self.k_h * self.k_w


@dataclass(frozen=True, slots=True)
class Conv(Windows):
    """A convolution; depthwise ones have as many groups as input channels."""

    groups: int

    @property
    def inputs(self) -> int:
        """Inputs of a window without groups."""
        return self.k_h * self.k_w * self.in_c

    @property
    def outputs(self) -> int:
        """Output channels."""
        return self.out_c


@dataclass(frozen=True, slots=True)
class Pool(Windows):
    """A pool; the padding after the image counts for averages."""

    pad_bottom: int
    pad_right: int


@dataclass(frozen=True, slots=True)
class FullyConnected(Shape):
    """A product of `in_k` inputs with `out_n` rows of weights."""

    in_k: int
    out_n: int

    @property
    def outputs(self) -> int:
        """Outputs."""
        return self.out_n


@dataclass(frozen=True, slots=True)
class FullyConnectedRows(Shape):
    """The same of `rows` rows of inputs, where no convolution has such weights."""

    rows: int
    in_k: int
    out_n: int


@dataclass(frozen=True, slots=True)
class MatMul(Shape):
    """Two loops over products of [m, k] and [k, n] matrices, all with distances in elements."""

    batch_0: int
    batch_1: int
    a_batch_0: int
    a_batch_1: int
    b_batch_0: int
    b_batch_1: int
    out_batch_0: int
    out_batch_1: int
    m: int
    k: int
    n: int
    a_row: int
    a_col: int
    b_row: int
    b_col: int
    out_row: int
    out_col: int


@dataclass(frozen=True, slots=True)
class Codes(Shape):
    """The zero points and limits of a layer on codes; `scale_step` 0: one scale for all channels."""

    in_zp: int
    w_zp: int
    out_zp: int
    out_min: int
    out_max: int
    scale_step: int

    @property
    def clamped(self) -> bool:
        """True when not all int8 codes are allowed."""
        return self.out_min > -128 or self.out_max < 127


MAX_RANK = 6


def axis_keys(letter: str) -> tuple[str, ...]:
    """Names of the per-axis parameters, e.g. d0 .. d5."""
    return tuple(f"{letter}{i}" for i in range(MAX_RANK))


AXES = (*axis_keys("d"), *axis_keys("a"), *axis_keys("b"))
"""Parameters of a loop nest over two broadcast operands."""
