"""What the user says about graph inputs: the whole shape of one (`--input-shape`), or its value (`--set-input`).

An input with a value is a constant like any initialiser: what depends on it alone is folded, a branch of an If too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from glowc.errors import SizesError
from glowc.frontend.onnx_model import Dim, OnnxInput, OnnxModel, read_model
from glowc.frontend.problems import Problems
from glowc.frontend.reader import Source, load
from glowc.frontend.symbols import ELEMENT_TYPES
from glowc.graph.types import DType

Shape = tuple[int, ...]
Values = tuple[int | float, ...]


def with_shapes(model: OnnxModel, shapes: Mapping[str, Shape]) -> OnnxModel:
    """Return the model with these shapes of inputs; a symbol that they give one size has it everywhere.

    Raises InputError naming every input that the model lacks and every shape that does not fit.
    """
    _known_names(model, shapes, "--input-shape")
    problems = [p for i in model.inputs if i.name in shapes for p in _misfits(i, shapes[i.name])]
    if problems:
        raise SizesError("--input-shape does not fit the model", details=problems)
    sizes: dict[Dim, set[int]] = {}
    for value in model.inputs:
        for dim, size in zip(value.dims or (), shapes.get(value.name, ()), strict=False):
            sizes.setdefault(dim, set()).add(size)
    single = {dim: found.copy().pop() for dim, found in sizes.items() if isinstance(dim, str) and len(found) == 1}
    return replace(model, inputs=tuple(_shaped(i, shapes.get(i.name), single) for i in model.inputs))


def _shaped(value: OnnxInput, shape: Shape | None, sizes: Mapping[str, int]) -> OnnxInput:
    if shape is not None:
        return replace(value, dims=shape)
    dims = tuple(sizes.get(d, d) if isinstance(d, str) else d for d in value.dims or ())
    return replace(value, dims=dims if value.dims is not None else None)


def _misfits(value: OnnxInput, shape: Shape) -> list[str]:
    """Return what is wrong with a shape of an input."""
    given, has = "x".join(map(str, shape)), value.dims
    if has is None:
        return []
    text = f"{value.name}={given}: the model has {value.name} [{', '.join('?' if d is None else str(d) for d in has)}]"
    if len(has) != len(shape):
        return [f"{text}, of {len(has)} dimensions"]
    return [text] if any(isinstance(d, int) and d != n for d, n in zip(has, shape, strict=True)) else []


def with_values(model: OnnxModel, values: Mapping[str, Values]) -> OnnxModel:
    """Return the model with these inputs as constants of their element types.

    One value fills the input, more are its elements in order. Raises InputError naming every input that the model
    lacks, whose shape is not known, or that these values do not fill.
    """
    _known_names(model, values, "--set-input")
    problems: list[str] = []
    consts = dict(model.consts)
    for value in model.inputs:
        if value.name in values:
            array = _array(value, values[value.name])
            if isinstance(array, str):
                problems.append(array)
            else:
                consts[value.name] = array
    if problems:
        hint = "an input of symbolic dimensions gets its shape with --input-shape NAME=1x16"
        raise SizesError("--set-input does not fit the model", details=problems, hint=hint)
    return replace(model, inputs=tuple(i for i in model.inputs if i.name not in values), consts=consts)


def _array(value: OnnxInput, given: Values) -> np.ndarray | str:
    """Return the constant, or what is wrong."""
    kind = ELEMENT_TYPES.get(value.elem_type)
    if kind is None:
        return f"{value.name} has an element type that cannot be a constant"
    if not _holds(kind, given):
        return f"{value.name}={_listed(given)} is no {kind.value}"
    dims = value.dims if value.dims is not None else (() if len(given) == 1 else (len(given),))
    if len(dims) == 1 and not isinstance(dims[0], int):
        dims = (len(given),)
    shape = tuple(d for d in dims if isinstance(d, int))
    if len(shape) != len(dims):
        return f"{value.name} has the shape [{', '.join('?' if d is None else str(d) for d in dims)}]"
    array = np.asarray(given, kind.numpy)
    if len(given) == 1:
        return np.full(shape, array[0])
    if array.size != np.prod(shape, dtype=np.int64):
        return f"{value.name}: {len(given)} values for the shape {list(shape)}"
    return array.reshape(shape)


def _holds(kind: DType, given: Values) -> bool:
    """Say whether an element of this kind can be each of the values."""
    if kind.is_float:
        return True
    low, high = (0, 1) if kind is DType.BOOL else (kind.qmin, kind.qmax)
    return all(isinstance(v, int) and low <= v <= high for v in given)


def _listed(given: Values) -> str:
    return ",".join(map(str, given))


def _known_names(model: OnnxModel, given: Iterable[str], option: str) -> None:
    names = [i.name for i in model.inputs]
    unknown = [f"{option} {name}=..." for name in given if name not in names]
    if unknown:
        raise SizesError("the model has no such input", details=unknown, hint=f"its inputs: {', '.join(names)}")


def given_arrays(source: Source, shapes: Mapping[str, Shape], values: Mapping[str, Values]) -> dict[str, np.ndarray]:
    """Return the arrays of inputs that the user made constants, for whoever runs the file itself."""
    if not values:
        return {}
    loaded = load(source)
    model = with_values(with_shapes(read_model(loaded.proto, Problems(loaded.source)), shapes), values)
    return {name: model.consts[name] for name in values}
