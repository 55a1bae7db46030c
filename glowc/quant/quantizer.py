"""A float network and sample data -> a quantised ONNX file: profile, equalise, split, choose ranges, fit, write.

Without data, a profile alone gives the ranges; then weights go to their nearest codes and nothing is measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx

from glowc.board.checked import Checked, Within
from glowc.errors import InputError
from glowc.quant.calibrate import Calibration
from glowc.quant.choose import ENOUGH, Chosen, by_calibration, by_measure
from glowc.quant.data import checked_sample, open_shapes
from glowc.quant.emit import quantised_model
from glowc.quant.engine import Engine, all_samples, run_net
from glowc.quant.equalize import best_strength, equalised, factors, find_classes, magnitudes
from glowc.quant.front import REASON, spectrum
from glowc.quant.layers import Coded, fitted_layers, nearest_layers, unrounded_sums
from glowc.quant.like import Like, factors_like, notes_like, params_like
from glowc.quant.load import load_float, read_inputs, with_shared_weights
from glowc.quant.masked import finite, mask_inputs
from glowc.quant.net import Net
from glowc.quant.packing import BEYOND, PACKED, beyond_codes, packing
from glowc.quant.plan import FloatNode, Plan, make_plan, weights_of, with_reason
from glowc.quant.precision import Precision, kinds_of
from glowc.quant.profile import Profile, Profiler, profile_net
from glowc.quant.recurrent import RECURRENT
from glowc.quant.scheme import Activations, Schema
from glowc.quant.simulate import Simulator, simulator
from glowc.quant.split import best_copies, splittable, with_copies
from glowc.quant.steps import error_over_steps, starts_of
from glowc.quant.weight_types import BYTE, WeightType
from glowc.quant.weights import Fit
from glowc.quant.widths import wide_layers, widened, without_float

Sample = Mapping[str, np.ndarray]
Progress = Callable[[str], None]
FITS = {Activations.INT8: Fit(), Activations.INT16: Fit(ridge=0.01, follow=1.0)}
"""How far the samples move weights: with int16 activations only the rounding of weights is left to make up for."""
KEPT_BYTES = 1 << 28  # of values of all kept samples: the measuring steps hold them, some twice
MOST_KEPT = 64
_CLEARLY = 0.8  # of the outputs' error: what a spectrum in float must have
FEWEST_VALUES = 64  # of a channel, on all kept samples, to say how large it is


@dataclass(frozen=True, slots=True, repr=False)
class QuantizeOptions(Checked):
    """How a model is quantised. Raises InputError that names every value which is none; words may be strings."""

    schema: Schema = Schema.ASYMMETRIC
    calibration: Calibration = Calibration.AUTO
    keep_float: tuple[str, ...] = ()
    float_edge: bool = False
    equalise: bool = True
    bias_correction: bool = True
    rounding: bool = True
    activations: Activations = Activations.INT8
    fit: Fit | None = None  # by default FITS
    precision: Precision = field(default_factory=Precision)
    split: Annotated[float, Within(0, 1)] = 0.0  # the largest share of a value's channels that is added as copies
    float_spectrum: bool = True  # a spectrum at the inputs stays float where the outputs err clearly less for it
    like: Like | None = None  # the earlier file whose activations keep their codes
    states: Mapping[str, str] = field(default_factory=dict)  # inputs with the output that each is at the next step


@dataclass(frozen=True, slots=True)
class Quantized:
    """A quantised model, and what is known of it. `error` is the simulated error of the outputs on the kept samples.

    `kinds` are the types of the weights of each layer, by its first result; `wide` the layers on int16 where others are
    not. `steps_error` is that of the outputs of the file after so many `steps`, with states of its own.
    """

    model: onnx.ModelProto
    floats: tuple[FloatNode, ...]
    how: Mapping[str, str]
    equalised: int
    layers: int
    samples: int
    error: float | None
    notes: tuple[str, ...]
    activations: Activations = Activations.INT8
    kinds: Mapping[str, WeightType] = field(default_factory=dict)
    copies: int = 0  # of channels, over all values that have other channels than the float model
    wide: tuple[str, ...] = ()
    steps: int = 0
    steps_error: float | None = None

    @property
    def narrow(self) -> list[tuple[WeightType, int]]:
        """The types of weights of fewer than 8 bits, the fewest bits first, and how many layers have such."""
        found = {kind: list(self.kinds.values()).count(kind) for kind in WeightType if kind is not WeightType.INT8}
        return sorted(((k, n) for k, n in found.items() if n), key=lambda pair: pair[0].bits)


@dataclass(slots=True)
class Gathered:
    """What one walk through the data leaves: a profile, a random choice of samples, and the first steps in order."""

    profiler: Profiler
    kept: list[Sample]
    limit: int = MOST_KEPT
    steps: list[Sample] = field(default_factory=list)
    states: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, sample: Sample) -> None:
        """Profile one sample, and keep it with the chance that every sample has (reservoir sampling).

        States that it leaves out are what the sample before left.
        """
        net = self.profiler.net
        given, sample = sample, {**(self.states or starts_of(net)), **sample}
        values = self.profiler.add(sample)
        self.states = {name: values[out] for name, out in net.states.items()}
        seen = self.profiler.samples
        if seen == 1:
            self.limit = max(1, min(MOST_KEPT, KEPT_BYTES // max(1, _bytes_of(self.profiler))))
        if seen <= self.limit and net.states:
            self.steps.append(given)
        if len(self.kept) < self.limit:
            self.kept.append(dict(sample))
        elif (place := random.Random(seen).randrange(seen)) < self.limit:
            self.kept[place] = dict(sample)

    def judged(self, done: Quantized) -> Quantized:
        """Return a quantised model with the error over its steps, where it has states."""
        if len(self.steps) <= 1:
            return done
        return replace(done, steps=len(self.steps), steps_error=error_over_steps(self.profiler, done.model, self.steps))


def _bytes_of(profiler: Profiler) -> int:
    """Return the bytes of all values of one sample."""
    return 4 * int(sum(stats.histogram.sum() for stats in profiler.tensors.values()))


def quantize_model(
    source: Path | bytes | onnx.ModelProto, samples: Iterable[Sample], options: QuantizeOptions | None = None,
    progress: Progress = lambda _: None,
) -> Quantized:  # fmt: skip
    """Quantise a float ONNX model on samples: dicts of one array per input, of the shape the model has.

    Sizes that the model leaves open are those of the first sample. Of a model with states the samples are steps in
    their order; one that has a state starts with it. Raises ModelError for what is wrong with the model,
    InputError for what is wrong with the samples.
    """
    engine, given = Engine(), iter(samples)
    first = next(given, None)
    shapes = {} if first is None else open_shapes(read_inputs(source), first)
    options = options or QuantizeOptions()
    net = load_float(source, shapes, options.states)
    gathered, masks = Gathered(Profiler(net, engine), []), mask_inputs(net)
    for number, sample in enumerate([] if first is None else chain([first], given)):
        gathered.add(finite(checked_sample(sample, net.inputs, number), masks))
        progress(f"profiling sample {gathered.profiler.samples}")
    return gathered.judged(quantize_net(net, engine, gathered.profiler.profile(), gathered.kept, options, progress))


def quantize_net(
    net: Net, engine: Engine, profile: Profile, kept: list[Sample], options: QuantizeOptions, progress: Progress
) -> Quantized:  # fmt: skip
    """Quantise a simplified network by its profile, and by samples where there are any."""
    planned = planned_net(net, profile, options)
    if kept and options.float_spectrum and options.like is None:
        planned = _with_spectrum(planned, net, engine, profile, kept, options)
    net, profile, plan = planned.net, planned.profile, planned.plan
    if not plan.quantised:
        reasons = [f'{f.op} "{f.name}": {f.reason}' for f in plan.floats]
        raise InputError("nothing of this model can be quantized", details=reasons[:10])
    notes = (*_notes([port.name for port in net.inputs], profile, kept, options), *planned.notes)
    if options.like is not None:
        params_like(options.like, plan)  # what is wrong is said before anything is measured
        if options.like.factors and not kept:
            raise InputError(f"{options.like.path} has equalized channels: their values take samples", hint="--data")
    if not kept:
        chosen, coded = _chosen(None, net, plan, profile, options, progress)
        return _written(_Way(None, profile), net, plan, chosen, coded, options, notes)
    sim = simulator(engine, net, plan, {p.name: np.stack([s[p.name] for s in kept]) for p in net.inputs})
    way = _Way(sim, profile)
    if options.like is not None:
        way = _equalised_like(options.like, sim, profile, kept)
        notes = (*notes, *notes_like(params_like(options.like, plan).params, way.profile))
    elif options.equalise:
        progress("equalizing channels")
        way = _equalised(sim, profile, kept)
    ways = [way]
    if options.split and plan.bits == BYTE and options.like is None:
        progress("splitting channels")
        ways += _split(way, kept, options.split)
    done = []
    for one in ways:
        chosen, coded = _chosen(one.sim, net, plan, one.profile, options, progress)
        done.append(_written(one, net, plan, chosen, coded, options, notes))
    return min(done, key=lambda found: found.error or 0.0)


@dataclass(frozen=True, slots=True)
class Planned:
    """A network with a conversion where codes of 8 and 16 bits meet, its profile, what is quantised of it, notes."""

    net: Net
    profile: Profile
    plan: Plan
    notes: tuple[str, ...] = ()


def planned_net(net: Net, profile: Profile, options: QuantizeOptions) -> Planned:
    """Return what is quantised, and on which codes; where all are of one width the network is as it was."""
    wishes = options.precision.activations_of
    bits = 8 if wishes else options.activations.bits
    unrounded = unrounded_sums(net, elements_of(profile)) if options.float_edge and bits == 8 else frozenset()
    plan = make_plan(net, dtypes_of(net, profile), options.keep_float, unrounded, bits)
    beyond = beyond_codes(net, plan, profile)
    packed = packing(net, plan).unlike
    keep = (*options.keep_float, *sorted(beyond | packed))
    if beyond | packed:
        plan = with_reason(make_plan(net, dtypes_of(net, profile), keep, unrounded, bits), packed, PACKED)
        plan = with_reason(plan, beyond, BEYOND)
    if not (wishes or plan.cells) or not plan.quantised:
        return Planned(net, profile, plan)
    done = widened(net, profile, plan, wishes, options.activations)
    dtypes = dtypes_of(done.net, done.profile)
    plan = make_plan(done.net, dtypes, keep, unrounded - done.widths.wide, 8, done.widths)
    plan = with_reason(with_reason(plan, packed, PACKED), beyond, BEYOND)
    return Planned(done.net, done.profile, plan, done.notes)


def _with_spectrum(
    planned: Planned, net: Net, engine: Engine, profile: Profile, kept: list[Sample], options: QuantizeOptions
) -> Planned:  # fmt: skip
    """Return what is quantised with the spectrum at the inputs in float, where the outputs err clearly less so."""
    found = spectrum(net)
    plan = planned.plan
    if not found & plan.quantised or plan.bits != BYTE or plan.wide - plan.cells.keys():
        return planned
    other = planned_net(net, profile, replace(options, keep_float=(*options.keep_float, *sorted(found))))
    if not other.plan.quantised:
        return planned
    errors = [_error_of(one, engine, kept, options) for one in (planned, other)]
    if errors[1] > _CLEARLY * errors[0]:
        return planned
    return replace(other, plan=with_reason(other.plan, found, REASON))


def _error_of(planned: Planned, engine: Engine, kept: list[Sample], options: QuantizeOptions) -> float:
    """Return the error of the outputs with ranges by calibration and the nearest weights."""
    net, plan = planned.net, planned.plan
    sim = simulator(engine, net, plan, {p.name: np.stack([s[p.name] for s in kept]) for p in net.inputs})
    chosen = by_calibration(sim, net, plan, planned.profile, options.calibration, options.schema)
    coded = nearest_layers(net, plan, chosen.params, options.schema)
    return sum(sim.tail_errors(sim.run(chosen.params, coded.consts(net))))


@dataclass(frozen=True, slots=True)
class _Way:
    """A network to quantise, with its float values and profile: as it is, or with channels equalised.

    `factors` is what the channels of each equalised value were divided by, `classes` counts those that share one;
    `sources` has the float model's channel for each channel of values with copies, `copies` counts these, once for all
    values that share them.
    """

    sim: Simulator | None
    profile: Profile
    classes: int = 0
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)
    copies: int = 0
    sources: Mapping[str, np.ndarray] = field(default_factory=dict)


def _written(
    way: _Way, net: Net, plan: Plan, chosen: Chosen, coded: Coded, options: QuantizeOptions, notes: tuple[str, ...]
) -> Quantized:  # fmt: skip
    """Return the file, and what is known of it."""
    net = way.sim.net if way.sim else net
    model = quantised_model(net, plan, chosen.params, coded.weights, coded.biases, float_edge=options.float_edge,
                            factors=way.factors, sources=way.sources)  # fmt: skip
    error = way.sim.output_error(way.sim.run(chosen.params, coded.consts(net))) if way.sim else None
    kinds = {name: weights.grid.kind for name, weights in coded.weights.items()}
    recurrent = sum(1 for node in net.nodes if node.op_type in RECURRENT and plan.computes_codes(node))
    return Quantized(
        model, plan.floats, chosen.how, way.classes, len(coded.weights) + recurrent, way.profile.samples, error, notes,
        options.activations, kinds, way.copies, wide_layers(net, plan),
    )  # fmt: skip


def steps_of(net: Net, options: QuantizeOptions) -> int:
    """Return how many steps `quantize_net` reports at most, where ranges are not measured."""
    layers = sum(1 for node in net.nodes if weights_of(net, node) is not None)
    return (
        (1 if options.equalise else 0)
        + (1 if options.split else 0)
        + (layers if options.bias_correction or options.rounding else 0)
    )


def dtypes_of(net: Net, profile: Profile) -> dict[str, np.dtype[np.generic]]:
    """Return the element type of every value whose type matters: those of the profile are float32."""
    floats = {name: np.dtype(np.float32) for name in profile.tensors}
    return {**floats, **{n: a.dtype for n, a in net.consts.items()}, **{p.name: p.dtype for p in net.inputs}}


def elements_of(profile: Profile) -> dict[str, int]:
    """Return the number of elements of every value."""
    return {name: int(stats.histogram.sum()) // profile.samples for name, stats in profile.tensors.items()}


def _notes(
    inputs: Collection[str], profile: Profile, kept: list[Sample], options: QuantizeOptions
) -> list[str]:  # fmt: skip
    """Return what the user should know of the data."""
    notes = []
    if profile.samples < 8:
        plural = "s" if profile.samples > 1 else ""
        notes.append(f"only {profile.samples} sample{plural}: ranges of other data may be wider; 100 are a good number")
    constant = [name for name, s in profile.tensors.items() if s.low == s.high]
    if zeros := [name for name in inputs if name in constant and profile.tensors[name].high == 0]:
        constant = [name for name in constant if name not in zeros]
        shown = ", ".join(map(repr, zeros[:3]))
        notes.append(f"every sample of {shown} is all zeros: ranges of real data are wider, give some of that")
    if constant:
        shown = ", ".join(map(repr, constant[:3]))
        notes.append(f"{len(constant)} value{'s' if len(constant) > 1 else ''} never changed on this data: {shown}")
    if options.split and (not kept or options.activations is not Activations.INT8):
        notes.append("no channels are split: that takes samples (--data), and is for int8")
    if not kept and (options.calibration is Calibration.AUTO or options.rounding):
        notes.append("a profile has no samples: ranges by their ends, nearest weights; --data measures and fits them")
    return notes


def _equalised(sim: Simulator, profile: Profile, kept: list[Sample]) -> _Way:
    """Return the network with the channels of classes equalised where layers behind err less for it.

    What changes is profiled on the kept samples.
    """
    net, count = sim.net, 0
    by: dict[str, np.ndarray] = {}
    shapes = {name: array.shape[1:] for name, array in sim.exact.items()}

    run = partial(_layer_of, sim.engine)
    for one in find_classes(net, shapes):
        if not all(sim.plan.group_of.get(n) or n in sim.plan.fused for n in one.values):
            continue
        if max(sim.exact[n].size // shapes[n][1] for n in one.values if n in sim.exact) < FEWEST_VALUES:
            continue
        strength = best_strength(net, one, sim.exact, run, sim.plan.bits)
        if strength:
            found = factors(magnitudes(sim.exact, one.values), strength)
            net = equalised(net, one, found)
            count, by = count + 1, {**by, **dict.fromkeys(one.values, found)}
    if not count:
        return _Way(sim, profile)
    return replace(_profiled(net, sim, profile, kept, by), classes=count, factors=by)


def _equalised_like(like: Like, sim: Simulator, profile: Profile, kept: list[Sample]) -> _Way:
    """Return the network with the channels divided as in an earlier file."""
    if not like.factors:
        return _Way(sim, profile)
    net, count, by = factors_like(like, sim.net, {name: array.shape[1:] for name, array in sim.exact.items()})
    return replace(_profiled(net, sim, profile, kept, by), classes=count, factors=by)


def _split(way: _Way, kept: list[Sample], most: float) -> list[_Way]:
    """Return the network with copies of large channels where layers behind err less for it, if there are such."""
    sim, sources, count = way.sim, dict[str, np.ndarray](), 0
    assert sim is not None
    net, plan = sim.net, sim.plan
    shapes = {name: array.shape[1:] for name, array in sim.exact.items()}
    run = partial(_layer_of, sim.engine)
    for one in splittable(net, shapes):
        groups = [plan.group_of.get(n) for n in one.values if n not in plan.fused]
        if any(group is None or plan.bits_of(group) != BYTE for group in groups):
            continue
        source = best_copies(net, one, magnitudes(sim.exact, one.values), sim.exact, run, most)
        if source is not None:
            net = with_copies(net, one, source)
            count, sources = count + len(source) - source.max() - 1, {**sources, **dict.fromkeys(one.values, source)}
    if not sources:
        return []
    after = _profiled(net, sim, way.profile, kept, sources)
    return [replace(after, classes=way.classes, factors=way.factors, copies=int(count), sources=sources)]


def _layer_of(engine: Engine, net: Net, node: onnx.NodeProto, given: np.ndarray) -> np.ndarray:
    """Compute one layer on all samples."""
    return all_samples(engine, net, node, {node.input[0]: given}, net.consts)[0]


def _profiled(net: Net, sim: Simulator, profile: Profile, kept: list[Sample], changed: Collection[str]) -> _Way:
    """Return a network of which some values changed, with a profile of these."""
    net = with_shared_weights(net)
    after = profile_net(net, sim.engine, kept)
    tensors = {n: after.tensors[n] if n in changed else s for n, s in profile.tensors.items()}
    exact = run_net(sim.engine, net, {p.name: sim.exact[p.name] for p in net.inputs})
    equal = Profile(profile.graph_hash, profile.samples, tensors)
    return _Way(Simulator(net, sim.plan, sim.engine, exact), equal)


def _chosen(
    sim: Simulator | None, net: Net, plan: Plan, profile: Profile, options: QuantizeOptions, progress: Progress
) -> tuple[Chosen, Coded]:  # fmt: skip
    """Return ranges, weights and biases: fitted and measured where there are samples."""
    net = sim.net if sim else net
    if options.like is not None:
        chosen = params_like(options.like, plan)
    else:
        chosen = _whole(
            by_calibration(sim, net, plan, profile, options.calibration, options.schema), net, plan, options
        )
    nearest = nearest_layers(net, plan, chosen.params, options.schema, kinds_of(net, plan, options.precision))
    if sim is None:
        return chosen, nearest
    coded = nearest
    power2 = options.schema is Schema.SYMMETRIC_WITH_POWER2_SCALE
    fit = options.fit or FITS[options.activations]
    if options.bias_correction or options.rounding:
        rounding = options.rounding and not power2
        coded = fitted_layers(sim, chosen.params, nearest, fit, wide_fit=options.fit or FITS[Activations.INT16],
                              rounding=rounding, correction=options.bias_correction, progress=progress)  # fmt: skip
    if options.bias_correction and 1 < profile.samples < ENOUGH:  # of more samples the mean is believed anyway
        other = replace(coded, biases=nearest.biases)
        other = fitted_layers(sim, chosen.params, other, fit, rounding=False, agreed=True)
        coded = _better(sim, chosen, coded, other)
    measures = options.like is None and options.calibration is Calibration.AUTO
    if not measures or profile.samples < ENOUGH or plan.bits > 8:
        return chosen, coded
    chosen = by_measure(sim, profile, options.schema, chosen, coded.consts(net), progress)
    chosen = _whole(chosen, net, plan, options)
    if options.bias_correction:
        coded = _better(sim, chosen, coded, fitted_layers(sim, chosen.params, coded, fit, rounding=False))
    return chosen, coded


def _whole(chosen: Chosen, net: Net, plan: Plan, options: QuantizeOptions) -> Chosen:
    """Return the ranges with which conversions between 8 and 16 bits need no float."""
    if not plan.wide or options.schema is Schema.SYMMETRIC_WITH_POWER2_SCALE:
        return chosen
    return replace(chosen, params=without_float(plan, net, chosen.params))


def _better(sim: Simulator, chosen: Chosen, one: Coded, other: Coded) -> Coded:
    """Return the one with the lesser error of the outputs."""
    errors = [sum(sim.tail_errors(sim.run(chosen.params, c.consts(sim.net)))) for c in (one, other)]
    return one if errors[0] <= errors[1] else other
