"""split-conv-transpose: a quantised transposed convolution becomes convolutions whose results interleave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from glowc.graph.graph import GraphEditor, Node
from glowc.graph.types import QuantParams, TensorType
from glowc.ops.conv_transpose import geometry
from glowc.passes.base import PassCtx, RewritePass
from glowc.passes.operands import ConstOperand, add_operand, dequantized_from, find_const

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Phase:
    """The outputs q, q + stride, ... of one axis: output v sums the weights `taps` (-1: none) over the inputs from
    v - `pad` on; there are `count` outputs, and `end` rows of padding after the input (negative: too many inputs).
    """

    taps: Ints
    pad: int
    count: int
    end: int


class SplitConvTranspose(RewritePass):
    """With stride s, output row s * v + q sums the rows (q + pad) mod s, + s, ... of the weights: for each q that is a
    convolution of stride 1. Rows of different q are joined one after the other; columns of different q are output
    channels of one convolution, since [W, s * M] and [W * s, M] are the same bytes. So all integer kernels of
    convolutions serve; weights that no column of a phase has are zeros. Groups and dilations stay in float.

    onnxruntime has no integer kernel here and computes in float: near-ties may round the other way (14 of 614,400 codes
    differ by one step from onnxruntime 1.31, none in the float form, which `--passes -split-conv-transpose` keeps).
    """

    name: ClassVar[str] = "split-conv-transpose"
    ops: ClassVar[tuple[str, ...]] = ("ConvTranspose",)

    def rewrite(self, node: Node, editor: GraphEditor, ctx: PassCtx) -> bool:
        """Rewrite one layer between DequantizeLinear and QuantizeLinear; Relu and Clip move to the convolutions."""
        clamps = _clamps(node, editor)
        weights, bias = (find_const(editor, name) for name in node.inputs[1:3])
        if clamps is None or dequantized_from(editor, node.inputs[0]) is None or weights is None or bias is None:
            return False
        quant, rank = weights.type.quant, weights.type.rank - 2
        if not weights.dequantized or quant is None or quant.axis not in (None, 1) or rank not in (1, 2):
            return False
        strides, dilations, _, _ = geometry(node, rank)
        if node.int_("group") != 1 or set(dilations) != {1} or node.is_nhwc:
            return False
        x, w, y = (editor.types[name].shape[2:] for name in (*node.inputs[:2], node.outputs[0]))
        strides = steps_of(strides, x, y)
        phases = phases_of(strides, geometry(node, rank)[2], x, w, y)
        if not are_padded(phases):
            return False
        _Split(node, editor, weights, bias, clamps).replace(phases, strides)
        return True


def _clamps(node: Node, editor: GraphEditor) -> tuple[Node, ...] | None:
    """Return the Relu and Clip nodes between `node` and a QuantizeLinear; None when something else follows."""
    found: list[Node] = []
    user = editor.sole_user(node.outputs[0])
    while user is not None and user.op in ("Relu", "Clip") and len(user.inputs) == 1:
        found.append(user)
        user = editor.sole_user(user.outputs[0])
    return tuple(found) if user is not None and user.op == "QuantizeLinear" else None


def phases_of(strides: Ints, pads: Ints, x: Ints, w: Ints, y: Ints) -> list[list[Phase]]:
    """Return the phases of each axis; those of the last axis share one window, as one convolution computes them."""
    axes = []
    for i in range(len(strides)):
        count = -(-y[i] // strides[i])
        phases = [_phase(q + pads[i], w[i], strides[i], x[i], count) for q in range(strides[i])]
        axes.append(phases)
    pad = max(p.pad for p in axes[-1])
    end = max(len(p.taps) - p.pad for p in axes[-1])
    axes[-1] = [
        replace(p, taps=(-1,) * (pad - p.pad) + p.taps + (-1,) * (end - len(p.taps) + p.pad), pad=pad) for p in axes[-1]
    ]
    axes[-1] = [replace(p, end=p.count - 1 + len(p.taps) - p.pad - x[-1]) for p in axes[-1]]
    return axes


def steps_of(strides: Ints, x: Ints, y: Ints) -> Ints:
    """Return the strides of axes; along an axis of one input each output is a phase, with one tap and no padding."""
    return tuple(size if n == 1 else step for step, n, size in zip(strides, x, y, strict=True))


def are_padded(phases: list[list[Phase]]) -> bool:
    """Say whether no phase leaves inputs out."""
    return all(p.pad >= 0 and p.end >= 0 for axis in phases for p in axis)


def _phase(first: int, kernel: int, stride: int, inputs: int, count: int) -> Phase:
    """Return the phase whose output 0 lies at `first` of the unpadded result."""
    taps = tuple(range(first % stride, kernel, stride))[::-1]
    pad = len(taps) - 1 - first // stride if taps else 0
    taps = taps or (-1,)
    return Phase(taps, pad, count, count - 1 + len(taps) - pad - inputs)


class _Split:
    def __init__(
        self, node: Node, editor: GraphEditor, weights: ConstOperand, bias: ConstOperand, clamps: tuple[Node, ...]
    ) -> None:
        self.node, self.editor, self.weights, self.bias, self.clamps = node, editor, weights, bias, clamps
        self.out = clamps[-1].outputs[0] if clamps else node.outputs[0]
        self.batch, self.channels = editor.types[node.outputs[0]].shape[:2]

    def replace(self, phases: list[list[Phase]], strides: Ints) -> None:
        """Put the convolutions in the place of the node and its clamps."""
        rows, columns = (phases[0] if len(phases) == 2 else [None]), phases[-1]
        b, wide = columns[0].count, columns[0].count * strides[-1] * self.channels
        parts = [self._channels_last(self._convolution(row, columns)) for row in rows]
        shape: Ints = (self.batch, b * strides[-1], self.channels)
        if rows[0] is not None:
            high = rows[0].count
            shape = (self.batch, high * strides[0], *shape[1:])
            if len(parts) > 1:
                parts = [self._add("Reshape", (p,), (self.batch, high, 1, wide)) for p in parts]
                parts = [self._add("Concat", tuple(parts), (self.batch, high, len(parts), wide), axis=2)]
        y = self._add("Reshape", (parts[0],), shape)
        self._finish(y, shape)

    def _finish(self, y: str, shape: Ints) -> None:
        editor, rank = self.editor, len(shape)
        wanted = editor.types[self.out].shape
        last = (wanted[0], *wanted[2:], wanted[1])
        if shape != last:
            cut = {"starts": (0,) * rank, "ends": last, "axes": tuple(range(rank)), "steps": (1,) * rank}
            y = self._add("Slice", (y,), last, **cut)
        for old in reversed((self.node, *self.clamps)):
            editor.remove(old)
        perm = (0, rank - 1, *range(1, rank - 1))
        editor.add_node("Transpose", (y,), (self.out,), {"perm": perm}, origin=self.node.origin)

    def _convolution(self, row: Phase | None, columns: list[Phase]) -> str:
        """Add the convolution of one phase of rows, and its clamps."""
        editor, name = self.editor, self.node.outputs[0]
        axes = ([row] if row is not None else []) + columns[:1]
        kernel = tuple(len(p.taps) for p in axes)
        w = add_operand(editor, f"{name}.phase", self._weights(row, columns))
        b = add_operand(editor, f"{name}.phase_bias", self._bias(len(columns)))
        ones = (1,) * len(axes)
        attrs = {"kernel_shape": kernel, "strides": ones, "dilations": ones, "group": 1,
                 "pads": (*(p.pad for p in axes), *(p.end for p in axes))}  # fmt: skip
        shape = (self.batch, len(columns) * self.channels, *(p.count for p in axes))
        y = self._add("Conv", (self.node.inputs[0], w, b), shape, **attrs)
        for clamp in self.clamps:
            y = self._add(clamp.op, (y,), shape, **clamp.attrs)
        return y

    def _channels_last(self, x: str) -> str:
        shape = self.editor.types[x].shape
        perm = (0, *range(2, len(shape)), 1)
        return self._add("Transpose", (x,), tuple(shape[axis] for axis in perm), perm=perm)

    def _weights(self, row: Phase | None, columns: list[Phase]) -> ConstOperand:
        """Return codes [columns * M, C, taps...]; a tap that does not exist has the code of zero."""
        old = self.weights.array if row is not None else self.weights.array[:, :, None]
        quant = self.weights.type.quant
        assert quant is not None
        rows = row.taps if row is not None else (0,)
        zero = np.broadcast_to(np.asarray(quant.zero_point, old.dtype), (self.channels,))
        shape = (len(columns), self.channels, old.shape[0], len(rows), len(columns[0].taps))
        codes = np.broadcast_to(zero[None, :, None, None, None], shape).copy()
        for q, i, j, ky, kx in existing(rows, columns):
            codes[q, :, :, i, j] = old[:, :, ky, kx].T
        codes = codes.reshape(-1, *shape[2:]) if row is not None else codes.reshape(-1, shape[2], shape[4])
        type_ = TensorType(codes.shape, self.weights.type.dtype, repeated(quant, len(columns)))
        return ConstOperand(np.ascontiguousarray(codes), type_, True)

    def _bias(self, times: int) -> ConstOperand:
        old = self.bias
        quant = repeated(old.type.quant, times) if old.type.quant is not None else None
        array = np.tile(old.array, times)
        return replace(old, array=array, type=replace(old.type, shape=array.shape, quant=quant))

    def _add(self, op: str, inputs: tuple[str, ...], shape: Ints, **attrs: object) -> str:
        editor, like = self.editor, self.editor.types[self.node.outputs[0]]
        out = editor.add_value(f"{self.node.outputs[0]}.{op.lower()}", replace(like, shape=shape))
        given = {"shape": shape} if op == "Reshape" else attrs
        editor.add_node(op, inputs, (out,), given, origin=self.node.origin)  # type: ignore[arg-type]
        return out


def existing(rows: Ints, columns: list[Phase]) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield column phase, place and old tap of every weight."""
    for q, column in enumerate(columns):
        for i, ky in enumerate(rows):
            for j, kx in enumerate(column.taps):
                if ky >= 0 and kx >= 0:
                    yield q, i, j, ky, kx


def repeated(quant: QuantParams, times: int) -> QuantParams:
    """Return those of the channels of so many phases."""
    if quant.axis is None:
        return quant
    return QuantParams(quant.scale * times, quant.zero_point * times, 0)
