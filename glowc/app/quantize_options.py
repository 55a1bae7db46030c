"""What the options of `quantize` and its kin say: schemas, types of weights and activations, how images are scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glowc.errors import InputError

if TYPE_CHECKING:
    from onnx import ModelProto

    from glowc.quant.calibrate import Calibration
    from glowc.quant.data import ImageFormat
    from glowc.quant.precision import Precision
    from glowc.quant.scheme import Activations, Schema
    from glowc.quant.weight_types import WeightType

AUTO = "auto"


def image_format(mean: str, std: str, layout: str | None, channels: str) -> ImageFormat:
    """Return what --mean, --std, --layout and --channels say."""
    from glowc.quant.data import ImageFormat

    if layout not in (None, "nchw", "nhwc") or channels not in ("rgb", "bgr"):
        raise InputError(
            f"--layout {layout} --channels {channels}", hint="--layout nchw or nhwc, --channels rgb or bgr"
        )
    return ImageFormat(_numbers(mean, "--mean"), _numbers(std, "--std"), layout, channels)


def _numbers(text: str, option: str) -> tuple[float, ...]:
    try:
        values = tuple(float(t) for t in text.split(","))
    except ValueError:
        raise InputError(f"{option} {text}: not a number", hint=f"{option} 127.5, or {option} 124,116,104") from None
    if option == "--std" and 0 in values:
        raise InputError("--std 0: pixels are divided by it", hint="--std 255 makes values from 0 to 1")
    return values


def precision_of(weights: str, weights_of: list[str] | None, activations_of: list[str] | None = None) -> Precision:
    """Return what --weights, --weights-of and --activations-of say."""
    from glowc.quant.precision import Precision

    of = {name: _weight_type(kind, option) for name, kind, option in _by_node("--weights-of", weights_of, "int4")}
    codes = _by_node("--activations-of", activations_of, "int16")
    finer = {name: _activation_type(kind, option) for name, kind, option in codes}
    return Precision(_weight_type(weights, f"--weights {weights}"), of, finer)


def _by_node(option: str, texts: list[str] | None, example: str) -> list[tuple[str, str, str]]:
    """Return the name, the type and the text of each NODE=TYPE."""
    found = []
    for text in texts or ():
        name, equals, kind = text.rpartition("=")
        if not name or not equals:
            raise InputError(f"{option} {text}: no NODE=TYPE", hint=f"{option} conv1={example}")
        found.append((name, kind, f"{option} {text}"))
    return found


def _activation_type(kind: str, option: str) -> Activations:
    from glowc.quant.scheme import Activations

    if kind not in list(Activations):
        raise InputError(f"{option}: no type of activations {kind!r}", hint=f"types: {', '.join(Activations)}")
    return Activations(kind)


def _weight_type(kind: str, option: str) -> WeightType:
    from glowc.quant.weight_types import WeightType

    if kind not in list(WeightType):
        raise InputError(f"{option}: no type of weights {kind!r}", hint=f"types: {', '.join(WeightType)}")
    return WeightType(kind)


def schema_of(name: str) -> Schema:
    """Return what --schema says."""
    from glowc.quant.scheme import Schema

    if name not in list(Schema):
        raise InputError(f"no schema {name!r}", hint=f"--schema {', '.join(Schema)}")
    return Schema(name)


def calibration_of(name: str) -> Calibration:
    """Return what --calibration says."""
    from glowc.quant.calibrate import Calibration

    if name not in list(Calibration):
        raise InputError(f"no calibration {name!r}", hint=f"--calibration {', '.join(Calibration)}")
    return Calibration(name)


def activations_of(name: str, *, limited: bool) -> tuple[Activations, ...]:
    """Return the types of activations that --activations allows: both for `auto`, which needs limits."""
    from glowc.quant.scheme import Activations

    if name == AUTO and limited:
        return tuple(Activations)
    if name == AUTO:
        raise InputError("--activations auto takes what limits allow", hint="--ram-limit 16K, --max-insns 5000000")
    if name not in list(Activations):
        raise InputError(f"no activations {name!r}", hint=f"--activations {', '.join(Activations)} or {AUTO}")
    return (Activations(name),)


def check_edges(model: ModelProto, io_type: str | None) -> None:
    """Raise InputError where inputs or outputs are to be int8 or int16, and layers at them are on the other one."""
    from glowc.quant.emit import edge_params

    for name, params in edge_params(model).items() if io_type not in (None, "float") else ():
        if f"int{params.bits}" != io_type:
            raise InputError(
                f'--io-type {io_type}: "{name}" is int{params.bits}, as the layers at it are',
                hint=f'--activations-of NODE={io_type} for the layers at "{name}", or no --io-type',
            )


def float_edge(io_type: str | None, activations: str) -> bool:
    """Say whether --io-type leaves inputs and outputs float."""
    if io_type not in (None, "float", activations):
        raise InputError(
            f"--io-type {io_type} with --activations {activations}", hint=f"--io-type {activations} or float"
        )
    return io_type == "float"
