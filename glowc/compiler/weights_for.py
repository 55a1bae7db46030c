"""Whether the constants of a model, trained again, fit the code of a bundle; if they do not, what does not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from glowc.compiler.pipeline import Compiled
from glowc.errors import InputError, LimitError

_CODE = slice(16, 24)  # of a blob: the hash of the code that it is for (glow_weights.h)
_MOST = 8
_HINT = "glowc quantize --like OLD_INT8.onnx keeps scales and zero points; graph and options must be the same"


def blob_for(compiled: Compiled, report: Any, old_blob: bytes) -> tuple[str, bytes]:
    """Return name and content of the blob of a compiled model for the bundle that has this report and this blob.

    Raises LimitError, with each tensor or layer that differs, where it does not fit.
    """
    name, blob = next(iter(compiled.bundle.binaries.items()))
    if blob[_CODE] == old_blob[_CODE]:
        return name, blob
    found = list(_differences(compiled.report, report))
    more = [f"and {len(found) - _MOST} more"] if len(found) > _MOST else []
    raise LimitError(
        f"the weights of {compiled.report['model']} do not fit the code of the bundle",
        details=[*(found[:_MOST] or ["the C of both differs, though tensors and layers are the same"]), *more],
        hint=_HINT,
    )


def check_blob(folder: Any, report: Any) -> None:
    """Raise InputError for a bundle whose constants are not in a file of their own."""
    if not report.get("weights_blob"):
        raise InputError(f"the constants of {folder} are part of its code", hint="compile it with --weights blob once")


def _differences(new: Any, old: Any) -> Iterator[str]:
    """Yield what of two reports differs: versions, tensors and their quantisation, layers, places in the blob."""
    if new["glowc"] != old["glowc"]:
        yield f"glowc {old['glowc']} wrote the bundle, this is {new['glowc']}"
    known = {q["name"]: q for q in old["quantisation"] if not q["constant"]}
    for q in (q for q in new["quantisation"] if not q["constant"]):
        before = known.get(q["name"])
        if before is None:
            yield f"tensor {q['name']!r}: the bundle has none of that name"
        elif _quant(q) != _quant(before):
            yield f"tensor {q['name']!r}: {_quant(q)}, the bundle has {_quant(before)}"
    for one, other in zip_longest(new["layers"], old["layers"]):
        if one is None or other is None or (one["name"], one["kernel"]) != (other["name"], other["kernel"]):
            yield f"layer {_layer(one)}, the bundle has {_layer(other)}"
    sizes = {c["name"]: (c["dtype"], c["shape"]) for c in old["constants"]}
    for c in new["constants"]:
        if sizes.get(c["name"]) != (c["dtype"], c["shape"]):
            was = "{}{}".format(*sizes[c["name"]]) if c["name"] in sizes else "none"
            yield f"constant {c['name']!r}: {c['dtype']}{c['shape']}, the bundle has {was}"


def _quant(q: Any) -> str:
    return f"scale {q['scale_min']:.8g}, zero point {q['zero_point']}, {q['dtype']}{q['shape']}"


def _layer(row: Any) -> str:
    return "none" if row is None else f"{row['name']!r} by {row['kernel']}"
