"""Weights quantised by blocks: DequantizeBlocks, and FullyConnectedBlocks, which reads packed codes.

real[n, k] = scale[n, k / block] * (code[n, k] - zero[n, k / block]); codes of 2, 4 or 8 bits, unsigned (signed ones
are moved by half their range with the zero point), packed low bits first. y = x @ real.T + bias; the kernel sums
x * (code - zero) over a block, then scales it: another order of roundings than onnxruntime's, hence a relative
tolerance of 1e-5 (of the largest sum of magnitudes). Source: com.microsoft MatMulNBits, ONNX DequantizeLinear-21.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Int
from glowc.graph.graph import Node
from glowc.graph.numerics import F32
from glowc.graph.types import DType, TensorType
from glowc.kernels.shapes import FullyConnectedRows
from glowc.ops.base import CLAMP, Call, LowerCtx, MaybeTypes, OpDef, OpError, Types, clamp_of
from glowc.ops.derived import derived
from glowc.ops.params import Clamp
from glowc.ops.strided import axis_of, present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params, Printed

BITS = (2, 4, 8)


@dataclass(frozen=True, slots=True)
class FcBlocks(Params):
    """Of `fc_f32_blocks`: codes in a block, blocks of a row; `zero_step` 0: one zero point for all."""

    shape: FullyConnectedRows
    block: int
    blocks: int
    zero_step: int
    bits: Printed
    clamp: Clamp


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """x [..., K], packed [N, bytes], scales [N, blocks], zeros [N, blocks], bias [N] -> [..., N]."""
    x, packed, scale, zero, bias = present(in_types[:5])
    k, block, bits = node.int_("k"), node.int_("block_size"), node.int_("bits")
    if bits not in BITS or block < 8 // bits or block * bits % 8:
        raise OpError(f"blocks of {block} codes of {bits} bits")
    n, blocks = packed.shape[0], -(-k // block)
    if x.rank < 1 or x.shape[-1] != k or packed.shape != (n, blocks * block * bits // 8):
        raise OpError(f"input {x} and packed weights {packed} for {k} inputs in blocks of {block}")
    if scale.shape != (n, blocks) or zero.shape != (n, blocks) or bias.shape != (n,) or x.dtype is not DType.F32:
        raise OpError(f"input {x}, scales {scale}, zero points {zero}, bias {bias} for weights [{n},{k}]")
    return (TensorType((*x.shape[:-1], n), x.dtype),)


def unpack(packed: np.ndarray, bits: int, k: int) -> np.ndarray:
    """Return the codes [N, K] of packed bytes [N, bytes]."""
    shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
    codes = (packed[:, :, None] >> shifts) & np.uint8((1 << bits) - 1)
    return np.asarray(codes.reshape(packed.shape[0], -1)[:, :k])


def real_weights(codes: np.ndarray, scale: np.ndarray, zero: np.ndarray, block: int) -> np.ndarray:
    """Return scale * (code - zero) [N, K] in float32."""
    index = np.arange(codes.shape[1]) // block
    return np.asarray((codes.astype(F32) - zero.astype(F32)[:, index]) * scale[:, index], F32)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `fc_f32w<bits>`."""
    roles = ("in", "weights", "scale", "zero", "bias")
    operands = {role: ctx.read(name) for role, name in zip(roles, node.inputs, strict=True)}
    operands["out"] = y = ctx.write(node.outputs[0])
    n, k, clamp = y.type.shape[-1], node.int_("k"), Clamp(*clamp_of(node))
    zeros = ctx.const_value(node.inputs[3])
    alike = zeros is not None and bool((zeros == zeros.reshape(-1)[0]).all())
    if alike and zeros is not None:
        operands["zero"] = ctx.const(zeros.reshape(-1)[:1], f"{node.name}_zero")
    block = node.int_("block_size")
    params = FcBlocks(
        FullyConnectedRows(y.type.elements // n, k, n), block, -(-k // block), int(not alike), node.int_("bits"), clamp
    )
    ctx.emit("fc_f32_blocks", operands, params, macs=y.type.elements * k)


def _interpret(a: Arrays, p: FcBlocks) -> None:
    rows, k, n = p.shape.rows, p.shape.in_k, p.shape.out_n
    codes = unpack(a["weights"].reshape(n, -1), p.bits, k)
    zero = a["zero"].reshape(n, -1) if p.zero_step else np.full((n, p.blocks), a["zero"].reshape(-1)[0])
    w = real_weights(codes, a["scale"].reshape(n, -1), zero, p.block)
    y = a["in"].reshape(rows, k) @ w.T + a["bias"].reshape(n)
    a["out"].reshape(rows, n)[:] = np.clip(y, p.clamp.act_min, p.clamp.act_max)


def infer_blocks(node: Node, in_types: MaybeTypes) -> Types:
    """Codes, scales and zero points with the same axes; blocks along `axis`."""
    codes, scale, zero = present(in_types[:3])
    axis, block = axis_of(node.int_("axis"), codes.rank), node.int_("block_size")
    wanted = tuple(-(-d // block) if i == axis else d for i, d in enumerate(codes.shape))
    if codes.dtype is not DType.U8 or zero.dtype is not DType.U8 or scale.dtype is not DType.F32:
        raise OpError(f"codes {codes}, scales {scale}, zero points {zero}")
    if block < 1 or scale.shape != wanted or zero.shape != wanted:
        raise OpError(f"scales {scale} for blocks of {block} along axis {axis} of {codes}")
    return (TensorType(codes.shape, DType.F32),)


def reference_blocks(call: Call) -> tuple[np.ndarray, ...]:
    codes, scale, zero = (call.array(i) for i in range(3))
    axis = axis_of(call.node.int_("axis"), codes.ndim)
    index = np.arange(codes.shape[axis]) // call.node.int_("block_size")
    y = (codes.astype(F32) - zero.astype(F32).take(index, axis)) * scale.take(index, axis)
    return (np.asarray(y, F32),)


def lower_blocks(node: Node, ctx: LowerCtx) -> None:
    raise OpError("blocked codes must be constants")


KERNELS = (
    KernelDef("fc_f32_blocks", ("in in", "in weights:u8", "in scale", "in zero:u8", "in bias", "out out"),
              FcBlocks, _interpret, needs_math=True, kind="f32",
              doc="float product with packed codes by blocks"),
)  # fmt: skip

OPS = (
    OpDef("FullyConnectedBlocks", infer, derived, lower,
          attrs={"k": Int(), "block_size": Int(), "bits": Int(), **CLAMP},
          doc="layer with weights quantized by blocks"),
    OpDef("DequantizeBlocks", infer_blocks, reference_blocks, lower_blocks,
          attrs={"axis": Int(), "block_size": Int(), "bits": Int()}, doc="constant codes with a scale per block"),
)  # fmt: skip
