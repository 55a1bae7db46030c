"""Custom operators with options or descriptions of their own: compressed constants, boxes of a detector."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from flatbuffers import flexbuffers  # type: ignore[import-untyped]

from glowc.ops.detections import CornerParams, SuppressParams, best_boxes, corners_of
from tests.tflite.cases.draw import Case, Maker, Rng, data_of, finish, flag, pick, q_of, scale_of, shape_of
from tests.tflite.writer import Build, Quant, Tensor

_TABLE, _HUFFMAN, _PRUNED = 0, 1, 2


def _head(which: int, *params: int) -> bytes:
    return bytes((which, 1, 0, 0, 1, *params)).ljust(16, b"\0")


def _packed(bits: str) -> np.ndarray:
    """Return a string of 0 and 1 as bytes, whole words of them."""
    padded = bits.ljust(-(-len(bits) // 64) * 64 + 64, "0")
    return np.frombuffer(int(padded, 2).to_bytes(len(padded) // 8, "big"), np.uint8)


def _of_channels(rng: Rng, shape: tuple[int, ...], kind: str) -> tuple[Quant | None, np.ndarray]:
    """Return a quantisation, and the channel of each element."""
    count = int(np.prod(shape))
    if kind not in ("int8", "int16") or flag(rng):
        return q_of(rng, kind), np.zeros(count, np.int64)
    axis = int(pick(rng, 0, len(shape) - 1))
    zeros = tuple(int(z) for z in rng.integers(-9, 9, shape[axis])) if kind == "int8" else (0,) * shape[axis]
    index = np.indices(shape)[axis].reshape(-1)
    return Quant(tuple(scale_of(rng) for _ in range(shape[axis])), zeros, axis), index


def _by_table(rng: Rng, kind: str, channel: np.ndarray) -> tuple[np.ndarray, bytes]:
    bits = int(rng.integers(1, 8))
    stride = int(rng.integers(1 << max(0, bits - 1), (1 << bits) + 1))
    table = data_of(rng, (int(channel.max()) + 1, stride), kind)
    index = rng.integers(0, stride, channel.size)
    return _packed("".join(f"{i:0{bits}b}" for i in index)), _head(_TABLE, bits, stride) + table.tobytes()


def _by_pruning(rng: Rng, kind: str, channel: np.ndarray) -> tuple[np.ndarray, bytes]:
    given = rng.integers(0, 2, channel.size)
    return _packed("".join(map(str, given))), _head(_PRUNED) + data_of(rng, (int(given.sum()) + 1,), kind).tobytes()


def _codes_of(symbols: np.ndarray) -> Mapping[int, str]:
    """Return a prefix code, shorter for what is frequent (Huffman, Proc. IRE 40, 1952)."""
    heap = [(n, i, {int(s): ""}) for i, (s, n) in enumerate(Counter(symbols.tolist()).items())]
    heapq.heapify(heap)
    turn = len(heap)
    while len(heap) > 1:
        (a, _, low), (b, _, high) = heapq.heappop(heap), heapq.heappop(heap)
        both = {s: "0" + c for s, c in low.items()} | {s: "1" + c for s, c in high.items()}
        heapq.heappush(heap, (a + b, turn, both))
        turn += 1
    return {s: c or "0" for s, c in heap[0][2].items()}


def _tables(codes: Mapping[int, str], width: int, shift: int, mask: int) -> list[int]:
    """Return the entries of a table of 2^width, followed by those of the codes that are longer."""
    entries = [0] * (1 << width)
    for symbol, code in codes.items():
        if len(code) <= width:
            begin = int(code, 2) << (width - len(code))
            entry = 1 << (shift + 4) | len(code) << shift | symbol & mask
            entries[begin : begin + (1 << (width - len(code)))] = [entry] * (1 << (width - len(code)))
    for prefix in sorted({c[:width] for c in codes.values() if len(c) > width}):
        rest = {s: c[width:] for s, c in codes.items() if c.startswith(prefix) and len(c) > width}
        inner = min(4, max(map(len, rest.values())))
        entries[int(prefix, 2)] = (inner - 1) << shift | (len(entries) - int(prefix, 2))
        entries += _tables(rest, inner, shift, mask)
    return entries


def _by_huffman(rng: Rng, kind: str, count: int) -> tuple[np.ndarray, bytes]:
    bits = 8 if kind == "int8" else 16
    symbols = np.round(rng.normal(0, float(pick(rng, 1, 8, 30)), count)).clip(-127, 127).astype(np.int64)
    wide, first = kind == "int16" or flag(rng), int(rng.integers(1, 7))
    codes = _codes_of(symbols)
    table = _tables(codes, first, 27 if wide else 11, (1 << bits) - 1)
    body = np.asarray(table, np.uint32 if wide else np.uint16)
    assert wide or len(table) < 1 << 11
    return _packed("".join(codes[int(s)] for s in symbols)), _head(
        _HUFFMAN, (first - 1) << 4 | int(wide)
    ) + body.tobytes()


def decode(rng: Rng) -> Case:
    """TFLM_DECODE: the constant itself is an output of the model."""
    which = int(pick(rng, _TABLE, _HUFFMAN, _PRUNED))
    kinds = ("int8", "int16") if which == _HUFFMAN else ("int8", "float32", "int16", "int32", "int64", "bool")
    kind, shape, build = str(pick(rng, *kinds)), shape_of(rng), Build()
    quant, channel = _of_channels(rng, shape, kind)
    if which == _HUFFMAN:
        codes, about = _by_huffman(rng, kind, channel.size)
    else:
        codes, about = (_by_table if which == _TABLE else _by_pruning)(rng, kind, channel)
    x = build.input((1,), "float32")
    pair = (build.const(codes), build.const(np.frombuffer(about, np.uint8)))
    out = build.op("TFLM_DECODE", pair, Tensor(shape, kind, quant))
    build.op("NEG", (x,), Tensor((1,), "float32"))
    build.outputs = [out, *build.outputs]
    return finish(build, rng, f"{('table', 'Huffman', 'pruned')[which]} {kind}{list(shape)}")


def _written(codes: np.ndarray, scores: np.ndarray, anchors: np.ndarray, options: Mapping[str, Any]) -> int:
    """Return how many boxes are found by their best class: the runtime leaves what comes after them unwritten."""
    n, width, classes = codes.shape[1], scores.shape[2], options["num_classes"]
    corner = CornerParams(n, codes.shape[2], *(options[f"{axis}_scale"] for axis in "yxhw"))
    p = SuppressParams(n, width, width - classes, classes, 1, options["max_detections"], 1,
                       options["nms_score_threshold"], options["nms_iou_threshold"])  # fmt: skip
    return int(best_boxes(corners_of(codes[0], anchors, corner), scores[0], p)[3][0])


def detections(rng: Rng) -> Case:
    """TFLite_Detection_PostProcess, by the best class or class by class."""
    n, classes, background = int(rng.integers(1, 40)), int(rng.integers(1, 5)), int(flag(rng))
    by_class, most = flag(rng), int(rng.integers(1, 12))
    each = int(rng.integers(1, 9)) if by_class else 1
    options: dict[str, Any] = {
        "max_detections": most, "max_classes_per_detection": 1, "num_classes": classes, "use_regular_nms": by_class,
        "detections_per_class": each, "nms_score_threshold": float(pick(rng, 0.0, 0.3)),
        "nms_iou_threshold": float(pick(rng, 0.3, 0.5, 1.0)), "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0,
        "w_scale": 5.0,
    }  # fmt: skip
    build, width = Build(), classes + background
    inputs = (build.input((1, n, int(pick(rng, 4, 6))), "float32"), build.input((1, n, width), "float32"))
    anchors = np.concatenate((rng.uniform(0, 1, (n, 2)), rng.uniform(0.1, 0.6, (n, 2))), 1).astype(np.float32)
    steps = int(pick(rng, 8, 1000))  # few: equal scores
    scores = (rng.integers(0, steps, (1, n, width)) / steps).astype(np.float32)
    scores[0, 0, -1] = 0.9  # one at least is found
    codes = rng.normal(0, 3, build.tensors[inputs[0]].shape).astype(np.float32)
    if not by_class:
        options["max_detections"] = most = _written(codes, scores, anchors, options)
    outs = [Tensor(shape, "float32") for shape in ((1, most, 4), (1, most), (1, most), (1,))]
    custom = bytes(flexbuffers.Dumps(options))
    build.op("TFLite_Detection_PostProcess", (*inputs, build.const(anchors)), outs, custom)
    return Case(f"{n} boxes {options}", build.bytes(), ((codes, scores),))


MAKERS: Mapping[str, Maker] = {"TFLM_DECODE": decode, "TFLite_Detection_PostProcess": detections}
