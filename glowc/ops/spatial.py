"""The row interface of spatial kernels: strides, rings and row ranges, and their numpy counterpart.

A spatial kernel computes output rows [y_begin, y_end) of every image. Input row r lies at
`in + (r % in_ring) * in_row`, output row y at `out + (y % out_ring) * out_row` (counts of elements); a whole
tensor is the case in_ring = in_h, out_ring = out_h. `in_col` and `in_ch` are the strides of a column and of a
channel, so that a planar (NCHW) input is read in place. `descending` reverses the order of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowc.graph.attrs import Attr, IntList, Str
from glowc.graph.types import TensorType
from glowc.kernels.shapes import Rows, Windows

WINDOW: Mapping[str, Attr] = {
    "auto_pad": Str("NOTSET", words=("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")), "strides": IntList(each=1),
    "dilations": IntList(each=1), "pads": IntList(each=0),
}  # fmt: skip
"""Attributes of an operator that moves a window over images."""


def row_params(x: TensorType, y: TensorType, *, planar: bool = False) -> Rows:
    """Return the rows of whole tensors: x[N,H,W,C] (planar: x[N,C,H,W]) and y[N,H,W,C]."""
    n, in_h, in_w, in_c = (x.shape[i] for i in ((0, 2, 3, 1) if planar else (0, 1, 2, 3)))
    _, out_h, out_w, out_c = y.shape
    strides = (in_w, 1, in_h * in_w) if planar else (in_w * in_c, in_c, 1)
    return Rows(
        batch=n, in_h=in_h, in_w=in_w, in_c=in_c, out_h=out_h, out_w=out_w, out_c=out_c,
        in_batch=in_h * in_w * in_c, in_row=strides[0], in_col=strides[1], in_ch=strides[2],
        in_ring=in_h, out_batch=out_h * out_w * out_c, out_row=out_w * out_c, out_ring=out_h,
        descending=0,
    )  # fmt: skip


def window_rows(p: Windows, y: int) -> tuple[int, int]:
    """Return the input rows [first, last) in the window of output row y; padding is left out."""
    top = y * p.stride_h - p.pad_top
    bottom = top + p.dil_h * (p.k_h - 1) + 1
    return min(max(top, 0), p.in_h), min(max(bottom, 0), p.in_h)


def rows_of(flat: np.ndarray, p: Rows) -> np.ndarray:
    """Return the input as [N,H,W,C]; rows that are not in the ring at this moment hold other rows' values."""
    axes = [np.arange(n) for n in (p.batch, p.in_h, p.in_w, p.in_c)]
    axes[1] = axes[1] % p.in_ring
    index = sum(np.ix_(*axes)[i] * step for i, step in enumerate((p.in_batch, p.in_row, p.in_col, p.in_ch)))
    return np.asarray(flat.reshape(-1)[index])


def store_rows(flat: np.ndarray, y: np.ndarray, p: Rows, rows: range) -> None:
    """Store y[N, rows, W, C] as these output rows of the (ring) output."""
    target = flat.reshape(-1)
    for n in range(y.shape[0]):
        for i, row in enumerate(rows):
            start = n * p.out_batch + row % p.out_ring * p.out_row
            target[start : start + y.shape[2] * y.shape[3]] = y[n, i].reshape(-1)
