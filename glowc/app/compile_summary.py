"""What `glowc compile` says, line by line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glowc.compiler.pipeline import Compiled
    from glowc.compiler.report import Report


def compile_summary(compiled: Compiled, out: Path) -> str:
    """Return what `glowc compile` says: layers, RAM, flash, what stays float, what was removed."""
    from glowc.passes.quant.float_layers import float_layers, has_quantized_activations

    report = compiled.report
    lines = [
        f"{report['model']}: {len(compiled.bundle.layers)} layers, {report['macs']:,} multiply-accumulates",
        f"  RAM        {report['arena_bytes']:>10,} bytes of arena ({_least(report)})",
        *_regions(report),
        *_streaming(compiled),
        *_time(report),
        *_steps(report),
        *_cores(report),
        f"  constants  {report['weights_bytes']:>10,} bytes",
        *_narrow(report),
        *_code(report),
        *_flash(compiled),
        _stack(report),
        *_removed(report),
        f"  written to {out}",
    ]
    if has_quantized_activations(compiled.graph):
        floats = list(dict.fromkeys(layer.name for layer in float_layers(compiled.graph)))
        if floats:
            plural = "layers stay" if len(floats) > 1 else "layer stays"
            lines.insert(3 + len(_regions(report)), f"  float      {len(floats)} {plural} float: {', '.join(floats)}")
    return "\n".join(lines)


def _least(report: Report) -> str:
    """Return how good the placement of tensors is: none can be better, or what none can go below."""
    if "regions_proven_best" in report:
        return "split, no split is better" if report["regions_proven_best"] else "split"
    bound = report["arena_lower_bound_bytes"]
    if report["arena_bytes"] == bound:
        return "proven minimum"
    return f"lower bound {bound:,}"


def _steps(report: Report) -> list[str]:
    """Return a line about the steps of an inference in slices."""
    slices = report["slices"]
    if slices is None:
        return []
    longest = f"{slices['longest_cycles_estimate']:,} of {slices['limit_cycles']:,} cycles"
    return [f"  steps      {len(slices['step_parts']):>10,}, the longest takes {longest}, estimated"]


def _cores(report: Report) -> list[str]:
    """Return a line about the cores that share layers."""
    cores = report["cores"]
    if cores is None:
        return []
    shared, layers = cores["shared_layers"], len(report["layers"])
    return [f"  cores      {cores['count']:>10,}, which share {shared} of {layers} layers"]


def _code(report: Report) -> list[str]:
    """Return a line about the predicted bytes of code, where the CPU's kernels were measured."""
    code = report["text_bytes_estimate"]
    return [] if code is None else [f"  code       {code:>10,} bytes, estimated"]


def _flash(compiled: Compiled) -> list[str]:
    """Return a line about a limit of flash that is near: counted, or as far as can be known without a compiler."""
    from glowc.compiler.fit import flash_limit
    from glowc.compiler.flash import is_near

    limit, need = flash_limit(compiled.options, compiled.board), compiled.printed.flash_bytes
    if need is not None:
        return [f"  flash      {need:>10,} bytes of constants and code, counted; {limit:,} are allowed"]
    if limit is None or not is_near(compiled.printed, limit):
        return []
    about, cc = compiled.printed.predicted(), compiled.board.cpu.cc
    return [f"  flash      {about:>10,} bytes, estimated; {limit:,} are allowed, install {cc} to know whether it fits"]


def _stack(report: Report) -> str:
    """Return the line about the predicted stack, where the CPU's programs were measured."""
    most = "worst case: `glowc bench`"
    stack = report["stack_bytes_estimate"]
    return f"  stack      {most}" if stack is None else f"  stack      {stack:>10,} bytes, estimated; {most}"


def _time(report: Report) -> list[str]:
    """Return a line about calls that take steps of time."""
    time = report.get("time")
    if time is None:
        return []
    early = f"; the first {time['warmup_calls']} results are early" if time["warmup_calls"] else ""
    what = "one sequence since a reset" if time["results_of"] == "sequence" else "the latest window"
    return [f"  time       {time['hop_steps']:>10,} of {time['window_steps']:,} steps a call, results of {what}{early}"]


def _regions(report: Report) -> list[str]:
    """Return a line per memory region of a split arena."""
    return [
        f"    {r['name']:8} {r['arena_bytes']:>10,} of {r['capacity_bytes']:,} bytes, "
        f"{100 * r['accesses_share']:.1f} % of the accesses (estimated)"
        for r in report.get("regions", [])
    ]


def _streaming(compiled: Compiled) -> list[str]:
    """Return a line about what a plan costs that computes layers row by row."""
    if compiled.planned.kind != "stream":
        return []
    cost = f"about {compiled.planned.extra_insns:,} instructions more"
    return [f"  plan       {compiled.planned.title}: {cost} for an inference"]


def _removed(report: Report) -> list[str]:
    """Return a line about channels that cannot matter and are gone."""
    layers = report["removed_channels"]
    count = sum(entry["before"] - entry["after"] for entry in layers)
    return [f"  removed    {count:>10,} channels, dead or double, of {len(layers)} layers"] if layers else []


def _narrow(report: Report) -> list[str]:
    """Return a line about weights of 4 or 2 bits."""
    found = report.get("narrow_weights")
    if found is None:
        return []
    total = len(found["packed"]) + len(found["as_bytes"])
    stay = f"; as bytes (few, depthwise, float, or no room in RAM): {', '.join(found['as_bytes'])}"
    return [f"  few bits   weights of {len(found['packed'])} of {total} layers{stay if found['as_bytes'] else ''}"]
