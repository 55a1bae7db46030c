"""Writes the features of microWakeWord as a TensorFlow Lite model: 30 ms of 16 kHz sound -> 40 numbers.

The model is a chain of operators of TensorFlow Lite Micro's signal library, with the tables that its micro frontend
makes at start-up: a Hann window of 12 bits, 40 triangles from 125 to 7,500 Hz on the mel scale, and the gains by which
a channel's noise lowers it. Outputs: the features (feature * 0.0390625 is what a network was trained with) and their
codes for the network's input.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import flatbuffers
import numpy as np
import tflite
from flatbuffers import flexbuffers

SAMPLE_HZ, HOP, FRAME, CHANNELS, FFT = 16_000, 160, 480, 40, 512
LOW_HZ, HIGH_HZ = 125.0, 7500.0
FEATURE_SCALE = 0.0390625
_WINDOW_BITS = _WEIGHT_BITS = 12
_NOISE_BITS, _SMOOTHING_BITS, _CORRECTION_BITS, _GAIN_BITS, _SNR_BITS = 14, 10, 3, 21, 12
_STRENGTH, _OFFSET = 0.95, 80.0
_TYPES = {
    "float32": tflite.TensorType.FLOAT32, "int8": tflite.TensorType.INT8, "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32, "uint32": tflite.TensorType.UINT32, "uint64": tflite.TensorType.UINT64,
}  # fmt: skip
F = np.float32


def window() -> np.ndarray:
    """Return the Hann window, computed in floats."""
    step = F(2 * math.pi / FRAME)
    cosine = np.cos((step * (np.arange(FRAME, dtype=F) + F(0.5))).astype(np.float64)).astype(F)
    return np.floor((F(0.5) - F(0.5) * cosine) * F(1 << _WINDOW_BITS) + F(0.5)).astype(np.int16)


def _mel(hz: float) -> np.float32:
    return F(1127.0) * np.log1p(F(hz) / F(700))


@dataclass(frozen=True)
class Bank:
    """A filter bank: one more stretch than channels, each with weights, and with complements for the next channel."""

    weights: np.ndarray
    complements: np.ndarray
    starts: np.ndarray
    weight_starts: np.ndarray
    widths: np.ndarray


def bank() -> Bank:
    """Return the triangles; stretches begin at even frequencies and are whole groups of four."""
    low, step_hz = _mel(LOW_HZ), SAMPLE_HZ / FFT
    spacing = (_mel(HIGH_HZ) - low) / F(CHANNELS + 1)
    edges = [low, *(low + spacing * F(c + 1) for c in range(CHANNELS + 1))]
    weights: list[int] = []
    complements: list[int] = []
    rows: list[tuple[int, int, int]] = []
    frequency = int(1.5 + LOW_HZ / step_hz)
    for lower, upper in pairwise(edges):
        first = frequency
        while _mel(frequency * step_hz) <= upper:
            frequency += 1
        before = first % 2
        width = -(-(before + frequency - first) // 4) * 4
        rows.append((first - before, len(weights), width))
        parts = [float((upper - _mel(f * step_hz)) / (upper - lower)) for f in range(first, frequency)]
        after = [0] * (width - before - len(parts))
        weights += [0] * before + [_code(part) for part in parts] + after
        complements += [0] * before + [_code(1.0 - part) for part in parts] + after
    return Bank(*(np.array(column, np.int16) for column in (weights, complements, *zip(*rows, strict=True))))


def _code(part: float) -> int:
    return math.floor(part * (1 << _WEIGHT_BITS) + 0.5)


def gains() -> np.ndarray:
    """Return the gain of noises 0 and 1, then for each highest bit a parabola through three of them."""

    def gain(noise: int) -> int:
        scaled = F(1 << _GAIN_BITS) * np.power(
            F(noise) / F(1 << (_SMOOTHING_BITS - _CORRECTION_BITS)) + F(_OFFSET), F(-_STRENGTH)
        )
        return int(min(scaled, F(32767)) + F(0.5))

    table = [gain(0), gain(1)]
    for bits in range(2, 33):
        first = 1 << (bits - 1)
        last = 2 * first - (bits == 32)
        y = [gain(x) for x in (first, first + first // 2, last)]
        slope = 4 * (y[1] - y[0]) - (y[2] - y[0])
        table += [y[0], slope, y[2] - y[0] - slope, 0]
    return np.array(table[:-1], np.int16)


@dataclass
class Model:
    """A TensorFlow Lite model that grows by operators; `tensor` numbers name tensors."""

    builder: flatbuffers.Builder = field(default_factory=lambda: flatbuffers.Builder(16384))
    tensors: list[int] = field(default_factory=list)
    buffers: list[int] = field(default_factory=list)
    operators: list[int] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Buffer 0 is empty: that of all tensors without data."""
        tflite.BufferStart(self.builder)
        self.buffers.append(tflite.BufferEnd(self.builder))

    def tensor(self, name: str, shape: Sequence[int], kind: str, scale: float = 0.0, zero: int = 0) -> int:
        """Add a tensor; with a scale it holds codes of real numbers."""
        return self._tensor(name, shape, kind, 0, scale, zero)

    def const(self, name: str, array: np.ndarray) -> int:
        """Add a constant."""
        data = self.builder.CreateByteVector(array.tobytes())
        tflite.BufferStart(self.builder)
        tflite.BufferAddData(self.builder, data)
        self.buffers.append(tflite.BufferEnd(self.builder))
        return self._tensor(name, array.shape, array.dtype.name, len(self.buffers) - 1, 0.0, 0)

    def _tensor(self, name: str, shape: Sequence[int], kind: str, buffer: int, scale: float, zero: int) -> int:
        b = self.builder
        label, dims = b.CreateString(name), b.CreateNumpyVector(np.array(shape, np.int32))
        quant = self._quantization(scale, zero) if scale else 0
        tflite.TensorStart(b)
        tflite.TensorAddName(b, label)
        tflite.TensorAddShape(b, dims)
        tflite.TensorAddType(b, _TYPES[kind])
        tflite.TensorAddBuffer(b, buffer)
        if quant:
            tflite.TensorAddQuantization(b, quant)
        self.tensors.append(tflite.TensorEnd(b))
        return len(self.tensors) - 1

    def _quantization(self, scale: float, zero: int) -> int:
        b = self.builder
        scales, zeros = b.CreateNumpyVector(np.array([scale], F)), b.CreateNumpyVector(np.array([zero], np.int64))
        tflite.QuantizationParametersStart(b)
        tflite.QuantizationParametersAddScale(b, scales)
        tflite.QuantizationParametersAddZeroPoint(b, zeros)
        return int(tflite.QuantizationParametersEnd(b))

    def op(self, code: str, inputs: Sequence[int], outputs: Sequence[int], **options: int) -> int:
        """Add an operator; returns its first output. Its options, if any, are a flexbuffer."""
        b = self.builder
        if code not in self.codes:
            self.codes.append(code)
        ends = [b.CreateNumpyVector(np.array(list(of), np.int32)) for of in (inputs, outputs)]
        custom = b.CreateByteVector(bytes(flexbuffers.Dumps(options))) if options else 0
        tflite.OperatorStart(b)
        tflite.OperatorAddOpcodeIndex(b, self.codes.index(code))
        tflite.OperatorAddInputs(b, ends[0])
        tflite.OperatorAddOutputs(b, ends[1])
        if custom:
            tflite.OperatorAddCustomOptions(b, custom)
        self.operators.append(tflite.OperatorEnd(b))
        return outputs[0]

    def bytes(self, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> bytes:
        """Return the file, with names for what goes in and comes out."""
        b = self.builder
        ends = [b.CreateNumpyVector(np.array(list(of.values()), np.int32)) for of in (inputs, outputs)]
        signatures = self._list([self._signature(inputs, outputs)])
        lists = [self._list(of) for of in (self.tensors, self.operators)]
        tflite.SubGraphStart(b)
        tflite.SubGraphAddTensors(b, lists[0])
        tflite.SubGraphAddOperators(b, lists[1])
        tflite.SubGraphAddInputs(b, ends[0])
        tflite.SubGraphAddOutputs(b, ends[1])
        graphs = self._list([tflite.SubGraphEnd(b)])
        codes = self._list([self._operator_code(code) for code in self.codes])
        buffers = self._list(self.buffers)
        tflite.ModelStart(b)
        tflite.ModelAddVersion(b, 3)
        tflite.ModelAddOperatorCodes(b, codes)
        tflite.ModelAddSubgraphs(b, graphs)
        tflite.ModelAddBuffers(b, buffers)
        tflite.ModelAddSignatureDefs(b, signatures)
        b.Finish(tflite.ModelEnd(b), file_identifier=b"TFL3")
        return bytes(b.Output())

    def _signature(self, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> int:
        b, maps = self.builder, []
        for names in (inputs, outputs):
            found = []
            for name, tensor in names.items():
                label = b.CreateString(name)
                tflite.TensorMapStart(b)
                tflite.TensorMapAddName(b, label)
                tflite.TensorMapAddTensorIndex(b, tensor)
                found.append(tflite.TensorMapEnd(b))
            maps.append(self._list(found))
        key = b.CreateString("serving_default")
        tflite.SignatureDefStart(b)
        tflite.SignatureDefAddInputs(b, maps[0])
        tflite.SignatureDefAddOutputs(b, maps[1])
        tflite.SignatureDefAddSignatureKey(b, key)
        return int(tflite.SignatureDefEnd(b))

    def _operator_code(self, code: str) -> int:
        b = self.builder
        number = getattr(tflite.BuiltinOperator, code, tflite.BuiltinOperator.CUSTOM)
        custom = b.CreateString(code) if number == tflite.BuiltinOperator.CUSTOM else 0
        tflite.OperatorCodeStart(b)
        tflite.OperatorCodeAddBuiltinCode(b, number)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(number, 127))
        if custom:
            tflite.OperatorCodeAddCustomCode(b, custom)
        return int(tflite.OperatorCodeEnd(b))

    def _list(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())


def model(code_scale: float, code_zero: int) -> bytes:
    """Return the model; its codes are for a network whose input has this scale and zero point."""
    m = Model()
    audio = m.tensor("audio", (1, FRAME), "int16")
    frame = m.op("SignalWindow", (audio, m.const("window", window())), (m.tensor("windowed", (1, FRAME), "int16"),),
                 shift=_WINDOW_BITS)  # fmt: skip
    shape = m.const("shape", np.array([FRAME], np.int32))
    frame = m.op("RESHAPE", (frame, shape), (m.tensor("frame", (FRAME,), "int16"),))
    bits = m.tensor("bits", (), "int32")
    frame = m.op("SignalFftAutoScale", (frame,), (m.tensor("loud", (FRAME,), "int16"), bits))
    spectrum = m.op("SignalRfft", (frame,), (m.tensor("spectrum", (FFT + 2,), "int16"),),
                    T=tflite.TensorType.INT16, fft_length=FFT)  # fmt: skip
    features = m.op("SignalFilterBankLog", (_channels(m, spectrum, bits),),
                    (m.tensor("logarithms", (CHANNELS,), "int16", FEATURE_SCALE),),
                    input_correction_bits=_CORRECTION_BITS, output_scale=64)  # fmt: skip
    real = m.op("DEQUANTIZE", (features,), (m.tensor("real", (CHANNELS,), "float32"),))
    # Of floats: of codes, QUANTIZE would round twice.
    codes = m.op("QUANTIZE", (real,), (m.tensor("quantised", (CHANNELS,), "int8", code_scale, code_zero),))
    return m.bytes({"audio": audio}, {"codes": codes, "features": features})


def _channels(m: Model, spectrum: int, bits: int) -> int:
    """Return the channels of a spectrum with their noise taken away and their gain."""
    step_hz, found = SAMPLE_HZ / FFT, bank()
    energy = m.op("SignalEnergy", (spectrum,), (m.tensor("energy", (FFT // 2 + 1,), "uint32"),),
                  start_index=int(1.5 + LOW_HZ / step_hz), end_index=int(HIGH_HZ / step_hz) + 1)  # fmt: skip
    tables = {name: m.const(name, getattr(found, name)) for name in vars(found)}
    order = ("weights", "complements", "starts", "weight_starts", "widths")
    wide = m.op("SignalFilterBank", (energy, *(tables[name] for name in order)),
                (m.tensor("channels", (CHANNELS,), "uint64"),), num_channels=CHANNELS)  # fmt: skip
    one, shape = 1 << _NOISE_BITS, (CHANNELS,)
    roots = m.op("SignalFilterBankSquareRoot", (wide, bits), (m.tensor("roots", shape, "uint32"),))
    even, odd = int(0.025 * one), int(0.06 * one)
    smoothing: Mapping[str, int] = {
        "smoothing": even, "one_minus_smoothing": one - even, "alternate_smoothing": odd,
        "alternate_one_minus_smoothing": one - odd, "smoothing_bits": _SMOOTHING_BITS,
        "min_signal_remaining": int(0.05 * one), "clamping": False, "num_channels": CHANNELS,
        "spectral_subtraction_bits": _NOISE_BITS,
    }  # fmt: skip
    noise = m.tensor("noise", shape, "uint32")
    clean = m.op("SignalFilterBankSpectralSubtraction", (roots,), (m.tensor("clean", shape, "uint32"), noise),
                 **smoothing)  # fmt: skip
    return m.op("SignalPCAN", (clean, noise, m.const("gains", gains())), (m.tensor("even", shape, "uint32"),),
                snr_shift=_GAIN_BITS - _CORRECTION_BITS - _SNR_BITS)  # fmt: skip


def write(path: Path, code_scale: float, code_zero: int) -> None:
    """Write the model to a file."""
    path.write_bytes(model(code_scale, code_zero))
