"""A network with states, step by step: how far the quantised file is from float when its states go round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from glowc.quant.data import as_port
from glowc.quant.emit import edge_params
from glowc.quant.engine import default_prepare, run_net
from glowc.quant.net import Net, Port
from glowc.quant.profile import Profiler
from glowc.quant.simulate import relative_error

Sample = Mapping[str, np.ndarray]


def starts_of(net: Net) -> dict[str, np.ndarray]:
    """Return the states before the first step."""
    return {port.name: port.start for port in net.inputs if port.start is not None}


def error_over_steps(profiler: Profiler, model: onnx.ModelProto, steps: Sequence[Sample]) -> float:
    """Return the mean over outputs, states left out, of their root mean square error over the largest magnitude.

    A step that leaves out a state goes on with that of the step before.
    """
    net = profiler.net
    names = [port.name for port in net.computed if port.name not in net.states.values()]
    exact, found = _float_steps(profiler, steps), _coded_steps(net, model, steps)
    return float(np.mean([relative_error(*(np.stack([s[n] for s in side]) for side in (found, exact))) for n in names]))


def _float_steps(profiler: Profiler, steps: Sequence[Sample]) -> list[dict[str, np.ndarray]]:
    net, states, found = profiler.net, starts_of(profiler.net), list[dict[str, np.ndarray]]()
    for step in steps:
        values = run_net(profiler.engine, net, {name: array[None] for name, array in {**states, **step}.items()})
        found.append({name: array[0] for name, array in values.items()})
        states = {name: found[-1][out] for name, out in net.states.items()}
    return found


def _coded_steps(net: Net, model: onnx.ModelProto, steps: Sequence[Sample]) -> list[dict[str, np.ndarray]]:
    """Return the real values of the outputs of each step."""
    params, run = edge_params(model), default_prepare()(model)
    kinds = {v.name: helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in model.graph.input}
    ports = {p.name: Port(p.name, p.shape, kinds[p.name], params.get(p.name)) for p in net.inputs if p.name in kinds}
    states, found = starts_of(net), list[dict[str, np.ndarray]]()
    for step in steps:
        feed = {n: as_port(a, ports[n]) if a.dtype.kind == "f" else a for n, a in {**states, **step}.items()}
        results = dict(zip([o.name for o in model.graph.output], run({n: feed[n] for n in ports}), strict=True))
        found.append({n: params[n].values(a) if n in params else a for n, a in results.items()})
        states = {name: results[out] for name, out in net.states.items()}
    return found
