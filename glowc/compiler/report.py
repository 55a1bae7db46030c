"""What report.json says of a compiled model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from glowc.board import Board
from glowc.codegen.bundle import Bundle, BundleSpec
from glowc.codegen.export import FOLDER
from glowc.codegen.segments import profile_order
from glowc.codegen.view import TensorView
from glowc.compiler.bom import Sbom
from glowc.compiler.bundle_folder import REPORT
from glowc.compiler.narrow import NarrowReport
from glowc.compiler.options import CompileOptions
from glowc.compiler.report_tensors import DataReport, LayerData, layer_data
from glowc.compiler.time_form import TimeReport
from glowc.frontend import is_half
from glowc.graph.graph import Graph
from glowc.memory.types import MemoryPlan
from glowc.passes.channels.dead_channels import RemovedChannels
from glowc.passes.layout.edge import Edge
from glowc.paths import SCHEMA, commit, full_version
from glowc.place.planning import Planned
from glowc.place.regions import RegionsReport
from glowc.program.ir import Program
from glowc.program.lifetimes import live_bytes, strip_markers
from glowc.select.choose import Selection
from glowc.select.cost import Cost
from glowc.select.stack import stack_bytes


class TensorReport(TypedDict):
    """An input or output; `exported_...` is what the model's file has, `alias` what it is called there besides."""

    name: str
    ident: str
    dtype: str
    shape: list[int]
    exported_shape: list[int]
    exported_dtype: str
    layout: str
    offset_bytes: int
    scale: float | None
    zero_point: int | None
    alias: NotRequired[str]


class StateReport(TypedDict):
    """A tensor that keeps its value between inferences."""

    name: str
    offset_bytes: int
    size_bytes: int


class CyclesReport(TypedDict, total=False):
    """What a call, or an inference, takes on a chip (docs/CYCLES.md); `uj`, microjoules, where its energy
    is known, `memory_misses` where RAM is slow.
    """

    cycles: int
    ms: float
    uj: float
    cycles_by_cause: dict[str, int]
    fetch_misses: int
    data_misses: int
    memory_misses: int
    weights_read_bytes: int
    arena_read_bytes: int
    arena_written_bytes: int


class EnergyReport(TypedDict):
    """What a cycle of a chip takes, in picojoules, and how far that may be off; null where `source` says why."""

    pj_per_cycle: float | None
    error_percent: int | None
    source: str


class BatteryReport(TypedDict):
    """How long a battery lasts that feeds the chip alone: `per_hour` inferences, `sleep_ua` between them."""

    capacity_mah: float
    volts: float
    per_hour: float
    sleep_ua: float
    days: float


class ChipReport(TypedDict):
    """The chip that the cycles are of, how far they may be off, and what they were checked against."""

    name: str
    core: str
    clock_mhz: int
    error_percent: int | None
    checked: str
    measured: NotRequired[str]
    assumed: str | None
    energy: EnergyReport


class EntryReport(TypedDict):
    """A function that firmware may call, and the most stack that it takes."""

    name: str
    stack_bound_bytes: int


class LayerReport(CyclesReport, LayerData):
    """One call; `insns` is null until they are counted, the estimates are of a chip with the board's CPU."""

    name: str
    op: str
    kernel: str
    macs: int
    insns: int | None
    arena_live_bytes: int
    insns_estimate: int
    cycles_estimate: int


class BundleReport(TypedDict):
    """The bundle: what it is made from and how large it is; null is what was not measured."""

    schema: int
    glowc: str
    glowc_commit: str | None
    model: str
    model_hash: str
    board: str
    cpu: str
    opt: str
    options: str
    entry_name: str | None
    arena_bytes: int
    arena_lower_bound_bytes: int
    weights_bytes: int
    text_bytes: int | None
    rodata_bytes: int | None
    data_bytes: int | None
    bss_bytes: int | None
    stack_bytes: int | None
    stack_bound_bytes: int | None
    macs: int
    insns: int | None
    inputs: list[TensorReport]
    outputs: list[TensorReport]
    states: list[StateReport]
    files: list[str]
    layers: list[LayerReport]
    extern_sources: NotRequired[list[str]]
    weights_blob: NotRequired[str]  # the file of the constants
    sources: NotRequired[list[str]]  # of a model that shares them with others
    format: NotRequired[str]


class SlicesReport(TypedDict):
    """The steps of --slice: the cycles that one may take, those that the longest is predicted to take, parts of each.

    The last two are what the longest takes on the chip of `glowc bench`.
    """

    limit_cycles: int
    longest_cycles_estimate: int
    step_parts: list[int]
    longest_cycles: NotRequired[int]
    longest_ms: NotRequired[float]


class CoresReport(TypedDict):
    """The stages of --cores: how many parts each has, which cores compute at once, and how many layers are shared.

    `fork_cycles` is the guess of what a stage of several parts takes besides. The last two are what the core that
    computes the longest part of each stage takes, with that, on the chip of `glowc bench`.
    """

    count: int
    stage_parts: list[int]
    shared_layers: int
    fork_cycles: int
    longest_cycles: NotRequired[int]
    longest_ms: NotRequired[float]


class PlanReport(TypedDict):
    """The plan; `profile_order` are the layers as the profile hooks see them."""

    plan: str
    plan_extra_insns_estimate: int
    input_stream: str
    io_buffers: str
    code_section: str | None
    profile_order: list[int] | None
    slices: SlicesReport | None
    cores: CoresReport | None


class EstimateReport(TypedDict):
    """The predicted instructions, cycles, bytes of code and of stack, and layers chosen by measurements.

    The code and the stack are null for a CPU whose kernels were not measured.
    """

    insns_estimate: int
    cycles_estimate: int
    text_bytes_estimate: int | None
    stack_bytes_estimate: int | None
    tuned_layers: NotRequired[int]


class Report(BundleReport, PlanReport, EstimateReport, RegionsReport, TimeReport, DataReport, NarrowReport):
    """All of report.json."""

    removed_channels: list[RemovedChannels]
    sbom: Sbom
    float_tolerance: float


class StackReport(TypedDict):
    """The most stack that any entry point takes, null where it cannot be computed, and that of each."""

    stack_bound_bytes: int | None
    entry_points: list[EntryReport]


class Measured(TypedDict):
    """What a board's counter says of inferences: dwt or systick (cycles of the core), timer (ticks), none."""

    inferences: int
    counter: str
    cycles_least: int | None
    cycles_median: int | None
    cycles_most: int | None


class BenchReport(Report, CyclesReport, total=False):
    """What `glowc bench` prints: the report with what was measured, on which CPU and chip."""

    run_cpu: str
    emulated_on: str
    entry_points: list[EntryReport]
    chip: ChipReport
    battery: BatteryReport
    compile_s: float | None
    measured: Measured


def report_of(
    spec: BundleSpec, board: Board, program: Program, plan: MemoryPlan, bundle: Bundle, edge: Edge,
    estimates: Sequence[Cost],
) -> BundleReport:  # fmt: skip
    """Return what is known of a bundle before it runs; `estimates` are what its layers are predicted to take."""
    states: list[StateReport] = [
        {"name": s.name, "offset_bytes": s.offset_bytes, "size_bytes": s.size_bytes} for s in bundle.states
    ]
    report: BundleReport = {
        "schema": SCHEMA, "glowc": full_version(), "glowc_commit": commit(),
        "model": spec.name, "model_hash": spec.model_hash, "board": board.name, "cpu": board.cpu.name,
        "opt": spec.opt, "options": spec.options, "entry_name": spec.entry_name or None,
        "arena_bytes": plan.arena_bytes, "arena_lower_bound_bytes": plan.lower_bound_bytes,
        "weights_bytes": bundle.weights_bytes, "text_bytes": None, "rodata_bytes": None, "data_bytes": None,
        "bss_bytes": None, "stack_bytes": None, "stack_bound_bytes": None,
        "macs": sum(layer.macs for layer in bundle.layers), "insns": None,
        "inputs": [_tensor(t, edge) for t in bundle.inputs], "outputs": [_tensor(t, edge) for t in bundle.outputs],
        "states": states, "files": sorted([*bundle.files, *bundle.binaries, REPORT]),
        "layers": _layers(bundle, program, estimates),
    }  # fmt: skip
    if bundle.weights in ("blob", "file"):
        report["weights_blob"] = next(iter(bundle.binaries))
    if bundle.extern_sources:
        report["extern_sources"] = sorted(bundle.extern_sources)
    if spec.form != FOLDER:
        report["format"] = spec.form
    return report


def _layers(bundle: Bundle, program: Program, estimates: Sequence[Cost]) -> list[LayerReport]:
    live = live_bytes(program)
    return [
        {"name": layer.name, "op": layer.op, "kernel": layer.kernel, "macs": layer.macs, "insns": None,
         "arena_live_bytes": live[layer.index], "insns_estimate": estimate.insns,
         "cycles_estimate": estimate.cycles, "reads": data["reads"], "writes": data["writes"],
         "constants": data["constants"]}
        for layer, estimate, data in zip(bundle.layers, estimates, layer_data(program), strict=True)
    ]  # fmt: skip


def _tensor(t: TensorView, edge: Edge) -> TensorReport:
    """Scale and zero point are those of the tensor, or of the integers that a float edge stands for."""
    change, scale, zero_point = edge.changes.get(t.name), t.scale, t.zero_point
    if scale is None and change is not None and change.quant is not None:
        scale, zero_point = change.quant.scale[0], change.quant.zero_point[0]
    return {
        "name": t.name, "ident": t.ident, "dtype": t.type.dtype.value, "shape": list(t.type.shape),
        "exported_shape": list(t.exported_shape),
        "exported_dtype": (t.type if change is None else change.exported).dtype.value,
        "layout": t.layout, "offset_bytes": t.offset_bytes, "scale": scale, "zero_point": zero_point,
    }  # fmt: skip


def plan_report(
    planned: Planned, options: CompileOptions, slices: SlicesReport | None, cores: CoresReport | None
) -> PlanReport:  # fmt: skip
    """Return what the report says of the plan."""
    return {
        "plan": planned.kind, "plan_extra_insns_estimate": planned.extra_insns, "input_stream": options.input_stream,
        "io_buffers": options.io_buffers, "code_section": options.code_section,
        "profile_order": profile_order(planned.program, len(strip_markers(planned.program).instrs)),
        "slices": slices, "cores": cores,
    }  # fmt: skip


def estimate_report(
    selection: Selection, program: Program, estimates: Sequence[Cost], code_bytes: int
) -> EstimateReport:  # fmt: skip
    """Return what the report says of what all layers are predicted to take."""
    total: EstimateReport = {
        "insns_estimate": sum(cost.insns for cost in estimates),
        "cycles_estimate": sum(cost.cycles for cost in estimates),
        "text_bytes_estimate": code_bytes if selection.costs.kernels else None,
        "stack_bytes_estimate": stack_bytes(selection.costs, program, selection.opt),
    }
    return {**total, "tuned_layers": len(selection.tuned)} if selection.tuned else total


def float_tolerance(source: Path, imported: Graph, graph: Graph) -> float:
    """Return by how much of the largest magnitude a float output may differ from the reference (machine.validate)."""
    if not any(imported.types[name].dtype.is_float for name in imported.outputs):
        return 0.0
    if is_half(source):
        return 1e-2
    return 1e-3 if any(t.quant is not None for t in graph.types.values()) else 1e-5
