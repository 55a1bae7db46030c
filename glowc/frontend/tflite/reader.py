"""TensorFlow Lite file -> plain Python: tensors, operators with their options, signatures. No decisions here.

The flatbuffers package reads wherever an offset points. Here every list is looked at before it is read (its length
against that of the file), every index against the list that it is for, and what a reader of the schema raises on bytes
that are no such table is one clear error.
"""

from __future__ import annotations

import inspect
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
import tflite  # type: ignore[import-untyped]

from glowc.errors import ModelFileError
from glowc.frontend.problems import NodeError
from glowc.frontend.tflite import is_tflite_file
from glowc.frontend.tflite.sparse import Level, places
from glowc.graph.types import LARGEST_TENSOR_BYTES

Option: TypeAlias = int | float | bool | bytes | tuple[int, ...] | None
Options = Mapping[str, Option]
SCHEMA_VERSION = 3
_KIND_HINT = "`glowc ops --format tflite` says which element types each operator takes"
_SCALE_HINT = "quantize the network again, e.g. with tf.lite.TFLiteConverter"
_BLOCKWISE = 2  # of the union QuantizationDetails
_BUILTIN_CODE = 10  # where the table of fields of an operator code tells the place of builtin_code
_DAMAGED = (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError)
_HINT = "copy or download the file again, or convert the network again with tf.lite.TFLiteConverter"
_KINDS: Mapping[int, str] = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16", 8: "complex64", 9: "int8",
    10: "float64",
    12: "uint64", 13: "resource", 15: "uint32", 16: "uint16", 17: "int4",
}  # fmt: skip
_INTEGERS = {name: name for name in _KINDS.values() if "int" in name and name != "int4"} | {"int4": "int8"}
_BUILTINS = {v: k for k, v in vars(tflite.BuiltinOperator).items() if not k.startswith("_")}
_OPTIONS = {v: k for k, v in vars(tflite.BuiltinOptions).items() if not k.startswith("_")}
_OPTIONS_2 = {v: k for k, v in vars(tflite.BuiltinOptions2).items() if not k.startswith("_")}
_OWN = frozenset(name.lower() for name in (*_OPTIONS.values(), *_OPTIONS_2.values()))
_INDEX_LISTS = {1: tflite.Int32Vector, 2: tflite.Uint16Vector, 3: tflite.Uint8Vector}  # by the union's numbers
_TYPE_NAMES = {v: k for k, v in vars(tflite.TensorType).items() if not k.startswith("_")}


@dataclass(frozen=True, slots=True)
class Quantization:
    """real = scale * (q - zero_point), one entry or one per index of `axis`."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """Scales of blocks of `size` elements along the last axis: the tensors of scales and of zero points (or -1)."""

    scales: int
    zero_points: int
    size: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: `kind` as numpy calls it (int4 and resource besides), `data` of a constant, one element an entry.

    Of `signature` an entry of -1 says that the file's size of that axis is a placeholder. `problem` is why the tensor
    cannot be read, for the operator that needs it.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    kind: str
    quant: Quantization | None
    data: np.ndarray | None
    is_variable: bool
    signature: tuple[int, ...] = ()
    blocks: Blocks | None = None
    problem: NodeError | None = None

    @property
    def is_open(self) -> bool:
        """Say whether a size is a placeholder."""
        return -1 in self.signature


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: `code` is the built-in's name or the custom one's; -1 stands for an input left out."""

    index: int
    code: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...] = ()
    options: Options = field(default_factory=dict)
    custom: bytes = b""

    @property
    def label(self) -> str:
        """How messages name this operator."""
        return f"operator {self.index} ({self.code})"


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph of operators in their order."""

    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """Names that a signature gives to tensors of a subgraph."""

    key: str
    subgraph: int
    names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class TfliteModel:
    """A whole file; the first subgraph is the one that is called."""

    subgraphs: tuple[Subgraph, ...]
    signatures: tuple[Signature, ...]


def read_tflite(data: bytes, label: str) -> TfliteModel:
    """Read a file. Raises ModelError that says what is wrong with it."""
    if not is_tflite_file(data):
        raise ModelFileError(f"{label} is not a TensorFlow Lite file: bytes 4 to 8 are not TFL3", hint=_HINT)
    place = _Place()
    try:
        return _Reader(data, place).model()
    except NodeError as problem:
        raise ModelFileError(f"{label}: {problem}", hint=problem.hint or _HINT) from None
    except _DAMAGED as error:
        what = f"{label} is damaged or truncated: {place.text}, an offset leads outside of its {len(data):,} bytes"
        raise ModelFileError(what, hint=_HINT) from error


@dataclass(slots=True)
class _Place:
    """Where the file is being read, for messages."""

    text: str = "in its head"


class _Reader:
    def __init__(self, data: bytes, place: _Place) -> None:
        self.data, self.place = data, place
        self.root = tflite.Model.GetRootAs(data, 0)
        self._buffers: dict[int, bytes] = {}

    def model(self) -> TfliteModel:
        version = self.root.Version()
        if version != SCHEMA_VERSION:
            raise NodeError(f"schema version {version}; version {SCHEMA_VERSION} is known")
        codes = [self._code(i) for i in self._count(self.root.OperatorCodesLength(), "operator codes")]
        graphs = tuple(
            self._subgraph(self._there(self.root.Subgraphs(i)), codes)
            for i in self._count(self.root.SubgraphsLength(), "subgraphs")
        )
        if not graphs:
            raise NodeError("the file holds no subgraph")
        signatures = self._count(self.root.SignatureDefsLength(), "signatures")
        return TfliteModel(graphs, tuple(self._signature(self._there(self.root.SignatureDefs(i))) for i in signatures))

    def _count(self, length: int, what: str, each: int = 4) -> range:
        """Return the indices of a list; NodeError when the file is too short for it."""
        if length * each > len(self.data):
            raise NodeError(f"a list of {length:,} {what} in a file of {len(self.data):,} bytes")
        return range(length)

    @staticmethod
    def _there(table: Any) -> Any:
        if table is None:
            raise NodeError("a table that the schema needs is missing")
        return table

    def _ints(self, length: Callable[[], int], item: Callable[[int], int], what: str) -> tuple[int, ...]:
        return tuple(int(item(i)) for i in self._count(length(), what))

    def _code(self, index: int) -> tuple[str, int]:
        code = self._there(self.root.OperatorCodes(index))
        number = max(code.DeprecatedBuiltinCode(), _new_code(code))
        if number == tflite.BuiltinOperator.CUSTOM:
            return _text(code.CustomCode()) or "CUSTOM", code.Version()
        return _BUILTINS.get(number, f"BUILTIN_{number}"), code.Version()

    def _subgraph(self, graph: Any, codes: list[tuple[str, int]]) -> Subgraph:
        count = graph.TensorsLength()
        tensors = tuple(self._tensor(i, self._there(graph.Tensors(i))) for i in self._count(count, "tensors"))
        operators = tuple(
            self._operator(i, self._there(graph.Operators(i)), codes, count)
            for i in self._count(graph.OperatorsLength(), "operators")
        )
        ends = [
            _known(self._ints(length, item, "tensors"), count, f"the graph's {what}", least=0)
            for length, item, what in (
                (graph.InputsLength, graph.Inputs, "inputs"), (graph.OutputsLength, graph.Outputs, "outputs"),
            )
        ]  # fmt: skip
        return Subgraph(_text(graph.Name()), tensors, operators, ends[0], ends[1])

    def _operator(self, index: int, op: Any, codes: list[tuple[str, int]], count: int) -> Operator:
        self.place.text = f"at operator {index}"
        number = op.OpcodeIndex()
        if not 0 <= number < len(codes):
            raise NodeError(f"operator {index}: its code {number} is none of the {len(codes)} of the file")
        code, version = codes[number]
        where = f"operator {index} ({code})"
        lists = [
            _known(self._ints(length, item, "tensors"), count, where)
            for length, item in (
                (op.InputsLength, op.Inputs), (op.OutputsLength, op.Outputs),
                (op.IntermediatesLength, op.Intermediates),
            )
        ]  # fmt: skip
        self._count(op.CustomOptionsLength(), "bytes of options", 1)
        custom = bytes(op.CustomOptionsAsNumpy()) if op.CustomOptionsLength() else b""
        return Operator(index, code, version, lists[0], lists[1], lists[2], self._options(op, code), custom)

    def _options(self, op: Any, code: str) -> Options:
        """Return the options by their names in the schema, lists as tuples; those of another operator are none."""
        name = _OPTIONS.get(op.BuiltinOptionsType(), "NONE")
        table = op.BuiltinOptions() if name != "NONE" else None
        if table is None:
            name = _OPTIONS_2.get(op.BuiltinOptions2Type(), "NONE")
            table = op.BuiltinOptions2() if name != "NONE" else None
        own = f"{code.replace('_', '').lower()}options"
        if table is None or (own in _OWN and own != name.lower()):
            return {}
        options = getattr(tflite, name)()
        options.Init(table.Bytes, table.Pos)
        return dict(self._fields(options))

    def _fields(self, options: Any) -> Iterator[tuple[str, Option]]:
        names = [n for n in dir(options) if not n.startswith(("_", "GetRootAs")) and not n.endswith("HasIdentifier")]
        lists = {n[: -len("Length")] for n in names if n.endswith("Length")}
        parts = {f"{n}{end}" for n in lists for end in ("Length", "AsNumpy", "IsNone")}
        for name in names:
            method = getattr(options, name)
            if name in lists:
                yield name, tuple(method(i) for i in self._count(getattr(options, f"{name}Length")(), name, 1))
            elif name != "Init" and name not in parts and not inspect.signature(method).parameters:
                yield name, method()

    def _tensor(self, index: int, tensor: Any) -> Tensor:
        self.place.text = f"at tensor {index}"
        name = _text(tensor.Name()) or f"tensor_{index}"
        self.place.text = f'at tensor {index} "{name}"'
        given = self._ints(tensor.ShapeLength, tensor.Shape, "dimensions")
        signature = self._ints(tensor.ShapeSignatureLength, tensor.ShapeSignature, "dimensions")
        shape = tuple(max(d, 1) if d < 0 else d for d in given)
        signature = given if min(given, default=0) < 0 else signature if len(signature) == len(given) else ()
        kind = _KINDS.get(tensor.Type(), "")
        found = Tensor(index, name, shape, kind, None, None, bool(tensor.IsVariable()), signature)
        try:
            return self._filled(found, tensor)
        except NodeError as problem:
            return replace(found, problem=problem)

    def _filled(self, found: Tensor, tensor: Any) -> Tensor:
        """Return a tensor with its elements and scales. Raises NodeError for what no operator could read."""
        where = f'tensor {found.index} "{found.name}"'
        if not found.kind:
            kind = _TYPE_NAMES.get(tensor.Type(), f"number {tensor.Type()}")
            raise NodeError(f"{where}: element type {kind} is not supported", _KIND_HINT)
        if min(found.signature, default=0) < -1:
            raise NodeError(f"{where} has the shape {list(found.signature)}", _HINT)
        sparse = tensor.Sparsity() is not None
        data = None if sparse else self._data(tensor.Buffer(), found.shape, found.kind, where)
        data = self._dense(tensor, found, where) if sparse else data
        given = tensor.Quantization() if found.kind in _INTEGERS else None  # what floats have is a remark
        quant = self._quantization(given, found.shape, where)
        _check_points(quant, found.kind, where)
        return replace(found, data=data, quant=quant, blocks=_blocks(tensor.Quantization()))

    def _dense(self, tensor: Any, found: Tensor, where: str) -> np.ndarray:
        """Return the elements of a sparse constant, with zeros (of the quantisation) where the file has none."""
        about = tensor.Sparsity()
        order = self._ints(about.TraversalOrderLength, about.TraversalOrder, "levels")
        blocks = self._ints(about.BlockMapLength, about.BlockMap, "blocks")
        levels = [
            self._level(self._there(about.DimMetadata(i))) for i in self._count(about.DimMetadataLength(), "levels")
        ]
        if math.prod(found.shape) > LARGEST_TENSOR_BYTES:
            raise NodeError(f"{where}: {found.kind}{list(found.shape)} is too large")
        try:
            at = places(found.shape, order, blocks, levels)
        except NodeError as problem:
            raise NodeError(f"{where} is sparse, but {problem}", _HINT) from problem
        values = self._data(tensor.Buffer(), (at.size,), found.kind, where)
        dense = np.zeros(math.prod(found.shape), np.int8 if found.kind == "int4" else found.kind)
        quant = tensor.Quantization()
        if quant is not None and quant.ZeroPointLength() == 1 and found.kind in _INTEGERS:
            dense[:] = quant.ZeroPoint(0)
        if values is not None:
            dense[at] = values
        return dense.reshape(found.shape)

    def _level(self, level: Any) -> Level:
        """Return a level of a sparse constant's tree."""
        if level.Format() == tflite.DimensionType.DENSE:
            return Level(level.DenseSize())
        segments = self._indices(level.ArraySegmentsType(), level.ArraySegments())
        return Level(0, segments, self._indices(level.ArrayIndicesType(), level.ArrayIndices()))

    def _indices(self, kind: int, table: Any) -> np.ndarray:
        found = _INDEX_LISTS[kind]()
        found.Init(self._there(table).Bytes, table.Pos)
        return np.asarray(self._ints(found.ValuesLength, found.Values, "indices"), np.int64)

    def _data(self, buffer: int, shape: tuple[int, ...], kind: str, where: str) -> np.ndarray | None:
        if not 0 <= buffer < self.root.BuffersLength():
            text = f"{where}: its buffer {buffer} is none of the {self.root.BuffersLength()} of the file"
            raise NodeError(text, _HINT)
        data = self._buffer(buffer)
        if not data or kind == "resource":
            return None
        count = math.prod(shape)
        item = 1 if kind == "int4" else np.dtype(kind).itemsize
        size = -(-count // 2) if kind == "int4" else count * item
        if size > LARGEST_TENSOR_BYTES or len(data) < size:
            raise NodeError(f"{where}: its buffer has {len(data):,} bytes; {kind}{list(shape)} needs {size:,}", _HINT)
        if kind == "int4":
            return _nibbles(np.frombuffer(data, np.uint8, size))[:count].reshape(shape)
        return np.frombuffer(data, np.dtype(kind).newbyteorder("<"), count).astype(kind).reshape(shape)

    def _buffer(self, index: int) -> bytes:
        """Return the bytes of a buffer: inside of the flatbuffer, or after it."""
        if index not in self._buffers:
            buffer = self._there(self.root.Buffers(index))
            offset, size = buffer.Offset(), buffer.Size()
            if offset > 1:
                if offset + size > len(self.data):
                    raise NodeError(f"buffer {index} ends after the file, at byte {offset + size:,}", _HINT)
                self._buffers[index] = self.data[offset : offset + size]
            else:
                length = buffer.DataLength()
                self._count(length, "bytes of a buffer", 1)
                self._buffers[index] = buffer.DataAsNumpy().tobytes() if length else b""
        return self._buffers[index]

    def _quantization(self, found: Any, shape: tuple[int, ...], where: str) -> Quantization | None:
        if found is None or not found.ScaleLength():
            return None
        scale = tuple(float(found.Scale(i)) for i in self._count(found.ScaleLength(), "scales"))
        points = self._ints(found.ZeroPointLength, found.ZeroPoint, "zero points")
        axis = int(found.QuantizedDimension())
        if not all(math.isfinite(s) and s >= 0 for s in scale):
            raise NodeError(f"{where}: a scale is no positive number", _SCALE_HINT)
        if len(scale) > 1 and shape == (len(scale),):
            axis = 0  # some converters give a bias the axis of its weights
        if len(scale) > 1 and (not 0 <= axis < len(shape) or shape[axis] != len(scale)):
            raise NodeError(f"{where}: {len(scale)} scales along axis {axis} of {list(shape)}", _SCALE_HINT)
        if not points or len(points) not in (1, len(scale)):
            raise NodeError(f"{where}: {len(scale)} scales and {len(points)} zero points", _SCALE_HINT)
        return Quantization(scale, points if len(points) == len(scale) else points * len(scale), axis)

    def _signature(self, found: Any) -> Signature:
        names = {}
        for length, item, what in (
            (found.InputsLength(), found.Inputs, "inputs"), (found.OutputsLength(), found.Outputs, "outputs"),
        ):  # fmt: skip
            for i in self._count(length, what):
                entry = self._there(item(i))
                names[int(entry.TensorIndex())] = _text(entry.Name())
        return Signature(_text(found.SignatureKey()), int(found.SubgraphIndex()), names)


def _new_code(code: Any) -> int:
    """Return the field builtin_code itself: its accessor answers the old field where the number is small."""
    place = code._tab.Offset(_BUILTIN_CODE)
    return int(code._tab.Get(flatbuffers.number_types.Int32Flags, place + code._tab.Pos)) if place else 0


def _blocks(found: Any) -> Blocks | None:
    """Return the scales of blocks that a quantisation refers to; the schema's classes do not know them."""
    if found is None or found.DetailsType() != _BLOCKWISE or found.Details() is None:
        return None
    table = found.Details()
    places = [table.Offset(4 + 2 * i) for i in range(3)]
    flags = flatbuffers.number_types.Int32Flags
    scales, points, size = (int(table.Get(flags, p + table.Pos)) if p else 0 for p in places)
    return Blocks(scales, points if points > 0 else -1, size)


def _check_points(quant: Quantization | None, kind: str, where: str) -> None:
    """NodeError for a zero point that is no number of the tensor's kind."""
    if quant is None or kind not in _INTEGERS:
        return
    info = np.iinfo(_INTEGERS[kind])
    if any(not info.min <= z <= info.max for z in quant.zero_point):
        raise NodeError(f"{where}: a zero point is no {kind}", _SCALE_HINT)


def _known(indices: tuple[int, ...], count: int, where: str, least: int = -1) -> tuple[int, ...]:
    for index in indices:
        if not least <= index < count:
            raise NodeError(f"{where}: tensor {index} is none of the graph's {count}")
    return indices


def _text(value: bytes | None) -> str:
    return value.decode("utf-8", "replace") if value else ""


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """Return signed numbers of four bits, the lower half of each byte first."""
    both = np.stack((packed & 15, packed >> 4), axis=-1).reshape(-1).astype(np.int8)
    return np.asarray(np.where(both > 7, both - 16, both).astype(np.int8))
