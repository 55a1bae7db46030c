"""What commands print with --json, as types, and JSON Schemas made of them: docs/STABILITY.md says what stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, NotRequired, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

from glowc.app.frontier import PointData
from glowc.app.show import BoardRow, ChipRow
from glowc.compiler.group import GroupReport
from glowc.compiler.report import BenchReport, Report
from glowc.machine.debug import DebugResult
from glowc.machine.evaluate import Evaluation
from glowc.machine.matrix import Result
from glowc.machine.tflm import EngineComparison
from glowc.machine.tune import Choice
from glowc.machine.validate import Comparison
from glowc.paths import SCHEMA
from glowc.quant.tune import Trial


class PlanCost(TypedDict):
    """A memory plan of `glowc compile --pareto`, and the instructions that it takes besides the layers' own."""

    plan: str
    arena_bytes: int
    extra_insns: int


class CompileData(Report):
    """`glowc compile`: the report."""

    pareto: NotRequired[list[PlanCost]]


class WeightsData(TypedDict):
    """`glowc compile --weights-for`."""

    fits: bool
    weights_blob: str
    bytes: int


class RunData(TypedDict):
    """`glowc run`; what follows `port` is of a board on a serial line."""

    samples: int
    output: str
    stack_bytes: NotRequired[int | None]
    port: NotRequired[str]
    cycles: NotRequired[int | None]
    counter: NotRequired[str]
    asked_again: NotRequired[int]


class TuneData(TypedDict):
    """`glowc tune`."""

    layers: list[Choice]
    output: str


class ProfileData(TypedDict):
    """`glowc profile`."""

    samples: int
    tensors: int
    graph_hash: str
    output: str


class FloatLayer(TypedDict):
    """A layer that stays float, and why."""

    name: str
    op: str
    reason: str


class QuantizeData(TypedDict):
    """`glowc quantize`; the trials are those of --target-accuracy, the points those of limits and --pareto."""

    output: str
    layers: int
    samples: int
    equalised: int
    channel_copies: int
    bits: dict[str, int]
    weights: dict[str, str]
    int16: list[str]
    rmse_over_largest: float | None
    steps: int
    rmse_over_steps: float | None
    notes: list[str]
    float: list[FloatLayer]
    ranges: dict[str, str]
    float_score: NotRequired[float]
    trials: NotRequired[list[Trial]]
    chosen: NotRequired[PointData]
    points: NotRequired[list[PointData]]


class BuildData(TypedDict):
    """`glowc build`."""

    output: str
    board: str
    text_bytes: int
    rodata_bytes: int
    data_bytes: int
    bss_bytes: int


class PageData(TypedDict):
    """`glowc report`."""

    output: str
    size_bytes: int
    notes: list[str]


class MatrixData(TypedDict):
    """`glowc matrix`."""

    cells: int
    ran: int
    results: list[Result]


class WrittenData(TypedDict):
    """`glowc example`, `log-mel`, `test-kit`, `board new` and `make-include`: where it is."""

    output: str


class TextData(TypedDict):
    """`glowc docs`, `explain` and `flash`: what they print."""

    text: str


class BoardsData(TypedDict):
    """`glowc boards`."""

    boards: list[BoardRow]


class ChipsData(TypedDict):
    """`glowc chips`."""

    chips: list[ChipRow]


class OpsData(TypedDict):
    """`glowc ops`; kernels are those of ONNX's operators."""

    operators: list[dict[str, Any]]
    kernels: NotRequired[list[dict[str, Any]]]
    instruction_kinds: NotRequired[int]


class DoctorData(TypedDict):
    """`glowc doctor`."""

    glowc: str
    commit: str | None
    python: str
    tools: list[dict[str, Any]]
    packages: list[dict[str, Any]]
    missing: list[str]
    install: str | None


class ErrorReport(TypedDict):
    """An error: docs/ERRORS.md."""

    code: str
    message: str
    details: list[str]
    hint: str | None
    exit_status: int


class ErrorData(TypedDict):
    """Any command that fails."""

    error: ErrorReport


def documents() -> Mapping[str, type]:
    """Return the type of what each command prints; `report` is report.json of one model, `group` that of several."""
    return {
        "report": Report, "group": GroupReport, "error": ErrorData, "compile": CompileData, "weights-for": WeightsData,
        "run": RunData, "bench": BenchReport, "tune": TuneData, "validate": Comparison, "debug": DebugResult,
        "eval": Evaluation, "profile": ProfileData, "quantize": QuantizeData, "build": BuildData, "page": PageData,
        "matrix": MatrixData, "boards": BoardsData, "chips": ChipsData, "ops": OpsData, "doctor": DoctorData,
        "compare": EngineComparison, "written": WrittenData, "text": TextData,
    }  # fmt: skip


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document; keys that it does not name are allowed."""
    schema = _object(documents()[name])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        **schema,
        "properties": {**schema["properties"], "schema": {"const": SCHEMA}},
        "required": sorted({"schema", *schema["required"]}),
    }


def _schema(kind: Any) -> dict[str, Any]:
    """Return the schema of an annotation."""
    simple = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
    if kind in simple:
        return {"type": simple[kind]}
    if kind is Any:
        return {}
    origin, of = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(one) for one in of]}
    if origin in (list, tuple):
        return {"type": "array", "items": _schema(of[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(of[1])}
    return _object(kind)


def _object(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    optional = {key for key, hint in hints.items() if get_origin(hint) is NotRequired}
    if is_typeddict(kind):
        optional |= kind.__optional_keys__
    else:
        assert is_dataclass(kind), kind
        hints = {field.name: hints[field.name] for field in fields(kind)}
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": {key: _schema(get_args(h)[0] if get_origin(h) is NotRequired else h) for key, h in hints.items()},
        "required": sorted(set(hints) - optional),
    }
