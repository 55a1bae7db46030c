"""Float networks drawn from a seed as training leaves them: channels of unlike size, heavy tails, folded norms.

    net = draw_net(seed)      # the same network and data each time

Families: plain and residual CNNs, mobile ones (depthwise, squeeze and excite), MLPs, transformers, LSTM, GRU, temporal
convolutions, U-shaped ones. Data has samples of unlike size too, so that few of them do not show the whole range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]
Rng = np.random.Generator
ACTIVATIONS = ("Relu", "Relu", "Relu6", "HardSwish", "SiLU", "LeakyRelu", "Elu", "Gelu", "PRelu")


@dataclass(frozen=True)
class Net:
    """A network, its family, and where its samples come from."""

    model: onnx.ModelProto
    family: str
    shape: Shape
    sample: Callable[[Rng], np.ndarray]

    def samples(self, seed: int, count: int) -> list[dict[str, np.ndarray]]:
        """Return samples of the input."""
        rng = np.random.default_rng(seed)
        return [{"x": self.sample(rng).astype(np.float32)} for _ in range(count)]


@dataclass
class _Build:
    """The nodes and constants of a network; channels come first, after a batch of 1."""

    rng: Rng
    tails: float = 4.0  # degrees of freedom of the weights' distribution
    spread: float = 0.4  # of the logarithm of channels' sizes
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    consts: dict[str, np.ndarray] = field(default_factory=dict)

    def op(self, kind: str, *inputs: str, count: int = 1, **attrs: object) -> str:
        """Add a node; return its first result."""
        outs = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(kind, list(inputs), outs, name=f"{kind}{len(self.nodes)}", **attrs))
        return outs[0]

    def const(self, array: np.ndarray) -> str:
        """Add a constant."""
        name = f"c{len(self.consts)}"
        self.consts[name] = array
        return name

    def floats(self, array: np.ndarray | float) -> str:
        """Add a constant of float32."""
        return self.const(np.asarray(array, np.float32))

    def ints(self, *values: int) -> str:
        """Add a constant of int64."""
        return self.const(np.asarray(values, np.int64))

    def weights(self, *shape: int, fan: int = 0, axis: int = 0) -> np.ndarray:
        """Return weights with heavy tails, whose channels along `axis` have unlike sizes."""
        inside = fan or int(np.prod(shape[1:]))
        raw = self.rng.standard_t(self.tails, shape) / np.sqrt(self.tails / (self.tails - 2))
        sizes = np.exp(self.rng.normal(0, self.spread, shape[axis]))
        sizes /= np.sqrt(np.mean(sizes**2))
        around = [1] * len(shape)
        around[axis] = -1
        return raw * sizes.reshape(around) * np.sqrt(1.6 / inside)

    def act(self, x: str, kind: str) -> str:
        """Add an activation as exporters write it."""
        if kind == "Relu6":
            return self.op("Clip", x, self.floats(0), self.floats(6))
        if kind == "SiLU":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind == "Gelu":
            erf = self.op("Erf", self.op("Div", x, self.floats(np.sqrt(2))))
            return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.floats(1))), self.floats(0.5))
        if kind == "PRelu":
            return self.op(kind, x, self.floats(0.2))
        return self.op(kind, x) if kind else x

    def norm(self, x: str, channels: int) -> str:
        """Add a batch normalisation whose variances are unlike each other."""
        g, b, m = (self.rng.normal(mean, size, channels) for mean, size in ((1, 0.3), (0, 0.3), (0, 0.3)))
        v = np.exp(self.rng.normal(0, 0.5, channels))
        return self.op("BatchNormalization", x, *(self.floats(a) for a in (g, b, m, v)))

    def conv(self, x: str, c_in: int, c_out: int, kernel: Shape, act: str = "", *, stride: int = 1, group: int = 1,
             dilation: int = 1, norm: bool = True) -> str:  # fmt: skip
        """Add a convolution, a normalisation or bias, and an activation."""
        w = self.weights(c_out, c_in // group, *kernel)
        pads = [(k - 1) * dilation // 2 for k in kernel] * 2
        rest = () if norm else (self.floats(self.rng.normal(0, 0.2, c_out)),)
        y = self.op("Conv", x, self.floats(w), *rest, kernel_shape=kernel, strides=[stride] * len(kernel), pads=pads,
                    group=group, dilations=[dilation] * len(kernel))  # fmt: skip
        return self.act(self.norm(y, c_out) if norm else y, act)

    def dense(self, x: str, n_in: int, n_out: int, act: str = "", *, matmul: bool = False) -> str:
        """Add a fully connected layer."""
        bias = self.floats(self.rng.normal(0, 0.2, n_out))
        if matmul:
            y = self.op("Add", self.op("MatMul", x, self.floats(self.weights(n_in, n_out, fan=n_in, axis=1))), bias)
        else:
            y = self.op("Gemm", x, self.floats(self.weights(n_out, n_in)), bias, transB=1)
        return self.act(y, act)

    def squeeze(self, x: str, channels: int) -> str:
        """Add a squeeze and excite."""
        inner = max(4, channels // 4)
        y = self.op("GlobalAveragePool", x)
        y = self.conv(y, channels, inner, (1, 1), "Relu", norm=False)
        y = self.conv(y, inner, channels, (1, 1), str(self.rng.choice(["Sigmoid", "HardSigmoid"])), norm=False)
        return self.op("Mul", x, y)

    def head(self, x: str, channels: int) -> str:
        """Add what ends a classifier: a mean over places, a layer, half of the time a Softmax."""
        x = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.last(x, channels)

    def last(self, x: str, n: int) -> str:
        """Add a last layer."""
        y = self.dense(x, n, int(self.rng.integers(2, 12)))
        return self.op("Softmax", y, axis=-1) if self.rng.random() < 0.3 else y


def _whole(rng: Rng, low: int, high: int, step: int = 1) -> int:
    return int(rng.integers(low // step, high // step + 1)) * step


def _plain(b: _Build) -> tuple[Shape, str]:
    rng, act, size, c = b.rng, str(b.rng.choice(ACTIVATIONS)), _whole(b.rng, 12, 24, 4), 3
    x, norm = "x", bool(rng.random() < 0.7)
    for i in range(_whole(rng, 2, 5)):
        wider = _whole(rng, 8, 32, 4)
        x, c = b.conv(x, c, wider, (3, 3), act, stride=2 if i % 2 else 1, norm=norm), wider
        if i == 1:
            x = b.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    return (1, 3, size, size), b.head(x, c)


def _residual(b: _Build) -> tuple[Shape, str]:
    rng, act, c = b.rng, str(b.rng.choice(ACTIVATIONS[:5])), _whole(b.rng, 8, 24, 4)
    x = b.conv("x", 3, c, (3, 3), act)
    for i in range(_whole(rng, 2, 4)):
        stride = 2 if i else 1
        y = b.conv(
            b.conv(x, c, 2 * c if i else c, (3, 3), act, stride=stride), 2 * c if i else c, 2 * c if i else c, (3, 3)
        )
        x = b.conv(x, c, 2 * c, (1, 1), stride=2) if i else x
        c = 2 * c if i else c
        x = b.act(b.op("Add", x, y), act)
    return (1, 3, 16, 16), b.head(x, c)


def _mobile(b: _Build) -> tuple[Shape, str]:
    rng, act, c = b.rng, str(b.rng.choice(["Relu", "Relu6", "HardSwish", "SiLU"])), _whole(b.rng, 8, 16, 4)
    excites, x = bool(rng.random() < 0.5), b.conv("x", 3, c, (3, 3), act, stride=2)
    for _ in range(_whole(rng, 2, 5)):
        inner, wider, stride = (
            c * _whole(rng, 1, 4),
            c if rng.random() < 0.5 else _whole(rng, 8, 32, 4),
            _whole(rng, 1, 2),
        )
        y = b.conv(x, c, inner, (1, 1), act)
        k = _whole(rng, 3, 5, 2)
        y = b.conv(y, inner, inner, (2 * (k // 2) + 1,) * 2, act, stride=stride, group=inner)
        y = b.squeeze(y, inner) if excites else y
        y = b.conv(y, inner, wider, (1, 1))
        x, c = b.op("Add", x, y) if wider == c and stride == 1 else y, wider
    return (1, 3, 24, 24), b.head(x, c)


def _mlp(b: _Build) -> tuple[Shape, str]:
    rng, act, n = b.rng, str(b.rng.choice([*ACTIVATIONS, "Tanh", "Sigmoid"])), _whole(b.rng, 8, 128)
    shape, x = (1, n), "x"
    for _ in range(_whole(rng, 2, 6)):
        wider = _whole(rng, 16, 128)
        x, n = b.dense(x, n, wider, act), wider
    return shape, b.last(x, n)


def _transformer(b: _Build) -> tuple[Shape, str]:
    rng, heads, each, steps = b.rng, _whole(b.rng, 1, 4), _whole(b.rng, 8, 16, 4), _whole(b.rng, 8, 24)
    d, n = heads * each, _whole(b.rng, 8, 40)
    x = b.op("Add", b.dense("x", n, d, matmul=True), b.floats(rng.normal(0, 0.3, (1, steps, d))))

    def normed(x: str) -> str:
        scale, shift = b.floats(rng.normal(1, 0.3, d)), b.floats(rng.normal(0, 0.2, d))
        return b.op("LayerNormalization", x, scale, shift, axis=-1)

    def split(x: str, perm: list[int]) -> str:
        return b.op("Transpose", b.op("Reshape", x, b.ints(1, steps, heads, each)), perm=perm)

    for _ in range(_whole(rng, 1, 3)):
        y = normed(x)
        q, k, v = (b.dense(y, d, d, matmul=True) for _ in range(3))
        scores = b.op("MatMul", split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1]))
        weights = b.op("Softmax", b.op("Mul", scores, b.floats(each**-0.5)), axis=-1)
        mixed = b.op("Transpose", b.op("MatMul", weights, split(v, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        x = b.op("Add", x, b.dense(b.op("Reshape", mixed, b.ints(1, steps, d)), d, d, matmul=True))
        y = b.dense(normed(x), d, 2 * d, str(rng.choice(["Gelu", "Relu", "SiLU"])), matmul=True)
        x = b.op("Add", x, b.dense(y, 2 * d, d, matmul=True))
    x = b.op("ReduceMean", normed(x), axes=[1], keepdims=0)
    return (1, steps, n), b.last(x, d)


def _recurrent(b: _Build) -> tuple[Shape, str]:
    rng, steps, n, h = b.rng, _whole(b.rng, 8, 30), _whole(b.rng, 8, 40), _whole(b.rng, 16, 48)
    kind, gates = ("LSTM", 4) if rng.random() < 0.5 else ("GRU", 3)
    dirs = 2 if rng.random() < 0.3 else 1
    x = b.op("Transpose", "x", perm=[1, 0, 2])
    for _ in range(_whole(rng, 1, 2)):
        w, r = b.weights(gates * h, n) * 0.8, b.weights(gates * h, h) * 0.6
        bias = rng.normal(0, 0.2, (1, 2 * gates * h))
        reset = {"linear_before_reset": 1} if kind == "GRU" else {}
        given = [np.stack([a] * dirs) for a in (w, r, bias[0])]
        way = "bidirectional" if dirs == 2 else "forward"
        y = b.op(kind, x, *(b.floats(a) for a in given), count=1, hidden_size=h, direction=way, **reset)
        x, n = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), b.ints(steps, 1, dirs * h)), dirs * h
    if rng.random() < 0.5:
        x = b.op("Gather", x, b.const(np.asarray(steps - 1, np.int64)), axis=0)
    else:
        x = b.op("ReduceMean", x, axes=[0], keepdims=0)
    return (1, steps, _inputs_of(b)), b.last(x, n)


def _inputs_of(b: _Build) -> int:
    """Return the inputs of a step of the first recurrent layer."""
    node = next(n for n in b.nodes if n.op_type in ("LSTM", "GRU"))
    return int(b.consts[node.input[1]].shape[2])


def _temporal(b: _Build) -> tuple[Shape, str]:
    rng, act, n, c = b.rng, str(b.rng.choice(ACTIVATIONS)), _whole(b.rng, 4, 40), _whole(b.rng, 12, 32, 4)
    x = b.conv("x", n, c, (3,), act)
    for i in range(_whole(rng, 2, 4)):
        y = b.conv(b.conv(x, c, c, (3,), act, dilation=2**i), c, c, (1,))
        x = b.act(b.op("Add", x, y), act)
    return (1, n, _whole(rng, 24, 64, 8)), b.head(x, c)


def _unet(b: _Build) -> tuple[Shape, str]:
    act, c = str(b.rng.choice(["Relu", "LeakyRelu", "SiLU"])), _whole(b.rng, 8, 16, 4)
    first = b.conv("x", 1, c, (3, 3), act)
    low = b.conv(first, c, 2 * c, (3, 3), act, stride=2)
    low = b.conv(low, 2 * c, 2 * c, (3, 3), act)
    up = b.op("Resize", low, "", b.floats([1, 1, 2, 2]), mode="nearest", coordinate_transformation_mode="asymmetric",
              nearest_mode="floor")  # fmt: skip
    both = b.conv(b.op("Concat", first, up, axis=1), 3 * c, c, (3, 3), act)
    y = b.conv(both, c, 2, (1, 1), norm=False)
    return (1, 1, 20, 20), b.op("Sigmoid", y) if b.rng.random() < 0.5 else y


def _dense(b: _Build) -> tuple[Shape, str]:
    act, c = str(b.rng.choice(ACTIVATIONS)), _whole(b.rng, 8, 16, 4)
    x = b.conv("x", 3, c, (3, 3), act, stride=2)
    for _ in range(_whole(b.rng, 2, 4)):
        x, c = b.op("Concat", x, b.conv(x, c, 8, (3, 3), act), axis=1), c + 8
        if b.rng.random() < 0.4:
            x = b.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    return (1, 3, 32, 32), b.head(x, c)


def _decoder(b: _Build) -> tuple[Shape, str]:
    act, c = str(b.rng.choice(["Relu", "LeakyRelu", "PRelu", "Elu"])), _whole(b.rng, 8, 24, 4)
    x = b.conv(b.conv("x", 3, c, (3, 3), act, stride=2), c, 2 * c, (3, 3), act, stride=2)
    weights = b.weights(2 * c, c, 2, 2, fan=2 * c, axis=1)
    x = b.act(b.op("ConvTranspose", x, b.floats(weights), b.floats(np.zeros(c)), strides=[2, 2]), act)
    if b.rng.random() < 0.4:
        x = b.op("InstanceNormalization", x, b.floats(b.rng.normal(1, 0.3, c)), b.floats(b.rng.normal(0, 0.3, c)))
    y = b.conv(x, c, 3, (3, 3), norm=False)
    return (1, 3, 16, 16), b.op(str(b.rng.choice(["Tanh", "Sigmoid"])), y)


def _wide(b: _Build) -> tuple[Shape, str]:
    n, act = _whole(b.rng, 200, 800), str(b.rng.choice(ACTIVATIONS))
    shape, x = (1, n), "x"
    for _ in range(_whole(b.rng, 1, 3)):
        wider = _whole(b.rng, 32, 256)
        x, n = b.dense(x, n, wider, act, matmul=True), wider
    return shape, b.last(x, n)


def _short(b: _Build) -> tuple[Shape, str]:
    c, act = _whole(b.rng, 4, 64, 4), str(b.rng.choice([*ACTIVATIONS, "Tanh", "Sigmoid", ""]))
    if b.rng.random() < 0.5:
        n = _whole(b.rng, 2, 32)
        return (1, n), b.dense(b.dense("x", n, c, act), c, _whole(b.rng, 1, 8))
    x = b.conv("x", 2, c, (3, 3), act, norm=False)
    return (1, 2, 10, 10), x if b.rng.random() < 0.5 else b.conv(x, c, 4, (1, 1), norm=False)


def _deep(b: _Build) -> tuple[Shape, str]:
    act, c = str(b.rng.choice(["Relu", "Relu6", "HardSwish", "SiLU", "Gelu"])), _whole(b.rng, 8, 16, 4)
    x = b.conv("x", 3, c, (3, 3), act, stride=2)
    for i in range(_whole(b.rng, 8, 14)):
        y = b.conv(b.conv(x, c, 2 * c, (1, 1), act), 2 * c, 2 * c, (3, 3), act, group=2 * c)
        y = b.conv(y, 2 * c, c, (1, 1))
        x = b.op("Add", x, y) if i % 2 else y
    return (1, 3, 20, 20), b.head(x, c)


def _sound(b: _Build) -> tuple[Shape, str]:
    """A log-mel spectrum of a signal, by a DFT as a convolution or a product, and a small CNN."""
    rng, window, frames, mels = b.rng, 64, _whole(b.rng, 12, 24), _whole(b.rng, 10, 24)
    turns = 2 * np.pi * np.outer(np.arange(window), np.arange(window // 2 + 1)) / window
    parts = [np.hanning(window)[:, None] * f(turns) for f in (np.cos, np.sin)]
    if rng.random() < 0.5:
        weights = (b.floats(p.T[:, None]) for p in parts)
        shape: Shape = (1, 1, window // 2 * (frames + 1))
        sides = [b.op("Conv", "x", w, kernel_shape=[window], strides=[window // 2]) for w in weights]
        sides = [b.op("Transpose", side, perm=[0, 2, 1]) for side in sides]
    else:
        shape = (1, frames, window)
        sides = [b.op("MatMul", "x", b.floats(p)) for p in parts]
    power = b.op("Add", *(b.op("Mul", side, side) for side in sides))
    if rng.random() < 0.4:
        power = b.op("Sqrt", power)
    centers = np.linspace(0, window // 2, mels + 2)
    bank = np.maximum(0, 1 - np.abs(np.arange(window // 2 + 1)[:, None] - centers[1:-1]) / np.diff(centers).mean())
    x = b.op("Log", b.op("Add", b.op("MatMul", power, b.floats(bank)), b.floats(1e-6)))
    x = b.op("Reshape", b.op("Transpose", b.op("Mul", x, b.floats(0.2)), perm=[0, 2, 1]), b.ints(1, mels, frames))
    x, act = b.conv(x, mels, 16, (3,), "Relu"), str(rng.choice(ACTIVATIONS))
    return shape, b.head(b.conv(x, 16, 24, (3,), act), 24)


FAMILIES: Mapping[str, Callable[[_Build], tuple[Shape, str]]] = {
    "plain": _plain, "residual": _residual, "mobile": _mobile, "mlp": _mlp, "transformer": _transformer,
    "recurrent": _recurrent, "temporal": _temporal, "unet": _unet, "dense": _dense, "decoder": _decoder,
    "wide": _wide, "short": _short, "deep": _deep, "sound": _sound,
}  # fmt: skip


def _source(rng: Rng, shape: Shape) -> Callable[[Rng], np.ndarray]:
    """Return where samples come from: noise, bytes of images, or smooth signals of unlike size and mean."""
    kind = rng.random()
    if kind < 0.4:
        return lambda r: r.normal(size=shape)
    if kind < 0.5:
        return lambda r: r.integers(0, 256, shape) / np.float32(255)
    if kind < 0.6:  # strokes on an empty page
        return lambda r: np.maximum(r.uniform(-3, 1, shape), 0)
    axis = len(shape) - 1 if len(shape) != 3 or shape[1] < shape[2] else 1

    def smooth(r: Rng) -> np.ndarray:
        x = r.normal(size=shape)
        for at in range(max(1, axis - (len(shape) == 4)), axis + 1) if len(shape) > 2 else ():
            x = x + np.roll(x, 1, at) + np.roll(x, 2, at)
        x = x / x.std() * np.exp(r.normal(0, 0.4)) + r.normal(0, 0.4)
        return np.asarray(x)

    return smooth


def draw_net(seed: int) -> Net:
    """Return the network that a seed stands for."""
    rng = np.random.default_rng([77, seed])
    family = list(FAMILIES)[seed % len(FAMILIES)]
    build = _Build(rng, tails=float(rng.choice([3.0, 5.0, 30.0])), spread=float(rng.choice([0.1, 0.4, 0.8])))
    shape, last = FAMILIES[family](build)
    graph = helper.make_graph(
        [*build.nodes, helper.make_node("Identity", [last], ["y"])], "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a, name) for name, a in build.consts.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Net(onnx.shape_inference.infer_shapes(model), family, shape, _source(rng, shape))
