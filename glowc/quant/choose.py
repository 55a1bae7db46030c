"""Chooses the range of every quantised tensor: by a calibration, or each by the measured error of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from glowc.quant.calibrate import Calibration, grid_params, range_of
from glowc.quant.engine import Values, run_net
from glowc.quant.layers import bias_of, coded_layers
from glowc.quant.masked import MASK
from glowc.quant.net import Net
from glowc.quant.plan import Plan, sources
from glowc.quant.profile import Profile, Stats, merged, stats_of
from glowc.quant.ranges import bounds_of, by_left_out, output_params, profile_floor, softmax_floor, softmax_result
from glowc.quant.scheme import LARGEST_CODE, SMALLEST_SCALE, Params, Schema, fake, params_of
from glowc.quant.simulate import Simulator
from glowc.quant.weight_types import BYTE

FEW_TO_MANY = (128, 1024)
"""Of so many values in a sample few are left outside by a narrow range, and all are rounded by a wide one."""
_MARGIN, _NARROW_MARGIN = 1.0, 0.3  # beyond the range seen, as parts of it, times the number of samples
_NORMALISE = frozenset({"LayerNormalization", "RMSNormalization"})
"""What is cut off from one value here changes its whole line, as above a Softmax: the margin is the full one."""
_STEPS_OF_BIAS = 1024  # of the largest bias of a layer, at least
_CLEARLY = 0.8  # of a square error: that codes come to lie well on a few values is chance
_GAIN = 0.995  # a candidate must make the error this much smaller
_CUTS = (Calibration.PERCENTILE, Calibration.ENTROPY, Calibration.MSE)
ENOUGH = 32  # samples from which on ranges are measured: with fewer, what is best on them is chance
_WIDTHS = (0.94, 0.97, 1.03, 1.06, 1.1)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The quantisation of every group, and how it was found, by the name of the group."""

    params: Mapping[str, Params]
    how: Mapping[str, str]


def group_stats(net: Net, plan: Plan, profile: Profile) -> dict[str, Stats]:
    """Return the statistics of each group: of the tensors that bring values into it."""
    return {
        first: merged(
            stats_of(net.consts[n]) if n in net.consts else profile.tensors[n]
            for n in sources(net, names, plan.converted)
        )
        for first, names in plan.groups.items()
    }


def by_calibration(
    sim: Simulator | None, net: Net, plan: Plan, profile: Profile, kind: Calibration, schema: Schema
) -> Chosen:
    """Return the quantisation of each group by one calibration; `auto` starts with the range and a margin."""
    params, how = {}, {}
    for first, stats in group_stats(net, plan, profile).items():
        constant = all(n in net.consts for n in sources(net, plan.groups[first], plan.converted))
        if first in plan.cells:
            params[first], how[first] = plan.cells[first], "fixed"
        elif schema is Schema.ASYMMETRIC and first in plan.fixed:
            params[first], how[first] = _fixed_of(sim, plan, first), "fixed"
            if sim is not None and kind is Calibration.AUTO and plan.bits_of(first) == BYTE:
                params[first] = _finer_of(sim, net, plan, first, stats, profile, params[first])
        elif _is_narrow(plan, first, schema) and (grid := _grid_of(sim, plan.groups[first])) is not None:
            params[first], how[first] = grid, "grid"
        else:
            wanted = Calibration.MINMAX if constant else kind
            found = _ranged(sim, net, plan, first, stats, profile, wanted, schema)
            params[first] = found if stats.low or stats.high else _of_zeros(net, plan, first, found)
            how[first] = str(wanted)
    return Chosen(params, how)


def _ranged(
    sim: Simulator | None, net: Net, plan: Plan, first: str, stats: Stats, profile: Profile, kind: Calibration,
    schema: Schema,
) -> Params:  # fmt: skip
    """Return the quantisation of a group by its range; of `auto` it has a margin, and leaves out what gives nothing.

    A mask in front of a Softmax is left out by every calibration: no codes would be left for other values.
    """
    bits, masked = plan.bits_of(first), stats.low <= MASK
    low, high = range_of(stats, Calibration.MINMAX if masked else kind, schema)
    if masked or (kind is Calibration.AUTO and bits == BYTE and sim is not None):
        floor = softmax_floor(sim, first) if sim is not None else profile_floor(net, plan, profile, first)
        low = low if floor is None else max(low, floor)
    if kind is not Calibration.AUTO:
        return params_of(low, high, schema, bits)
    if sim is not None and _is_narrow(plan, first, schema):
        found = output_params(sim, plan, first, low, high)
        if found is not None:
            return found
    samples = profile.samples
    values = stats.histogram.sum() / samples
    below, above = _margins(net, plan, first, values)
    names = sources(net, plan.groups[first], plan.converted)
    least, most = bounds_of(net, names)
    margins = max(-low, 0.0) * below / samples, max(high, 0.0) * above / samples
    if bits == BYTE and sim is not None:
        margins = by_left_out(sim, names, margins, _fewness(values))
    return params_of(max(low - margins[0], least), min(high + margins[1], most), schema, bits)


def _of_zeros(net: Net, plan: Plan, first: str, params: Params) -> Params:
    """Return the quantisation of nothing but zeros: any scale holds them, so that of the biases behind them decides."""
    scales = [params.scale]
    for node in coded_layers(net, plan):
        bias, weights = bias_of(net, node), net.consts[node.input[1]]
        if node.input[0] in plan.groups[first] and bias is not None and bias.any() and weights.any():
            scales.append(float(np.abs(bias).max() / np.abs(weights).max() * LARGEST_CODE / _STEPS_OF_BIAS))
    return replace(params, scale=2.0 ** np.floor(np.log2(max(min(scales), SMALLEST_SCALE))))


def _is_narrow(plan: Plan, first: str, schema: Schema) -> bool:
    """Say whether the codes of a group have 8 bits and any zero point."""
    return plan.bits_of(first) == 8 and schema is Schema.ASYMMETRIC


def _margins(net: Net, plan: Plan, first: str, values: float) -> tuple[float, float]:
    """Return the margins of a group of so many values in a sample, times the number of samples."""
    users = net.users()
    readers = {node.op_type for name in plan.groups[first] for node in users.get(name, [])}
    margin = _margin_of(values) if plan.bits_of(first) == 8 and not readers & _NORMALISE else _MARGIN
    return margin, _MARGIN if "Softmax" in readers else margin


def _margin_of(values: float) -> float:
    """Return the margin for tensors of so many values in a sample."""
    return _NARROW_MARGIN + (_MARGIN - _NARROW_MARGIN) * _fewness(values)


def _fewness(values: float) -> float:
    """Return 1 for few values in a sample, 0 for many."""
    return float(np.interp(np.log(max(values, 1.0)), np.log(FEW_TO_MANY), (1, 0)))


def _fixed_of(sim: Simulator | None, plan: Plan, first: str) -> Params:
    """Return the usual quantisation of a known range, or the one that rounds the values seen clearly less."""
    usual, *others = plan.fixed[first]
    names = sources(sim.net, plan.groups[first], plan.converted) if sim is not None else []
    values = [sim.exact[n] for n in names if sim is not None and n in sim.exact]
    errors = {p: sum(float(np.square(fake(v, p) - v).sum()) for v in values) for p in plan.fixed[first]}
    return next((p for p in others if errors[p] < _CLEARLY * errors[usual]), usual)


def _finer_of(
    sim: Simulator, net: Net, plan: Plan, first: str, stats: Stats, profile: Profile, usual: Params
) -> Params:  # fmt: skip
    """Return the quantisation of a known range, or finer codes of that part of it where values are seen.

    An output keeps its range: what a detector is to find may be in no sample.
    """
    if net.output_names() & {*plan.groups[first]}:
        return usual
    if any(n.op_type == "Softmax" and n.output[0] in plan.groups[first] for n in net.nodes):
        found = softmax_result(sim, plan.groups[first]) or usual
    else:
        found = _ranged(sim, net, plan, first, stats, profile, Calibration.AUTO, Schema.ASYMMETRIC)
    return found if found.scale < _CLEARLY * usual.scale else usual


def _grid_of(sim: Simulator | None, names: Iterable[str]) -> Params | None:
    """Return the quantisation that holds an input exactly, whose values are steps of one size: bytes of an image."""
    inputs = {p.name for p in sim.net.inputs} & set(names) if sim is not None else set()
    return grid_params(sim.exact[inputs.pop()]) if sim is not None and len(inputs) == 1 else None


def by_measure(
    sim: Simulator, profile: Profile, schema: Schema, start: Chosen, weights: Mapping[str, np.ndarray],
    progress: Callable[[str], None] = lambda _: None,
) -> Chosen:  # fmt: skip
    """Return the quantisation of each group that gives the outputs the least error, one group after the other."""
    params, how = dict(start.params), dict(start.how)
    stats = group_stats(sim.net, sim.plan, profile)
    values = sim.run(params, weights)
    first_errors = sim.tail_errors(values)
    best = float(len(first_errors))
    for first in in_order(sim.net, sim.plan):
        progress(f"choosing the range of {first}")
        for name, tried in _alternatives(sim.plan, first, start, stats[first], schema):
            new = rerun(sim, {**params, first: tried}, weights, values, first)
            found = sum(a / max(b, 1e-30) for a, b in zip(sim.tail_errors(new), first_errors, strict=True))
            if found < best * _GAIN:
                params[first], how[first], best, values = tried, name, found, new
    return Chosen(params, how)


def _alternatives(
    plan: Plan, first: str, start: Chosen, stats: Stats, schema: Schema
) -> list[tuple[str, Params]]:  # fmt: skip
    """Return what `auto` tries instead of what a group has."""
    if start.how[first] == "grid" or first in plan.wide or schema is Schema.SYMMETRIC_WITH_POWER2_SCALE:
        return []
    if start.how[first] == "fixed":
        return [(f"fixed, scale {p.scale:.6g}", p) for p in plan.fixed[first] if p != start.params[first]]
    known = start.params[first]
    low, high = (known.low, known.high) if schema is Schema.ASYMMETRIC else (min(stats.low, 0), max(stats.high, 0))
    found = {f"range * {w}": params_of(low * w, high * w, schema) for w in _WIDTHS}
    cuts = _CUTS if stats.low > MASK else ()
    found |= {str(kind): params_of(*range_of(stats, kind, schema), schema) for kind in cuts}
    return [(name, params) for name, params in found.items() if params != known]


def in_order(net: Net, plan: Plan) -> list[str]:
    """Return the groups in the order in which values come into them."""
    names = [*(p.name for p in net.inputs), *(n for node in net.nodes for n in (*node.input, *node.output))]
    return list(dict.fromkeys(plan.group_of[n] for n in names if n in plan.group_of))


def rerun(
    sim: Simulator, params: Mapping[str, Params], weights: Mapping[str, np.ndarray], before: Values, group: str
) -> Values:
    """Return the values when one group has another quantisation: only what depends on it is computed again."""
    dirty = set(sim.plan.groups[group])
    nodes = []
    for node in sim.net.nodes:
        if dirty & {*node.input, *node.output}:
            nodes.append(node)
            dirty |= set(node.output)
    given = {p.name: sim.rounded(params, p.name, sim.exact[p.name]) for p in sim.net.inputs}
    consts = sim.consts(params, weights)
    return run_net(
        sim.engine, sim.net, {**before, **given}, lambda n, a: sim.rounded(params, n, a), nodes=nodes, consts=consts
    )
