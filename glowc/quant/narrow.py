"""Constants of 4 or 2 bits in an ONNX file: INT4 and UINT4 have been there since opset 21, INT2 and UINT2 since 25.

A model for a later opset: codes of 16, 4 and 2 bits need one in which QuantizeLinear knows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache

import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper, version_converter

from glowc.errors import ModelError
from glowc.quant.engine import default_prepare
from glowc.quant.weight_types import WeightType

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
            hint=f"export the float model with opset {opset} or later, or quantize it with int8",
        ) from error
    done.ir_version = max(done.ir_version, helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))
    return done


class Narrow(StrEnum):
    """ONNX's element types of fewer than 8 bits, by their names there."""

    INT4 = "INT4"
    UINT4 = "UINT4"
    INT2 = "INT2"
    UINT2 = "UINT2"

    @property
    def since(self) -> tuple[int, int]:
        """The opset and the IR version that it came with."""
        return (21, 10) if self in (Narrow.INT4, Narrow.UINT4) else (25, 11)

    @property
    def known(self) -> bool:
        """Whether the installed onnx has it."""
        return self.value in TensorProto.DataType.keys()  # noqa: SIM118

    @property
    def number(self) -> int:
        """ONNX's number of it."""
        return int(TensorProto.DataType.Value(self.value))


STORED = {
    WeightType.INT4: Narrow.INT4, WeightType.INT2: Narrow.INT2, WeightType.PALETTE4: Narrow.UINT4,
    WeightType.PALETTE2: Narrow.UINT2,
}  # fmt: skip
"""What weights of few bits are stored as: codes, or places in a palette."""


def from_palette(palette: str, places: str, codes: str, indices: str) -> list[NodeProto]:
    """Return the nodes that look up `codes` at the places in a palette; `indices` is a name for them in between."""
    return [
        helper.make_node("Cast", [places], [indices], name=indices, to=TensorProto.INT32),
        helper.make_node("Gather", [palette, indices], [codes], name=codes),
    ]


@cache
def is_usual(weights: WeightType) -> bool:
    """Say whether the installed onnx has such weights, and what runs models here knows them."""
    kind = STORED[weights]
    if not kind.known:
        return False
    nodes = from_palette("palette", "stored", "codes", "indices") if weights.indexed else []
    codes = "codes" if weights.indexed else "stored"
    graph = helper.make_graph(
        [*nodes, helper.make_node("DequantizeLinear", [codes, "scale"], ["y"])], "narrow", [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1,))],
        [helper.make_tensor("stored", kind.number, (1,), [1]),
         helper.make_tensor("scale", TensorProto.FLOAT, (), [1.0]),
         helper.make_tensor("palette", TensorProto.INT8, (2,), [-5, 5])],
    )  # fmt: skip
    opset, ir_version = kind.since
    opsets = [helper.make_opsetid("", opset)]
    try:
        default_prepare()(helper.make_model(graph, opset_imports=opsets, ir_version=ir_version))({})
    except Exception:
        return False
    return True


def with_narrow(model: onnx.ModelProto, kinds: Mapping[str, Narrow]) -> onnx.ModelProto:
    """Return a model whose int8 and uint8 constants of these names have such types. Raises ModelError where it cannot
    be.
    """
    latest = max(kinds.values(), key=lambda kind: kind.since)
    if not latest.known:
        raise ModelError(f"the installed onnx {onnx.__version__} has no {latest}", hint="pip install -U onnx")
    model = raised(model, latest.since[0], f"type {latest}")
    for number, tensor in enumerate(model.graph.initializer):
        if tensor.name in kinds:
            codes = numpy_helper.to_array(tensor)
            narrow = helper.make_tensor(tensor.name, kinds[tensor.name].number, codes.shape, codes.reshape(-1).tolist())
            model.graph.initializer[number].CopyFrom(narrow)
    return model
