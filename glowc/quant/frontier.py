"""Bytes of constants against accuracy: which layers get weights of 4 or 2 bits, by what they lose for a byte saved.

What a layer loses is measured on the kept samples: how much more the outputs err in simulation with its weights alone
in fewer bits. Steps of layers from 8 to 4 and from 4 to 2 bits are then taken in the order of loss per byte; each
choice is quantised as a whole, its constants are those of a compiled model, and it is judged by the error of its
outputs or, with labels, by a score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from onnx import NodeProto

from glowc.errors import InputError
from glowc.quant.calibrate import Calibration
from glowc.quant.choose import by_calibration
from glowc.quant.engine import Engine
from glowc.quant.layers import coded_layers, nearest_layers
from glowc.quant.narrow import is_usual
from glowc.quant.net import Net
from glowc.quant.plan import make_plan
from glowc.quant.precision import Precision, WeightType, bits_of, gains
from glowc.quant.profile import Profile
from glowc.quant.quantizer import Quantized, QuantizeOptions, dtypes_of, quantize_net
from glowc.quant.simulate import simulator
from glowc.quant.tune import Target, outputs_of

Sample = Mapping[str, np.ndarray]
ConstantsOf = Callable[[onnx.ModelProto], int]
"""Returns the bytes of constants of a quantised model once it is compiled."""

_RANKED_ON = 16  # samples of a simulation


Choice = Mapping[str, WeightType]
"""The type of weights by layer, where it is not int8."""


@dataclass(frozen=True, slots=True)
class Point:
    """One choice: types of weights by layer, bytes of constants, error of outputs (RMSE over the largest), score."""

    weights: Choice
    constants_bytes: int
    error: float
    score: float | None

    @property
    def loss(self) -> tuple[float, float]:
        """What is the less the better: the error; with a score that one first."""
        return (0.0 if self.score is None else -self.score), self.error


@dataclass(frozen=True, slots=True)
class Found:
    """The model of a choice, and all choices that were measured, the largest first."""

    done: Quantized
    point: Point
    points: tuple[Point, ...]

    def frontier(self) -> tuple[Point, ...]:
        """Return the choices of which no other has both fewer bytes and less loss."""
        kept: list[Point] = []
        for point in sorted(self.points, key=lambda p: (p.constants_bytes, p.loss)):
            if not kept or point.loss < kept[-1].loss:
                kept.append(point)
        return tuple(kept[::-1])


@dataclass(frozen=True, slots=True)
class Step:
    """A layer that gets a type of fewer bits: the bytes that this saves, the square error that it adds."""

    layer: str
    kind: WeightType
    saved_bytes: int
    loss: float


@dataclass(slots=True)
class Search:
    """A network, how it is quantised and judged, and what was measured."""

    net: Net
    engine: Engine
    profile: Profile
    kept: list[Sample]
    options: QuantizeOptions
    constants_of: ConstantsOf
    target: Target | None = None
    progress: Callable[[str], None] = lambda _: None
    _known: dict[frozenset[tuple[str, WeightType]], tuple[Quantized, Point]] = field(default_factory=dict)

    def measured(self, choice: Choice) -> tuple[Quantized, Point]:
        """Quantise with some layers in fewer bits, and judge."""
        key = frozenset(choice.items())
        if key not in self._known:
            self.progress(f"choice {len(self._known) + 1}: {len(choice)} layers in fewer bits")
            precision = Precision(WeightType.INT8, {**choice, **self.options.precision.of})
            options = replace(self.options, precision=precision)
            done = quantize_net(self.net, self.engine, self.profile, self.kept, options, lambda _: None)
            score = None
            if self.target is not None:
                score = self.target.score(outputs_of(done.model, self.net.inputs, self.target.samples))
            self._known[key] = done, Point(dict(choice), self.constants_of(done.model), done.error or 0.0, score)
        return self._known[key]

    def found(self, choice: Choice) -> Found:
        """Return a choice with all that were measured."""
        done, point = self.measured(choice)
        points = sorted((p for _, p in self._known.values()), key=lambda p: (-p.constants_bytes, p.loss))
        return Found(done, point, tuple(points))

    def steps(self) -> list[Step]:
        """Return the steps of the layers that gain by fewer bits, those first that lose least for a byte they save."""
        error, nodes = self._simulated()
        least, steps = error({}), []
        for node in nodes:
            before, size, layer = least, self.net.consts[node.input[1]].size, _name(node)
            for kind, saved in ((k, s) for k, s in _KINDS if is_usual(k.bits)):
                now = max(error({node.output[0]: kind.bits}), before)
                steps.append(Step(layer, kind, round(saved * size), now - before))
                before = now
        return sorted(steps, key=lambda s: s.loss / s.saved_bytes)

    def _simulated(self) -> tuple[Callable[[Mapping[str, int]], float], list[NodeProto]]:
        """Return what tells the square error of the outputs with some layers in fewer bits, and these layers."""
        some, precision = list(self.kept[:_RANKED_ON]), self.options.precision
        plan = make_plan(self.net, dtypes_of(self.net, self.profile), self.options.keep_float)
        samples = {p.name: np.stack([s[p.name] for s in some]) for p in self.net.inputs}
        sim, kind = simulator(self.engine, self.net, plan, samples), self.options.calibration
        kind = Calibration.MINMAX if kind is Calibration.AUTO else kind
        params = by_calibration(sim, self.net, plan, self.profile, kind, self.options.schema).params
        fixed = bits_of(self.net, plan, replace(precision, weights=WeightType.INT8))

        def error(bits: Mapping[str, int]) -> float:
            coded = nearest_layers(self.net, plan, params, self.options.schema, {**fixed, **bits})
            return float(np.sum(np.square(sim.tail_errors(sim.run(params, coded.consts(self.net))))))

        free = [n for n in coded_layers(self.net, plan) if gains(self.net, n) and not _is_wished(n, precision)]
        return error, free


_KINDS = ((WeightType.INT4, 1 / 2), (WeightType.INT2, 1 / 4))  # bytes of a weight that the step to each type saves


def _name(node: NodeProto) -> str:
    return node.name or node.output[0]


def _is_wished(node: NodeProto, precision: Precision) -> bool:
    return bool(precision.of.keys() & {node.name, node.op_type, *node.output})


def whole_frontier(search: Search) -> Found:
    """Measure the choices from all layers in 8 bits to all in the fewest; the best is the one that loses least."""
    choice: dict[str, WeightType] = {}
    search.measured(choice)
    for step in _after_wider(search.steps()):
        choice[step.layer] = step.kind
        search.measured(choice)
    return search.found(min(search.found({}).points, key=lambda p: (p.loss, p.constants_bytes)).weights)


def _after_wider(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with those to 4 bits before those of the same layer to 2."""
    found: list[Step] = []
    for step in steps:
        wider = [s for s in steps if s.layer == step.layer and s.kind.bits > step.kind.bits]
        found += [s for s in (*wider, step) if s not in found]
    return found


def within(search: Search, limit_bytes: int) -> Found:
    """Return the best choice whose constants are at most so many bytes. Raises InputError where none is."""
    base = search.measured({})[1]
    if base.constants_bytes <= limit_bytes:
        return search.found({})
    tries = [_chosen(search, steps, base.constants_bytes, limit_bytes) for steps in _orders(search.steps())]
    fitting = [point for point in tries if point.constants_bytes <= limit_bytes]
    if not fitting:
        least = min(tries, key=lambda p: p.constants_bytes, default=base)
        raise InputError(
            f"no choice of weights has constants of at most {limit_bytes:,} bytes",
            details=[f"the smallest takes {least.constants_bytes:,} bytes, {len(least.weights)} layers in fewer bits",
                     f"all in 8 bits take {base.constants_bytes:,} bytes"],
            hint="allow more with --flash-limit, or take a smaller model",
        )  # fmt: skip
    return search.found(min(fitting, key=lambda p: (p.loss, p.constants_bytes)).weights)


def _orders(steps: Sequence[Step]) -> list[list[Step]]:
    """Return the orders in which steps are tried: by loss per byte, by loss, and all to 4 bits before any to 2."""
    tried = (steps, sorted(steps, key=lambda s: s.loss), sorted(steps, key=lambda s: -s.kind.bits))
    found = [_after_wider(order) for order in tried]
    return [order for number, order in enumerate(found) if order not in found[:number]]


def _chosen(search: Search, steps: Sequence[Step], base_bytes: int, limit_bytes: int) -> Point:
    """Return the first choice in an order that fits, without steps that it does not need; the last if none does."""
    point, count = search.measured({})[1], 0
    while point.constants_bytes > limit_bytes and count < len(steps):
        while count < len(steps) and base_bytes - _saved(steps[:count]) > limit_bytes:
            count += 1
        taken = _needed(steps[:count], base_bytes - limit_bytes)
        point = search.measured({step.layer: step.kind for step in taken})[1]
        short = point.constants_bytes - (base_bytes - _saved(taken))  # less is saved than was thought
        if point.constants_bytes > limit_bytes:
            base_bytes += max(short, 1)
    return point


def _saved(steps: Sequence[Step]) -> int:
    return sum(step.saved_bytes for step in steps)


def _needed(steps: Sequence[Step], wanted_bytes: int) -> list[Step]:
    """Return the steps that save so many bytes, those left out first that lose most; a layer's last one first."""
    kept = list(steps)
    for step in sorted(steps, key=lambda s: -s.loss):
        last = [s for s in kept if s.layer == step.layer][-1]
        if _saved(kept) - last.saved_bytes >= wanted_bytes:
            kept.remove(last)
    return kept
