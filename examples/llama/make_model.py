# SPDX-License-Identifier: MIT-0
"""Makes a Llama of 260,000 parameters with weights from a seed, as an exporter writes it: llama.onnx.

The sizes are those of stories260K: width 64, 5 layers, 8 heads, 4 heads of keys and values, 512 tokens. Weights are
codes of 4 bits in blocks of 64 (com.microsoft MatMulNBits), the caches are int8 with one scale. `tokens` and
`position_ids` are int64 [1, sequence]; `past_key_0` ... are [1, 4, past, 8], `present_key_0` ... have the new rows at
their end. `logits` are float32 [1, sequence, 512].
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 64
MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Sizes:
    """`form` is how attention is written: "concat" by simple operators, "attention" by ONNX's Attention, "group" by
    GroupQueryAttention on buffers of `most` rows. `bits` are those of the weights, 0: float32. `codes`: the caches of
    "concat" are int8."""

    width: int = 64
    layers: int = 5
    heads: int = 8
    kv_heads: int = 4
    hidden: int = 172
    vocab: int = 512
    most: int = 256
    bits: int = 4
    codes: bool = True
    form: str = "concat"
    seed: int = 1

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.width // self.heads


class Net:
    """Nodes and constants of a graph that is being written."""

    def __init__(self, sizes: Sizes) -> None:
        self.s, self.rng = sizes, np.random.default_rng(sizes.seed)
        self.nodes: list[onnx.NodeProto] = []
        self.consts: list[onnx.TensorProto] = []

    def const(self, array: Any, dtype: Any = np.float32) -> str:
        """Add a constant."""
        name = f"c{len(self.consts)}"
        self.consts.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def ints(self, *values: int) -> str:
        """Add a list of integers."""
        return self.const(values, np.int64)

    def add(self, op: str, *inputs: str, out: Sequence[str] = (), domain: str = "", **attrs: Any) -> str:
        """Add a node and return its first output."""
        names = list(out) or [f"v{len(self.nodes)}"]
        name = f"n{len(self.nodes)}_{op}"
        self.nodes.append(helper.make_node(op, inputs, names, name=name, domain=domain, **attrs))
        return names[0]

    def dense(self, x: str, k: int, n: int, out: Sequence[str] = ()) -> str:
        """Add x [..., k] times weights [k, n]."""
        weights = self.rng.normal(0, k**-0.5, (n, k)).astype(np.float32)
        if not self.s.bits:
            return self.add("MatMul", x, self.const(weights.T), out=out)
        packed, scales = quantized(weights, self.s.bits)
        inputs = (x, self.const(packed, np.uint8), self.const(scales))
        sizes = {"K": k, "N": n, "bits": self.s.bits, "block_size": BLOCK}
        return self.add("MatMulNBits", *inputs, out=out, domain=MICROSOFT, **sizes)

    def norm(self, x: str) -> str:
        """Add a normalization by the root of the mean square."""
        gain = self.const(self.rng.uniform(0.8, 1.2, self.s.width))
        return self.add("RMSNormalization", x, gain, axis=-1, epsilon=1e-5)


def quantized(weights: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return packed codes [n, blocks, bytes] and scales [n * blocks] of weights [n, k], the middle code for 0."""
    n, k = weights.shape
    blocks, middle = -(-k // BLOCK), 1 << (bits - 1)
    padded = np.pad(weights, ((0, 0), (0, blocks * BLOCK - k))).reshape(n, blocks, BLOCK)
    scales = np.maximum(np.abs(padded).max(2) / (middle - 1), 1e-8).astype(np.float32)
    codes = (np.clip(np.rint(padded / scales[..., None]), 1 - middle, middle - 1) + middle).astype(np.uint8)
    parts = codes.reshape(n, blocks, -1, 8 // bits)
    packed = sum(parts[..., i] << (i * bits) for i in range(8 // bits))
    return np.asarray(packed, np.uint8), scales.reshape(-1)


def angles(s: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines and sines [positions, head / 2] of a rotary embedding."""
    turns = np.arange(s.most)[:, None] * 10000.0 ** -(np.arange(0, s.head, 2) / s.head)
    return np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)


def heads_of(net: Net, x: str, heads: int) -> str:
    """Add [1, sequence, heads * head] -> [1, heads, sequence, head]."""
    four = net.add("Reshape", x, net.ints(0, 0, heads, net.s.head))
    return net.add("Transpose", four, perm=[0, 2, 1, 3])


def cached(net: Net, new: str, name: str) -> str:
    """Add the joining of a cache and new rows, and their repetition for all heads; return all rows in float32."""
    past, present = f"past_{name}", [f"present_{name}"]
    if not net.s.codes:
        return repeated(net, net.add("Concat", past, new, axis=2, out=present))
    scale, zero = net.const(5 / 127), net.const(0, np.int8)
    codes = net.add("QuantizeLinear", new, scale, zero)
    rows = repeated(net, net.add("Concat", past, codes, axis=2, out=present))
    return net.add("DequantizeLinear", rows, scale, zero)


def repeated(net: Net, x: str) -> str:
    """Add [1, kv_heads, rows, head] -> [1, heads, rows, head]."""
    s = net.s
    times = s.heads // s.kv_heads
    five = net.add("Unsqueeze", x, net.ints(2))
    wide = net.add("Expand", five, net.ints(1, 1, times, 1, 1))
    return net.add("Reshape", wide, net.ints(0, s.heads, -1, s.head))


def future(net: Net, q: str, rows: str) -> str:
    """Add what is 0 where a query sees a row, and very negative at rows after it: [sequence, rows]."""
    queries, keys = (net.add("Squeeze", net.add("Shape", x, start=2, end=3), net.ints(0)) for x in (q, rows))
    zero, one = net.const(0, np.int64), net.const(1, np.int64)
    first = net.add("Range", net.add("Sub", keys, queries), keys, one)
    column = net.add("Unsqueeze", first, net.ints(1))
    later = net.add("Greater", net.add("Range", zero, keys, one), column)
    return net.add("Where", later, net.const(-1e9), net.const(0.0))


def attended(net: Net, q: str, k: str, v: str, layer: int) -> str:
    """Add softmax(q k^T / sqrt(head)) v on cached rows: [1, heads, sequence, head] -> [1, sequence, width]."""
    s = net.s
    if s.form == "attention":
        caches = [f"past_{x}_{layer}" for x in ("key", "value")]
        outs = [f"mixed_{layer}", *(f"present_{x}_{layer}" for x in ("key", "value"))]
        mixed = net.add("Attention", q, k, v, "", *caches, out=outs, is_causal=1)
    else:
        keys, values = (cached(net, x, f"{name}_{layer}") for x, name in ((k, "key"), (v, "value")))
        scores = net.add("MatMul", q, net.add("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = net.add("Mul", scores, net.const(s.head**-0.5))
        scores = net.add("Add", scores, future(net, q, keys))
        mixed = net.add("MatMul", net.add("Softmax", scores, axis=-1), values)
    return net.add("Reshape", net.add("Transpose", mixed, perm=[0, 2, 1, 3]), net.ints(0, 0, s.width))


def attention(net: Net, x: str, layer: int) -> str:
    """Add the attention of a layer: [1, sequence, width] -> the same."""
    s = net.s
    narrow = s.kv_heads * s.head
    q, k, v = (net.dense(x, s.width, n) for n in (s.width, narrow, narrow))
    cos, sin = (net.const(a) for a in angles(s))
    if s.form == "group":
        caches = [f"past_{name}_{layer}" for name in ("key", "value")]
        outs = [f"mixed_{layer}", *(f"present_{name}_{layer}" for name in ("key", "value"))]
        attrs = {"num_heads": s.heads, "kv_num_heads": s.kv_heads, "do_rotary": 1}
        ends = ("seqlens_k", "total_sequence_length")
        mixed = net.add("GroupQueryAttention", q, k, v, *caches, *ends, cos, sin, out=outs, domain=MICROSOFT, **attrs)
        return net.dense(mixed, s.width, s.width)
    q, k = (
        net.add("RotaryEmbedding", heads_of(net, part, n), cos, sin, "position_ids")
        for part, n in ((q, s.heads), (k, s.kv_heads))
    )
    return net.dense(attended(net, q, k, heads_of(net, v, s.kv_heads), layer), s.width, s.width)


def mlp(net: Net, x: str) -> str:
    """Add silu(x w1) * (x w3) w2."""
    s = net.s
    gate, up = (net.dense(x, s.width, s.hidden) for _ in range(2))
    silu = net.add("Mul", gate, net.add("Sigmoid", gate))
    return net.dense(net.add("Mul", silu, up), s.hidden, s.width)


def llama(s: Sizes) -> onnx.ModelProto:
    """Return the model."""
    net = Net(s)
    x = net.add("Gather", net.const(net.rng.normal(0, 1, (s.vocab, s.width))), "tokens", axis=0)
    for layer in range(s.layers):
        x = net.add("Add", x, attention(net, net.norm(x), layer))
        x = net.add("Add", x, mlp(net, net.norm(x)))
    net.dense(net.norm(x), s.width, s.vocab, out=["logits"])
    kind = TensorProto.INT8 if s.codes and s.form == "concat" else TensorProto.FLOAT
    rows = ("most", "most") if s.form == "group" else ("past", "total")
    caches = [f"{name}_{layer}" for layer in range(s.layers) for name in ("key", "value")]

    def ends(word: str, length: str) -> list[onnx.ValueInfoProto]:
        shape = [1, s.kv_heads, s.most if length == "most" else length, s.head]
        return [helper.make_tensor_value_info(f"{word}_{name}", kind, shape) for name in caches]

    inputs = [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, "sequence"])]
    if s.form == "group":
        inputs.append(helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, [1]))
        inputs.append(helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, [1]))
    else:
        inputs.append(helper.make_tensor_value_info("position_ids", TensorProto.INT64, [1, "sequence"]))
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "sequence", s.vocab])]
    graph = helper.make_graph(
        net.nodes, "llama", [*inputs, *ends("past", rows[0])], [*outputs, *ends("present", rows[1])], net.consts
    )
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--form", choices=("concat", "attention", "group"), default="concat")
    parser.add_argument("--bits", type=int, choices=(0, 4, 8), default=4)
    parser.add_argument("--float-cache", action="store_true")
    parser.add_argument("-o", type=Path, default=Path("llama.onnx"))
    given = parser.parse_args()
    onnx.save(llama(Sizes(form=given.form, bits=given.bits, codes=not given.float_cache)), given.o)


if __name__ == "__main__":
    main()
