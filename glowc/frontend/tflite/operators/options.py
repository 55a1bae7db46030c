"""What the options of several operators have in common: padding, fused activations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.reader import Operator
from glowc.graph.attrs import AttrValue
from glowc.graph.types import TensorType

SAME, VALID = 0, 1
_ACTIVATIONS = {0: (-math.inf, math.inf), 1: (0.0, math.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}


def operands(operator: Operator, count: int) -> tuple[int, ...]:
    """Return the tensors of the first inputs."""
    if len(operator.inputs) < count:
        raise NodeError(f"{len(operator.inputs)} inputs; it has {count}")
    return operator.inputs[:count]


def option(operator: Operator, name: str, default: int = 0) -> int:
    """Return a whole number of the options; the schema's default where the file has no options."""
    return int(number(operator, name, default))


def same_count(operator: Operator, name: str, have: int) -> None:
    """NodeError where the options tell another number of tensors than there are."""
    told = option(operator, name)
    if told != have:
        raise NodeError(f"option {name} is {told}, but there are {have}")


def number(operator: Operator, name: str, default: float) -> float:
    """Return a number of the options."""
    found = operator.options.get(name, default)
    if isinstance(found, int | float):
        return found
    raise NodeError(f"option {name} is {found!r}, not a number")


def clamp(operator: Operator) -> dict[str, float]:
    """Return the bounds of the fused activation."""
    number = option(operator, "FusedActivationFunction")
    if number not in _ACTIVATIONS:
        raise NodeError(f"fused activation {number} is not supported: none, RELU, RELU6 and RELU_N1_TO_1 are")
    low, high = _ACTIVATIONS[number]
    return {key: v for key, v in (("act_min", low), ("act_max", high)) if math.isfinite(v)}


def padding(
    operator: Operator, size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...]:
    """Return the padding (begins, then ends) of every axis: TensorFlow's SAME, of which the end has the odd one."""
    return padded(option(operator, "Padding"), size, kernel, stride, dilation)


def padded(
    mode: int, size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...]:
    """As `padding`, for a mode that is no option of the schema's."""
    if mode == VALID:
        return (0,) * (2 * len(size))
    if mode != SAME:
        raise NodeError(f"padding {mode} is neither SAME nor VALID")
    totals = []
    for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        totals.append(max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0))
    return (*(t // 2 for t in totals), *(t - t // 2 for t in totals))


def positive(operator: Operator, *names: str) -> tuple[int, ...]:
    """Return options that are steps or sizes of at least 1."""
    values = tuple(option(operator, name) for name in names)
    if min(values) < 1:
        shown: Mapping[str, int] = dict(zip(names, values, strict=True))
        raise NodeError(f"options {dict(shown)} must be at least 1")
    return values


def fixed(x: TensorType) -> dict[str, AttrValue]:
    """Return the attribute of an operator that computes codes as TensorFlow Lite does; of floats nothing."""
    return {} if x.quant is None else {"rounding": "tflite"}
