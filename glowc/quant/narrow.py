"""Constants of 4 or 2 bits in an ONNX file: INT4 has been there since opset 21, INT2 since opset 25."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter

from glowc.errors import ModelError
from glowc.quant.engine import default_prepare
from glowc.quant.weights import CRUMB, NIBBLE

_KINDS = {NIBBLE: "INT4", CRUMB: "INT2"}
_FIRST = {NIBBLE: (21, 10), CRUMB: (25, 11)}  # opset and IR version


def has_kind(bits: int) -> bool:
    """Say whether the installed onnx has integers of so many bits."""
    return _KINDS[bits] in TensorProto.DataType.keys()  # noqa: SIM118


@cache
def is_usual(bits: int) -> bool:
    """Say whether the installed onnx has integers of so many bits, and what runs models here knows them."""
    if not has_kind(bits):
        return False
    (opset, ir_version), kind = _FIRST[bits], TensorProto.DataType.Value(_KINDS[bits])
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["codes", "scale"], ["y"])], "narrow", [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1,))],
        [helper.make_tensor("codes", kind, (1,), [1]), helper.make_tensor("scale", TensorProto.FLOAT, (), [1.0])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset)]
    try:
        default_prepare()(helper.make_model(graph, opset_imports=opsets, ir_version=ir_version))({})
    except Exception:
        return False
    return True


def with_narrow(model: onnx.ModelProto, bits: Mapping[str, int]) -> onnx.ModelProto:
    """Return a model whose int8 constants of these names have so many bits. Raises ModelError where it cannot be."""
    model = _raised(model, min(bits.values()))
    for number, tensor in enumerate(model.graph.initializer):
        if tensor.name in bits:
            codes, kind = numpy_helper.to_array(tensor), TensorProto.DataType.Value(_KINDS[bits[tensor.name]])
            narrow = helper.make_tensor(tensor.name, kind, codes.shape, codes.reshape(-1).tolist())
            model.graph.initializer[number].CopyFrom(narrow)
    return model


def _raised(model: onnx.ModelProto, bits: int) -> onnx.ModelProto:
    """Return the model with an opset that knows integers of so many bits."""
    (opset, ir_version), kind = _FIRST[bits], _KINDS[bits]
    if not has_kind(bits):
        raise ModelError(f"the installed onnx {onnx.__version__} has no {kind}", hint="pip install -U onnx")
    version = next((o.version for o in model.opset_import if o.domain == ""), 0)
    try:
        raised = version_converter.convert_version(model, opset) if version < opset else model
    except Exception as error:  # the converter raises what it likes
        raise ModelError(
            f"weights of {bits} bits need opset {opset}, and ONNX's converter does not make it of opset {version}",
            details=str(error).splitlines()[:2],
            hint=f"export the float model with opset {opset} or later",
        ) from error
    raised.ir_version = max(raised.ir_version, ir_version)
    return raised
