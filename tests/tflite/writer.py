"""Writes small TensorFlow Lite models: tensors, operators and options as Python values -> the bytes of a file.

The schema's classes come from the tflite_micro package, whose runtime the models are for; imported when first used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KINDS = {
    "float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "int8": 9, "uint64": 12,
    "uint32": 15, "uint16": 16, "int4": 17, "string": 5, "complex64": 8,
}  # fmt: skip
_OTHER_OPTIONS = {
    "average_pool_2d": "Pool2DOptions", "max_pool_2d": "Pool2DOptions", "l2_pool_2d": "Pool2DOptions",
    "l2_normalization": "L2NormOptions", "maximum": "MaximumMinimumOptions", "minimum": "MaximumMinimumOptions",
    "mean": "ReducerOptions", "sum": "ReducerOptions", "reduce_max": "ReducerOptions", "reduce_min": "ReducerOptions",
    "resize_nearest_neighbor": "ResizeNearestNeighborOptions", "reduce_prod": "ReducerOptions",
    "reduce_any": "ReducerOptions", "reduce_all": "ReducerOptions",
}  # fmt: skip


@dataclass(frozen=True)
class Quant:
    """real = scale * (q - zero); several scales along `axis`."""

    scale: tuple[float, ...]
    zero: tuple[int, ...]
    axis: int = 0


def quant(scale: float, zero: int = 0) -> Quant:
    """Return the quantisation of a whole tensor, with the scale as float32."""
    return Quant((float(np.float32(scale)),), (zero,))


@dataclass(frozen=True)
class Tensor:
    """One tensor of a model; `data` of a constant. Of `signature` -1 says that a size is a placeholder.

    `blocks`: the tensors of scales and of zero points (or -1) of blocks along the last axis, and the blocks' size.
    """

    shape: tuple[int, ...]
    kind: str
    quant: Quant | None = None
    data: np.ndarray | None = None
    is_variable: bool = False
    name: str = ""
    signature: tuple[int, ...] = ()
    blocks: tuple[int, int, int] = ()  # type: ignore[assignment]


@dataclass
class Build:
    """A model that grows tensor by tensor; tensors are named by number. `called` are its other subgraphs."""

    tensors: list[Tensor] = field(default_factory=list)
    ops: list[tuple[str, tuple[int, ...], tuple[int, ...], Mapping[str, Any], bytes]] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    called: list[Build] = field(default_factory=list)

    def add(self, tensor: Tensor) -> int:
        """Add a tensor."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def input(self, shape: Sequence[int], kind: str = "int8", q: Quant | None = None) -> int:
        """Add an input of the model."""
        self.inputs.append(self.add(Tensor(tuple(shape), kind, q)))
        return self.inputs[-1]

    def const(self, array: np.ndarray, q: Quant | None = None, kind: str = "") -> int:
        """Add a constant; of kind int4 the array holds one element an entry."""
        return self.add(Tensor(array.shape, kind or array.dtype.name, q, array))

    def variable(self, shape: Sequence[int], kind: str, q: Quant | None = None) -> int:
        """Add a tensor that keeps its elements between calls."""
        return self.add(Tensor(tuple(shape), kind, q, None, True))

    def op(
        self, code: str, inputs: Sequence[int], out: Tensor | Sequence[Tensor], custom: bytes = b"", **options: object
    ) -> int:
        """Add an operator and its results, which become the outputs of the model; returns the first."""
        outs = tuple(self.add(t) for t in ((out,) if isinstance(out, Tensor) else out))
        self.ops.append((code, tuple(inputs), outs, options, custom))
        self.outputs = list(outs)
        return outs[0]

    def bytes(self, inputs: Mapping[str, int] | None = None, outputs: Mapping[str, int] | None = None) -> bytes:
        """Return the file; with a signature where inputs and outputs are given."""
        import flatbuffers
        from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

        model = schema.ModelT()
        model.version, model.description = 3, b"test"
        model.buffers = [schema.BufferT()]
        parts = (self, *self.called)
        codes = list(dict.fromkeys(op[0] for part in parts for op in part.ops))
        model.operatorCodes = [_code(schema, code) for code in codes]
        model.subgraphs = [_subgraph(schema, part, codes, model.buffers) for part in parts]
        if inputs or outputs:
            model.signatureDefs = [_signature(schema, inputs or {}, outputs or {})]
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())


def _subgraph(schema: Any, build: Build, codes: Sequence[str], buffers: list[Any]) -> Any:
    graph = schema.SubGraphT()
    graph.name, graph.tensors = b"main", [_tensor(schema, i, t, buffers) for i, t in enumerate(build.tensors)]
    graph.operators = [_operator(schema, codes.index(op[0]), *op) for op in build.ops]
    graph.inputs, graph.outputs = build.inputs, build.outputs
    return graph


def _signature(schema: Any, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> Any:
    made = schema.SignatureDefT()
    made.signatureKey, made.subgraphIndex = b"serving_default", 0
    made.inputs, made.outputs = [], []
    for entries, named in ((made.inputs, inputs), (made.outputs, outputs)):
        for name, index in named.items():
            entries.append(schema.TensorMapT())
            entries[-1].name, entries[-1].tensorIndex = name.encode(), index
    return made


def _packed(tensor: Tensor) -> bytes:
    assert tensor.data is not None
    if tensor.kind != "int4":
        return tensor.data.tobytes()
    codes = tensor.data.reshape(-1).astype(np.uint8) & 15
    codes = np.append(codes, np.zeros(codes.size % 2, np.uint8))
    return bytes((codes[0::2] | codes[1::2] << 4).astype(np.uint8))


def _tensor(schema: Any, index: int, tensor: Tensor, buffers: list[Any]) -> Any:
    made = schema.TensorT()
    made.name = (tensor.name or f"t{index}").encode()
    made.shape, made.type = list(tensor.shape), KINDS[tensor.kind]
    made.buffer, made.isVariable = 0, tensor.is_variable
    if tensor.data is not None:
        made.buffer = len(buffers)
        buffers.append(schema.BufferT())
        buffers[-1].data = np.frombuffer(_packed(tensor), np.uint8)
    if tensor.quant is not None:
        q = made.quantization = schema.QuantizationParametersT()
        q.scale, q.zeroPoint = list(tensor.quant.scale), list(tensor.quant.zero)
        q.quantizedDimension = tensor.quant.axis
    if tensor.signature:
        made.shapeSignature = list(tensor.signature)
    if tensor.blocks:
        q = made.quantization = schema.QuantizationParametersT()
        q.detailsType, q.details = schema.QuantizationDetails.BlockwiseQuantization, schema.BlockwiseQuantizationT()
        q.details.scales, q.details.zeroPoints, q.details.blockSize = tensor.blocks
    return made


def _code(schema: Any, code: str) -> Any:
    made = schema.OperatorCodeT()
    number = getattr(schema.BuiltinOperator, code, None)
    if number is None:
        number, made.customCode = schema.BuiltinOperator.CUSTOM, code.encode()
    made.builtinCode, made.deprecatedBuiltinCode, made.version = number, min(number, 127), 1
    return made


def _operator(
    schema: Any, index: int, code: str, inputs: tuple[int, ...], outputs: tuple[int, ...], options: Mapping[str, Any],
    custom: bytes,
) -> Any:  # fmt: skip
    made = schema.OperatorT()
    made.opcodeIndex, made.inputs, made.outputs = index, list(inputs), list(outputs)
    if custom:
        made.customOptions = np.frombuffer(custom, np.uint8)
    name = _options_name(schema, code)
    if name:
        table = getattr(schema, f"{name}T")()
        for key, value in options.items():
            assert hasattr(table, key), f"{name} has no {key}"
            setattr(table, key, value)
        if hasattr(schema.BuiltinOptions, name):
            made.builtinOptions, made.builtinOptionsType = table, getattr(schema.BuiltinOptions, name)
        else:
            made.builtinOptions2, made.builtinOptions2Type = table, getattr(schema.BuiltinOptions2, name)
    else:
        assert not options, f"{code} has no options"
    return made


def _options_name(schema: Any, code: str) -> str:
    if code.lower() in _OTHER_OPTIONS:
        return _OTHER_OPTIONS[code.lower()]
    wanted = code.lower().replace("_", "") + "options"
    names = (*vars(schema.BuiltinOptions), *vars(schema.BuiltinOptions2))
    return next((n for n in names if n.lower() == wanted), "")
