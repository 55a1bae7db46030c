"""Normal form of LSTM, GRU and RNN: attribute `layout` becomes `batch_first`, as `layout` names axes in the graph."""

from __future__ import annotations

from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode


def recurrent(node: OnnxNode, b: Builder) -> None:
    """Keep everything else; what the node leaves out stays left out, defaults are the operator's own."""
    attrs = {key: value for key, value in node.attrs.items() if key != "layout"}
    b.emit(node.op, node.inputs, {**attrs, "batch_first": node.int_("layout", 0)}, node.outputs)
