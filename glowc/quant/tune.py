"""Mixed precision by measured sensitivity: what loses most is on int16 or stays float, until accuracy is near enough.

What a tensor loses is measured on the kept samples: how much less the outputs err in simulation when neither it nor the
weights of the layers at it are rounded. It is float only where all layers at it are, so they stay float together. Then
such sets are added in that order; each trial is quantised as a whole and judged on all labelled samples. Before any
layer becomes float, int16 is tried: if all layers on it are near enough, as few of them as are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import onnx
from onnx import NodeProto

from glowc.errors import NoChoiceError
from glowc.quant.calibrate import Calibration
from glowc.quant.choose import by_calibration
from glowc.quant.data import as_port
from glowc.quant.emit import edge_params
from glowc.quant.engine import Engine, default_prepare
from glowc.quant.finer import as_wishes, finest, unions
from glowc.quant.layers import Coded, coded_layers, nearest_layers
from glowc.quant.net import Net, Port, model_of
from glowc.quant.plan import BINARY, LAYERS, Plan, make_plan, values_of
from glowc.quant.profile import Profile
from glowc.quant.quantizer import Quantized, QuantizeOptions, dtypes_of, quantize_net
from glowc.quant.scheme import Activations, Params
from glowc.quant.simulate import Simulator, simulator

Sample = Mapping[str, np.ndarray]
Score = Callable[[np.ndarray], float]
Progress = Callable[[str], None]
_RANKED_ON = 16  # samples of a simulation
_FLOAT_BYTES = 3  # that a float weight takes more than a code


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial: the layers that were float in it, what it scored, the points below float, and further bytes.

    `wide` are the layers that were on int16.
    """

    keep_float: tuple[str, ...]
    score: float
    drop_points: float
    extra_bytes: int
    wide: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """What is wanted: at most so many points below float, by a score from 0 to 1 of all outputs of `samples`."""

    points: float
    samples: Sequence[Sample]
    score: Score


@dataclass(frozen=True, slots=True)
class Tuned:
    """The model of the last trial that was good enough, all trials, and what float scores."""

    done: Quantized
    float_score: float
    trials: tuple[Trial, ...]


@dataclass(slots=True)
class _Search:
    """The trials so far."""

    net: Net
    engine: Engine
    profile: Profile
    kept: list[Sample]
    options: QuantizeOptions
    target: Target
    float_score: float
    progress: Progress
    trials: list[Trial]

    def tried(self, names: tuple[str, ...], wide: tuple[str, ...] = ()) -> tuple[Quantized, Trial]:
        """Quantise with some more layers float, or on int16, and judge."""
        finer = f", {len(wide)} on int16" if wide else ""
        self.progress(f"trial {len(self.trials) + 1}: {len(names)} layers float{finer}")
        own = self.options.precision
        precision = replace(own, activations_of={**as_wishes(wide), **own.activations_of})
        options = replace(self.options, keep_float=(*self.options.keep_float, *names), precision=precision)
        done = quantize_net(self.net, self.engine, self.profile, self.kept, options, lambda _: None)
        score = self.target.score(outputs_of(done.model, self.net.inputs, self.target.samples))
        trial = Trial(names, score, 100 * (self.float_score - score), self._extra(names), wide)
        self.trials.append(trial)
        return done, trial

    def _extra(self, names: tuple[str, ...]) -> int:
        sizes = {n.output[0]: self.net.consts[n.input[1]].size for n in self.net.nodes if len(n.input) > 1
                 and n.input[1] in self.net.consts}  # fmt: skip
        return _FLOAT_BYTES * sum(sizes.get(name, 0) for name in names)

    def enough(self, trial: Trial) -> bool:
        """Say whether a trial meets the target."""
        return trial.drop_points <= self.target.points


def tuned(
    net: Net, engine: Engine, profile: Profile, kept: list[Sample], options: QuantizeOptions, target: Target,
    progress: Progress = lambda _: None,
) -> Tuned:  # fmt: skip
    """Quantise so that the score is at most `target.points` below float. Raises InputError where nothing reaches it."""
    outputs = [onnx.ValueInfoProto(name=p.name) for p in net.outputs]
    exact = outputs_of(model_of(net, net.nodes, net.inputs, outputs, net.consts), net.inputs, target.samples)
    search = _Search(net, engine, profile, kept, options, target, target.score(exact), progress, [])
    done, trial = search.tried(())
    if search.enough(trial):
        return Tuned(done, search.float_score, tuple(search.trials))
    progress("measuring what each layer loses")
    if (finer := _on_int16(search)) is not None:
        return Tuned(finer, search.float_score, tuple(search.trials))
    for names in _growing(sensitivity(net, engine, profile, kept, options)):
        done, trial = search.tried(names)
        if search.enough(trial):
            done = _pruned(search, done, trial)
            return Tuned(done, search.float_score, tuple(search.trials))
    raise NoChoiceError(
        f"with {len(trial.keep_float)} layers float the drop is {trial.drop_points:.2f} points, more than "
        f"{target.points:g}; with all of them nothing is quantized",
        details=trial_lines(search.trials),
        hint="allow a larger --target-accuracy, or look at the data: glowc eval shows which layer loses it",
    )


def _on_int16(search: _Search) -> Quantized | None:
    """Return the model with as few layers on int16 as are near enough; None where not even all of them are.

    Sets of layers grow by what they gain for their work (glowc/quant/finer.py); which is needed is found by halving.
    """
    if search.options.activations is not Activations.INT8:
        return None
    sets = unions(finest(search.net, search.engine, search.profile, search.kept, search.options))
    tried = cache(lambda count: search.tried((), sets[count - 1]))
    if not sets or not search.enough(tried(len(sets))[1]):
        return None
    needed = bisect_left(range(1, len(sets)), True, key=lambda count: search.enough(tried(count)[1])) + 1
    return tried(needed)[0]


def _growing(order: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return unions of the first sets, each larger than the one before; the last is smaller than that of all."""
    found: list[tuple[str, ...]] = [()]
    for names in order:
        union = tuple(dict.fromkeys((*found[-1], *names)))
        if len(union) > len(found[-1]):
            found.append(union)
    return found[1:-1]


def _pruned(search: _Search, done: Quantized, trial: Trial) -> Quantized:
    """Return the model after layers that turned out not to be needed went back to int8, the largest first."""
    for name in sorted(trial.keep_float, key=lambda n: -search._extra((n,))):
        names = tuple(n for n in trial.keep_float if n != name)
        other, found = search.tried(names)
        if search.enough(found):
            done, trial = other, found
    return done


def sensitivity(
    net: Net, engine: Engine, profile: Profile, kept: Sequence[Sample], options: QuantizeOptions
) -> list[tuple[str, ...]]:  # fmt: skip
    """Return sets of nodes by their first results, those first without whose rounding the outputs err least."""
    some = list(kept[:_RANKED_ON])
    plan = make_plan(net, dtypes_of(net, profile), options.keep_float, bits=options.activations.bits)
    sim = simulator(engine, net, plan, {p.name: np.stack([s[p.name] for s in some]) for p in net.inputs})
    kind = Calibration.MINMAX if options.calibration is Calibration.AUTO else options.calibration
    params = by_calibration(sim, net, plan, profile, kind, options.schema).params
    coded = nearest_layers(net, plan, params, options.schema)
    alone = {(n.output[0],): frozenset[str]() for n in coded_layers(net, plan)}
    errors = {names: _error_without(sim, params, coded, names, groups)
              for names, groups in {**alone, **_together(net, plan)}.items()}  # fmt: skip
    return sorted(errors, key=lambda names: errors[names])


def _together(net: Net, plan: Plan) -> dict[tuple[str, ...], frozenset[str]]:
    """Return the groups of tensors that only certain layers and binary operators hold on codes, by these nodes."""
    found: dict[tuple[str, ...], frozenset[str]] = {}
    for group, members in plan.groups.items():
        nodes = [n for n in net.nodes if n.op_type in LAYERS | BINARY and plan.computes_codes(n)]
        names = tuple(n.output[0] for n in nodes if {*values_of(net, n), _result(plan, n)} & {*members})
        if names:
            found[names] = found.get(names, frozenset()) | {group}
    return found


def _result(plan: Plan, node: NodeProto) -> str:
    return plan.fused.get(node.output[0], node.output[0])


def _error_without(
    sim: Simulator, params: Mapping[str, Params], coded: Coded, names: tuple[str, ...], groups: frozenset[str]
) -> float:  # fmt: skip
    """Return the simulated error of the outputs when some groups of tensors and some weights are not rounded."""
    left = {name: p for name, p in params.items() if name not in groups}
    weights = {name: w for name, w in coded.weights.items() if name not in names}
    return float(np.sum(sim.tail_errors(sim.run(left, Coded(weights, coded.biases).consts(sim.net)))))


def outputs_of(model: onnx.ModelProto, inputs: Sequence[Port], samples: Sequence[Sample]) -> np.ndarray:
    """Return the first output of all samples, real values: codes at the model's edge are converted."""
    params, run = edge_params(model), default_prepare()(model)
    dtypes = {v.name: onnx.helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in model.graph.input}
    ports = [Port(p.name, p.shape, dtypes[p.name], params.get(p.name)) for p in inputs if p.name in dtypes]
    results = [run({p.name: _given(sample[p.name], p) for p in ports})[0] for sample in samples]
    found = np.stack(results)
    known = params.get(model.graph.output[0].name)
    if known is None or found.dtype.kind not in "iu":
        return found
    return np.asarray((found.astype(np.float32) - known.zero_point) * np.float32(known.scale))


def _given(array: np.ndarray, port: Port) -> np.ndarray:
    return as_port(array, port) if array.dtype.kind == "f" else array


def trial_lines(trials: Sequence[Trial]) -> list[str]:
    """Return a line for each trial: what was float, what it scored, what it cost."""
    lines = []
    for trial in trials:
        kept = f"{len(trial.keep_float)} float: {', '.join(trial.keep_float)}" if trial.keep_float else "all int8"
        kept = f"{len(trial.wide)} on int16: {', '.join(trial.wide)}" if trial.wide else kept
        cost = f", {trial.extra_bytes:,} bytes more" if trial.extra_bytes else ""
        lines.append(f"{kept}: {100 * trial.score:.2f} %, {trial.drop_points:.2f} points below float{cost}")
    return lines
