"""What the commands that quantise say of what they did."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glowc.compiler.pipeline import Compiled
    from glowc.quant.quantizer import Quantized
    from glowc.quant.tune import Tuned

_NAMED = 6  # layers of a summary


def summary(done: Quantized, output: Path) -> dict[str, object]:
    """Return what `quantize --json` prints."""
    return {
        "output": str(output), "layers": done.layers, "samples": done.samples, "equalised": done.equalised,
        "channel_copies": done.copies,
        "bits": {name: kind.bits for name, kind in done.kinds.items()},
        "weights": {name: str(kind) for name, kind in done.kinds.items()},
        "int16": list(done.wide),
        "rmse_over_largest": done.error, "steps": done.steps, "rmse_over_steps": done.steps_error,
        "notes": list(done.notes),
        "float": [{"name": f.name, "op": f.op, "reason": f.reason} for f in done.floats],
        "ranges": dict(done.how),
    }  # fmt: skip


def summary_text(done: Quantized, output: Path) -> str:
    """Return what `quantize` prints."""
    counts = [f"{n} {what}{'' if n == 1 else 's'}" for n, what in ((done.layers, "layer"), (done.samples, "sample"))]
    lines = [f"{counts[0]} on {done.activations}, {counts[1]}: {output}"]
    for kind, count in done.narrow:
        what = f"{kind.bits} bits{', of a palette' if kind.indexed else ''}"
        lines.append(f"  {count} layer{'s' if count > 1 else ''} with weights of {what}")
    lines += [f"  {done.copies} channel{'s' if done.copies > 1 else ''} more, as copies"] if done.copies else []
    more = f", and {len(done.wide) - _NAMED} more (--json names all)" if len(done.wide) > _NAMED else ""
    lines += [f"  on int16: {', '.join(done.wide[:_NAMED])}{more}"] if done.wide else []
    if done.error is not None:
        lines.append(f"  error of the outputs on this data: {100 * done.error:.2f} % of the largest (RMSE, simulated)")
    if done.steps_error is not None:
        lines.append(f"  after {done.steps} steps with its own states: {100 * done.steps_error:.2f} %")
    lines += [f'  stays float: {f.op} "{f.name}": {f.reason}' for f in done.floats]
    return "\n".join([*lines, *(f"  note: {note}" for note in done.notes)])


def tuned_data(search: Tuned | None) -> dict[str, object]:
    """Return what it prints besides of a search for accuracy."""
    if search is None:
        return {}
    return {"float_score": search.float_score, "trials": [asdict(trial) for trial in search.trials]}


def int8_saving(compiled: Compiled, model: Path) -> str | None:
    """Return what int8 would save of a float model on a Cortex-M, and how to get it; None for trees and others."""
    from glowc.passes.quant.float_layers import has_quantized_activations

    names = [*compiled.graph.inputs, *(n for node in compiled.graph.nodes for n in node.outputs if n)]
    floats = [n for n in names if compiled.graph.types[n].dtype.is_float]
    if not compiled.board.cpu.name.startswith("cortex-m") or has_quantized_activations(compiled.graph) or not floats:
        return None
    if any(node.op == "Trees" for node in compiled.graph.nodes):
        return None
    constants, arena = compiled.report["weights_bytes"], compiled.report["arena_bytes"]
    return (
        f"  note: float; int8 takes about {constants // 4:,} bytes of constants and {arena // 4:,} of arena: "
        f"glowc quantize {model} --data SAMPLES.npz -o int8.onnx, or --quantize-data SAMPLES.npz here"
    )
