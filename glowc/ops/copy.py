"""Data movement kernels by element size: `copy_b<N>` (strided copy) and `fill_b<N>`.

copy: out[out_offset + sum x_k * o_k] = in[in_offset + sum x_k * i_k] for all 0 <= x_k < d_k, k < rank; x_0 is
the outermost loop. `contiguous` says that the innermost strides are 1, which prints a memcpy. The offset of
either side stays inside its operand; strides may be 0 (broadcast) or negative (reversal). A copy may write a
part of its output only: several of them, or a fill and copies, make up one tensor.
fill: out[0 .. n) = value, given as its bits (`value_hi`: upper half of 8-byte elements).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.types import TensorType
from glowc.kernels.shapes import MAX_RANK
from glowc.ops.base import LowerCtx, Ref
from glowc.ops.params import Elements
from glowc.ops.strided import CopyParams
from glowc.program.kernel import Arrays, KernelDef, Outer

SIZES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class FillParams(Elements):
    """Of `fill_b<N>`: the bits of the value."""

    value: int
    value_hi: int


def interpret_copy(arrays: Arrays, p: CopyParams) -> None:
    """Evaluate copy_b<N>."""
    p.view(arrays["out"], p.o, p.out_offset)[...] = p.view(arrays["in"], p.i, p.in_offset)


def interpret_fill(arrays: Arrays, p: FillParams) -> None:
    """Evaluate fill_b<N>."""
    out = arrays["out"]
    bits = (p.value & 0xFFFFFFFF) | ((p.value_hi & 0xFFFFFFFF) << 32)
    raw = bits.to_bytes(8, "little")[: out.itemsize]
    out.reshape(-1)[: p.n] = np.frombuffer(raw, out.dtype)[0]


def emit_fill(ctx: LowerCtx, dst: Ref, value: np.ndarray) -> None:
    """Emit `fill_b<N>` of the whole output with a scalar of its element kind."""
    t: TensorType = dst.type
    raw = np.asarray(value, t.dtype.numpy).tobytes().ljust(8, b"\0")
    low, high = (int(v) for v in np.frombuffer(raw, np.int32))
    ctx.emit(f"fill_b{t.dtype.bytes}", {"out": dst}, FillParams(t.elements, low, high))


_AXES = tuple(Outer(f"d{k}", {"in": (f"i{k}",), "out": (f"o{k}",)}) for k in range(MAX_RANK))
KERNELS = (
    *(
        KernelDef(
            f"copy_b{n}", ("in in", "out out"), CopyParams, interpret_copy, template="copy", outer=_AXES,
            one_buffer=True, inlined=True, kind=f"b{n}", doc="strided copy",
        )
        for n in SIZES
    ),
    *(
        KernelDef(f"fill_b{n}", ("out out",), FillParams, interpret_fill, template="fill", kind=f"b{n}",
                  inlined=True, doc="fill with one value")
        for n in SIZES
    ),
)  # fmt: skip
