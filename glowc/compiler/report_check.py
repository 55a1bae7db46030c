"""What of a report.json is not as glowc writes it: a bundle may have been edited, or be of another version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, get_type_hints

from glowc.compiler.report import BundleReport, CyclesReport, EstimateReport, LayerReport
from glowc.errors import BundleError
from glowc.paths import SCHEMA


def _fields(*kinds: Any, of: tuple[type, ...]) -> frozenset[str]:
    """Return the names of the fields of one of these types."""
    return frozenset(name for report in of for name, kind in get_type_hints(report).items() if kind in kinds)


_COUNTED = (BundleReport, EstimateReport, LayerReport)
_NUMBERS = _fields(int, int | None, of=_COUNTED)
_NEVER_NULL = _fields(int, of=_COUNTED)
_LAYER_TEXTS = _fields(str, of=(LayerReport,))
_LATER = {*get_type_hints(CyclesReport), *get_type_hints(EstimateReport)}  # what a layer may lack
_LAYER_KEYS = _fields(str, int, int | None, of=(LayerReport,)) - _LATER


def check_schema(report: Any, path: Path) -> None:
    """Raise BundleError for a report of a newer glowc, whose keys may mean something else."""
    number = report.get("schema", SCHEMA) if isinstance(report, dict) else SCHEMA
    if not isinstance(number, int) or number > SCHEMA:
        raise BundleError(
            f"{path} has schema {number!r}, this glowc knows up to {SCHEMA}",
            hint="update glowc, or compile the model again",
        )


def wrong_fields(report: Any) -> list[str]:
    """Return the fields that have another type than glowc gives them, or that every bundle has and this one lacks."""
    if not isinstance(report, dict):
        return ["an object"]
    return sorted({*_wrong_head(report), *_wrong_numbers(report), *_wrong_layers(report.get("layers"))})


def _wrong_head(report: Any) -> Iterator[str]:
    name = report.get("model")
    if not isinstance(name, str) or PurePath(name).name != name:
        yield "model"
    yield from (key for key in ("inputs", "outputs", "layers") if not _is_rows(report.get(key)))
    if report.get("outputs") == []:
        yield "outputs"


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _wrong_numbers(table: Any, where: str = "") -> Iterator[str]:
    for key in _NUMBERS:
        value = table.get(key)
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if key in table and not known and (value is not None or key in _NEVER_NULL):
            yield f"{key}{where}"


def _wrong_layers(layers: Any) -> Iterator[str]:
    for layer in layers if _is_rows(layers) else []:
        yield from (f"{key} of a layer" for key in _LAYER_KEYS if key not in layer)
        yield from (f"{key} of a layer" for key in _LAYER_TEXTS if not isinstance(layer.get(key), str))
        yield from _wrong_numbers(layer, " of a layer")
