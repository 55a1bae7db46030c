"""Layers that TensorFlow Lite alone has, as scripts/fit_costs.py measures them: memories, cells, sums of int16."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from cost_sample import Sample

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from drawn_layers import SAME, VALID, Drawn

from tests.tflite.writer import Build, Tensor, quant

_X, _W, _STATE = quant(0.02, 5), quant(0.01), quant(1 / 128, 3)


def _codes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-127, 128, shape).astype(np.int8)


def _memory(build: Build, s: Sample, name: str, rng: np.random.Generator) -> None:
    """Add an SVDF of `hwc` = (inputs, units, memory) and rank `out_c`."""
    (n, units, memory), filters = s.hwc, s.out_c * s.hwc[1]
    state, time = quant(0.02), quant(0.002)
    time_codes = (200 * _codes(rng, filters, memory).astype(np.int16)).astype(np.int16)
    inputs = [
        build.input((1, n), "int8", _X), build.const(_codes(rng, filters, n), _W), build.const(time_codes, time),
        build.const(rng.integers(-900, 900, units).astype(np.int32), quant(state.scale[0] * time.scale[0])),
        build.variable((1, memory * filters), "int16", state),
    ]  # fmt: skip
    out = Tensor((1, units), "int8", quant(0.3, -7), name=name)
    build.op("SVDF", inputs, out, rank=s.out_c, fusedActivationFunction=1)


def _cells(build: Build, s: Sample, name: str, rng: np.random.Generator) -> None:
    """Add an LSTM of `hwc` = (steps, inputs, cells)."""
    steps, n, hidden = s.hwc
    x = build.input((1, steps, n), "int8", _X)
    weights = [build.const(_codes(rng, hidden, k), _W) for k in (*(n,) * 4, *(hidden,) * 4)]
    bias = quant(_X.scale[0] * _W.scale[0])
    biases = [build.const(rng.integers(-3000, 3000, hidden).astype(np.int32), bias) for _ in range(4)]
    states = [build.variable((1, hidden), "int8", _STATE), build.variable((1, hidden), "int16", quant(2.0**-11))]
    inputs = [x, *weights, -1, -1, -1, *biases, -1, -1, *states, -1, -1, -1, -1]
    out = Tensor((1, steps, hidden), "int8", _STATE, name=name)
    build.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, out, fusedActivationFunction=4, cellClip=0.0, timeMajor=False)


def _rescaled(build: Build, s: Sample, name: str, _: np.random.Generator) -> None:
    """Add a change of the scale of int16 codes."""
    x = build.input((1, *s.hwc), "int16", quant(0.0013))
    build.op("QUANTIZE", [x], Tensor((1, *s.hwc), "int8", quant(0.3, 3), name=name))


def _quantized(build: Build, s: Sample, name: str, _: np.random.Generator) -> None:
    """Add the codes of floats."""
    x = build.input((1, *s.hwc), "float32")
    build.op("QUANTIZE", [x], Tensor((1, *s.hwc), "int8", _X, name=name))


def _pairs(build: Build, s: Sample, name: str, _: np.random.Generator) -> None:
    """Add a sum or a product of int16 codes, of one scale or of two."""
    even, op = s.out_c == 1, "ADD" if s.kind == "sums_16" else "MUL"
    x, y = (build.input((1, *s.hwc), "int16", quant(scale)) for scale in (0.001, 0.001 if even else 0.0007))
    build.op(op, [x, y], Tensor((1, *s.hwc), "int16", quant(0.0021 if op == "ADD" else 0.04), name=name))


_KINDS: Mapping[str, Callable[[Build, Sample, str, np.random.Generator], None]] = {
    "svdf": _memory, "cells": _cells, "rescaled": _rescaled,
    "quantized": _quantized, "sums_16": _pairs, "products_16": _pairs,
}  # fmt: skip


def is_tflite(sample: Sample) -> bool:
    """Say whether a layer is one of these."""
    return sample.kind in _KINDS


def tflite_of(samples: Sequence[Sample]) -> bytes:
    """Return a model in which the layers stand side by side."""
    build, rng, outputs = Build(), np.random.default_rng(0), list[int]()
    for at, sample in enumerate(samples):
        _KINDS[sample.kind](build, sample, f"n_y{at}", rng)
        outputs += build.outputs
    build.outputs = outputs
    return build.bytes()


def as_tflite(samples: Sequence[Sample]) -> list[Drawn]:
    """Return layers with the shapes of convolutions and dense layers, that end as TensorFlow Lite does."""
    return [layer for at, sample in enumerate(samples) if (layer := _as_tflite(sample, at))]


def _as_tflite(s: Sample, seed: int) -> Drawn | None:
    kind = {"conv": "conv", "dwconv": "depthwise", "fc": "dense"}.get(s.kind)
    special = s.planar or s.wide or s.zero is not None or (kind == "depthwise" and s.out_c != s.hwc[2])
    if kind is None or special:
        return None
    h, w, c = s.hwc if kind != "dense" else (s.hwc[0] if len(s.hwc) == 2 else 1, 1, s.hwc[-1])
    padding = SAME if any(s.pads) else VALID
    bits, zero = (16, 0) if s.sixteen else (8, (-128, 5)[seed % 2])
    return Drawn("tflite", kind, h, w, c, s.out_c, *s.k, s.stride, s.dilation, padding, bits, zero=zero, seed=seed)


TFLITE: tuple[Sample, ...] = (
    *(Sample("svdf", sizes, rank) for sizes, rank in (
        ((16, 32, 8), 1), ((32, 64, 10), 1), ((40, 96, 6), 2), ((64, 16, 16), 1), ((12, 20, 24), 3), ((96, 80, 8), 1),
        ((8, 8, 4), 2), ((128, 24, 12), 1),
    )),
    *(Sample("cells", sizes) for sizes in (
        (1, 24, 64), (1, 128, 64), (4, 16, 24), (10, 28, 20), (1, 200, 96), (6, 40, 40), (2, 64, 16), (12, 8, 8),
    )),
    *(Sample(kind, (n,)) for kind in ("rescaled", "quantized") for n in (2, 40, 96, 300, 1000, 3000, 8000)),
    *(Sample(kind, (n,), even) for kind in ("sums_16", "products_16") for even in (0, 1)
      for n in (3, 48, 200, 1001, 4000)),
    *(Sample("cells", sizes) for sizes in (
        (28, 28, 20), (1, 257, 128), (16, 12, 12), (20, 10, 32), (3, 64, 64), (30, 8, 20), (8, 60, 12), (2, 96, 48),
    )),
    *(Sample("svdf", sizes, rank) for sizes, rank in (
        ((80, 32, 4), 1), ((24, 48, 16), 1), ((48, 12, 30), 2), ((20, 64, 8), 2), ((10, 40, 5), 1), ((60, 60, 10), 1),
    )),
)  # fmt: skip
"""All that are measured."""
