"""Data movement kernels by element size: `copy_b<N>` (strided copy) and `fill_b<N>`.

copy: out[out_offset + sum x_k * o_k] = in[in_offset + sum x_k * i_k] for all 0 <= x_k < d_k, k < rank; x_0 is
the outermost loop. `contiguous` says that the innermost strides are 1, which prints a memcpy. The offset of
either side stays inside its operand; strides may be 0 (broadcast) or negative (reversal). A copy may write a
part of its output only: several of them, or a fill and copies, make up one tensor.
fill: out[0 .. n) = value, given as its bits (`value_hi`: upper half of 8-byte elements).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowc.graph.types import TensorType
from glowc.kernels.shapes import axis_keys
from glowc.ops.base import LowerCtx, Ref
from glowc.ops.strided import strided
from glowc.program.ir import ParamValue
from glowc.program.kernel import Arrays, KernelDef

SIZES = (1, 2, 4, 8)


def interpret_copy(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    """Evaluate copy_b<N>."""
    source = strided(arrays["in"], p, "i", int(p["in_offset"]))
    strided(arrays["out"], p, "o", int(p["out_offset"]))[...] = source


def interpret_fill(arrays: Arrays, p: Mapping[str, ParamValue]) -> None:
    """Evaluate fill_b<N>."""
    out = arrays["out"]
    bits = (int(p["value"]) & 0xFFFFFFFF) | ((int(p["value_hi"]) & 0xFFFFFFFF) << 32)
    raw = bits.to_bytes(8, "little")[: out.itemsize]
    out.reshape(-1)[: int(p["n"])] = np.frombuffer(raw, out.dtype)[0]


def emit_fill(ctx: LowerCtx, dst: Ref, value: np.ndarray) -> None:
    """Emit `fill_b<N>` of the whole output with a scalar of its element kind."""
    t: TensorType = dst.type
    raw = np.asarray(value, t.dtype.numpy).tobytes().ljust(8, b"\0")
    low, high = (int(v) for v in np.frombuffer(raw, np.int32))
    ctx.emit(f"fill_b{t.dtype.bytes}", {"out": dst}, {"n": t.elements, "value": low, "value_hi": high})


_COPY_PARAMS = (*axis_keys("d"), *axis_keys("i"), *axis_keys("o"), "in_offset", "out_offset")
KERNELS = (
    *(
        KernelDef(
            f"copy_b{n}", ("in in", "out out"), _COPY_PARAMS, interpret_copy, print_params=("rank", "contiguous"),
            template="copy", one_buffer=True, kind=f"b{n}", doc="strided copy",
        )
        for n in SIZES
    ),
    *(
        KernelDef(f"fill_b{n}", ("out out",), ("n", "value", "value_hi"), interpret_fill, template="fill", kind=f"b{n}",
                  doc="fill with one value")
        for n in SIZES
    ),
)  # fmt: skip
