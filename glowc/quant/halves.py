"""Networks in half or double precision -> the same in float32, which is what the quantiser measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from glowc.quant.net import Net, Port

OTHER_FLOATS = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE})
_TYPES = frozenset(np.dtype(helper.tensor_dtype_to_np_dtype(kind)) for kind in OTHER_FLOATS)
_NAMES_TYPE = frozenset({"to", "dtype", "stash_type", "softmax_precision"})
"""Attributes that are an element type."""


def in_float32(net: Net) -> Net:
    """Return the network with all values of float16, bfloat16 and float64 as float32."""
    return replace(
        net,
        inputs=tuple(_widened(port) for port in net.inputs),
        outputs=tuple(_widened(port) for port in net.outputs),
        nodes=tuple(_in_float32(node) for node in net.nodes),
        consts={n: a.astype(np.float32) if a.dtype in _TYPES else a for n, a in net.consts.items()},
    )


def _widened(port: Port) -> Port:
    return replace(port, dtype=np.dtype(np.float32)) if port.dtype in _TYPES else port


def _in_float32(node: NodeProto) -> NodeProto:
    """Return the node with float32 for other floats in its constants and types."""
    done = NodeProto()
    done.CopyFrom(node)
    for attribute in done.attribute:
        if attribute.HasField("t") and attribute.t.data_type in OTHER_FLOATS:
            array = np.asarray(numpy_helper.to_array(attribute.t), np.float32)
            attribute.t.CopyFrom(numpy_helper.from_array(array, attribute.t.name))
        if attribute.name in _NAMES_TYPE and attribute.i in OTHER_FLOATS:
            attribute.i = TensorProto.FLOAT
    return done
