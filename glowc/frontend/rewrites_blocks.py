"""MatMulNBits of onnxruntime: weights packed in blocks of 2, 4 or 8 bits -> FullyConnectedBlocks.

accuracy_level only allows a runtime to be less exact, so it is ignored. Source: onnxruntime's ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError

MICROSOFT = "com.microsoft"


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
        raise NodeError("a g_idx that reorders the inputs is not supported", "quantise without act_order")


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


Rewrite = Callable[[OnnxNode, Builder], list[OnnxNode]]

REWRITES: Mapping[tuple[str, str], Rewrite] = {(MICROSOFT, "MatMulNBits"): matmul_nbits}
