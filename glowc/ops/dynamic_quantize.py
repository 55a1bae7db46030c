"""DynamicQuantizeLinear: float to u8 codes whose scale and zero point are computed at run time.

low = min(0, min x), high = max(0, max x), scale = (high - low) / 255 (1 when that is 0),
zero = rne(clamp(-low / scale, 0, 255)), y = clamp(rne(x / scale) + zero, 0, 255); every operation in float32, as
onnxruntime 1.31 does it (equal in every byte over random tensors of tests/unit/test_dynamic.py).
Source: ONNX DynamicQuantizeLinear-11.
"""

from __future__ import annotations

import numpy as np

from glowc.graph.graph import Node
from glowc.graph.numerics import F32
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Elements
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef


def infer(_: Node, in_types: MaybeTypes) -> Types:
    """Codes like x, scalar scale, scalar zero point."""
    (x,) = present(in_types[:1])
    if x.dtype is not DType.F32:
        raise OpError(f"quantizes f32, not {x}")
    return (
        TensorType(x.shape, DType.U8, None, x.layout),
        TensorType((), DType.F32),
        TensorType((), DType.U8),
    )


def quantize_dynamic(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return codes, scale and zero point."""
    low, high = min(F32(0), x.min(initial=0)), max(F32(0), x.max(initial=0))
    scale = F32(F32(high - low) / F32(255))
    scale = F32(1) if scale == 0 else scale
    zero = np.rint(np.clip(F32(F32(0) - low / scale), F32(0), F32(255))).astype(F32)
    codes = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8)
    return codes, np.asarray(scale, F32), np.asarray(zero, np.uint8)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `dynamic_quantize`; results that nobody reads go to temporaries."""
    x = ctx.read(node.inputs[0])
    results = infer(node, (x.type,))
    names = (*node.outputs, "", "")[:3]
    roles = {
        role: ctx.write(name) if name else ctx.temp(type_, f"{node.name}_{role}")
        for role, name, type_ in zip(("out", "scale", "zp"), names, results, strict=True)
    }
    ctx.emit("dynamic_quantize", {"in": x, **roles}, Elements(x.type.elements))


def _interpret(a: Arrays, _: Elements) -> None:
    codes, scale, zero = quantize_dynamic(a["in"].reshape(-1))
    for role, value in (("out", codes), ("scale", scale), ("zp", zero)):
        a[role].reshape(-1)[:] = value


KERNELS = (
    KernelDef("dynamic_quantize", ("in in:f32", "out out:u8", "out scale:f32", "out zp:u8"), Elements, _interpret,
              doc="codes with a scale and zero point found at run time"),
)  # fmt: skip

OP = OpDef(
    "DynamicQuantizeLinear", infer, derived, lower, max_version=11, doc="float to codes with a computed scale",
)  # fmt: skip
