"""What report.json says of a compiled model."""

from __future__ import annotations

from pathlib import Path

from glowc import __version__
from glowc.board import Board
from glowc.codegen.bundle import Bundle, BundleSpec
from glowc.codegen.segments import profile_order
from glowc.compiler.bundle_folder import REPORT
from glowc.compiler.options import CompileOptions
from glowc.frontend import is_half
from glowc.graph.graph import Graph
from glowc.memory.types import MemoryPlan
from glowc.passes.layout.edge import Edge
from glowc.place.planning import Planned
from glowc.program.ir import Program
from glowc.program.lifetimes import live_bytes, strip_markers
from glowc.select.choose import Selection


def report_of(
    spec: BundleSpec, board: Board, program: Program, plan: MemoryPlan, bundle: Bundle, edge: Edge
) -> dict[str, object]:
    exported_dtypes = {name: change.exported.dtype.value for name, change in edge.changes.items()}
    live = live_bytes(program)
    unmeasured = dict.fromkeys(
        ("text_bytes", "rodata_bytes", "data_bytes", "bss_bytes", "stack_bytes", "stack_bound_bytes")
    )
    layers = [
        {"name": layer.name, "op": layer.op, "kernel": layer.kernel, "macs": layer.macs, "insns": None,
         "arena_live_bytes": live[layer.index]}
        for layer in bundle.layers
    ]  # fmt: skip
    tensors = {
        kind: [
            {"name": t.name, "ident": t.ident, "dtype": t.type.dtype.value, "shape": list(t.type.shape),
             "exported_shape": list(t.exported_shape),
             "exported_dtype": exported_dtypes.get(t.name, t.type.dtype.value),
             "layout": t.layout, "offset_bytes": t.offset_bytes,
             **_edge_quant(t.name, t.scale, t.zero_point, edge)}
            for t in views
        ]
        for kind, views in (("inputs", bundle.inputs), ("outputs", bundle.outputs))
    }  # fmt: skip
    return {
        "glowc": __version__, "model": spec.name, "model_hash": spec.model_hash, "board": board.name,
        "cpu": board.cpu.name, "opt": spec.opt, "options": spec.options, "entry_name": spec.entry_name or None,
        "arena_bytes": plan.arena_bytes, "arena_lower_bound_bytes": plan.lower_bound_bytes,
        "weights_bytes": bundle.weights_bytes, **unmeasured,
        "macs": sum(layer.macs for layer in bundle.layers), "insns": None, **tensors,
        "states": [{"name": s.name, "offset_bytes": s.offset_bytes, "size_bytes": s.size_bytes} for s in bundle.states],
        "files": sorted([*bundle.files, REPORT]), "layers": layers,
        **({"extern_sources": sorted(bundle.extern_sources)} if bundle.extern_sources else {}),
    }  # fmt: skip


def plan_report(planned: Planned, options: CompileOptions) -> dict[str, object]:
    """Return what the report says of the plan; `profile_order` are the layers as the profile hooks see them."""
    return {
        "plan": planned.kind, "plan_extra_insns_estimate": planned.extra_insns, "input_stream": options.input_stream,
        "io_buffers": options.io_buffers,
        "profile_order": profile_order(planned.program, len(strip_markers(planned.program).instrs)),
    }  # fmt: skip


def add_estimates(report: dict[str, object], selection: Selection, program: Program) -> None:
    """Add the predicted instructions of every layer, null where nothing is known of the kernel on this CPU."""
    estimates = selection.estimates(program)
    layers = report["layers"]
    assert isinstance(layers, list)
    for layer, insns in zip(layers, estimates, strict=True):
        layer["insns_estimate"] = insns
    report["insns_estimate"] = sum(i or 0 for i in estimates) if None not in estimates else None
    if selection.tuned:
        report["tuned_layers"] = len(selection.tuned)


def _edge_quant(name: str, scale: float | None, zero_point: int | None, edge: Edge) -> dict[str, object]:
    """Scale and zero point of a tensor, or of the integers that a float edge stands for."""
    quant = edge.changes[name].quant if name in edge.changes else None
    if scale is None and quant is not None:
        scale, zero_point = quant.scale[0], quant.zero_point[0]
    return {"scale": scale, "zero_point": zero_point}


def float_tolerance(source: Path, imported: Graph, graph: Graph) -> float:
    """Return by how much of the largest magnitude a float output may differ from the reference (machine.validate)."""
    if not any(imported.types[name].dtype.is_float for name in imported.outputs):
        return 0.0
    if is_half(source):
        return 1e-2
    return 1e-3 if any(t.quant is not None for t in graph.types.values()) else 1e-5
