"""Models over time for tests: int8 1-D networks in QDQ form, float ones, and what streams of steps should give."""

from __future__ import annotations

import numpy as np
import onnx

from tests.unit.quirk_models import Net

CHANNELS = 4


class TimeNet(Net):
    """A network over [1, channels, steps] in the making; `value` is its last tensor. `real` leaves QDQ out."""

    def __init__(self, steps: int, *, channels: int = CHANNELS, seed: int = 0, real: bool = False) -> None:
        super().__init__()
        self.rng, self.real = np.random.default_rng(seed), real
        self.channels, self.steps, self.count = channels, steps, 0
        self.value = self.between(self.input("x", f"f32[1,{channels},{steps}]"), 3)

    def between(self, x: str, zero: int = -20) -> str:
        """QuantizeLinear and DequantizeLinear, but for a real network."""
        return x if self.real else self.qdq(x, 0.05, np.int8(zero))

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def weights(self, *shape: int) -> str:
        codes = self.rng.integers(-127, 128, shape).astype(np.int8)
        name = self.name("w")
        if self.real:
            return self.const(name, (codes * np.float32(0.004)).astype(np.float32))
        return self.dq(self.const(name, codes), 0.01, np.int8(0))

    def conv(
        self, out: int, k: int = 3, *, dilation: int = 1, stride: int = 1, pads: tuple[int, int] = (0, 0),
        depthwise: bool = False, relu: bool = True,
    ) -> TimeNet:  # fmt: skip
        """A Conv along time; depthwise keeps the channels."""
        name, group = self.name("conv"), self.channels if depthwise else 1
        out = self.channels if depthwise else out
        w = self.weights(out, self.channels // group, k)
        y = self.op(
            "Conv", f"{self.value} {w}", name, kernel_shape=[k], dilations=[dilation], strides=[stride],
            pads=list(pads), group=group,
        )  # fmt: skip
        y = self.op("Relu", y, f"{name}_relu") if relu else y
        self.steps = (self.steps + sum(pads) - (k - 1) * dilation - 1) // stride + 1
        self.channels, self.value = out, self.between(y)
        return self

    def unary(self, op: str = "Sigmoid") -> TimeNet:
        self.value = self.between(self.op(op, self.value, self.name(op.lower())))
        return self

    def pool(self, op: str = "MaxPool", k: int = 2, stride: int = 2, pads: tuple[int, int] = (0, 0)) -> TimeNet:
        y = self.op(op, self.value, self.name("pool"), kernel_shape=[k], strides=[stride], pads=list(pads))
        self.steps = (self.steps + sum(pads) - k) // stride + 1
        self.value = self.between(y)
        return self

    def cut(self, x: str, begin: int, end: int) -> str:
        """Slice along time; QuantizeLinear after it keeps the codes."""
        name = self.name("slice")
        bounds = [self.const(f"{name}_{k}", np.array([v], np.int64)) for k, v in (("b", begin), ("e", end), ("a", 2))]
        return self.between(self.op("Slice", " ".join([x, *bounds]), name))

    def chomp(self, steps: int) -> TimeNet:
        """Cut off the last steps, as causal layers in PyTorch do."""
        self.value, self.steps = self.cut(self.value, 0, -steps), self.steps - steps
        return self

    def last(self) -> TimeNet:
        """The last step only."""
        self.value, self.steps = self.cut(self.value, -1, 2**31), 1
        return self

    def residual(self, k: int = 3, dilation: int = 1, *, causal: bool = False) -> TimeNet:
        """x + conv(x); without padding the shortcut loses its first steps."""
        x, lost = self.value, (k - 1) * dilation
        self.conv(self.channels, k, dilation=dilation, pads=(lost, 0) if causal else (0, 0))
        x = x if causal else self.cut(x, lost, 2**31)
        self.value = self.between(self.op("Add", f"{x} {self.value}", self.name("add")))
        return self

    def transpose(self) -> TimeNet:
        """Channels and time change places; conv() wants them back."""
        self.value = self.op("Transpose", self.value, self.name("transpose"), perm=[0, 2, 1])
        return self

    def per_step(self, out: int) -> TimeNet:
        """A product for each step."""
        self.transpose()
        product = self.op("MatMul", f"{self.value} {self.weights(self.channels, out)}", self.name("matmul"))
        self.value, self.channels = self.between(product), out
        return self.transpose()

    def branches(self) -> TimeNet:
        """Two layers on one input; the one with fewer taps loses its first steps."""
        x, channels, steps = self.value, self.channels, self.steps
        short = self.conv(3, 3).value
        self.value, self.channels, self.steps = x, channels, steps
        self.conv(2, 5, relu=False)
        both = f"{self.cut(short, 2, 2**31)} {self.value}"
        self.value, self.channels = self.between(self.op("Concat", both, self.name("concat"), axis=1)), 5
        return self

    def softmax(self, axis: int = 1) -> TimeNet:
        self.value = self.between(self.op("Softmax", self.value, self.name("softmax"), axis=axis), -128)
        return self

    def mean(self) -> TimeNet:
        self.value = self.between(self.op("GlobalAveragePool", self.value, self.name("mean")))
        self.steps = 1
        return self

    def classes(self, count: int = 3) -> onnx.ModelProto:
        """Flatten and a Gemm: the model is done."""
        y = self.op("Flatten", self.value, self.name("flat"))
        w = self.weights(count, self.channels * self.steps)
        y = self.between(self.op("Gemm", f"{y} {w}", self.name("fc"), transB=1), 0)
        return self.build({y: "f32"})

    def done(self) -> onnx.ModelProto:
        """The model gives its last tensor."""
        return self.build({self.value: "f32"})


def signal(steps: int, channels: int = CHANNELS, seed: int = 1) -> np.ndarray:
    """Steps of all channels, [channels, steps], that reach over the range of the codes."""
    return np.random.default_rng(seed).normal(0, 3, (channels, steps)).astype(np.float32)


def hops_of(x: np.ndarray, hop: int) -> np.ndarray:
    """Cut [channels, steps] into samples [calls, 1, channels, hop]."""
    return np.stack([x[None, :, k : k + hop] for k in range(0, x.shape[1] - hop + 1, hop)])


def windows_of(x: np.ndarray, hop: int, window: int) -> np.ndarray:
    """Return the window that ends with each hop; in front of the signal are zeros."""
    full = np.concatenate([np.zeros((x.shape[0], window - hop), np.float32), x], 1)
    return np.stack([full[None, :, k : k + window] for k in range(0, x.shape[1] - hop + 1, hop)])


def random_net(seed: int, steps: int = 48) -> tuple[onnx.ModelProto, int]:
    """A network without padding, and the product of its strides."""
    net = TimeNet(steps, seed=seed)
    rng, stride = net.rng, 1
    for _ in range(int(rng.integers(1, 6))):
        kind = int(rng.integers(0, 11))
        if net.steps < 14:
            break
        if kind < 2:
            net.conv(int(rng.integers(2, 7)), int(rng.integers(1, 5)), dilation=int(rng.integers(1, 3)))
        elif kind == 2:
            net.conv(0, 3, depthwise=True)
        elif kind == 3 and stride < 4:
            step = int(rng.integers(2, 4))
            net.conv(5, int(rng.integers(1, 5)), stride=step)
            stride *= step
        elif kind == 4 and stride < 4:
            net.pool(["MaxPool", "AveragePool"][seed % 2], int(rng.integers(2, 4)), 2)
            stride *= 2
        elif kind == 5:
            net.residual(int(rng.integers(2, 4)), int(rng.integers(1, 3)))
        elif kind == 6:
            net.unary()
        elif kind == 7:
            net.per_step(int(rng.integers(2, 6)))
        elif kind == 8:
            net.branches()
        elif kind == 9:
            net.chomp(int(rng.integers(1, 3)))
        else:
            net.softmax()
    net.conv(4, 2, relu=False)
    head = seed % 5
    if head == 0:
        return net.mean().classes(), stride
    if head == 1:
        return net.last().classes(), stride
    if head == 2:
        net.softmax(axis=2)
    return (net.classes() if head == 3 else net.done()), stride


def causal_net(seed: int, steps: int) -> tuple[onnx.ModelProto, int, int]:
    """A network with padding in front, a result per step; its stride, and how many steps stand before the padding."""
    net = TimeNet(steps, seed=seed)
    rng, stride = net.rng, 1
    lead = int(rng.integers(0, 3)) if seed % 3 == 0 else 0
    if lead:
        net.conv(5, lead + 1)
    for _ in range(int(rng.integers(1, 6))):
        kind, taps = int(rng.integers(0, 6)), int(rng.integers(2, 5))
        dilation, out = int(rng.integers(1, 4)), int(rng.integers(2, 7))
        lost = (taps - 1) * dilation
        if kind == 0:
            net.conv(out, taps, dilation=dilation, pads=(lost, 0))
        elif kind == 1:
            net.conv(out, taps, dilation=dilation, pads=(lost, lost)).chomp(lost)
        elif kind == 2:
            net.residual(taps, dilation, causal=True)
        elif kind == 3 and stride < 4 and not lead:
            net.conv(out, 3, stride=2, pads=(int(rng.integers(1, 3)), 0))
            stride *= 2
        elif kind == 4:
            net.per_step(out)
        elif not lead:
            net.pool("MaxPool", 2, 1, (1, 0))
    return net.conv(4, 2, pads=(1, 0), relu=False).done(), stride, lead
