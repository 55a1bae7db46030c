"""Features of sound as an ONNX model that glowc compiles: samples in, logarithms of mel bands out.

window -> power spectrum of a real transform -> mel bands -> decibels -> linear map -> clip -> codes. Mel scale:
1127 ln(1 + f / 700), triangles without the bin of 0 Hz, as tf.signal.linear_to_mel_weight_matrix. The defaults are the
reference of MLPerf Tiny's streaming wake word (mlcommons/tiny, streaming_wakeword/get_dataset.py, feature type lfbe).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from glowc.compiler.log_mel import LogMel
from glowc.errors import InputError
from glowc.frontend import import_model
from glowc.graph.types import DType, QuantParams

_GROUP = 8  # bands of one product; few products are with zeros, and there are few layers
_OPSET = 20


def mel_bank(how: LogMel) -> np.ndarray:
    """Return the weights float64[fft / 2 + 1, bins] of power by band."""

    def mel(hz: np.ndarray) -> np.ndarray:
        return np.asarray(1127 * np.log1p(hz / 700))

    low, high = mel(np.array([how.low_hz, how.high_hz])).tolist()
    edges = np.linspace(low, high, how.bins + 2)
    at = mel(np.arange(how.fft // 2 + 1) * how.sample_rate / how.fft)[:, None]
    up = (at - edges[:-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[2:] - at) / (edges[2:] - edges[1:-1])
    bank = np.asarray(np.maximum(0, np.minimum(up, down)))
    bank[0] = 0
    return bank


def log_mel(path: str | Path, how: LogMel | None = None, *, codes: QuantParams | None = None) -> None:
    """Write an ONNX model: `samples` int16[1, window] -> `features` float32[1, bins], or int8 codes.

    Raises InputError for parameters that do not go together and for a file that cannot be written.
    """
    how = how or LogMel()
    _check(how)
    try:
        Path(path).write_bytes(_Graph(how, codes).model().SerializeToString())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", hint="choose another file with -o FILE") from error


def codes_for(network: Path) -> QuantParams:
    """Return scale and zero point of the first input of a network. Raises InputError where it is not int8."""
    graph = import_model(network)
    type_ = graph.types[graph.inputs[0]]
    if type_.dtype is not DType.S8 or type_.quant is None:
        raise InputError(
            f'{network}: input "{graph.inputs[0]}" is {type_}, not int8 with a scale',
            hint="a float network takes float features: leave out --codes-of",
        )
    return type_.quant


def _check(how: LogMel) -> None:
    wrong = []
    if how.fft < how.window or how.fft % 2:
        wrong.append(f"--fft {how.fft}: an even number, at least the {how.window} samples of the window")
    if not 0 <= how.low_hz < how.high_hz <= how.sample_rate / 2:
        wrong.append(f"--low-hz {how.low_hz:g}, --high-hz {how.high_hz:g}: 0 to half of {how.sample_rate} Hz, upwards")
    elif empty := np.flatnonzero(mel_bank(how).sum(0) == 0).tolist():
        wrong.append(f"--bins {how.bins}: no frequency of the transform is in bands {', '.join(map(str, empty))}")
    if how.floor <= 0 or how.range_db <= 0:
        wrong.append("--floor and --range-db are more than 0")
    if wrong:
        raise InputError("no features can be computed this way", details=wrong, hint="glowc log-mel --help")


@dataclass
class _Graph:
    """The nodes and constants of the model, as they are added."""

    how: LogMel
    codes: QuantParams | None
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    consts: list[onnx.TensorProto] = field(default_factory=list)

    def const(self, value: object, kind: type = np.float32) -> str:
        name = f"c{len(self.consts)}"
        self.consts.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def ints(self, *values: int) -> str:
        return self.const(values, np.int64)

    def add(self, op: str, *inputs: str, out: str = "", **attrs: Any) -> str:
        name = out or f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attrs))
        return name

    def frame(self) -> str:
        """Add samples without a share of those before, times the window: float32[1, window]."""
        how, taps = self.how, np.array([[[-self.how.preemphasis, 1]]])
        x = self.add("Cast", "samples", to=onnx.TensorProto.FLOAT)
        if how.preemphasis:
            x = self.add("Reshape", x, self.ints(1, 1, how.window))
            x = self.add("Conv", x, self.const(taps), pads=(1, 0))
            x = self.add("Reshape", x, self.ints(1, how.window))
        return self.add("Mul", x, self.const(np.hamming(how.window) / 32768))

    def power(self, frame: str) -> str:
        """Add the power of each frequency: float32[1, fft / 2 + 1]."""
        column = self.add("Reshape", frame, self.ints(1, self.how.window, 1))
        spectrum = self.add("DFT", column, self.const(self.how.fft, np.int64), self.const(1, np.int64), onesided=1)
        return self.add("ReduceSumSquare", spectrum, self.ints(2), keepdims=0)

    def bands(self, power: str) -> str:
        """Add the power of each band: a product for a few bands, of the frequencies that are in them."""
        bank = mel_bank(self.how) / self.how.window
        parts = list(self._products(power, bank))
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=1)

    def _products(self, power: str, bank: np.ndarray) -> Iterator[str]:
        for first in range(0, self.how.bins, _GROUP):
            group = bank[:, first : first + _GROUP]
            used = np.flatnonzero(group.any(1))
            begin, end = int(used[0]), int(used[-1]) + 1
            some = self.add("Slice", power, self.ints(begin), self.ints(end), self.ints(1))
            yield self.add("MatMul", some, self.const(group[begin:end]))

    def model(self) -> onnx.ModelProto:
        how, last = self.how, "features" if self.codes is None else "levels"
        bands = self.add("Max", self.bands(self.power(self.frame())), self.const(how.floor))
        scale = 10 / np.log(10) / how.range_db
        level = self.add("Mul", self.add("Log", bands), self.const(scale))
        level = self.add("Add", level, self.const(how.offset_db / how.range_db))
        level = self.add("Clip", level, self.const(0), self.const(1), out=last)
        if self.codes is not None:
            scale, zero = self.codes.scalar
            point = self.const(zero, np.int8)
            self.add("QuantizeLinear", level, self.const(scale), point, out="features")
        kind = onnx.TensorProto.FLOAT if self.codes is None else onnx.TensorProto.INT8
        graph = helper.make_graph(
            self.nodes, "log_mel", [helper.make_tensor_value_info("samples", onnx.TensorProto.INT16, [1, how.window])],
            [helper.make_tensor_value_info("features", kind, [1, how.bins])], self.consts,
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
