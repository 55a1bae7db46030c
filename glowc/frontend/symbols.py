"""Symbolic dimensions of graph inputs -> static shapes, by `--define-symbol`, `--batch-size` and one default.

`--input-shape` has given its inputs their shapes before (`glowc.frontend.given`).

The default: when the first dimension is the only one of an input without a value, it is the batch, and 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from glowc.errors import SizesError
from glowc.frontend.onnx_model import Dim, OnnxInput
from glowc.frontend.problems import Problems
from glowc.graph.types import LARGEST_TENSOR_BYTES, DType, TensorType

_P = onnx.TensorProto
ELEMENT_TYPES: dict[int, DType] = {
    _P.FLOAT: DType.F32, _P.FLOAT16: DType.F16, _P.DOUBLE: DType.F64, _P.INT8: DType.S8, _P.UINT8: DType.U8,
    _P.INT16: DType.S16, _P.UINT16: DType.U16, _P.INT32: DType.S32, _P.UINT32: DType.U32, _P.INT64: DType.S64,
    _P.UINT64: DType.U64, _P.BOOL: DType.BOOL, _P.INT4: DType.S4, _P.UINT4: DType.U4,
}  # fmt: skip
_NEWER = {  # than the oldest onnx that glowc runs with
    "UINT2": DType.U2, "INT2": DType.S2, "FLOAT8E4M3FN": DType.E4M3FN, "FLOAT8E4M3FNUZ": DType.E4M3FNUZ,
    "FLOAT8E5M2": DType.E5M2, "FLOAT8E5M2FNUZ": DType.E5M2FNUZ, "FLOAT8E8M0": DType.E8M0, "FLOAT4E2M1": DType.E2M1,
}  # fmt: skip
for _name, _kind in _NEWER.items():
    if _name in _P.DataType.keys():  # noqa: SIM118 (no mapping)
        ELEMENT_TYPES[_P.DataType.Value(_name)] = _kind


def resolve_inputs(
    inputs: tuple[OnnxInput, ...],
    symbols: Mapping[str, int],
    batch_size: int | None,
    problems: Problems,
) -> dict[str, TensorType]:
    """Return the static type of every graph input; problems name each dimension without a value."""
    _check_options(inputs, symbols, batch_size)
    named: dict[str, list[Dim]] = {i.name: _label_dims(i) for i in inputs if i.dims is not None}
    known = dict(symbols)
    for dims in named.values():
        if batch_size is not None and dims and isinstance(dims[0], str):
            known.setdefault(dims[0], batch_size)
    for dims in named.values():
        lacking = [d for d in dims if isinstance(d, str) and d not in known]
        if lacking and lacking == dims[:1]:
            known[lacking[0]] = 1
    found = {i.name: _type(i, named.get(i.name), known, problems) for i in inputs}
    return {name: type_ for name, type_ in found.items() if type_ is not None}


def _label_dims(value: OnnxInput) -> list[Dim]:
    """Dimensions without any name get one that --define-symbol accepts: `input[axis]`."""
    return [f"{value.name}[{axis}]" if d is None else d for axis, d in enumerate(value.dims or ())]


def _check_options(inputs: tuple[OnnxInput, ...], symbols: Mapping[str, int], batch_size: int | None) -> None:
    present = {d for i in inputs for d in _label_dims(i) if isinstance(d, str)}
    for name, size in symbols.items():
        if name not in present:
            have = f"its symbols: {', '.join(sorted(present))}" if present else "all its dimensions are fixed"
            raise SizesError(f"the model has no symbolic dimension {name!r}", hint=have)
        if size < 1:
            raise SizesError(f"symbol {name} = {size}: a dimension must be at least 1")
    if batch_size is None:
        return
    if batch_size < 1:
        raise SizesError(f"batch size {batch_size}: must be at least 1")
    first = [i.dims[0] for i in inputs if i.dims]
    if first and batch_size not in first and all(isinstance(d, int) for d in first):
        raise SizesError(
            f"batch size {batch_size}: the model's inputs have the fixed batch size {first[0]}",
            hint="export the model with a symbolic first dimension, or leave --batch-size out",
        )


def _type(value: OnnxInput, dims: list[Dim] | None, known: Mapping[str, int], problems: Problems) -> TensorType | None:
    what = f'input "{value.name}"'
    kind = ELEMENT_TYPES.get(value.elem_type)
    if kind is None:
        names = {number: name.lower() for name, number in _P.DataType.items()} | {0: "no tensor"}
        name = names.get(value.elem_type, f"of the unknown element type {value.elem_type}")
        problems.add(f"{what} is {name}: not supported", "supported: float32, int8, uint8, int16, int32, int64, bool")
        return None
    if dims is None:
        problems.add(f"{what} has no shape", f"--input-shape {value.name}=1x16 (with the shape that your data have)")
        return None
    shape: list[int] = []
    for axis, dim in enumerate(dims):
        size = known.get(dim) if isinstance(dim, str) else dim
        if size is None:
            text = ", ".join("?" if d == f"{value.name}[{a}]" else str(d) for a, d in enumerate(dims))
            problems.add(f"{what} [{text}]: dimension {axis} ({dim}) has no value", _hint(str(dim), axis))
        shape.append(1 if size is None else size)
    if any(isinstance(dim, str) and dim not in known for dim in dims):
        sizes = "x".join(map(str, shape))
        problems.add_hint(f"--input-shape {value.name}={sizes}, with the sizes that your data have, says it at once")
    type_ = TensorType(tuple(shape), kind)
    if type_.size_bytes > LARGEST_TENSOR_BYTES:
        problems.add(f"{what} {type_} is too large: a tensor has at most {LARGEST_TENSOR_BYTES:,} bytes")
    return type_


def _hint(symbol: str, axis: int) -> str:
    option = f"--define-symbol {symbol}=1"
    return f"{option} or --batch-size 1" if axis == 0 else option
