"""onnxruntime's fused operators of transformers -> ONNX's own operators.

(Skip)(Simplified)LayerNormalization, FastGelu, BiasGelu, MultiHeadAttention, Attention and QAttention, without caches;
GroupQueryAttention, whose caches are buffers of a fixed length.
Source: onnxruntime's ContribOperators.md. What a node asks beyond that is an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.chain import MICROSOFT, Chain, Rewrites
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError

OPSET = 20
"""The version of ONNX's operators that the new nodes have."""


def simplified_norm(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """SimplifiedLayerNormalization(X, scale) is RMSNormalization."""
    _refuse(node, used_outputs=1)
    return [replace(node, op="RMSNormalization", domain="", version=23)]


def skip_norm(op: str) -> Callable[[OnnxNode, Builder], list[OnnxNode]]:
    """SkipLayerNormalization(input, skip, gamma, beta, bias); the simplified one has no beta."""

    def rewrite(node: OnnxNode, b: Builder) -> list[OnnxNode]:
        chain, simple = Chain(node, b, OPSET), op == "RMSNormalization"
        bias = node.input(3 if simple else 4)
        sum_out = node.outputs[3] if len(node.outputs) > 3 else ""
        total = chain.add("Add", node.inputs[0], node.inputs[1], out="" if bias else sum_out)
        if bias:
            total = chain.add("Add", total, bias, out=sum_out)
        parts = [node.inputs[2]] if simple else [n for n in (node.inputs[2], node.input(3)) if n]
        epsilon, version = node.float_("epsilon", 1e-12), 23 if simple else 17
        chain.add(op, total, *parts, out=node.outputs[0], version=version, axis=-1, epsilon=epsilon)
        stats = node.outputs[1:3]
        if any(stats):
            if simple:
                raise NodeError("the mean and the inverse deviation are not supported as outputs")
            chain.nodes[-1] = replace(chain.nodes[-1], outputs=(node.outputs[0], *stats))
        return chain.nodes

    return rewrite


def gelu(kind: str) -> Callable[[OnnxNode, Builder], list[OnnxNode]]:
    """FastGelu(X, bias) by tanh; BiasGelu(A, B) by erf."""

    def rewrite(node: OnnxNode, b: Builder) -> list[OnnxNode]:
        chain = Chain(node, b, OPSET)
        x = chain.add("Add", node.inputs[0], node.inputs[1]) if node.input(1) else node.inputs[0]
        chain.add("Gelu", x, out=node.outputs[0], approximate=kind)
        return chain.nodes

    return rewrite


def _refuse(node: OnnxNode, *, inputs: Mapping[int, str] | None = None, used_outputs: int = 1) -> None:
    """Raise NodeError for inputs and outputs that are not supported."""
    for index, name in (inputs or {}).items():
        if node.input(index):
            raise NodeError(f"its input {index} ({name}) is not supported")
    if any(node.outputs[used_outputs:]):
        raise NodeError("outputs besides the first are not supported")


def _attend(chain: Chain, q: str, k: str, v: str, sizes: Sequence[int], bias: str = "") -> list[OnnxNode]:
    """Add softmax(q k^T * scale + bias) v of [batch, length, heads, size] and return all nodes.

    `sizes` are batch, queries, keys, heads, and the lengths of a key and of a value.
    """
    node, (batch, length, keys, heads, key, value) = chain.node, sizes
    unidirectional = node.int_("unidirectional", 0)
    scale = node.float_("scale", 0.0) or float(key) ** -0.5
    q = chain.add("Transpose", chain.shaped(q, (batch, length, heads, key)), perm=(0, 2, 1, 3))
    k = chain.add("Transpose", chain.shaped(k, (batch, keys, heads, key)), perm=(0, 2, 3, 1))
    v = chain.add("Transpose", chain.shaped(v, (batch, keys, heads, value)), perm=(0, 2, 1, 3))
    scores = chain.add("Mul", chain.add("MatMul", q, k), chain.floats(scale))
    if bias:
        scores = chain.add("Add", scores, bias)
    if unidirectional:
        future = np.triu(np.full((length, keys), node.float_("mask_filter_value", -10000.0)), 1 + keys - length)
        scores = chain.add("Add", scores, chain.floats(future))
    mixed = chain.add("MatMul", chain.add("Softmax", scores, axis=-1, version=13), v)
    joined = chain.add("Transpose", mixed, perm=(0, 2, 1, 3))
    chain.shaped(joined, (batch, length, heads * value), out=node.outputs[0])
    return chain.nodes


def multi_head_attention(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """MultiHeadAttention(query, key, value, bias, -, attention_bias), each [batch, length, hidden]."""
    caches = {4: "key_padding_mask", 6: "past_key", 7: "past_value", 8: "past_sequence_length"}
    _refuse(node, inputs=caches)
    chain, heads = Chain(node, b, OPSET), node.int_("num_heads", 1)
    if not (node.input(1) and node.input(2)) or any(b.type(n).rank != 3 for n in node.inputs[:3]):
        raise NodeError("query, key and value must be three tensors of rank 3")
    parts = list(node.inputs[:3])
    (batch, length, hidden), keys, value = b.type(parts[0]).shape, b.type(parts[1]).shape[1], b.type(parts[2]).shape[2]
    if node.input(3):
        ends = [0, hidden, 2 * hidden, 2 * hidden + value]
        all_biases = b.need_value(node.inputs[3], "the bias")
        parts = [
            chain.add("Add", part, chain.floats(all_biases[low:high]))
            for part, low, high in zip(parts, ends[:-1], ends[1:], strict=True)
        ]
    sizes = (batch, length, keys, heads, hidden // heads, value // heads)
    q, k, v = parts
    return _attend(chain, q, k, v, sizes, node.input(5))


def attention(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Attention(input, weights, bias, -, -, attention_bias): one projection to query, key and value."""
    _refuse(node, inputs={3: "mask_index", 4: "past", 6: "past_sequence_length"})
    chain, weights = Chain(node, b, OPSET), b.need_value(node.inputs[1], "the weights")

    def part_of(part: slice) -> str:
        return chain.floats(weights[:, part])

    return _projected(chain, node.inputs[0], part_of, weights.shape[1], node.input(5))


def quantised_attention(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """QAttention(input, weight, bias, input_scale, weight_scale, mask_index, zero points)."""
    _refuse(node, inputs={5: "mask_index", 8: "past"})
    chain, weights = Chain(node, b, OPSET), b.need_value(node.inputs[1], "the weights")
    scale = b.need_value(node.inputs[4], "the scale").reshape(-1)
    zero = b.need_value(node.inputs[7], "the zero point").reshape(-1) if node.input(7) else np.zeros(1, weights.dtype)
    columns = max(scale.size, zero.size) > 1
    if columns:
        scale, zero = (np.broadcast_to(a, weights.shape[1:]) for a in (scale, zero))
    x = chain.add("DequantizeLinear", *(n for n in (node.inputs[0], node.inputs[3], node.input(6)) if n), version=13)

    def real(part: slice) -> str:
        codes = chain.const(weights[:, part])
        scales, zeros = (a[part] if columns else a.reshape(()) for a in (scale, zero))
        names = codes, chain.floats(scales), chain.const(np.asarray(zeros, weights.dtype))
        return chain.add("DequantizeLinear", *names, axis=1, version=13)

    return _projected(chain, x, real, weights.shape[1], "")


def _projected(chain: Chain, x: str, weights: Callable[[slice], str], width: int, scores_bias: str) -> list[OnnxNode]:
    """Add the three projections, each with its part of the weights and of the bias, and the attention."""
    node, b = chain.node, chain.b
    shape, heads = b.type(node.inputs[0]).shape, node.int_("num_heads", 1)
    hidden = node.ints("qkv_hidden_sizes") or (width // 3,) * 3
    if len(shape) != 3 or len(hidden) != 3 or sum(hidden) != width or any(h % heads for h in hidden):
        raise NodeError(f"input {list(shape)}, weights of {width} columns and {heads} heads do not fit together")
    bias = b.need_value(node.inputs[2], "the bias") if node.input(2) else None
    parts = []
    for low, high in pairwise(int(n) for n in np.cumsum((0, *hidden))):
        product = chain.add("MatMul", x, weights(slice(low, high)))
        parts.append(product if bias is None else chain.add("Add", product, chain.floats(bias[low:high])))
    q, k, v = parts
    batch, length, _ = shape
    sizes = (batch, length, length, heads, hidden[0] // heads, hidden[2] // heads)
    return _attend(chain, q, k, v, sizes, scores_bias)


def group_query_attention(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """GroupQueryAttention(query, key, value, past_key, past_value, seqlens_k, -, cos, sin) of one sequence.

    New rows go into the caches [1, kv_heads, most, head] at seqlens_k + 1 - length. Without a key, the query has all.
    """
    _refuse(node, inputs={9: "position_ids", 10: "attention_bias", 11: "head_sink"}, used_outputs=3)
    _check_group(node)
    chain, heads, kept = Chain(node, b, OPSET), node.int_("num_heads", 0), node.int_("kv_num_heads", 0)
    if not (node.input(3) and node.input(4)) or b.type(node.inputs[3]).rank != 4:
        raise NodeError("past_key and past_value must be buffers [1, kv_num_heads, rows, head_size]")
    (batch, length, _), (_, _, most, size) = b.type(node.inputs[0]).shape, b.type(node.inputs[3]).shape
    if batch != 1 or heads < 1 or kept < 1 or heads % kept or length > most:
        raise NodeError(f"{batch} sequences of {length}, {heads} heads in {kept} groups, buffers of {most} rows")
    back = chain.const(np.full(1, 1 - length, np.int32))
    first = chain.add("Add", chain.add("Reshape", node.inputs[5], chain.ints(1)), back)
    q, k, v = _heads_of_groups(chain, first, (length, heads, kept, size))
    rows = [
        chain.add("Append", past, new, first, out=out, axis=2)
        for past, new, out in zip(node.inputs[3:5], (k, v), (*node.outputs[1:3], "", "")[:2], strict=True)
    ]
    steps, scale = (most * size, size), node.float_("scale", 0.0) or float(size) ** -0.5
    attrs: dict[str, Any] = {"group": heads // kept, "rows": most, "value": size, "causal": 1}
    attrs |= {"k_steps": steps, "v_steps": steps, "scale": scale}
    mixed = chain.add("Attend", q, *rows, first, **attrs)
    joined = chain.add("Transpose", mixed, perm=(0, 2, 1, 3))
    chain.shaped(joined, (1, length, heads * size), out=node.outputs[0])
    return chain.nodes


def _check_group(node: OnnxNode) -> None:
    """Raise NodeError for what changes the scores or the caches of a GroupQueryAttention."""
    plain = {"local_window_size": -1, "softcap": 0.0, "smooth_softmax": 0, "kv_cache_bit_width": 0}
    wrong = [key for key, value in plain.items() if node.attrs.get(key, value) != value]
    wrong += [key for key in ("k_quant_type", "v_quant_type") if node.attrs.get(key, "NONE") != "NONE"]
    if wrong:
        raise NodeError(f"attribute {wrong[0]} = {node.attrs[wrong[0]]!r} is not supported")


def _heads_of_groups(chain: Chain, first: str, sizes: tuple[int, int, int, int]) -> list[str]:
    """Return query, key and value as [1, heads, length, size], turned by their positions where the node says so."""
    node, (length, heads, kept, size) = chain.node, sizes
    parts = list(node.inputs[:3])
    if not node.input(1):
        ends = [0, heads * size, (heads + kept) * size, (heads + 2 * kept) * size]
        parts = [
            chain.add("Slice", node.inputs[0], chain.ints(low), chain.ints(high), chain.ints(2))
            for low, high in pairwise(ends)
        ]
    if node.int_("do_rotary", 0):
        steps = chain.const(np.arange(length, dtype=np.int32).reshape(1, length))
        at = chain.add("Cast", chain.add("Add", first, steps), to=7)
        swapped = node.int_("rotary_interleaved", 0)
        for i, count in enumerate((heads, kept)):
            parts[i] = chain.add(
                "RotaryEmbedding", parts[i], *node.inputs[7:9], at, version=23, num_heads=count, interleaved=swapped
            )
    return [
        chain.add("Transpose", chain.shaped(part, (1, length, count, size)), perm=(0, 2, 1, 3))
        for part, count in zip(parts, (heads, kept, kept), strict=True)
    ]


REWRITES: Rewrites = {
    ("", "SimplifiedLayerNormalization"): simplified_norm,
    (MICROSOFT, "SimplifiedLayerNormalization"): simplified_norm,
    (MICROSOFT, "SkipLayerNormalization"): skip_norm("LayerNormalization"),
    (MICROSOFT, "SkipSimplifiedLayerNormalization"): skip_norm("RMSNormalization"),
    (MICROSOFT, "FastGelu"): gelu("tanh"),
    (MICROSOFT, "BiasGelu"): gelu("none"),
    (MICROSOFT, "MultiHeadAttention"): multi_head_attention,
    (MICROSOFT, "Attention"): attention,
    (MICROSOFT, "QAttention"): quantised_attention,
    (MICROSOFT, "GroupQueryAttention"): group_query_attention,
}
