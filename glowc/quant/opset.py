"""A model for a later opset: codes of 16, 4 and 2 bits need one in which QuantizeLinear knows them."""

from __future__ import annotations

import onnx
from onnx import helper, version_converter

from glowc.errors import ModelError

SIXTEEN_BIT_OPSET = 21  # QuantizeLinear and DequantizeLinear of int16 (ONNX 1.16)


def raised(model: onnx.ModelProto, opset: int, what: str) -> onnx.ModelProto:
    """Return a model with the operators of `opset`, which `what` needs; values keep their names. Raises ModelError."""
    version = next((o.version for o in model.opset_import if not o.domain), 0)
    try:
        done = version_converter.convert_version(model, opset) if version < opset else model
    except Exception as error:  # the converter raises what it likes
        raise ModelError(
            f"{what} needs opset {opset}, and ONNX's converter does not make it of opset {version}",
            details=str(error).splitlines()[:2],
            hint=f"export the float model with opset {opset} or later, or quantise it with int8",
        ) from error
    done.ir_version = max(done.ir_version, helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))
    return done
