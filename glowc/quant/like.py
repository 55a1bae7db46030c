"""The quantisation of the activations of an earlier file, for a network that was trained again.

Every tensor keeps its scale and zero point, and channels that were divided by factors are divided by the same ones: the
C of both differs in its constants alone, so that new weights go to devices as a blob.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from onnx import numpy_helper

from glowc.errors import LikeError
from glowc.frontend import tflite_bytes
from glowc.frontend.reader import load
from glowc.quant.choose import Chosen
from glowc.quant.emit import FACTORS_KEY, SOURCES_KEY
from glowc.quant.equalize import equalised, find_classes
from glowc.quant.net import Net
from glowc.quant.plan import Plan
from glowc.quant.profile import Profile
from glowc.quant.scheme import Params

_ENDINGS = ("_float", "_dequantized", "_quantized", "_codes")  # of names around a pair that glowc writes
_BEYOND = 1.1  # of the codes' range: what lies further out is told


@dataclass(frozen=True, slots=True)
class Like:
    """What an earlier file says: quantisation by the name of the value, factors of equalised channels likewise."""

    path: Path
    params: Mapping[str, Params] = field(default_factory=dict)
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)


def read_like(path: Path) -> Like:
    """Return what a quantised ONNX file says of its activations. Raises InputError for one that is none."""
    if tflite_bytes(path) is not None:
        raise LikeError(f"--like {path}: a TensorFlow Lite file", hint="name the ONNX file that glowc quantize wrote")
    proto = load(path).proto
    consts = {c.name: c for c in proto.graph.initializer}
    params: dict[str, Params] = {}
    for node in proto.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and node.input[1] in consts:
            scale = numpy_helper.to_array(consts[node.input[1]])
            zero = consts.get(node.input[2]) if len(node.input) > 2 else None
            if scale.size == 1:
                found = _params(scale, None if zero is None else numpy_helper.to_array(zero))
                for name in (node.input[0], node.output[0]):
                    params |= dict.fromkeys((name, _plain(name)), found)
    notes = {p.key: p.value for p in proto.metadata_props}
    if not params:
        raise LikeError(f"--like {path}: nothing is quantized there", hint="name the file that glowc quantize wrote")
    if SOURCES_KEY in notes:
        raise LikeError(f"--like {path}: it has copies of channels (--split-channels), which new weights may not need",
                         hint="quantize both models without --split-channels")  # fmt: skip
    factors = {name: np.array(f, np.float32) for name, f in json.loads(notes.get(FACTORS_KEY, "{}")).items()}
    return Like(path, params, factors)


def _params(scale: np.ndarray, zero: np.ndarray | None) -> Params:
    """Return the quantisation that a pair has; codes without sign are the signed ones moved."""
    if zero is None:
        return Params(float(scale.reshape(())), 0)
    moved = 1 << (8 * zero.itemsize - 1) if zero.dtype.kind == "u" else 0
    return Params(float(scale.reshape(())), int(zero.reshape(())) - moved, 8 * zero.itemsize)


def _plain(name: str) -> str:
    for ending in _ENDINGS:
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name


def params_like(like: Like, plan: Plan) -> Chosen:
    """Return the quantisation that every group had. Raises InputError that names each tensor without one."""
    params: dict[str, Params] = {}
    wrong = []
    for first, names in plan.groups.items():
        found = next((like.params[n] for n in (first, *names) if n in like.params), None)
        if found is None:
            wrong.append(f"{first!r} is not quantized there")
        elif found.bits != plan.bits_of(first):
            wrong.append(f"{first!r} has {found.bits} bits there, {plan.bits_of(first)} here")
        else:
            params[first] = found
    if wrong:
        raise LikeError(
            f"{like.path} is no model of this network, quantized with these options",
            details=wrong[:10],
            hint="export the new model as the old one, and quantize it with the options of that one",
        )
    return Chosen(params, dict.fromkeys(params, f"as in {like.path.name}"))


def factors_like(like: Like, net: Net, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Net, int, dict[str, np.ndarray]]:
    """Return the network with the channels divided as they were, how many classes share a factor, and the factors.

    Raises InputError where this network has no such channels.
    """
    count, by = 0, dict[str, np.ndarray]()
    for one in find_classes(net, shapes):
        found = like.factors.get(one.values[0])
        if found is not None and len(found) == shapes[one.values[0]][1]:
            net = equalised(net, one, found)
            count, by = count + 1, {**by, **dict.fromkeys(one.values, found)}
    if missing := sorted(like.factors.keys() - by.keys()):
        shown = ", ".join(map(repr, missing[:5]))
        raise LikeError(f"{like.path} has equalized channels of {shown}, which this network has not",
                         hint="export the new model as the old one")  # fmt: skip
    return net, count, by


def notes_like(params: Mapping[str, Params], profile: Profile) -> list[str]:
    """Return which values of the new model lie far outside of the codes that they keep."""
    far = []
    for name, known in params.items():
        stats = profile.tensors.get(name)
        if stats is not None and (stats.high > max(known.high * _BEYOND, 0) or stats.low < min(known.low * _BEYOND, 0)):
            far.append(f"{name!r} ({stats.low:.3g} to {stats.high:.3g}, codes {known.low:.3g} to {known.high:.3g})")
    if not far:
        return []
    return [f"values beyond the codes that they keep are cut off: {', '.join(far[:5])}"]
