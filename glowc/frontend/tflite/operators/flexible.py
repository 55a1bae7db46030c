"""Options of custom operators: a map in flexbuffers, read with care for damaged bytes."""

from __future__ import annotations

import math
import struct
from typing import Any

from flatbuffers import flexbuffers  # type: ignore[import-untyped]

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.reader import Operator

_DAMAGED = (
    struct.error,
    IndexError,
    ValueError,
    TypeError,
    OverflowError,
    AttributeError,
    KeyError,
    UnicodeDecodeError,
)


def _value(operator: Operator, name: str) -> Any:
    try:
        return flexbuffers.GetRoot(operator.custom).AsMap[name].Value
    except _DAMAGED:
        raise NodeError(f"its options have no {name}") from None


def has_option(operator: Operator, name: str) -> bool:
    """Say whether the options name something. NodeError when they cannot be read."""
    try:
        return name in [key.Value for key in flexbuffers.GetRoot(operator.custom).AsMap.Keys]
    except _DAMAGED:
        raise NodeError("its options cannot be read") from None


def whole_option(operator: Operator, name: str, least: int = 0, most: int = (1 << 31) - 1) -> int:
    """Return a whole number or flag of the options. NodeError for another one, or none."""
    found = _value(operator, name)
    if not isinstance(found, int) or not least <= found <= most:
        raise NodeError(f"option {name} is {found!r}, not a number from {least} to {most}")
    return int(found)


def real_option(operator: Operator, name: str) -> float:
    """Return a number of the options. NodeError for another one, or none."""
    found = _value(operator, name)
    if not isinstance(found, int | float) or not math.isfinite(found):
        raise NodeError(f"option {name} is {found!r}, not a number")
    return float(found)
