"""Bytes of constants against accuracy: which layers get weights of 4 or 2 bits, by what they lose for a byte saved.

What a layer loses is measured on the kept samples: how much more the outputs err in simulation with its weights alone
in fewer bits, as numbers or as places in a palette, whichever errs less. Steps of layers from 8 to 4 and from 4 to 2
bits are then taken in the order of loss per byte; each
choice is quantised as a whole, its size is that of a compiled model, and it is judged by the error of its outputs or,
with labels, by a score. Activations of 8 and of 16 bits are two searches, whose choices stand beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from onnx import NodeProto

from glowc.errors import NoChoiceError
from glowc.quant.calibrate import Calibration
from glowc.quant.choose import by_calibration
from glowc.quant.engine import Engine
from glowc.quant.finer import as_wishes
from glowc.quant.layers import coded_layers, nearest_layers
from glowc.quant.limits import Limits, Size
from glowc.quant.narrow import is_usual
from glowc.quant.net import Net
from glowc.quant.plan import make_plan
from glowc.quant.precision import Precision, gains, kinds_of
from glowc.quant.profile import Profile
from glowc.quant.quantizer import Quantized, QuantizeOptions, dtypes_of, quantize_net
from glowc.quant.scheme import Activations
from glowc.quant.simulate import simulator
from glowc.quant.tune import Target, outputs_of
from glowc.quant.weight_types import WeightType

Sample = Mapping[str, np.ndarray]
SizeOf = Callable[[onnx.ModelProto], Size]
"""Returns what a quantised model takes once it is compiled."""

_RANKED_ON = 16  # samples of a simulation


Choice = Mapping[str, WeightType]
"""The type of weights by layer, where it is not int8."""


@dataclass(frozen=True, slots=True)
class Point:
    """One choice: types of weights by layer, its size, error of outputs (RMSE over the largest), score, activations.

    `wide` are the layers on int16 where `activations` are int8, by first result.
    """

    weights: Choice
    size: Size
    error: float
    score: float | None
    activations: Activations = Activations.INT8
    wide: tuple[str, ...] = ()

    @property
    def constants_bytes(self) -> int:
        """The bytes of its constants."""
        return self.size.constants_bytes

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
        """Return the choices of which no other with these activations has both fewer bytes and less loss."""
        kept: list[Point] = []
        for point in sorted(self.points, key=lambda p: (p.activations, p.constants_bytes, p.loss)):
            if not kept or point.activations != kept[-1].activations or point.loss < kept[-1].loss:
                kept.append(point)
        return tuple(kept[::-1])

    def better(self, other: Found, limits: Limits) -> Found:
        """Return the better one of two searches within the limits, with the choices of both."""
        pairs = [(not limits.hold(f.point.size), f.point.loss) for f in (self, other)]
        best = other if pairs[1] < pairs[0] else self
        return replace(best, points=(*self.points, *other.points))


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
    size_of: SizeOf
    target: Target | None = None
    progress: Callable[[str], None] = lambda _: None
    _known: dict[tuple[frozenset[tuple[str, WeightType]], tuple[str, ...]], tuple[Quantized, Point]] = field(
        default_factory=dict
    )

    def precision(self, choice: Choice, wide: Sequence[str] = ()) -> Precision:
        """Return the wishes of the options, and some layers in fewer bits, and some on int16, besides."""
        own = self.options.precision
        return Precision(WeightType.INT8, {**choice, **own.of}, {**as_wishes(wide), **own.activations_of})

    def measured(self, choice: Choice, wide: tuple[str, ...] = ()) -> tuple[Quantized, Point]:
        """Quantise with weights of some layers in fewer bits, and some layers on int16, and judge."""
        key = frozenset(choice.items()), wide
        if key not in self._known:
            finer = f", {len(wide)} on int16" if wide else ""
            self.progress(f"choice {len(self._known) + 1}: {len(choice)} layers in fewer bits{finer}")
            options = replace(self.options, precision=self.precision(choice, wide))
            done = quantize_net(self.net, self.engine, self.profile, self.kept, options, lambda _: None)
            score = None
            if self.target is not None:
                score = self.target.score(outputs_of(done.model, self.net.inputs, self.target.samples))
            size, kind = self.size_of(done.model), self.options.activations
            self._known[key] = done, Point(dict(choice), size, done.error or 0.0, score, kind, wide)
        return self._known[key]

    def found(self, choice: Choice, wide: tuple[str, ...] = ()) -> Found:
        """Return a choice with all that were measured."""
        done, point = self.measured(choice, wide)
        points = sorted((p for _, p in self._known.values()), key=lambda p: (-p.constants_bytes, p.loss))
        return Found(done, point, tuple(points))

    def steps(self) -> list[Step]:
        """Return the steps of the layers that gain by fewer bits, those first that lose least for a byte they save."""
        error, nodes = self._simulated()
        least, steps = error({}), []
        for node in nodes:
            before, size, layer = least, self.net.consts[node.input[1]].size, _name(node)
            for plain, saved in ((k, s) for k, s in _KINDS if is_usual(k)):
                errors = {kind: error({node.output[0]: kind}) for kind in (plain, _PALETTES[plain]) if is_usual(kind)}
                kind = min(errors, key=lambda k: errors[k] * (_GAIN if k.indexed else 1.0))
                now = max(errors[kind], before)
                steps.append(Step(layer, kind, round(saved * size), now - before))
                before = now
        return sorted(steps, key=lambda s: s.loss / s.saved_bytes)

    def _simulated(self) -> tuple[Callable[[Choice], float], list[NodeProto]]:
        """Return what tells the square error of the outputs with some layers in fewer bits, and these layers."""
        some, precision = list(self.kept[:_RANKED_ON]), self.options.precision
        plan = make_plan(self.net, dtypes_of(self.net, self.profile), self.options.keep_float)
        samples = {p.name: np.stack([s[p.name] for s in some]) for p in self.net.inputs}
        sim, kind = simulator(self.engine, self.net, plan, samples), self.options.calibration
        kind = Calibration.MINMAX if kind is Calibration.AUTO else kind
        params = by_calibration(sim, self.net, plan, self.profile, kind, self.options.schema).params
        fixed = kinds_of(self.net, plan, replace(precision, weights=WeightType.INT8))

        def error(kinds: Choice) -> float:
            coded = nearest_layers(self.net, plan, params, self.options.schema, {**fixed, **kinds})
            return float(np.sum(np.square(sim.tail_errors(sim.run(params, coded.consts(self.net))))))

        layers = [n for n in coded_layers(self.net, plan) if gains(self.net, n)]
        free = [n for n in layers if not self.net.called(n) & precision.of.keys()]
        return error, free


_KINDS = ((WeightType.INT4, 1 / 2), (WeightType.INT2, 1 / 4))  # bytes of a weight that the step to each type saves
_PALETTES = {WeightType.INT4: WeightType.PALETTE4, WeightType.INT2: WeightType.PALETTE2}
_NUMBERS = {palette: plain for plain, palette in _PALETTES.items()}
_GAIN = 1.05  # an error larger by less than this is as good: numbers are unpacked in fewer instructions


def _name(node: NodeProto) -> str:
    return node.name or node.output[0]


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


def within(search: Search, limits: Limits) -> Found:
    """Return the best choice within the limits; where none is, the one that takes least of the flash."""
    base = search.measured({})[1]
    most = limits.flash_bytes
    if most is None or base.size.flash_bytes <= most:
        return search.found({})
    steps = search.steps()
    tries = [_chosen(search, order, base.size.flash_bytes, most) for order in _orders(steps)]
    if not any(limits.hold(point.size) for point in tries):
        plain = [replace(step, kind=_NUMBERS.get(step.kind, step.kind)) for step in steps]
        tries += [_chosen(search, order, base.size.flash_bytes, most) for order in _orders(plain)]
    fitting = [point for point in tries if limits.hold(point.size)]
    if not fitting:
        return search.found(min(tries, key=lambda p: p.size.flash_bytes, default=base).weights)
    return search.found(min(fitting, key=lambda p: (p.loss, p.constants_bytes)).weights)


def check_limits(found: Found, limits: Limits) -> None:
    """Raise InputError where the model of a search is not within the limits."""
    if limits.hold(found.point.size):
        return
    least = {p.activations: p for p in sorted(found.points, key=lambda p: -p.size.flash_bytes)}
    raise NoChoiceError(
        "no choice of weights and activations is within the limits",
        details=[f"activations {kind}, {len(point.weights)} layers in fewer bits: {text}"
                 for kind, point in least.items() for text in limits.exceeded(point.size)],
        hint="allow more, or take a smaller model; --keep-float, --weights-of, --activations int16 keep layers large",
    )  # fmt: skip


def _orders(steps: Sequence[Step]) -> list[list[Step]]:
    """Return the orders in which steps are tried: by loss per byte, by loss, and all to 4 bits before any to 2."""
    tried = (steps, sorted(steps, key=lambda s: s.loss), sorted(steps, key=lambda s: -s.kind.bits))
    found = [_after_wider(order) for order in tried]
    return [order for number, order in enumerate(found) if order not in found[:number]]


def _chosen(search: Search, steps: Sequence[Step], base_bytes: int, limit_bytes: int) -> Point:
    """Return the first choice in an order that fits, without steps that it does not need; the last if none does."""
    point, count = search.measured({})[1], 0
    while point.size.flash_bytes > limit_bytes and count < len(steps):
        while count < len(steps) and base_bytes - _saved(steps[:count]) > limit_bytes:
            count += 1
        taken = _needed(steps[:count], base_bytes - limit_bytes)
        point = search.measured({step.layer: step.kind for step in taken})[1]
        short = point.size.flash_bytes - (base_bytes - _saved(taken))  # less is saved than was thought
        if point.size.flash_bytes > limit_bytes:
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
