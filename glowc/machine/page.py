"""The page of a report: what is known of a bundle, as one HTML file that needs nothing else and sends nothing.

Names in a model are somebody else's text: they reach the page as JSON in which no tag can begin, and its script
sets them as text only. The page's own policy lets no other script run and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from glowc.codegen.kernels import environment
from glowc.compiler.report import BenchReport, LayerReport
from glowc.compiler.report_check import check_schema, wrong_fields
from glowc.compiler.report_tensors import PlacedTensor
from glowc.errors import BundleError
from glowc.machine.evaluate import Score
from glowc.machine.execute import load_bundle
from glowc.machine.layer_error import LayerError
from glowc.quant.profile import Profile, Stats

BINS = 64
_LAYER_KEYS = ("name", "op", "kernel", "macs", "insns_estimate", "cycles_estimate", "reads", "writes", "constants")
_KEYS = ("model", "board", "cpu", "arena_bytes", "weights_bytes", "layers", "tensors", "constants", "quantisation")
_KINDS = {"model": str, "board": str, "cpu": str, "arena_bytes": int, "weights_bytes": int}


class Edge(TypedDict):
    """A tensor on its way from the layer that computes it, or an input of the model (`source` is null), to a layer."""

    source: int | None
    target: int
    tensor: str


class Histogram(TypedDict):
    """The values of a tensor: `counts` in bins of equal width from `low` to `high`."""

    name: str
    low: float
    high: float
    counts: list[int]


class Evaluated(TypedDict):
    """What the page shows of `glowc eval --json`."""

    samples: int
    scores: list[Score]
    layers: list[LayerError]


class Page(TypedDict):
    """All that the page shows."""

    report: BenchReport
    edges: list[Edge]
    histograms: list[Histogram]
    evaluated: Evaluated | None
    against: BenchReport | None
    notes: list[str]


def read_report(path: Path) -> BenchReport:
    """Return the report of a bundle's folder, or of a file that `glowc bench --json` or a bundle has.

    Raises InputError that names every key which is missing.
    """
    return checked_report(_json(path) if path.is_file() else load_bundle(path).report, path)


def checked_report(found: Any, path: Path) -> BenchReport:
    """Return a report from `path` if it has all that a page shows. Raises InputError as `read_report`."""
    check_schema(found, path)
    missing = [key for key in _KEYS if key not in found] if isinstance(found, dict) else ["an object"]
    missing = missing or [f"{k} is no {t.__name__}" for k, t in _KINDS.items() if not isinstance(found[k], t)]
    missing = missing or wrong_fields(found) or _wrong_lists(found)
    if missing:
        hint = "a bundle's folder, or a file that `glowc bench --json` printed; compile again what is older"
        raise BundleError(
            f"{path} is no report of glowc", details=[f"missing or wrong: {', '.join(missing)}"], hint=hint
        )
    report = cast(BenchReport, found)
    try:
        edges_of(report["layers"], report["tensors"])
    except (KeyError, TypeError, AttributeError) as error:
        details = [f"{type(error).__name__}: {error}"]
        raise BundleError(f"{path} is no report of glowc", details=details, hint="compile the model again") from error
    return report


def _wrong_lists(found: Any) -> list[str]:
    lists = ("layers", "tensors", "constants", "quantisation")
    wrong = [key for key in lists if not isinstance(found[key], list)]
    if wrong or not all(isinstance(row, dict) for key in lists for row in found[key]):
        return wrong or ["rows of lists"]
    return sorted({f"{key} of a layer" for layer in found["layers"] for key in _LAYER_KEYS if key not in layer})


def read_evaluation(path: Path) -> Evaluated:
    """Return what `glowc eval --json` printed into a file. Raises InputError when it is something else."""
    found = _json(path)
    try:
        return {"samples": int(found["samples"]), "scores": list(found["scores"]), "layers": list(found["layers"])}
    except (KeyError, TypeError, ValueError):
        raise BundleError(f"{path} is no evaluation", hint="glowc eval MODEL --float ... --json > eval.json") from None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is no JSON"
        raise BundleError(f"cannot read {path}: {reason}", hint="a file that `glowc bench --json` printed") from None


def edges_of(layers: Sequence[LayerReport], tensors: Sequence[PlacedTensor]) -> list[Edge]:
    """Return which layers wrote the bytes of each tensor that a layer reads, in the order of the layers."""
    places = {tensor["name"]: _place(tensor) for tensor in tensors}
    written: dict[str, list[tuple[int, _Place]]] = {}
    edges: list[Edge] = []
    for index, layer in enumerate(layers):
        for name in layer["reads"]:
            place = places.get(name, _Place(name, 0, 1))
            sources: list[int | None] = [*_writers(place, written.get(place.storage, []))]
            edges += [{"source": source, "target": index, "tensor": name} for source in sources or [None]]
        for name in layer["writes"]:
            place = places.get(name, _Place(name, 0, 1))
            written.setdefault(place.storage, []).append((index, place))
    return edges


@dataclass(frozen=True, slots=True)
class _Place:
    """Bytes of a storage, half open."""

    storage: str
    begin: int
    end: int


def _place(tensor: PlacedTensor) -> _Place:
    begin = tensor["offset_bytes"] or 0
    return _Place(tensor["storage"], begin, begin + max(1, tensor["size_bytes"]))


def _writers(read: _Place, written: Sequence[tuple[int, _Place]]) -> list[int]:
    """Return the layers whose bytes are still there when `read` is read, the latest first."""
    left, found = [(read.begin, read.end)], []
    for index, place in reversed(written):
        parts = [p for a, b in left for p in ((a, min(b, place.begin)), (max(a, place.end), b)) if p[0] < p[1]]
        if parts != left and index not in found:
            found.append(index)
        left = parts
    return found


def histograms_of(profile: Profile) -> list[Histogram]:
    """Return the histograms of a profile in `BINS` bins."""
    return [_histogram(name, stats) for name, stats in profile.tensors.items()]


def _histogram(name: str, stats: Stats) -> Histogram:
    counts = np.add.reduceat(
        stats.histogram, np.arange(0, len(stats.histogram), math.ceil(len(stats.histogram) / BINS))
    )
    return {"name": name, "low": stats.low, "high": stats.high, "counts": [int(c) for c in counts]}


def page_of(
    report: BenchReport, *, profile: Profile | None = None, evaluated: Evaluated | None = None,
    against: BenchReport | None = None, notes: Sequence[str] = (),
) -> Page:  # fmt: skip
    """Return what the page of a report shows, with what else is known."""
    return {
        "report": _shown(report), "edges": edges_of(report["layers"], report["tensors"]),
        "histograms": histograms_of(profile) if profile is not None else [], "evaluated": evaluated,
        "against": _shown(against) if against is not None else None, "notes": list(notes),
    }  # fmt: skip


def _shown(report: BenchReport) -> BenchReport:
    """Return a report without what no page needs."""
    return cast(BenchReport, {key: value for key, value in report.items() if key not in ("sbom", "files")})


def render_page(page: Page) -> str:
    """Return the HTML file."""
    env = environment()
    style, script = (env.get_template(f"report/{name}").render() for name in ("style.css.j2", "script.js.j2"))
    return env.get_template("report/page.html.j2").render(
        title=escape(f"{page['report']['model']} on {page['report']['board']}"), style=style, script=script,
        style_hash=policy_hash(style), script_hash=policy_hash(script), data=_embedded(page),
    )  # fmt: skip


def policy_hash(text: str) -> str:
    """Return how a content security policy names a style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(page: Page) -> str:
    """Return JSON for a script element: ASCII, no character that HTML could take for markup."""
    text = json.dumps(_finite(page), separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _finite(value: Any) -> Any:
    """Return a value of JSON with null in the place of infinities and what is no number, which JSON has not."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
