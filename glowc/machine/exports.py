"""Measurements in the forms of other tools: Chrome and Perfetto traces, Prometheus metrics, JUnit results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from glowc.compiler.report import BenchReport, LayerReport
from glowc.errors import FileError, MissingToolError
from glowc.machine.validate import Comparison

_INSN_US = 1e-3


def trace_text(report: BenchReport) -> str:
    """Return an inference as trace events (JSON): a slice a layer, and a counter of live bytes of the arena.

    Time is that of the chip where cycles were counted; else an instruction is drawn as a nanosecond. Source: Trace
    Event Format, as chrome://tracing and Perfetto read it.
    """
    chip, at_us = report.get("chip"), 0.0
    unit = f"time on {chip['name']} at {chip['clock_mhz']} MHz" if chip else "1 ns = 1 instruction"
    events = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": f"{report['model']} ({unit})"}}]
    for layer in report["layers"]:
        took = _us(layer, report)
        args = {key: value for key, value in layer.items() if isinstance(value, int | float | str)}
        events.append({"name": layer["name"] or layer["op"], "cat": layer["op"], "ph": "X", "ts": at_us, "dur": took,
                       "pid": 1, "tid": 1, "args": args})  # fmt: skip
        events.append({"name": "arena", "ph": "C", "ts": at_us, "pid": 1, "args": {"live": layer["arena_live_bytes"]}})
        at_us += took
    about = {"model_hash": report["model_hash"], "board": report["board"], "time": unit}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}) + "\n"


def _us(layer: LayerReport, report: BenchReport) -> float:
    chip, cycles = report.get("chip"), layer.get("cycles")
    if chip is not None and cycles is not None:
        return cycles / chip["clock_mhz"]
    return (layer["insns"] if layer["insns"] is not None else layer["insns_estimate"]) * _INSN_US


def metrics_text(report: BenchReport) -> str:
    """Return what was measured in Prometheus' text exposition format. Raises ToolError without prometheus_client."""
    try:
        from prometheus_client import CollectorRegistry, Gauge, generate_latest
    except ImportError:
        raise MissingToolError("prometheus_client is not installed", hint="pip install 'glowc[metrics]'") from None
    registry = CollectorRegistry()
    about = {"model": report["model"], "board": report["board"]}
    for name, help_text, value in _totals(report):
        Gauge(name, help_text, [*about], registry=registry).labels(**about).set(value)
    labels = [*about, "layer", "name", "op", "kernel"]
    insns = Gauge("glowc_layer_instructions", "Instructions of a layer in one inference", labels, registry=registry)
    cycles = Gauge("glowc_layer_cycles", "Modeled cycles of a layer in one inference", labels, registry=registry)
    for number, layer in enumerate(report["layers"]):
        row = {**about, "layer": str(number), "name": layer["name"], "op": layer["op"], "kernel": layer["kernel"]}
        if layer["insns"] is not None:
            insns.labels(**row).set(layer["insns"])
        if "cycles" in layer:
            cycles.labels(**row).set(layer["cycles"])
    return generate_latest(registry).decode()


def _totals(report: BenchReport) -> Iterator[tuple[str, str, float]]:
    known = (
        ("glowc_instructions", "Instructions of one inference", report["insns"]),
        ("glowc_cycles", "Modeled cycles of one inference", report.get("cycles")),
        ("glowc_seconds", "Modeled time of one inference", None if "ms" not in report else report["ms"] / 1e3),
        ("glowc_joules", "Modeled energy of one inference", None if "uj" not in report else report["uj"] / 1e6),
        ("glowc_arena_bytes", "Bytes of the arena", report["arena_bytes"]),
        ("glowc_weights_bytes", "Bytes of constants", report["weights_bytes"]),
        ("glowc_text_bytes", "Bytes of code", report["text_bytes"]),
        ("glowc_stack_bytes", "Most stack of an inference, as measured", report["stack_bytes"]),
        ("glowc_stack_bound_bytes", "Most stack of an inference, as computed", report["stack_bound_bytes"]),
    )
    yield from ((name, text, float(value)) for name, text, value in known if value is not None)


def write_tensorboard(report: BenchReport, folder: Path, step: int) -> None:
    """Add what was measured to a folder of TensorBoard's event files, as scalars at `step`.

    Raises ToolError without tensorboard, GlowcError where the folder takes nothing.
    """
    try:
        from tensorboard.summary import Writer
    except ImportError:
        raise MissingToolError("tensorboard is not installed", hint="pip install 'glowc[tensorboard]'") from None
    try:
        writer = Writer(str(folder))
        for name, text, value in _totals(report):
            writer.add_scalar(f"{report['board']}/{name.removeprefix('glowc_')}", value, step, description=text)
        for number, layer in enumerate(report["layers"]):
            if layer["insns"] is not None:
                tag = f"{report['board']}/layers/{number:03} {layer['name'] or layer['op']}"
                writer.add_scalar(tag, layer["insns"], step, description=f"Instructions, {layer['kernel']}")
        writer.close()
    except OSError as error:
        raise FileError(f"cannot write {folder}: {error.strerror}", hint="choose another with --tensorboard") from error


def junit_text(result: Comparison) -> str:
    """Return a comparison as JUnit XML: a test case an output."""
    model, board, rows = result["model"], result["board"], result["outputs"]
    counts = {"tests": len(rows), "failures": sum(not row["ok"] for row in rows), "errors": 0, "skipped": 0}
    suite = ElementTree.Element("testsuite", {"name": f"{model} on {board}", **{k: str(n) for k, n in counts.items()}})
    for row in rows:
        case = ElementTree.SubElement(suite, "testcase", classname=f"{model}.{board}", name=row["name"])
        if not row["ok"]:
            share = f"{100 * row['equal_share']:.3f} % equal to {result['reference']}"
            text = f"{share}, largest difference {row['max_abs']:g}"
            where = result.get("first_difference")
            failure = ElementTree.SubElement(case, "failure", message=text)
            failure.text = f"allowed: {row['allowed']}" + (f"\nfirst layer that differs: {where}" if where else "")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"
