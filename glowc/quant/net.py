"""`Net`, what the quantiser works on: nodes in order, constants as arrays, static inputs.

These are ONNX's nodes, not the compiler's: what it writes is again an ONNX file for any runtime.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from glowc.paths import full_version
from glowc.quant.scheme import Params

Consts = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a network: its shape is known, and for inputs static; integers may be codes.

    `free` are the axes whose size the model leaves open, with the name it has for that, if any; the size is 1 until
    data says otherwise. `alias` is what the file calls it besides. `start` of a state is its value before the first
    step: samples need not have it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    params: Params | None = None
    free: Mapping[int, str] = field(default_factory=dict)
    alias: str = ""
    start: np.ndarray | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Net:
    """A network of ONNX nodes; every constant is in `consts`. `words` are what a file calls each node by its name.

    `states` are inputs with the output that each is at the next step.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[NodeProto, ...]
    consts: Consts
    opsets: Mapping[str, int]
    ir_version: int
    words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        return self.opsets[""]

    def users(self) -> dict[str, list[NodeProto]]:
        """Return the nodes that read each value."""
        found: dict[str, list[NodeProto]] = defaultdict(list)
        for node in self.nodes:
            for name in dict.fromkeys(node.input):
                found[name].append(node)
        return found

    def producers(self) -> dict[str, NodeProto]:
        """Return the node that makes each value."""
        return {name: node for node in self.nodes for name in node.output if name}

    @property
    def computed(self) -> tuple[Port, ...]:
        """The outputs that are no constants."""
        return tuple(port for port in self.outputs if port.name not in self.consts)

    def output_names(self) -> frozenset[str]:
        """Return the names of the network's outputs."""
        return frozenset(port.name for port in self.outputs)

    def called(self, node: NodeProto) -> frozenset[str]:
        """Return what a user may call a node: by name, by result, by kind of operator, here or in the user's file."""
        return self.words.get(node.name, frozenset()) | {node.name, node.op_type, *node.output} - {""}

    def with_consts(self, consts: Consts) -> Net:
        """Return the network with further, or other, constants."""
        return replace(self, consts={**self.consts, **consts})


def int_of(node: NodeProto, name: str, default: int) -> int:
    """Return an attribute that is an integer."""
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def float_of(node: NodeProto, name: str, default: float) -> float:
    """Return an attribute that is a number."""
    return next((float(a.f) for a in node.attribute if a.name == name), default)


def ints_of(node: NodeProto, name: str) -> list[int]:
    """Return an attribute that is a list of integers; an empty one where the node has none."""
    return next((list(a.ints) for a in node.attribute if a.name == name), [])


def text_of(node: NodeProto, name: str, default: str) -> str:
    """Return an attribute that is a word."""
    return next((a.s.decode() for a in node.attribute if a.name == name), default)


def label(node: NodeProto) -> str:
    """Return how messages call a node."""
    return f'{node.op_type} "{node.name or node.output[0]}"'


def graph_hash(net: Net) -> str:
    """Return a hash of what the network computes, constants included; names of values count, its own does not."""
    digest = hashlib.sha256()
    for port in net.inputs:
        digest.update(f"{port.name} {port.shape} {port.dtype}\n".encode())
    for node in net.nodes:
        digest.update(f"{node.domain} {node.op_type} {list(node.input)} {list(node.output)}\n".encode())
        for attribute in sorted(node.attribute, key=lambda a: a.name):
            digest.update(attribute.SerializeToString(deterministic=True))
    for name in sorted(net.consts):
        digest.update(f"{name} {net.consts[name].shape}".encode() + net.consts[name].tobytes())
    return f"sha256:{digest.hexdigest()[:16]}"


def model_of(
    net: Net, nodes: Iterable[NodeProto], inputs: Iterable[Port], outputs: Iterable[onnx.ValueInfoProto], consts: Consts
) -> onnx.ModelProto:
    """Return an ONNX model of some nodes of `net`."""
    graph = helper.make_graph(
        list(nodes), net.name,
        [helper.make_tensor_value_info(p.name, helper.np_dtype_to_tensor_dtype(p.dtype), p.shape) for p in inputs],
        list(outputs), [numpy_helper.from_array(np.asarray(a, order="C"), n) for n, a in consts.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid(domain, version) for domain, version in net.opsets.items()]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=net.ir_version, producer_name="glowc", producer_version=full_version()
    )
