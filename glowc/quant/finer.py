"""Which layers gain most by int16: measured on the kept samples, for what they take more.

A tensor has 16 bits where the layer that makes it and those that read it have, so that they become finer together. What
a tensor loses is how much less the outputs err in simulation when it alone is not rounded; what it takes is the work
of the layers at it that are not on int16 yet. The best tensor for its work comes first, then the best beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from onnx import NodeProto

from glowc.quant import recurrent
from glowc.quant.calibrate import Calibration
from glowc.quant.choose import by_calibration
from glowc.quant.engine import Engine
from glowc.quant.layers import nearest_layers
from glowc.quant.net import Net
from glowc.quant.plan import Plan, make_plan, values_of, weights_of
from glowc.quant.profile import Profile
from glowc.quant.quantizer import QuantizeOptions, dtypes_of, elements_of
from glowc.quant.scheme import Activations
from glowc.quant.simulate import simulator
from glowc.quant.weights import channel_axis

Sample = Mapping[str, np.ndarray]
_RANKED_ON = 16  # samples of a simulation
_ELEMENT_MACS = 8.0  # what an element of a layer without weights, or of a conversion, takes


@dataclass(frozen=True, slots=True)
class Tensor:
    """Codes of one quantisation: the layers at them by first result, and the square error that their rounding adds."""

    layers: tuple[str, ...]
    loss: float


def finest(
    net: Net, engine: Engine, profile: Profile, kept: Sequence[Sample], options: QuantizeOptions
) -> list[tuple[str, ...]]:  # fmt: skip
    """Return the layers around each tensor by first result, in the order of what they gain for their work.

    The work is what layers take that are not around a tensor before; tensors between such layers only are left out.
    """
    plan = make_plan(net, dtypes_of(net, profile), options.keep_float)
    work, left = _work(net, plan, elements_of(profile)), _tensors(net, plan, engine, profile, kept, options)
    found: list[tuple[str, ...]] = []
    wide: tuple[str, ...] = ()
    while left:
        best = max(left, key=lambda t: t.loss / (1 + sum(work[n] for n in t.layers if n not in wide)))
        wide = tuple(dict.fromkeys((*wide, *best.layers)))
        left = [t for t in left if not {*t.layers} <= {*wide}]
        found.append(best.layers)
    return found


def unions(sets: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return each set with all those before it."""
    return list(accumulate(sets, lambda a, b: tuple(dict.fromkeys((*a, *b)))))


def as_wishes(layers: Iterable[str]) -> dict[str, Activations]:
    """Return the wish that layers are on int16."""
    return dict.fromkeys(layers, Activations.INT16)


def _tensors(
    net: Net, plan: Plan, engine: Engine, profile: Profile, kept: Sequence[Sample], options: QuantizeOptions
) -> list[Tensor]:  # fmt: skip
    """Return what the rounding of each tensor adds, those without a layer that has an int16 form left out."""
    some = list(kept[:_RANKED_ON])
    sim = simulator(engine, net, plan, {p.name: np.stack([s[p.name] for s in some]) for p in net.inputs})
    kind = Calibration.MINMAX if options.calibration is Calibration.AUTO else options.calibration
    params = by_calibration(sim, net, plan, profile, kind, options.schema).params
    weights = nearest_layers(net, plan, params, options.schema).consts(net)

    def error(without: str) -> float:
        rounded = {group: p for group, p in params.items() if group != without}
        return float(np.sum(np.square(sim.tail_errors(sim.run(rounded, weights)))))

    least, found, clamps = error(""), [], {*plan.fused.values()}
    layers = [n for n in net.nodes if plan.computes_codes(n) and n.output[0] not in clamps]
    for group, names in plan.groups.items():
        nodes = [n for n in layers if {*names} & {*_held(net, plan, n)}]
        if nodes and not any(n.op_type in recurrent.RECURRENT for n in nodes):
            found.append(Tensor(tuple(n.output[0] for n in nodes), max(least - error(group), 0.0)))
    return found


def _held(net: Net, plan: Plan, node: NodeProto) -> list[str]:
    """Return the tensors of a node, its result being that of the clamp fused to it."""
    return [*values_of(net, node), *(plan.fused.get(name, name) for name in node.output)]


def _work(net: Net, plan: Plan, elements: Mapping[str, int]) -> dict[str, float]:
    """Return about how many multiplications each layer takes, and as much for its elements."""
    found = {}
    for node in net.nodes:
        size = float(elements.get(node.output[0], 0))
        name, macs = weights_of(net, node), 0.0
        if name is not None and plan.computes_codes(node):
            array = net.consts[name]
            macs = size * array.size / array.shape[channel_axis(node, array)]
        found[node.output[0]] = macs + _ELEMENT_MACS * size
    return found
