"""What the options of `quantize` and its kin say: schemas, types of weights and activations, how images are scaled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from glowc.app.options import parse_shapes, parse_states, parse_symbols
from glowc.board.checked import Count, Flag, Size, Within
from glowc.compiler.options import BATCH, SHAPE, STATE, SYMBOL, CompileOptions
from glowc.errors import InputError

if TYPE_CHECKING:
    from onnx import ModelProto

    from glowc.app.frontier import Room
    from glowc.quant.data import ImageFormat
    from glowc.quant.precision import Precision
    from glowc.quant.quantizer import QuantizeOptions
    from glowc.quant.scheme import Activations

AUTO = "auto"
Texts = list[str] | None
W = TypeVar("W", bound=StrEnum)

_SCHEMA = Flag("asymmetric, symmetric, symmetric_with_uint8, symmetric_with_power2_scale")
_CALIBRATION = Flag("auto (by measured error), minmax, percentile, entropy, mse")
_ACTIVATIONS = Flag("int8, or int16: finer, twice the arena, slower; auto: what limits allow")
_EDGE = Flag("of inputs and outputs: float, or as --activations (default)")
_FLOAT = Flag("a node, its result, or a kind of operator; repeatable", metavar="NODE")
_SPECTRUM = Flag("a log-mel spectrum at the inputs stays float where int8 loses accuracy",
                 "--float-spectrum/--no-float-spectrum")  # fmt: skip
_EQUALISE = Flag("make channels equally large", "--equalize/--no-equalize")
_BIAS = Flag("fit biases to the data", "--bias-correction/--no-bias-correction")
_ROUNDING = Flag("fit the rounding of weights", "--rounding/--no-rounding")
_SPLIT = Flag("copies of large channels, at most this share", "--split-channels", "SHARE")
_LIKE = Flag("keep scales and zero points of this quantized file: new weights fit", metavar="OLD")
_MEAN = Flag("of images: subtracted from pixels 0..255; one, or per channel: 124,116,104")
_LABELS = Flag(".npy .npz .csv, or text with one a line (default: the folders of the data)")
_CLASSES = Flag("names of the classes, one a line, in the order of the outputs")
_METRIC = Flag("f(outputs, labels), samples first; more is better", metavar="FILE:FUNCTION")
_TARGET = Flag("most points that it may lose: layers become int16 or float until it holds", metavar="POINTS")
_TEST = Flag("the data of --labels (default: --data); repeatable", metavar="FILE")
_WEIGHTS = Flag("of layers that gain by fewer bits: int8, int4, int2, or codes of a palette, palette4 or palette2")
_WEIGHTS_OF = Flag("of one layer, or a kind of operator; repeatable", metavar="NODE=TYPE")
_CODES_OF = Flag("int16 or int8 of one layer, or a kind of operator; repeatable", "--activations-of", "NODE=TYPE")
_FLASH = Flag("weights of 4 and 2 bits until constants and code fit, as in `glowc compile`: 32K or 2M")
_RAM = Flag("largest arena: 8192, 8K")
_INSNS = Flag("most instructions of an inference, as predicted", metavar="N")
_PARETO = Flag("measure bytes and error with more and more layers in fewer bits; NAME_pareto.svg")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a model leaves open: shapes of inputs, values of symbols, the first axis, which inputs are states."""

    input_shapes: Annotated[Texts, SHAPE] = None
    symbols: Annotated[Texts, SYMBOL] = None
    batch_size: Annotated[Count | None, BATCH] = None
    states: Annotated[Texts, STATE] = None

    def options(self) -> CompileOptions:
        """Return what they say."""
        shapes, symbols = parse_shapes(self.input_shapes), parse_symbols(self.symbols)
        states = parse_states(self.states)
        return CompileOptions(input_shapes=shapes, symbols=symbols, batch_size=self.batch_size, states=states)


@dataclass(frozen=True, slots=True)
class Images:
    """How pixels become numbers."""

    mean: Annotated[str, _MEAN] = "0"
    std: Annotated[str, Flag("of images: pixels are divided by it")] = "255"
    layout: Annotated[str | None, Flag("of images: nchw or nhwc (default: what fits)")] = None
    channels: Annotated[str, Flag("of images: rgb or bgr")] = "rgb"

    def format(self) -> ImageFormat:
        """Return what they say."""
        from glowc.quant.data import ImageFormat

        if self.layout not in (None, "nchw", "nhwc") or self.channels not in ("rgb", "bgr"):
            raise InputError(
                f"--layout {self.layout} --channels {self.channels}",
                hint="--layout nchw or nhwc, --channels rgb or bgr",
            )
        return ImageFormat(_numbers(self.mean, "--mean"), _numbers(self.std, "--std"), self.layout, self.channels)


@dataclass(frozen=True, slots=True)
class Scoring:
    """What is right for each sample, and how well outputs agree with it."""

    labels: Annotated[Path | None, _LABELS] = None
    classes: Annotated[Path | None, _CLASSES] = None
    metric: Annotated[str | None, _METRIC] = None


@dataclass(frozen=True, slots=True)
class Target(Scoring):
    """How near to the float model the outputs are to be."""

    target_accuracy: Annotated[Annotated[float, Within(0)] | None, _TARGET] = None
    test_data: Annotated[list[Path] | None, _TEST] = None

    @property
    def said(self) -> bool:
        """Whether there is anything to score outputs by."""
        return bool(self.labels or self.classes or self.metric or self.test_data)


@dataclass(frozen=True, slots=True)
class Narrow:
    """The types of weights, and of the codes of single layers."""

    weights: Annotated[str, _WEIGHTS] = "int8"
    weights_of: Annotated[Texts, _WEIGHTS_OF] = None
    codes_of: Annotated[Texts, _CODES_OF] = None

    def precision(self) -> Precision:
        """Return what they say."""
        from glowc.quant.precision import Precision
        from glowc.quant.scheme import Activations
        from glowc.quant.weight_types import WeightType

        return Precision(
            _word(WeightType, self.weights, f"--weights {self.weights}: no type of weights", "types: {}"),
            _by_node(WeightType, "no type of weights", "--weights-of", self.weights_of, "int4"),
            _by_node(Activations, "no type of activations", "--activations-of", self.codes_of, "int16"),
        )


@dataclass(frozen=True, slots=True)
class Limited:
    """What the model may take of a board."""

    flash_limit: Annotated[Size | None, _FLASH] = None
    ram_limit: Annotated[Size | None, _RAM] = None
    max_insns: Annotated[Count | None, _INSNS] = None
    pareto: Annotated[bool, _PARETO] = False
    board: Annotated[str, Flag("whose sizes and instructions the limits and --pareto count")] = "mps2-an386"

    def room(self) -> Room | None:
        """Return what they say; None where they say nothing."""
        from glowc.app.frontier import Room
        from glowc.quant.limits import Limits

        limits = Limits(self.flash_limit, self.ram_limit, self.max_insns)
        return Room(limits, self.pareto, self.board) if self.pareto or limits != Limits() else None


@dataclass(frozen=True, slots=True)
class How:
    """How a model is quantised."""

    schema: Annotated[str, _SCHEMA] = "asymmetric"
    calibration: Annotated[str, _CALIBRATION] = "auto"
    activations: Annotated[str, _ACTIVATIONS] = "int8"
    io_type: Annotated[str | None, _EDGE] = None
    keep_float: Annotated[Texts, _FLOAT] = None
    float_spectrum: Annotated[bool, _SPECTRUM] = True
    equalise: Annotated[bool, _EQUALISE] = True
    bias: Annotated[bool, _BIAS] = True
    rounding: Annotated[bool, _ROUNDING] = True
    split: Annotated[Annotated[float, Within(0, 1)], _SPLIT] = 0.0
    like: Annotated[Path | None, _LIKE] = None

    def options(self, narrow: Narrow, *, limited: bool) -> list[QuantizeOptions]:
        """Return what they say: the options for each type of activations that may be taken."""
        from glowc.quant.calibrate import Calibration
        from glowc.quant.like import read_like
        from glowc.quant.quantizer import QuantizeOptions
        from glowc.quant.scheme import Schema

        one = QuantizeOptions(
            schema=_word(Schema, self.schema, "no schema", "--schema {}"),
            calibration=_word(Calibration, self.calibration, "no calibration", "--calibration {}"),
            keep_float=tuple(self.keep_float or ()), float_edge=float_edge(self.io_type, self.activations),
            float_spectrum=self.float_spectrum,
            equalise=self.equalise, bias_correction=self.bias, rounding=self.rounding, split=self.split,
            precision=narrow.precision(), like=read_like(self.like) if self.like is not None else None,
        )  # fmt: skip
        return [replace(one, activations=kind) for kind in activations_of(self.activations, limited=limited)]


def _numbers(text: str, option: str) -> tuple[float, ...]:
    try:
        values = tuple(float(t) for t in text.split(","))
    except ValueError:
        raise InputError(f"{option} {text}: not a number", hint=f"{option} 127.5, or {option} 124,116,104") from None
    if option == "--std" and 0 in values:
        raise InputError("--std 0: pixels are divided by it", hint="--std 255 makes values from 0 to 1")
    return values


def _by_node(kind: type[W], problem: str, option: str, texts: Texts, example: str) -> dict[str, W]:
    """Return what each NODE=TYPE says, by node."""
    found = {}
    for text in texts or ():
        name, equals, word = text.rpartition("=")
        if not name or not equals:
            raise InputError(f"{option} {text}: no NODE=TYPE", hint=f"{option} conv1={example}")
        found[name] = _word(kind, word, f"{option} {text}: {problem}", "types: {}")
    return found


def _word(kind: type[W], text: str, problem: str, hint: str) -> W:
    """Return the member of that text. Raises InputError that says `problem`, and what there is."""
    if text not in list(kind):
        raise InputError(f"{problem} {text!r}", hint=hint.format(", ".join(kind)))
    return kind(text)


def activations_of(name: str, *, limited: bool) -> tuple[Activations, ...]:
    """Return the types of activations that --activations allows: both for `auto`, which needs limits."""
    from glowc.quant.scheme import Activations

    if name == AUTO and limited:
        return tuple(Activations)
    if name == AUTO:
        raise InputError("--activations auto takes what limits allow", hint="--ram-limit 16K, --max-insns 5000000")
    return (_word(Activations, name, "no activations", f"--activations {{}} or {AUTO}"),)


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
