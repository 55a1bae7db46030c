"""What of a network depends on constants and static shapes alone, found by running it on zeros node by node."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from glowc.quant.engine import Engine, Values
from glowc.quant.net import Net

_RANDOM = frozenset({
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
})  # fmt: skip


class Walk:
    """The values seen so far: `consts` are known whatever the inputs hold, `values` are those of zeros."""

    def __init__(self, net: Net, engine: Engine) -> None:
        self._net, self._engine = net, engine
        self.consts: Values = dict(net.consts)
        self.values: Values = {port.name: np.zeros(port.shape, port.dtype) for port in net.inputs}

    def run(self, node: NodeProto) -> bool:
        """Run the next node; say whether its results are known. Raises ModelError where it cannot be run."""
        with np.errstate(all="ignore"):
            arrays = self._engine.run_node(self._net, node, self.values, self.consts)
        fixed = node.op_type in ("Shape", "Size") or all(name in self.consts or not name for name in node.input)
        known = fixed and node.op_type not in _RANDOM
        (self.consts if known else self.values).update(zip((n for n in node.output if n), arrays, strict=True))
        return known
