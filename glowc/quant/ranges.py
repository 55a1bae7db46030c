"""What ranges end at besides the values that were seen.

Bounds: what a value can be at most, by the operators that make it: no range goes beyond, however few samples there are.
States of usual LSTM and GRU layers lie between -1 and 1, a Softmax and a Sigmoid between 0 and 1, a Clip within its
bounds; means and maxima of such values as well.

An output that becomes codes: its rounding is the last one, nothing behind it averages it out. How far the largest
values of single samples vary says what margin a further one needs: of n samples the range ends 12 / n standard
deviations beyond the second largest, or at the largest of all: one far beyond the others is enough.

A range inside the network ends beyond the values seen, by a part of it that number of samples and of values say, and
by how far the larger half of the samples goes beyond the range of the others: values that vary need more room.

The lower end of what goes into a Softmax: what lies far below the largest value of its row is nothing. An input that is
k below the largest gives at most exp(-k) of the result. `_STEPS` times the length of a row of such values add at most
one step of 1/256 to its sum, so codes for anything lower are wasted; those left are finer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from glowc.quant.masked import MASK
from glowc.quant.net import Net, int_of
from glowc.quant.plan import SAME, Plan, sources
from glowc.quant.profile import Profile
from glowc.quant.recurrent import RECURRENT, why_not
from glowc.quant.scheme import QMAX, QMIN, Params, fake, params_of
from glowc.quant.simulate import Simulator

Bounds = tuple[float, float]
_ANY: Bounds = (-np.inf, np.inf)
_KNOWN: dict[str, Bounds] = {
    **dict.fromkeys(("Tanh", "Softsign", *RECURRENT), (-1.0, 1.0)),
    **dict.fromkeys(("Softmax", "Sigmoid", "HardSigmoid"), (0.0, 1.0)),
}
_WITHIN = frozenset({"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "ReduceMean"}) | SAME - {"Concat", "Pad"}
"""Operators whose results lie within the range of their first input, or are 0."""


def bounds_of(net: Net, names: Iterable[str]) -> Bounds:
    """Return the bounds of all values of some tensors."""
    producers = net.producers()
    found = [_bounds(net, producers, name) for name in names]
    return min(low for low, _ in found), max(high for _, high in found)


def _bounds(net: Net, producers: Mapping[str, NodeProto], name: str) -> Bounds:
    while (node := producers.get(name)) is not None and node.op_type in _WITHIN:
        name = node.input[0]
    if node is None or (node.op_type in RECURRENT and (why_not(net, node) is not None or name in node.output[2:])):
        return _ANY
    if node.op_type != "Clip":
        return _KNOWN.get(node.op_type, _ANY)
    ends = [net.consts.get(n) if n else None for n in [*node.input[1:], "", ""][:2]]
    low, high = (float(e.reshape(())) if e is not None else a for e, a in zip(ends, _ANY, strict=True))
    return low, high


FEWEST_SAMPLES = 3
SPREADS = 12  # standard deviations, divided by the number of samples
_LEFT_OUT = 24  # times how far samples that are left out go beyond the others, divided by the number of samples
_CHANGE = 2.0  # by which they change the usual margin at most
_WIDTHS = np.linspace(1.0, 1.02, 9)  # of these steps that with the least error on the samples


def output_params(sim: Simulator, plan: Plan, first: str, low: float, high: float) -> Params | None:
    """Return the quantisation of a group with an output, whose values are from `low` to `high`.

    None for other groups, and where there are fewer samples than say anything.
    """
    names = plan.groups[first]
    if not sim.net.output_names() & {*names}:
        return None
    lines = _lines(sim, sources(sim.net, names, plan.converted))
    if len(lines) < FEWEST_SAMPLES:
        return None
    low, high = min(low, -_end(-lines.min(axis=1)), 0.0), max(high, _end(lines.max(axis=1)), 0.0)
    tried = [params_of(low * w, high * w) for w in _WIDTHS]
    return min(tried, key=lambda params: _square_error(fake(lines, params) - lines))


def _lines(sim: Simulator, names: Iterable[str]) -> np.ndarray:
    """Return the values of tensors by sample; nothing where these are constants."""
    values = [sim.exact[name].reshape(len(sim.exact[name]), -1) for name in names if name in sim.exact]
    return np.concatenate(values, axis=1) if values else np.zeros((0, 0), np.float32)


def by_left_out(
    sim: Simulator, names: Iterable[str], usual: tuple[float, float], share: float
) -> tuple[float, float]:  # fmt: skip
    """Return the margins below and above a range by how far samples go beyond the range of others, and by usual ones.

    They are the geometric means of both, within half and twice of the usual ones: six samples say little. Of the
    logarithm of what that changes a `share` counts: a value outside is one of many where samples have many. With fewer
    samples than say anything they are the usual ones.
    """
    lines = _lines(sim, names)
    if len(lines) < FEWEST_SAMPLES:
        return usual
    beyond = [_LEFT_OUT * _excess(ends) / len(lines) for ends in (-lines.min(axis=1), lines.max(axis=1))]
    below, above = (u * _change(u, b) ** share for u, b in zip(usual, beyond, strict=True))
    return below, above


def _change(usual: float, beyond: float) -> float:
    return float(np.clip(np.sqrt(beyond / usual), 1 / _CHANGE, _CHANGE)) if usual else 1.0


def _excess(largest: np.ndarray) -> float:
    """Return how far the half of the samples with the largest values goes beyond the range of the others, in mean."""
    ends = np.sort(np.maximum(largest.astype(np.float64), 0))
    half = len(ends) // 2
    return float(ends[-half:].mean() - ends[-half - 1])


def _square_error(difference: np.ndarray) -> float:
    return float(np.square(difference, dtype=np.float64).sum())  # of large floats it leaves float32


def _end(largest: np.ndarray) -> float:
    """Return what the largest value of a further sample should not exceed, by those of samples but the largest one."""
    rest = np.sort(largest.astype(np.float64))[:-1]
    return float(rest[-1] + rest.std() * SPREADS / len(largest))


_STEPS = 256
_HEADROOM = 6.0  # above the largest result of a Softmax that was seen, as a part of it, times the number of samples
_LEAST_TOP = 2.0  # times the mean of a row: onnxruntime's kernel overflows where 1 / scale is over 148 for each of it


def softmax_result(sim: Simulator, names: tuple[str, ...]) -> Params | None:
    """Return the quantisation of the results of a Softmax, where they are far below 1.

    1 / scale is rounded down by kernels, so it is just above a whole number.
    """
    makers = [n for n in sim.net.nodes if n.op_type == "Softmax" and n.output[0] in names]
    if len(makers) != 1:
        return None
    node = makers[0]
    values = sim.exact[node.output[0]]
    axis = int_of(node, "axis", -1)
    row = values.shape[axis if axis < 0 else axis + 1]
    top = max(float(values.max()) * (1 + _HEADROOM / len(values)), _LEAST_TOP / row)
    steps = int((QMAX - QMIN) / top)
    if steps <= _STEPS:
        return None
    return Params(float(np.nextafter(np.float32(1 / steps), np.float32(0))), QMIN)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A network, what of it is quantised, and what is known of its values: samples of them, or their ranges."""

    net: Net
    plan: Plan
    floor_of: Callable[[NodeProto], float | None]
    largest: Callable[[str], float]

    def floor(self, group: str | None) -> float | None:
        """Return the lowest value that a group needs; None where someone else than a Softmax reads it.

        What is added to others before it, as a mask is, needs values so low that none of these brings it above the
        floor of the sum.
        """
        users, outputs, floors = self.net.users(), self.net.output_names(), list[float]()
        names = self.plan.groups.get(group or "", ())
        for name in names:
            readers = users.get(name, [])
            if name in outputs or not readers:
                return None
            for node in readers:
                found = None
                if node.op_type == "Softmax":
                    found = self.floor_of(node)
                elif node.op_type == "Add" and node.output[0] not in names:
                    sums = self.floor(self.plan.group_of.get(node.output[0]))
                    if sums is None:
                        return None
                    found = sums - sum(self.largest(other) for other in node.input if other != name)
                elif node.op_type not in SAME or not {*node.output} <= {*names}:
                    return None
                floors += [] if found is None else [found]
        return min(floors, default=None)


def softmax_floor(sim: Simulator, group: str) -> float | None:
    """Return the lowest value that a group needs, by samples; None where someone else than a Softmax reads it."""
    known = {**sim.exact, **{name: array[None] for name, array in sim.net.consts.items()}}

    def floor_of(node: NodeProto) -> float | None:
        values = sim.exact.get(node.input[0])
        return None if values is None else _floor_of(node, values)

    return _Seen(sim.net, sim.plan, floor_of, lambda name: float(known[name].max())).floor(group)


def profile_floor(net: Net, plan: Plan, profile: Profile, group: str) -> float | None:
    """Return the same by ranges alone, for what goes into a Softmax as the sum of values and a mask."""
    producers = net.producers()
    ends = {n: (s.low, s.high) for n, s in profile.tensors.items()}
    ends |= {n: (float(a.min()), float(a.max())) for n, a in net.consts.items() if a.size and a.dtype.kind == "f"}

    def floor_of(node: NodeProto) -> float | None:
        name = node.input[0]
        while (maker := producers.get(name)) is not None and maker.op_type in SAME:
            name = maker.input[0]
        if maker is None or maker.op_type != "Add":
            return None
        lowest = sum(low for low, _ in (ends[n] for n in maker.input) if low > MASK)
        return float(lowest - np.log(_STEPS * profile.tensors[name].histogram.sum() / profile.samples))

    return _Seen(net, plan, floor_of, lambda name: ends[name][1]).floor(group)


def _floor_of(node: NodeProto, values: np.ndarray) -> float:
    """Return the floor for values [sample][...] of one Softmax."""
    axis = int_of(node, "axis", -1)
    axis = axis if axis < 0 else axis + 1  # samples come first
    return float(values.max(axis=axis).min() - np.log(_STEPS * values.shape[axis]))
