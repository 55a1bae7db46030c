"""The range of an output that becomes codes: its rounding is the last one, nothing behind it averages it out.

How far the largest values of single samples vary says what margin a further one needs: of n samples the range ends
12 / n standard deviations beyond the second largest, or at the largest of all: one far beyond the others is enough.
"""

from __future__ import annotations

import numpy as np

from glowc.quant.plan import Plan, sources
from glowc.quant.scheme import Params, fake, params_of
from glowc.quant.simulate import Simulator

FEWEST_SAMPLES = 3
SPREADS = 12  # standard deviations, divided by the number of samples
_WIDTHS = np.linspace(1.0, 1.02, 9)  # of these steps that with the least error on the samples


def output_params(sim: Simulator, plan: Plan, first: str, low: float, high: float) -> Params | None:
    """Return the quantisation of a group with an output, whose values are from `low` to `high`.

    None for other groups, and where there are fewer samples than say anything.
    """
    names = plan.groups[first]
    if not sim.net.output_names() & {*names}:
        return None
    values = [
        sim.exact[n].reshape(len(sim.exact[n]), -1) for n in sources(sim.net, names, plan.converted) if n in sim.exact
    ]
    if not values or len(values[0]) < FEWEST_SAMPLES:
        return None
    lines = np.concatenate(values, axis=1)
    low, high = min(low, -_end(-lines.min(axis=1)), 0.0), max(high, _end(lines.max(axis=1)), 0.0)
    tried = [params_of(low * w, high * w) for w in _WIDTHS]
    return min(tried, key=lambda params: _square_error(fake(lines, params) - lines))


def _square_error(difference: np.ndarray) -> float:
    return float(np.square(difference, dtype=np.float64).sum())  # of large floats it leaves float32


def _end(largest: np.ndarray) -> float:
    """Return what the largest value of a further sample should not exceed, by those of samples but the largest one."""
    rest = np.sort(largest.astype(np.float64))[:-1]
    return float(rest[-1] + rest.std() * SPREADS / len(largest))
