"""A network for a later opset: int16 codes need one in which QuantizeLinear knows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

from glowc.errors import ModelError
from glowc.quant.net import Net, model_of

SIXTEEN_BIT_OPSET = 21  # QuantizeLinear and DequantizeLinear of int16 (ONNX 1.16)


def raised(net: Net, opset: int = SIXTEEN_BIT_OPSET) -> Net:
    """Return the network with the operators of `opset`; its values keep their names. Raises ModelError.

    The converter makes inputs of attributes: constants that the network then has besides.
    """
    ir_version = max(net.ir_version, helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))
    if net.opset >= opset:
        return replace(net, ir_version=ir_version)
    outputs = [
        helper.make_tensor_value_info(p.name, helper.np_dtype_to_tensor_dtype(p.dtype), p.shape) for p in net.outputs
    ]
    model = model_of(net, net.nodes, net.inputs, outputs, net.consts)
    try:
        done = version_converter.convert_version(model, opset)
    except Exception as error:  # the converter raises what it likes
        raise ModelError(
            f"{net.name} uses opset {net.opset}, and ONNX's converter does not make {opset} of it: int16 needs that",
            details=str(error).splitlines()[:2],
            hint=f"export the model again with opset {opset} or later, or quantise it with int8 activations",
        ) from error
    consts = {i.name: numpy_helper.to_array(i) for i in done.graph.initializer}
    consts |= {n.output[0]: _constant(n) for n in done.graph.node if n.op_type == "Constant"}
    nodes = tuple(n for n in done.graph.node if n.op_type != "Constant")
    opsets = {o.domain: o.version for o in done.opset_import}
    return replace(net, nodes=nodes, consts={**net.consts, **consts}, opsets=opsets, ir_version=ir_version)


def _constant(node: onnx.NodeProto) -> np.ndarray:
    return next(numpy_helper.to_array(a.t) for a in node.attribute if a.name == "value")
