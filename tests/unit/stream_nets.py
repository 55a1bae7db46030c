"""Random int8 image networks as programs: convolutions, pooling, tables, residual additions, a global mean."""

from __future__ import annotations

from random import Random

import numpy as np

from glowc.graph.types import DType, TensorType
from glowc.program.ir import Access, Buffer, BufferKind, Instr, Operand, ParamValue, Program
from glowc.program.kernel import get_kernel
from tests.kernels.params import axis_params, row_params

Shape = tuple[int, int, int]


class ImageNet:
    """Collects a program over tensors [1,H,W,C] of int8; a value is the name of its buffer."""

    def __init__(self, seed: int, align: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.align = align
        self.shapes: dict[str, Shape] = {}
        self.buffers: dict[str, Buffer] = {}
        self.consts: dict[str, np.ndarray] = {}
        self.instrs: list[Instr] = []

    def value(self, shape: Shape, kind: BufferKind = BufferKind.ACTIVATION) -> str:
        name = f"v{len(self.shapes)}"
        self.shapes[name] = shape
        self.buffers[name] = Buffer(name, kind, int(np.prod(shape)), self.align)
        return name

    def input(self, shape: Shape) -> str:
        return self.value(shape, BufferKind.INPUT)

    def conv(
        self, x: str, channels: int, kernel: int = 3, stride: int = 1, *, depthwise: bool = False, dilation: int = 1,
        pad: int | None = None,
    ) -> str:  # fmt: skip
        h, w, c = self.shapes[x]
        reach = dilation * (kernel - 1) + 1
        top = reach // 2 if pad is None else pad
        channels = c if depthwise else channels
        size = [(n + 2 * top - reach) // stride + 1 for n in (h, w)]
        y = self.value((size[0], size[1], channels))
        shape = (kernel, kernel, c) if depthwise else (channels, kernel, kernel, c)
        weights = self.const(self.rng.integers(-90, 91, shape).astype(np.int8))
        bias = self.const(self.rng.integers(-99, 100, channels).astype(np.int32))
        scale = self.const(self.rng.uniform(0.0005, 0.004, channels).astype(np.float32))
        params = self._geometry(x, y) | {
            "k_h": kernel, "k_w": kernel, "stride_h": stride, "stride_w": stride, "dil_h": dilation, "dil_w": dilation,
            "pad_top": top, "pad_left": top, "groups": c if depthwise else 1, "in_zp": int(self.rng.integers(-9, 9)),
            "w_zp": 0, "out_zp": int(self.rng.integers(-9, 9)), "out_min": -128, "out_max": 127, "scale_step": 1,
        }  # fmt: skip
        operands = {"in": x, "weights": weights, "bias": bias, "scale": scale, "out": y}
        return self._emit("dwconv_s8" if depthwise else "conv_s8", operands, params, macs=1)

    def max_pool(self, x: str, kernel: int = 2, stride: int = 2) -> str:
        h, w, c = self.shapes[x]
        y = self.value(((h - kernel) // stride + 1, (w - kernel) // stride + 1, c))
        window = {"k_h": kernel, "k_w": kernel, "stride_h": stride, "stride_w": stride, "dil_h": 1, "dil_w": 1}
        return self._emit("max_pool_s8", {"in": x, "out": y}, self._geometry(x, y) | window | _PADS)

    def mean(self, x: str) -> str:
        h, w, c = self.shapes[x]
        y = self.value((1, 1, c))
        window = {"k_h": h, "k_w": w, "stride_h": 1, "stride_w": 1, "dil_h": 1, "dil_w": 1, "include_pad": 0}
        codes = {"in_zp": 3, "out_zp": -4, "out_min": -128, "out_max": 127, "in_scale": 0.25, "out_scale": 0.125}
        return self._emit("avg_pool_s8", {"in": x, "out": y}, self._geometry(x, y) | window | _PADS | codes)

    def add(self, a: str, b: str) -> str:
        n = int(np.prod(self.shapes[a]))
        params: dict[str, ParamValue] = {
            "a_zp": 1, "b_zp": -2, "out_zp": 3, "out_min": -128, "out_max": 127, "a_scale": 0.5, "b_scale": 0.25,
            "out_scale": 0.5, "rank": 1, "sign": "+",
        }  # fmt: skip
        params |= axis_params("d", (n,), 1) | axis_params("a", (1,), 0) | axis_params("b", (1,), 0)
        return self._emit("add_s8", {"a": a, "b": b, "out": self.value(self.shapes[a])}, params)

    def lut(self, x: str) -> str:
        table = self.const(self.rng.integers(-128, 128, 256).astype(np.int8))
        operands = {"in": x, "lut": table, "out": self.value(self.shapes[x])}
        return self._emit("lut_s8", operands, {"n": int(np.prod(self.shapes[x]))})

    def const(self, array: np.ndarray) -> str:
        name = f"k{len(self.consts)}"
        self.consts[name] = array
        self.buffers[name] = Buffer(name, BufferKind.CONST, array.nbytes, array.itemsize)
        return name

    def program(self, *outputs: str) -> Program:
        for name in outputs:
            old = self.buffers[name]
            self.buffers[name] = Buffer(name, BufferKind.OUTPUT, old.size_bytes, old.align_bytes)
        inputs = [n for n, b in self.buffers.items() if b.kind is BufferKind.INPUT]
        sides = (inputs, Access.IN), (outputs, Access.OUT)
        ins, outs = (tuple(Operand(n, n, access, self._type(n)) for n in names) for names, access in sides)
        return Program("net", ins, outs, self.buffers, self.consts, tuple(self.instrs))

    def feed(self, program: Program) -> dict[str, np.ndarray]:
        return {o.role: self.rng.integers(-128, 128, o.type.shape).astype(np.int8) for o in program.inputs}

    def _type(self, name: str) -> TensorType:
        if name in self.consts:
            array = self.consts[name]
            kind = {"int8": DType.S8, "int32": DType.S32, "float32": DType.F32}[array.dtype.name]
            return TensorType(array.shape, kind)
        return TensorType((1, *self.shapes[name]), DType.S8)

    def _geometry(self, x: str, y: str) -> dict[str, ParamValue]:
        return row_params(self._type(x), self._type(y))

    def _emit(self, kernel: str, operands: dict[str, str], params: dict[str, ParamValue], macs: int = 0) -> str:
        definition = get_kernel(kernel)
        bound = tuple(Operand(r, operands[r], a, self._type(operands[r])) for r, a in definition.roles)
        rows = (0, self.shapes[operands["out"]][0]) if definition.rows else None
        name = f"{kernel}.{len(self.instrs)}"
        self.instrs.append(Instr(kernel, "ref", bound, params, rows, name, (name,), kernel, macs))
        return operands["out"]


_PADS = {"pad_top": 0, "pad_left": 0, "pad_bottom": 0, "pad_right": 0}


def random_net(seed: int) -> tuple[ImageNet, Program]:
    """A network of up to ten blocks, its sizes, strides and ends drawn from `seed`."""
    r = Random(seed)
    net = ImageNet(seed, r.choice([1, 4, 16]))
    x = net.input((r.randrange(7, 15), r.randrange(4, 8), r.randrange(1, 4)))
    extra = []
    for _ in range(r.randrange(2, 10)):
        kind = r.choice(["conv", "conv", "depthwise", "pointwise", "pool", "residual", "fork", "lut"])
        h, w, c = net.shapes[x]
        if kind == "conv":
            x = net.conv(x, r.randrange(1, 7), r.choice([1, 2, 3]), r.choice([1, 1, 2]), dilation=r.choice([1, 1, 2]))
        elif kind == "depthwise":
            x = net.conv(x, c, 3, r.choice([1, 2]), depthwise=True)
        elif kind == "pointwise":
            x = net.conv(x, r.randrange(1, 9), 1)
        elif kind == "pool" and h >= 3 and w >= 3:
            x = net.max_pool(x, r.choice([2, 3]), r.choice([1, 2]))
        elif kind == "residual":
            x = net.add(x, net.conv(net.conv(x, c + 1), c)) if r.random() < 0.5 else net.add(net.conv(x, c), x)
        elif kind == "fork":
            k = r.randrange(1, 6)
            x = net.add(net.conv(net.conv(x, k, 3, 2), k), net.conv(x, k, 1, 2))
        elif kind == "lut":
            x = net.lut(x)
        if r.random() < 0.1 and x in net.shapes and net.buffers[x].kind is BufferKind.ACTIVATION:
            extra.append(x)
    x = net.mean(x) if r.random() < 0.5 and net.shapes[x][0] > 1 else net.lut(x)
    return net, net.program(*dict.fromkeys([x, *extra]))
