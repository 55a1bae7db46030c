"""Networks that everybody knows, in int8 (QDQ) or float with random weights, for benches: what they take, not what they
know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_SCALE = 0.02  # of weights; activations have it, too


class Net:
    """A network of random weights, layer by layer, quantised (QDQ) or `real`; `x` is what the last layer gave."""

    def __init__(self, name: str, *shape: int, real: bool = False) -> None:
        self.real = real
        self.nodes: list[onnx.NodeProto] = []
        self.consts: list[onnx.TensorProto] = []
        self._rng, self._name, self.shape = np.random.default_rng(0), name, shape
        self._constant("scale", np.float32(_SCALE))
        self._constant("zero", np.int8(0))
        self.x = "input" if real else self._dequantized("input")

    def _constant(self, name: str, value: np.ndarray | np.generic) -> str:
        self.consts.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        out = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [*inputs], [out], out, **attributes))
        return out

    def _dequantized(self, codes: str) -> str:
        return self._node("DequantizeLinear", [codes, "scale", "zero"])

    def _through_codes(self, real: str) -> str:
        return real if self.real else self._dequantized(self._node("QuantizeLinear", [real, "scale", "zero"]))

    def layer(self, op: str, shape: Sequence[int], *, relu: bool = True, **attributes: Any) -> None:
        """Add a Conv or Gemm with random int8 weights of this shape."""
        number, size = len(self.nodes), (2 / np.prod(shape[1:])) ** 0.5
        if self.real:
            weights = self._constant(f"w{number}", self._rng.normal(0, size, [*shape]).astype(np.float32))
            real = self._constant(f"b{number}", self._rng.normal(0, 0.1, shape[0]).astype(np.float32))
        else:
            codes = self._rng.integers(-127, 128, [*shape], np.int8)
            weights = self._dequantized(self._constant(f"w{number}", codes))
            factor = self._constant(f"s{number}", np.float32(_SCALE * _SCALE))
            bias = self._constant(f"b{number}", self._rng.integers(-1000, 1000, shape[0]).astype(np.int32))
            real = self._node("DequantizeLinear", [bias, factor])
        y = self._node(op, [self.x, weights, real], **attributes)
        self.x = self._through_codes(self._node("Relu", [y]) if relu else y)

    def other(self, op: str, *more: str, **attributes: Any) -> None:
        """Add an operator without weights; `more` are inputs besides the last tensor."""
        self.x = self._through_codes(self._node(op, [self.x, *more], **attributes))

    def flatten(self) -> None:
        """Make one axis of all but the first."""
        self.x = self._node("Flatten", [self.x])

    def dense(self, inputs: int, outputs: int) -> None:
        """Add a product of the last axis with random int8 weights, and a bias."""
        number = len(self.nodes)
        codes = self._rng.integers(-127, 128, (inputs, outputs), np.int8)
        values = codes * np.float32(_SCALE / 20) if self.real else codes
        weights = self._constant(f"w{number}", values)
        product = self._node("MatMul", [self.x, weights if self.real else self._dequantized(weights)])
        bias = self._rng.normal(size=outputs).astype(np.float32)
        self.x = self._through_codes(self._node("Add", [product, self._constant(f"b{number}", bias)]))

    def projected(self, x: str, width: int, heads: int, turn: Sequence[int]) -> str:
        """Return a dense layer of `x` by heads, its axes in the order `turn`."""
        self.x = x
        self.dense(width, width)
        shape = self._constant(f"h{len(self.nodes)}", np.array([0, -1, heads, width // heads]))
        return self._node("Transpose", [self._node("Reshape", [self.x, shape])], perm=[*turn])

    def merged(self, width: int) -> None:
        """Put the heads beside each other again."""
        turned = self._node("Transpose", [self.x], perm=[0, 2, 1, 3])
        self.x = self._node("Reshape", [turned, self._constant(f"m{len(self.nodes)}", np.array([0, -1, width]))])

    def normed(self, width: int) -> None:
        """Add a layer norm."""
        number = len(self.nodes)
        scale, bias = (self._constant(f"{k}{number}", np.full(width, v, np.float32)) for k, v in (("g", 1), ("c", 0)))
        self.x = self._through_codes(self._node("LayerNormalization", [self.x, scale, bias], axis=-1))

    def gelu(self) -> None:
        """Add x/2 (1 + erf(x/sqrt(2))) as exporters write it."""
        number = len(self.nodes)
        root, one, half = (
            self._constant(f"{k}{number}", np.float32(v)) for k, v in (("r", 2**0.5), ("o", 1), ("f", 0.5))
        )
        erf = self._node("Erf", [self._node("Div", [self.x, root])])
        doubled = self._node("Mul", [self.x, self._node("Add", [erf, one])])
        self.x = self._through_codes(self._node("Mul", [doubled, half]))

    def inverted_block(self, in_c: int, wide: int, out_c: int, k: int, stride: int) -> None:
        """Add an inverted residual block: wider by a pointwise layer, a depthwise one of k x k, narrower again."""
        begin = self.x
        if wide > in_c:
            self.layer("Conv", (wide, in_c, 1, 1))
        self.layer("Conv", (wide, 1, k, k), group=wide, strides=[stride] * 2, pads=[k // 2] * 4)
        self.layer("Conv", (out_c, wide, 1, 1), relu=False)
        if in_c == out_c and stride == 1:
            self.other("Add", begin)

    def classifier(self, in_c: int) -> None:
        """Add the end of networks for 1,000 classes."""
        self.layer("Conv", (1280, in_c, 1, 1))
        self.other("GlobalAveragePool")
        self.flatten()
        self.layer("Gemm", (1000, 1280), relu=False, transB=1)

    def save(self, path: Path) -> None:
        """Write the model."""
        result = self.x if self.real else self._node("QuantizeLinear", [self.x, "scale", "zero"])
        kind = TensorProto.FLOAT if self.real else TensorProto.INT8
        graph = helper.make_graph(
            self.nodes, self._name, [helper.make_tensor_value_info("input", kind, self.shape)],
            [helper.make_tensor_value_info(result, kind, None)], self.consts,
        )  # fmt: skip
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def resnet50(path: Path, *, real: bool = False) -> None:
    """ResNet-50 for 224x224 pixels: blocks of 3, 4, 6 and 3."""
    net = Net("resnet50", 1, 3, 224, 224, real=real)
    net.layer("Conv", (64, 3, 7, 7), strides=[2, 2], pads=[3, 3, 3, 3])
    net.other("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    in_c = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        mid = 64 << stage
        for block in range(blocks):
            stride, begin = 2 if block == 0 and stage else 1, net.x
            net.layer("Conv", (mid, in_c, 1, 1))
            net.layer("Conv", (mid, mid, 3, 3), strides=[stride] * 2, pads=[1, 1, 1, 1])
            net.layer("Conv", (4 * mid, mid, 1, 1), relu=False)
            main, net.x = net.x, begin
            if block == 0:
                net.layer("Conv", (4 * mid, in_c, 1, 1), relu=False, strides=[stride] * 2)
            net.other("Add", main)
            net.other("Relu")
            in_c = 4 * mid
    net.other("GlobalAveragePool")
    net.flatten()
    net.layer("Gemm", (1000, in_c), relu=False, transB=1)
    net.save(path)


def mobilenet_v2(path: Path, *, real: bool = False) -> None:
    """MobileNetV2 1.0 for 224x224 pixels (Sandler et al. 2018, table 2)."""
    net = Net("mobilenet_v2", 1, 3, 224, 224, real=real)
    net.layer("Conv", (32, 3, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    in_c = 32
    for factor, out_c, blocks, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for block in range(blocks):
            net.inverted_block(in_c, factor * in_c, out_c, 3, stride if block == 0 else 1)
            in_c = out_c
    net.classifier(in_c)
    net.save(path)


def efficientnet_lite0(path: Path, *, real: bool = False) -> None:
    """EfficientNet-lite0 for 224x224 pixels (the table of EfficientNet-B0 without squeeze and excitation)."""
    net = Net("efficientnet_lite0", 1, 3, 224, 224, real=real)
    net.layer("Conv", (32, 3, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    in_c = 32
    for factor, out_c, blocks, stride, k in (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    ):  # fmt: skip
        for block in range(blocks):
            net.inverted_block(in_c, factor * in_c, out_c, k, stride if block == 0 else 1)
            in_c = out_c
    net.classifier(in_c)
    net.save(path)


def squeezenet(path: Path, *, real: bool = False) -> None:
    """SqueezeNet 1.1 for 224x224 pixels (Iandola et al. 2016)."""
    net = Net("squeezenet", 1, 3, 224, 224, real=real)
    net.layer("Conv", (64, 3, 3, 3), strides=[2, 2])
    in_c = 64
    for pool, squeeze, expand in (
        (True, 16, 64), (False, 16, 64), (True, 32, 128), (False, 32, 128), (True, 48, 192), (False, 48, 192),
        (False, 64, 256), (False, 64, 256),
    ):  # fmt: skip
        if pool:
            net.other("MaxPool", kernel_shape=[3, 3], strides=[2, 2])
        net.layer("Conv", (squeeze, in_c, 1, 1))
        begin = net.x
        net.layer("Conv", (expand, squeeze, 1, 1))
        one, net.x = net.x, begin
        net.layer("Conv", (expand, squeeze, 3, 3), pads=[1, 1, 1, 1])
        net.other("Concat", one, axis=1)
        in_c = 2 * expand
    net.layer("Conv", (1000, in_c, 1, 1))
    net.other("GlobalAveragePool")
    net.save(path)


def bert_mini(path: Path, tokens: int = 128, *, real: bool = False) -> None:
    """BERT-mini after its embeddings: 4 layers of 256 channels and 4 heads (Turc et al. 2019)."""
    net, width, heads = Net("bert_mini", 1, tokens, 256, real=real), 256, 4
    for _ in range(4):
        begin = net.x
        rows = [net.projected(begin, width, heads, turn) for turn in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])]
        net.x = rows[0]
        net.other("MatMul", rows[1])
        net.other("Softmax", axis=-1)
        net.other("MatMul", rows[2])
        net.merged(width)
        net.dense(width, width)
        net.other("Add", begin)
        net.normed(width)
        begin = net.x
        net.dense(width, 4 * width)
        net.gelu()
        net.dense(4 * width, width)
        net.other("Add", begin)
        net.normed(width)
    net.save(path)


def wide(path: Path) -> None:
    """A chain of fully connected layers with 54 MB of weights."""
    net = Net("wide", 1, 3000)
    for _ in range(6):
        net.layer("Gemm", (3000, 3000), transB=1)
    net.save(path)


def blocks(path: Path, rows: int = 1, bits: int = 4, width: int = 2048, block: int = 32) -> None:
    """Three layers with codes of `bits` by blocks (MatMulNBits), as language models have them."""
    rng, count = np.random.default_rng(0), width // block
    graph = helper.make_graph([], "blocks", [], [])
    for port, name in ((graph.input, "v0"), (graph.output, "v3")):
        port.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, width]))
    for i in range(3):
        codes = rng.integers(0, 256, (width, count, block * bits // 8)).astype(np.uint8)
        scales = rng.uniform(0.001, 0.004, width * count).astype(np.float32)
        graph.initializer.extend([numpy_helper.from_array(codes, f"w{i}"), numpy_helper.from_array(scales, f"s{i}")])
        sizes = {"K": width, "N": width, "bits": bits, "block_size": block}
        node = ("MatMulNBits", [f"v{i}", f"w{i}", f"s{i}"], [f"v{i + 1}"], f"layer{i}")
        graph.node.append(helper.make_node(*node, domain="com.microsoft", **sizes))
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def deep(path: Path, count: int = 4000) -> None:
    """A chain of small convolutions."""
    net = Net("deep", 1, 8, 8, 8)
    for _ in range(count):
        net.layer("Conv", (8, 8, 3, 3), pads=[1, 1, 1, 1])
    net.save(path)


_BOTH = (mobilenet_v2, resnet50, bert_mini, efficientnet_lite0, squeezenet)
NETS: dict[str, Callable[[Path], None]] = {f.__name__: f for f in (*_BOTH, wide, blocks, deep)}
NETS |= {f"blocks_{rows}": partial(blocks, rows=rows) for rows in (4, 32)}
NETS |= {f"{f.__name__}_fp32": partial(f, real=True) for f in _BOTH}
"""Functions that write a network to a file, by its name."""


def model_of(name: str, folder: Path) -> tuple[Path, str]:
    """Return the file of a model, and what to call it: a network of NETS, which is written to a folder, or a file."""
    if name in NETS:
        path = folder / f"{name}.onnx"
        NETS[name](path)
        return path, name
    path = Path(name)
    return path, path.parent.name if path.stem == "model" else path.stem
