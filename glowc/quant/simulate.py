"""A network with some values rounded to codes, run in float: what a quantisation does to the outputs.

It differs from the integer kernels by rounding of float32 sums only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from glowc.quant.engine import Engine, Values, run_net
from glowc.quant.net import Net
from glowc.quant.plan import Plan
from glowc.quant.recurrent import rounded_weights
from glowc.quant.scheme import Params, fake

ParamsOf = Mapping[str, Params]


@dataclass(frozen=True, slots=True)
class Simulator:
    """A network, what of it is quantised, sample data, and its float values on them."""

    net: Net
    plan: Plan
    engine: Engine
    exact: Values
    _rows: dict[str, np.ndarray] = field(default_factory=dict)
    _kept: dict[tuple[str, Params], np.ndarray] = field(default_factory=dict)  # the engine knows constants by identity

    def rounded(self, params: ParamsOf, name: str, array: np.ndarray) -> np.ndarray:
        """Return a value as its codes hold it; values that are not quantised as they are."""
        group = self.plan.group_of.get(name)
        return array if group is None or group not in params else fake(array, params[group])

    def consts(self, params: ParamsOf, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the constants as codes hold them."""
        known = self.net.consts
        rounded = {n: self._constant(n, params[g]) for n, g in self.plan.group_of.items() if n in known and g in params}
        if not self._rows:
            self._rows.update(rounded_weights(self.net, self.plan.quantised))
        return {**known, **self._rows, **rounded, **weights}

    def _constant(self, name: str, params: Params) -> np.ndarray:
        return self._kept.setdefault((name, params), fake(self.net.consts[name], params))

    def run(self, params: ParamsOf, weights: Mapping[str, np.ndarray]) -> Values:
        """Return all values of the quantised network on the samples."""
        given = {p.name: self.exact[p.name] for p in self.net.inputs}
        consts = self.consts(params, weights)
        return run_net(self.engine, self.net, given, lambda n, a: self.rounded(params, n, a), consts=consts)

    def output_error(self, values: Values) -> float:
        """Return the mean over outputs of their root mean square error over the largest magnitude."""
        return float(np.mean([relative_error(values[p.name], self.exact[p.name]) for p in self.net.computed]))

    def tail_errors(self, values: Values) -> list[float]:
        """Return the errors of the outputs, and of what goes into a final Softmax: it hides most of them."""
        producers = self.net.producers()
        names = [p.name for p in self.net.computed]
        last = [producers[name] for name in names if name in producers]
        names += [node.input[0] for node in last if node.op_type == "Softmax"]
        return [relative_error(values[name], self.exact[name]) for name in names]


def relative_error(values: np.ndarray, exact: np.ndarray) -> float:
    """Return the root mean square error over the largest magnitude."""
    if exact.dtype.kind != "f" or not exact.size:
        return 0.0
    difference = np.square(values.astype(np.float64) - exact)
    return float(np.sqrt(difference.mean()) / max(float(np.abs(exact).max()), 1e-30))


def simulator(engine: Engine, net: Net, plan: Plan, samples: Mapping[str, np.ndarray]) -> Simulator:
    """Return a simulator of a network on samples: one array per input, samples first."""
    return Simulator(net, plan, engine, run_net(engine, net, samples))
