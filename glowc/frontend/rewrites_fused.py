"""What onnxruntime's optimiser leaves in the models that it saves: FusedConv, FusedGemm, FusedMatMul, MatMulNBits.

The fused ones become ONNX's own operators, whose float weights stay floats (`FLOAT_WEIGHTS`);
tests/unit/test_real_exports_fused.py compares with onnxruntime 1.31. MatMulNBits has weights packed in blocks of 2,
4 or 8 bits and becomes FullyConnectedBlocks; accuracy_level only allows a runtime to be less exact, so it is
ignored. Source: onnxruntime's ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.chain import MICROSOFT, Chain, Rewrites
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.frontend.rewrites_transformer import OPSET


def matmul_nbits(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """MatMulNBits(A, B[N, blocks, bytes], scales, zero_points, g_idx, bias), attributes K, N, bits, block_size."""
    k, n, bits = node.int_("K", 0), node.int_("N", 0), node.int_("bits", 4)
    block = node.int_("block_size", 32)
    if k < 1 or n < 1 or bits not in (2, 4, 8) or block < 1 or block * bits % 8:
        raise NodeError(f"K = {k}, N = {n}, bits = {bits}, block_size = {block}")
    if node.int_("weight_prepacked", 0):
        raise NodeError("prepacked weights are not supported", "export the model without prepacking")
    if node.input(4):
        _check_order(b.need_value(node.inputs[4], "the group index"), block)
    blocks = -(-k // block)
    packed = b.need_value(node.inputs[1], "the packed weights")
    scales = b.need_value(node.inputs[2], "the scales").astype(np.float32)
    if packed.size != n * blocks * block * bits // 8 or scales.size != n * blocks:
        raise NodeError(
            f"weights {list(packed.shape)} and scales {list(scales.shape)} for [{n}, {k}] in blocks of {block}"
        )
    zeros = _zero_points(node, b, (n, blocks), bits)
    bias = node.input(5) or b.add_const(f"{node.outputs[0]}.bias", np.zeros(n, np.float32))
    inputs = (
        node.inputs[0],
        b.add_const(f"{node.inputs[1]}.packed", packed.view(np.uint8).reshape(n, -1)),
        b.add_const(f"{node.inputs[2]}.scales", scales.reshape(n, blocks)),
        b.add_const(f"{node.inputs[1]}.zeros", zeros),
        bias,
    )
    return [node.new("FullyConnectedBlocks", inputs, node.outputs, k=k, block_size=block, bits=bits)]


def _check_order(index: np.ndarray, block: int) -> None:
    if not np.array_equal(index.reshape(-1), np.arange(index.size) // block):
        raise NodeError("a g_idx that reorders the inputs is not supported", "quantize without act_order")


def _zero_points(node: OnnxNode, b: Builder, shape: tuple[int, int], bits: int) -> np.ndarray:
    """Return one byte per block; packed ones are unpacked, the default is the middle code."""
    if not node.input(3):
        return np.full(shape, 1 << (bits - 1), np.uint8)
    given = b.need_value(node.inputs[3], "the zero points")
    if given.dtype.kind == "f":
        if given.size != shape[0] * shape[1] or np.any(given != np.rint(given)) or given.min() < 0 or given.max() > 255:
            raise NodeError("zero points that are no codes are not supported")
        return given.astype(np.uint8).reshape(shape)
    row = -(-shape[1] * bits // 8)
    if given.size != shape[0] * row:
        raise NodeError(f"zero points of shape {list(given.shape)} for {shape[0]} rows of {shape[1]} blocks")
    flat = given.view(np.uint8).reshape(shape[0], row, 1)
    shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
    codes = (flat >> shifts) & np.uint8((1 << bits) - 1)
    return np.ascontiguousarray(codes.reshape(shape[0], -1)[:, : shape[1]])


_PARAMETERS = {
    "Relu": (), "Sigmoid": (), "Tanh": (), "LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"),
    "Elu": ("alpha",), "Softplus": (), "Softsign": (), "HardSwish": (),
}  # fmt: skip


def _activate(chain: Chain, x: str, parameters: Sequence[float]) -> None:
    """Add the activation of attribute `activation` after x."""
    name, out = chain.node.str_("activation", ""), chain.node.outputs[0]
    if name == "Clip" and len(parameters) > 1:
        chain.add("Clip", x, chain.floats(parameters[0]), chain.floats(parameters[1]), out=out)
        return
    keys = _PARAMETERS.get(name)
    if name and keys is None:
        raise NodeError(f"activation {name!r} is not supported ({', '.join(_PARAMETERS)} and Clip are)")
    attrs: dict[str, Any] = dict(zip(keys or (), parameters, strict=False))
    chain.add(name or "Identity", x, out=out, **attrs)


def _own(node: OnnxNode) -> dict[str, Any]:
    """Return the attributes of the operator that stands before the activation."""
    return {key: value for key, value in node.attrs.items() if not key.startswith("activation")}


def fused_conv(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """FusedConv(X, W, B, Z): activation(Conv(X, W, B) + Z)."""
    chain = Chain(node, b, OPSET)
    y = chain.add("Conv", *filter(None, node.inputs[:3]), **_own(node), float_weights=1)
    y = chain.add("Add", y, node.inputs[3]) if node.input(3) else y
    _activate(chain, y, tuple(map(float, node.attrs.get("activation_params", ()))))
    return chain.nodes


def fused_gemm(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """FusedGemm(A, B, C): activation(Gemm(A, B, C))."""
    chain = Chain(node, b, OPSET)
    y = chain.add("Gemm", *filter(None, node.inputs), **_own(node), float_weights=1)
    keys = [key for key in ("activation_alpha", "activation_beta", "activation_gamma") if key in node.attrs]
    _activate(chain, y, [node.float_(key, 0.0) for key in keys])
    return chain.nodes


def fused_matmul(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """FusedMatMul(A, B): alpha * A' B'; transBatch moves axis 0 after the batch axes, trans swaps the last two."""
    chain = Chain(node, b, OPSET)
    factors = [_arranged(chain, name, letter) for name, letter in zip(node.inputs[:2], "AB", strict=True)]
    alpha, out = node.float_("alpha", 1.0), node.outputs[0]
    product = chain.add("MatMul", *factors, out=out if alpha == 1.0 else "", float_weights=1)
    if alpha != 1.0:
        chain.add("Mul", product, chain.floats(alpha), out=out)
    return chain.nodes


def _arranged(chain: Chain, name: str, letter: str) -> str:
    rank = chain.b.type(name).rank
    perm = list(range(rank))
    if chain.node.int_(f"transBatch{letter}", 0):
        perm = [*perm[1:-1], 0, perm[-1]]
    if chain.node.int_(f"trans{letter}", 0) and rank > 1:
        perm[-2:] = perm[:-3:-1]
    return name if perm == list(range(rank)) else chain.add("Transpose", name, perm=tuple(perm))


REWRITES: Rewrites = {
    (MICROSOFT, "MatMulNBits"): matmul_nbits,
    (MICROSOFT, "FusedConv"): fused_conv,
    (MICROSOFT, "FusedGemm"): fused_gemm,
    (MICROSOFT, "FusedMatMul"): fused_matmul,
}
