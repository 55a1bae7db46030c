"""Layers with a state, over several calls."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tests.tflite.cases.draw import (
    Case,
    Maker,
    Rng,
    data_of,
    finish,
    flag,
    pick,
    q_of,
    scale_of,
    weights_of,
)
from tests.tflite.writer import Build, Tensor, quant


def svdf(rng: Rng) -> Case:
    """SVDF over several calls."""
    kind, build = str(pick(rng, "float32", "int8", "int8")), Build()
    batch, in_k, rank = int(rng.integers(1, 3)), int(rng.integers(1, 12)), int(rng.integers(1, 4))
    units, memory = int(rng.integers(1, 6)), int(rng.integers(1, 8))
    filters = rank * units
    if kind == "float32":
        tensors = [
            build.input((batch, in_k), kind), build.const(data_of(rng, (filters, in_k), kind, 0.3)),
            build.const(data_of(rng, (filters, memory), kind, 0.3)), build.const(data_of(rng, (units,), kind)),
            build.variable((batch, memory * filters), kind),
        ]  # fmt: skip
        fused, out = int(pick(rng, 0, 1, 3)), None
    else:
        q = q_of(rng, kind)
        assert q is not None
        wq, tq = quant(scale_of(rng, -10, -6)), quant(scale_of(rng, -12, -8))
        time_kind = str(pick(rng, "int16", "int8"))
        state_scale = q.scale[0] * wq.scale[0] * math.sqrt(in_k) * 5000 / (100 if time_kind == "int8" else 25000)
        sq = quant(state_scale, 0)
        bias_q = quant(sq.scale[0] * tq.scale[0])
        time = rng.integers(-127, 128, (filters, memory)).astype(time_kind) * (1 if time_kind == "int8" else 200)
        tensors = [
            build.input((batch, in_k), kind, q),
            build.const(rng.integers(-127, 128, (filters, in_k)).astype(np.int8), wq),
            build.const(time.astype(time_kind), tq),
            build.const(rng.integers(-9000, 9000, units).astype(np.int32), bias_q),
            build.variable((batch, memory * filters), time_kind, sq),
        ]
        size = (
            sq.scale[0]
            * tq.scale[0]
            * (20000 if time_kind == "int16" else 60)
            * (15000 if time_kind == "int16" else 75)
        )
        out, fused = quant(size * math.sqrt(memory * rank) / 100, int(rng.integers(-128, 128))), 1
    build.op("SVDF", tensors, Tensor((batch, units), kind, out), rank=rank, fusedActivationFunction=fused)
    return finish(build, rng, f"SVDF rank {rank} units {units} memory {memory}", calls=5, rtol=1e-5)


def lstm(rng: Rng) -> Case:
    """UNIDIRECTIONAL_SEQUENCE_LSTM over several calls."""
    kind, build = str(pick(rng, "float32", "int8", "int8", "int16")), Build()
    batch, steps, in_k, hidden = (int(v) for v in (pick(rng, 1, 2), *rng.integers(1, 7, 3)))
    major = flag(rng)
    shape = (steps, batch, in_k) if major else (batch, steps, in_k)
    q = q_of(rng, kind, -7, -4)
    x = build.input(shape, kind, q)
    clip = 0.0 if flag(rng) else float(np.float32(rng.uniform(0.2, 3)))
    if q is None:
        weights = [build.const(data_of(rng, (hidden, n), kind, 0.5)) for n in (*(in_k,) * 4, *(hidden,) * 4)]
        biases = [build.const(data_of(rng, (hidden,), kind, 0.5)) for _ in range(4)]
        states = [build.variable((batch, hidden), kind) for _ in range(2)]
        out = None
    else:
        sq = quant(1 / 128, int(rng.integers(-20, 20))) if kind == "int8" else quant(1 / 32768)
        weights, biases = [], []
        for n in (*(in_k,) * 4, *(hidden,) * 4):
            data, wq = weights_of(rng, (hidden, n), 0, per_axis=False)
            weights.append(build.const(data, quant(scale_of(rng, -9, -6))))
        for i in range(4):
            wq = build.tensors[weights[i]].quant
            assert wq is not None
            data = rng.integers(-3000, 3000, hidden).astype("int32" if kind == "int8" else "int64")
            biases.append(build.const(data, quant(q.scale[0] * wq.scale[0])))
        states = [build.variable((batch, hidden), kind, sq), build.variable((batch, hidden), "int16", quant(2.0**-11))]
        out = sq
    inputs = [x, *weights, -1, -1, -1, *biases, -1, -1, *states, -1, -1, -1, -1]
    result = Tensor((*shape[:2], hidden), kind, out)
    options = {"fusedActivationFunction": 4, "cellClip": clip, "timeMajor": major}
    build.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, result, **options)
    return finish(build, rng, f"LSTM hidden {hidden} clip {clip} major {major}", calls=3, rtol=1e-5, spread=1.0)


MAKERS: Mapping[str, Maker] = {
    "SVDF": svdf, "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
}  # fmt: skip
