"""Small networks of many kinds with random weights, quantized on random data, for scripts/bench_small.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from known_nets import Net, model_of

from glowc.quant import Activations, QuantizeOptions, quantize_model

SAMPLES = 4
MOST_POOLS = 2  # of a network that is drawn
NETS = {
    "mcunet": "3x64x64: conv 16 3 2, depthwise 3, line 8, inverted 24 16 7 2, inverted 48 16 5 1, inverted 48 24 7 2, "
    "inverted 96 24 5 1, inverted 96 40 5 2, inverted 120 40 7 1, inverted 160 48 5 1, inverted 144 96 3 2, head 10",
    "ghostnet": "3x64x64: conv 8 3 2, ghost 16 8, ghost 24 12, conv 12 3 2, ghost 36 12, ghost 48 20, conv 20 3 2, "
    "ghost 80 28, squeeze 8, ghost 112 28, head 10",
    "mobilenet_v3": "3x64x64: conv 16 3 2 HardSwish, depthwise 3 2, squeeze 8, line 16, inverted 48 24 3 2, "
    "inverted 64 24 3 1, inverted 72 32 5 2 HardSwish, squeeze 16, inverted 96 32 5 1 HardSwish, squeeze 16, head 10",
    "efficientnet_lite": "3x64x64: conv 16 3 2, depthwise 3, line 8, inverted 48 16 3 2, inverted 96 16 3 1, "
    "inverted 96 24 5 2, inverted 144 24 5 1, inverted 144 40 3 2, inverted 240 56 5 1, head 10",
    "yolov8": "3x64x64: conv 8 3 2 Silu, conv 16 3 2 Silu, csp 16, conv 32 3 2 Silu, csp 32, keep, conv 64 3 2 Silu, "
    "csp 64, double, join 32, csp 32, conv 32 3 1 Silu, line 24",
    "stream_kws": "40x32: conv 64 5 1, depthwise 9, line 64, depthwise 13, line 64, depthwise 15, line 64, "
    "depthwise 17, line 64, head 12",
    "conformer": "32x64: feed 256, attention 4, tokens_conv 15, feed 256",
    "dtln": "steps 4x129: recurrent LSTM 64, recurrent LSTM 64, full 129, act Sigmoid",
    "rnnoise": "steps 8x42: full 24, act Tanh, recurrent GRU 24, recurrent GRU 48, recurrent GRU 64, full 22, "
    "act Sigmoid",
    "wavenet": "int16 16x96: conv 16 1 1, gated 1, gated 2, gated 4, gated 8, conv 16 1 1, line 12",
    "swin": "64x48: windows 4, attention 4, windows 1, feed 192",
    "fomo": "1x96x96: conv 16 3 2, depthwise 3, line 8, inverted 48 8 3 2, inverted 48 8 3 1, inverted 48 16 3 2, "
    "inverted 96 16 3 1, conv 32 1 1, line 2",
    "unet": "1x48x48: conv 8 3 1, keep, pool, conv 16 3 1, keep, pool, conv 32 3 1, up 16, join 16, conv 16 3 1, "
    "up 8, join 8, conv 8 3 1, line 1",
    "espcn": "1x32x32: conv 16 5 1, conv 16 3 1, conv 8 3 1, line 4, shuffle 2",
    "tcn": "40x64: conv 32 3 1, dilated 1, dilated 2, dilated 4, dilated 8, head 12",
}
"""Shape of the input, and layers: a method of `Small` each, and its arguments; `int16` is of activations."""


class Small(Net):
    """A float network that keeps count of its channels, layer by layer; images are channels first."""

    def __init__(self, name: str, shape: Sequence[int]) -> None:
        super().__init__(name, *shape, real=True)
        self.c, self.rank = shape[1], len(shape) - 2
        self.width = shape[-1]
        self.kept: list[tuple[str, int]] = []

    def act(self, op: str) -> None:
        """Add an activation; Silu is x sigmoid(x)."""
        begin = self.x
        self.other("Sigmoid" if op == "Silu" else op)
        if op == "Silu":
            self.other("Mul", begin)

    def _conv(self, c: int, k: int, stride: int = 1, act: str = "Relu", dilation: int = 1, group: int = 1) -> None:
        pads, every = [dilation * (k // 2)] * 2 * self.rank, [1] * self.rank
        self.layer(
            "Conv", (c, self.c // group, *[k] * self.rank), relu=False, group=group, pads=pads,
            strides=[stride * i for i in every], dilations=[dilation * i for i in every],
        )  # fmt: skip
        self.c = c
        if act:
            self.act(act)

    def conv(self, c: int, k: int, stride: int, act: str = "Relu") -> None:
        """Add a convolution of k x k."""
        self._conv(c, k, stride, act)

    def depthwise(self, k: int, stride: int = 1, act: str = "Relu") -> None:
        """Add a depthwise convolution."""
        self._conv(self.c, k, stride, act, group=self.c)

    def line(self, c: int) -> None:
        """Add a pointwise convolution without activation."""
        self._conv(c, 1, act="")

    def inverted(self, wide: int, c: int, k: int, stride: int, act: str = "Relu") -> None:
        """Add an inverted residual block."""
        begin, in_c = self.x, self.c
        self._conv(wide, 1, act=act)
        self.depthwise(k, stride, act)
        self.line(c)
        if in_c == c and stride == 1:
            self.other("Add", begin)

    def squeeze(self, c: int) -> None:
        """Add squeeze and excitation by c channels."""
        begin, wide = self.x, self.c
        self.other("GlobalAveragePool")
        self._conv(c, 1)
        self._conv(wide, 1, act="HardSigmoid")
        self.other("Mul", begin)

    def ghost(self, wide: int, c: int) -> None:
        """Add two ghost modules: half of the channels are depthwise convolutions of the other half."""
        for out_c, act in ((wide, "Relu"), (c, "")):
            self._conv(out_c // 2, 1, act=act)
            half = self.x
            self.depthwise(3, act=act)
            self.other("Concat", half, axis=1)
            self.c = out_c

    def csp(self, c: int) -> None:
        """Add a cross-stage block: halves, one of them through a bottleneck."""
        self.conv(c // 2, 1, 1, "Silu")
        begin = self.x
        self.conv(c // 2, 3, 1, "Silu")
        self.conv(c // 2, 3, 1, "Silu")
        self.other("Add", begin)
        self.other("Concat", begin, axis=1)
        self.c = c
        self.conv(c, 1, 1, "Silu")

    def keep(self) -> None:
        """Keep the tensor for `join`."""
        self.kept.append((self.x, self.c))

    def join(self, c: int) -> None:
        """Concatenate the tensor kept last, and make c channels of both."""
        x, more = self.kept.pop()
        self.other("Concat", x, axis=1)
        self.c += more
        self._conv(c, 1)

    def double(self) -> None:
        """Repeat each pixel in both directions."""
        scales = self._constant(f"scales{len(self.nodes)}", np.array([1, 1, 2, 2], np.float32))
        self.other(
            "Resize", "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
        )

    def pool(self) -> None:
        """Add a pool of 2x2."""
        self.other("MaxPool", kernel_shape=[2, 2], strides=[2, 2])

    def up(self, c: int) -> None:
        """Add a transposed convolution of 2x2 and stride 2."""
        weights = self._rng.normal(0, (1 / self.c) ** 0.5, (self.c, c, 2, 2)).astype(np.float32)
        self.other("ConvTranspose", self._constant(f"w{len(self.nodes)}", weights), strides=[2, 2])
        self.c = c

    def shuffle(self, size: int) -> None:
        """Make pixels of channels."""
        self.other("DepthToSpace", blocksize=size)

    def dilated(self, dilation: int) -> None:
        """Add a residual block of two dilated convolutions."""
        begin = self.x
        for _ in range(2):
            self._conv(self.c, 3, dilation=dilation)
        self.other("Add", begin)

    def gated(self, dilation: int) -> None:
        """Add a block of WaveNet: tanh of one dilated convolution times the sigmoid of another, a residual."""
        begin = self.x
        self._conv(self.c, 3, act="Tanh", dilation=dilation)
        left, self.x = self.x, begin
        self._conv(self.c, 3, act="Sigmoid", dilation=dilation)
        self.other("Mul", left)
        self.line(self.c)
        self.other("Add", begin)

    def head(self, classes: int) -> None:
        """Add a pool of everything and a dense layer."""
        self.other("GlobalAveragePool")
        self.flatten()
        self.layer("Gemm", (classes, self.c), relu=False, transB=1)

    def full(self, width: int) -> None:
        """Add a dense layer of the last axis."""
        self.dense(self.width, width)
        self.width = width

    def recurrent(self, op: str, hidden: int) -> None:
        """Add an LSTM or a GRU of all steps."""
        rows = {"LSTM": 4, "GRU": 3}[op] * hidden
        shapes = ((1, rows, self.width), (1, rows, hidden), (1, 2 * rows))
        values = [self._rng.normal(0, hidden**-0.5, shape).astype(np.float32) for shape in shapes]
        number, more = len(self.nodes), {"linear_before_reset": 1} if op == "GRU" else {}
        weights = (self._constant(f"{op}{number}_{i}", value) for i, value in enumerate(values))
        self.other(op, *weights, hidden_size=hidden, **more)
        self.other("Squeeze", self._constant(f"axis{number}", np.array([1])))
        self.width = hidden

    def attention(self, heads: int) -> None:
        """Add a residual block of self-attention."""
        begin, width = self.x, self.width
        self.normed(width)
        x = self.x
        q, k, v = (self.projected(x, width, heads, turn) for turn in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        self.x = q
        self.other("MatMul", k)
        self.other("Softmax", axis=-1)
        self.other("MatMul", v)
        self.merged(width)
        self.dense(width, width)
        self.other("Add", begin)

    def feed(self, wide: int) -> None:
        """Add a residual block of two dense layers and GELU."""
        begin, width = self.x, self.width
        self.normed(width)
        self.dense(width, wide)
        self.gelu()
        self.dense(wide, width)
        self.other("Add", begin)

    def windows(self, size: int) -> None:
        """Turn the tokens into a batch of so many windows, or back."""
        self.other("Reshape", self._constant(f"shape{len(self.nodes)}", np.array([size, -1, self.width])))

    def tokens_conv(self, k: int) -> None:
        """Add the convolution module of a conformer: a gated linear unit, a depthwise convolution of time."""
        begin, width = self.x, self.width
        self.normed(width)
        x = self.x
        self.dense(width, width)
        self.other("Sigmoid")
        gate, self.x = self.x, x
        self.dense(width, width)
        self.other("Mul", gate)
        self.other("Transpose", perm=[0, 2, 1])
        self.c, self.rank = width, 1
        self.depthwise(k, act="Silu")
        self.other("Transpose", perm=[0, 2, 1])
        self.dense(width, width)
        self.other("Add", begin)


def drawn(seed: int) -> str:
    """Return a network of random layers in the form of NETS: of images, of signals, or dense."""
    rng = np.random.default_rng(seed)

    def pick(*choices: object) -> str:
        return str(choices[rng.integers(len(choices))])

    def width() -> int:
        return int(rng.integers(4, 49))

    kind, count = pick("image", "image", "signal", "dense"), int(rng.integers(2, 9))
    if kind == "dense":
        steps = [f"full {width()}, act {pick('Relu', 'Relu', 'Tanh', 'Sigmoid')}" for _ in range(count)]
        return f"1x{8 * width()}: {', '.join(steps)}, full {width()}"
    if kind == "signal":
        steps = [pick(f"conv {width()} {pick(1, 3, 5)} 1", f"depthwise {pick(3, 5, 9)}", f"line {width()}",
                      f"dilated {pick(1, 2, 4)}") for _ in range(count)]  # fmt: skip
        return f"{width()}x{pick(32, 50, 64)}: conv {width()} 3 1, {', '.join(steps)}, head {width()}"
    steps = [pick(f"conv {width()} {pick(1, 3, 3, 5)} 1", f"depthwise {pick(3, 5)}, line {width()}", "pool",
                  f"inverted {width()} {width()} 3 1", f"ghost {2 * width()} {2 * width()}", f"squeeze {width()}",
                  f"conv {width()} 3 1 {pick('HardSwish', 'Silu')}") for _ in range(count)]  # fmt: skip
    steps = [step for at, step in enumerate(steps) if step != "pool" or steps[:at].count("pool") < MOST_POOLS]
    end = pick(f"head {width()}", f"line {width()}")
    return f"{pick(1, 3)}x{pick('32x32', '48x48', '40x24')}: conv {width()} 3 {pick(1, 2)}, {', '.join([*steps, end])}"


def write(name: str, text: str, path: Path) -> None:
    """Write a network in the form of NETS, quantized."""
    kind, steps = text.split(": ")
    *words, size = kind.split()
    shape = [int(number) for number in size.split("x")]
    net = Small(name, (shape[0], 1, shape[1]) if "steps" in words else (1, *shape))
    for step in steps.split(", "):
        method, *arguments = step.split()
        getattr(net, method)(*(int(a) if a.isdigit() else a for a in arguments))
    net.save(path)
    rng = np.random.default_rng(1)
    samples = [{"input": rng.normal(size=net.shape).astype(np.float32)} for _ in range(SAMPLES)]
    options = QuantizeOptions(activations=Activations.INT16 if "int16" in words else Activations.INT8)
    onnx.save(quantize_model(path, samples, options).model, path)


def file_of(name: str, folder: Path) -> tuple[Path, str]:
    """Return the file of a model, and what to call it: also one of NETS, which is written to a folder once."""
    if name not in NETS:
        return model_of(name, folder)
    path = folder / f"{name}.onnx"
    if not path.is_file():
        write(name, NETS[name], path)
    return path, name
