"""QuantizeLinear, DequantizeLinear and the same again with nothing between: one pair, as onnxruntime makes it.

Q1 -> DQ1 -> Q2 -> DQ2 becomes Q -> DQ where each of the first three has no other reader, all have one scale, a zero
point that is given and one type of codes. The new range is what both ranges have in common, in float32:
low = max((qmin - z1) * s1, (qmin - z2) * s2), high likewise, s = (high - low) / (qmax - qmin),
z = round(qmin - low / s), halves away from zero. Of several pairs in a row the first two are merged, the next two, and
then what came of them. Evidence: the scales and zero points in models that onnxruntime 1.31
saves after its optimiser: 300 pairs of int8, uint8, int16 and uint16, the same bits. Ranges with nothing in common
stay two pairs; onnxruntime makes a scale of 0 or less of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import copysign, floor

import numpy as np

from glowc.frontend.fold import ONNX_TYPES
from glowc.frontend.onnx_model import OnnxModel, OnnxNode
from glowc.graph.numerics import F32
from glowc.graph.types import DType

DOMAINS = ("", "com.microsoft")
CODES = (DType.S8, DType.U8, DType.S16, DType.U16)


@dataclass(frozen=True, slots=True)
class _Params:
    scale: np.float32
    zero: int
    kind: DType


def merge_double_pairs(model: OnnxModel) -> OnnxModel:
    """Return the model with every double pair as one."""
    if sum(node.op == "QuantizeLinear" for node in model.nodes) < 2:
        return model
    merger = _Merger(model)
    while merger.one_round():
        pass
    return merger.finish()


class _Merger:
    def __init__(self, model: OnnxModel) -> None:
        self._model = model
        self._consts = dict(model.consts)
        known = [n for n in model.nodes if n.op == "Constant" and n.outputs]
        self._consts |= {n.outputs[0]: v for n in known if isinstance(v := n.attrs.get("value"), np.ndarray)}
        self._nodes = {id(node): node for node in model.nodes}
        same = [n for n in model.nodes if n.op == "Identity" and len(n.inputs) == len(n.outputs) == 1]
        self._same = {n.outputs[0]: n.inputs[0] for n in same}
        self._maker: dict[str, int] = {}
        self._readers: dict[str, list[int]] = {name: [0] for name in map(self._source, model.outputs)}
        for key, node in self._nodes.items():
            self._maker.update((out, key) for out in node.outputs)
            if not self._same.keys() & set(node.outputs):
                for name in node.inputs:
                    self._readers.setdefault(self._source(name), []).append(key)

    def finish(self) -> OnnxModel:
        """Return the model as it is now."""
        kept = {name: a for name, a in self._consts.items() if name in self._model.consts or name not in self._maker}
        return replace(self._model, nodes=tuple(self._nodes.values()), consts=kept)

    def one_round(self) -> bool:
        """Merge each pair with the one after it, in order; a pair once in a round."""
        done: set[int] = set()
        for key in list(self._nodes):
            if key not in done:
                done.update(self._merge(key))
        return bool(done)

    def _merge(self, key: int) -> list[int]:
        """Merge the pair that ends in node `key` with the pair after it; return the ends of the new pair."""
        dq = self._nodes.get(key)
        if dq is None or not _is(dq, "DequantizeLinear"):
            return []
        q1_key, q2_key = self._maker.get(self._source(dq.inputs[0]), 0), self._only_reader(dq.outputs[0])
        q1, q2 = self._nodes.get(q1_key), self._nodes.get(q2_key)
        if q1 is None or q2 is None or q1 is q2 or not (_is(q1, "QuantizeLinear") and _is(q2, "QuantizeLinear")):
            return []
        ends = [e for e in self._readers.get(q2.outputs[0], [0]) if e in self._nodes or not e]
        if 0 in ends or not ends or self._only_reader(q1.outputs[0]) != key:
            return []
        params = self._common(q1, dq, q2, [self._nodes[e] for e in ends])
        if params is None:
            return []
        codes = q1.outputs[0]
        names = self._constants(codes, params)
        self._nodes[q1_key] = replace(q1, inputs=(q1.inputs[0], *names))
        for end in ends:
            self._nodes[end] = replace(self._nodes[end], inputs=(codes, *names))
        self._readers[codes] = ends
        del self._nodes[key], self._nodes[q2_key]
        return ends

    def _source(self, name: str) -> str:
        """Return what Identity nodes pass on as `name`; a damaged model may have a ring of them."""
        seen: set[str] = set()
        while name in self._same and name not in seen:
            seen.add(name)
            name = self._same[name]
        return name

    def _only_reader(self, name: str) -> int:
        """Return the key of the only node that reads a value, 0 for several or a graph output."""
        readers = self._readers.get(name, [])
        return readers[0] if len(readers) == 1 else 0

    def _params(self, node: OnnxNode) -> _Params | None:
        if len(node.inputs) < 3 or node.attrs.get("block_size") or node.attrs.get("output_dtype"):
            return None
        scale, zero = (self._consts.get(self._source(name)) for name in node.inputs[1:3])
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or scale.dtype != np.float32:
            return None
        kind = ONNX_TYPES.get(zero.dtype.name)
        return _Params(F32(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]), kind) if kind in CODES else None

    def _common(self, q1: OnnxNode, dq: OnnxNode, q2: OnnxNode, ends: Sequence[OnnxNode]) -> _Params | None:
        """Return the parameters of the one pair; None where there are two."""
        if not all(_is(end, "DequantizeLinear") for end in ends):
            return None
        before, after = self._params(dq), self._params(q2)
        if before is None or after is None or before.kind is not after.kind or self._params(q1) != before:
            return None
        return intersection(before, after) if all(self._params(end) == after for end in ends) else None

    def _constants(self, codes: str, params: _Params) -> tuple[str, str]:
        names = []
        for what, array in (("scale", np.asarray(params.scale)), ("zero_point", params.zero)):
            name = f"{codes}.{what}"
            while name in self._consts or name in self._maker:
                name += "."
            self._consts[name] = np.asarray(array, np.float32 if what == "scale" else params.kind.numpy)
            names.append(name)
        return names[0], names[1]


def _is(node: OnnxNode, op: str) -> bool:
    return node.op == op and node.domain in DOMAINS and bool(node.inputs) and len(node.outputs) == 1


def intersection(a: _Params, b: _Params) -> _Params | None:
    """Return the parameters of the real numbers that both can express; None when there are none."""
    if a == b:
        return a
    qmin, qmax = a.kind.qmin, a.kind.qmax
    low = max(F32(qmin - p.zero) * p.scale for p in (a, b))
    high = min(F32(qmax - p.zero) * p.scale for p in (a, b))
    if not (np.isfinite(low) and np.isfinite(high) and high > low):
        return None
    scale = F32(F32(high - low) / F32(qmax - qmin))
    real = float(F32(F32(qmin) - F32(low / scale)))
    return _Params(scale, int(copysign(floor(abs(real) + 0.5), real)), a.kind) if scale > 0 else None
