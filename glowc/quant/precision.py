"""The type of weights: the same for all layers that gain by fewer, and the wishes for single layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnx import NodeProto

from glowc.board.checked import Checked
from glowc.errors import InputError
from glowc.kernels.records import FEWEST
from glowc.quant.net import Net, int_of
from glowc.quant.plan import Plan, weights_of
from glowc.quant.scheme import Activations
from glowc.quant.weight_types import WeightType


@dataclass(frozen=True, slots=True, repr=False)
class Precision(Checked):
    """The type of weights, and that of single layers: by node, by result, or by kind of operator.

    `activations_of` are the types of the codes on which single layers compute, named likewise.
    """

    weights: WeightType = WeightType.INT8
    of: Mapping[str, WeightType] = field(default_factory=dict)
    activations_of: Mapping[str, Activations] = field(default_factory=dict)


def kinds_of(net: Net, plan: Plan, precision: Precision) -> dict[str, WeightType]:
    """Return the type of the weights of each layer by its first result. Raises InputError for unknown names."""
    layers = [node for node in net.nodes if plan.computes_codes(node) and weights_of(net, node) is not None]
    words = {node.output[0]: net.called(node) for node in layers}
    unknown = [name for name in precision.of if not any(name in known for known in words.values())]
    if unknown:
        shown = ", ".join(node.name or node.output[0] for node in layers[:20])
        raise InputError(
            f"no quantized layer with weights is called {unknown[0]!r}", details=[f"the model has {shown}"]
        )
    found = {}
    for node in layers:
        wished = [kind for name, kind in precision.of.items() if name in words[node.output[0]]]
        common = precision.weights if gains(net, node) else WeightType.INT8
        found[node.output[0]] = wished[-1] if wished else common
    return found


def gains(net: Net, node: NodeProto) -> bool:
    """Say whether a layer is stored in less with weights of few bits: not a depthwise one, nor one of a few weights."""
    one_group = node.op_type in ("Gemm", "MatMul") or (node.op_type == "Conv" and int_of(node, "group", 1) == 1)
    return one_group and net.consts[node.input[1]].size >= FEWEST
