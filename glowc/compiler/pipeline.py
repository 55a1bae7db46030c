"""The whole pipeline on one page: each arrow of ONNX -> ... -> bundle is one line of `compile_model`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from glowc import __version__
from glowc.board import Board
from glowc.codegen.bundle import Bundle, BundleSpec, Golden, render_bundle
from glowc.codegen.places import Places
from glowc.codegen.segments import profile_order
from glowc.compiler.bom import bill_of_materials
from glowc.compiler.bundle_folder import REPORT, write_folder
from glowc.compiler.plugins import load_plugins
from glowc.compiler.samples import load_samples
from glowc.compiler.time_form import form_in_time
from glowc.errors import InputError, LimitError
from glowc.frontend import import_model, is_half
from glowc.graph.graph import Graph
from glowc.graph.interp import run_graph
from glowc.graph.text import dump
from glowc.graph.types import LARGEST_TENSOR_BYTES
from glowc.memory import Room
from glowc.memory.types import MemoryPlan
from glowc.passes.base import PassCtx
from glowc.passes.channels.dead_channels import removed_channels
from glowc.passes.layout.edge import Edge, change_edge
from glowc.passes.pipeline import run_pipeline
from glowc.passes.quant.float_layers import require_int8
from glowc.passes.quant.propagate_quant import PropagateQuant
from glowc.passes.time.stateful import Stateful
from glowc.place.planning import Planned, Request, local_offsets, pareto, verify_plan
from glowc.place.regions import draw_plans, named, parts_of, region_report, require_split, rooms_of
from glowc.program.ir import Program
from glowc.program.lifetimes import live_bytes, place_markers, root_lifetimes, strip_markers
from glowc.program.text import dump_program
from glowc.program.verify import verify_program
from glowc.select.candidates import Layer, Order
from glowc.select.choose import CODE_OF_ANY, Selection, plan_selection, select_variants
from glowc.select.measured import read_tuned

Progress = Callable[[str], None]
# Scales of any size are computed with as the target computes: an overflow is infinity, and no warning to anybody.
SILENT = np.errstate(all="ignore")


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What the user asked for besides the model and the board; the fields are the options of the command."""

    name: str | None = None
    entry_name: str | None = None
    batch_size: int | None = None
    symbols: Mapping[str, int] = field(default_factory=dict)
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    set_inputs: Mapping[str, tuple[int | float, ...]] = field(default_factory=dict)
    opt: str = "balanced"
    io_type: str = "model"
    io_layout: str = "exported"
    ram_limit: int | None = None
    flash_limit: int | None = None
    passes: str | None = None
    stop_after: str | None = None
    dump_dir: Path | None = None
    golden: Path | None = None
    stateful: bool = False
    require_int8: bool = False
    plan: str = "auto"
    verify_plan: bool = False
    input_stream: str = "whole"
    io_buffers: str = "arena"
    memory_map: bool = False
    tuned: Path | None = None
    arena_split: bool = False
    regions: tuple[tuple[str, int | None], ...] = ()
    hop: int | None = None
    time_axis: int | None = None
    guard: bool = False
    plugins: tuple[Path, ...] = ()

    @property
    def edge_layout(self) -> str:
        """Layout of images at the network's edge: rows arrive as interleaved pixels."""
        return "nhwc" if self.input_stream == "rows" else self.io_layout

    def text(self) -> str:
        """Return the options that change the generated code, as they stand in its header."""
        parts = [f"--opt {self.opt}"]
        for flag, value, default in (
            ("--entry-name", self.entry_name, None), ("--batch-size", self.batch_size, None),
            ("--io-type", self.io_type, "model"), ("--io-layout", self.io_layout, "exported"),
            ("--passes", self.passes, None), ("--plan", self.plan, "auto"),
            ("--input-stream", self.input_stream, "whole"), ("--io-buffers", self.io_buffers, "arena"),
            ("--hop", self.hop, None), ("--time-axis", self.time_axis, None),
        ):  # fmt: skip
            if value != default:
                parts.append(f"{flag} {value}")
        parts += ["--stateful"] if self.stateful else []
        parts += ["--guard"] if self.guard else []
        parts += [f"--tuned {self.tuned.name}"] if self.tuned is not None else []
        parts += ["--arena-split"] if self.arena_split else []
        if self.arena_split or len(self.regions) > 1:  # one region alone changes nothing in the generated code
            parts += [f"--region {name}" + (f"={size}" if size else "") for name, size in self.regions]
        parts += [f"--define-symbol {key}={value}" for key, value in sorted(self.symbols.items())]
        parts += [f"--input-shape {key}={'x'.join(map(str, s))}" for key, s in sorted(self.input_shapes.items())]
        parts += [f"--set-input {key}={','.join(map(str, v))}" for key, v in sorted(self.set_inputs.items())]
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Compiled:
    """Everything known about a compiled model; `imported` is the graph as the file has it."""

    board: Board
    options: CompileOptions
    imported: Graph
    graph: Graph
    program: Program
    planned: Planned
    selection: Selection
    bundle: Bundle
    edge: Edge
    report: dict[str, object]

    @property
    def plan(self) -> MemoryPlan:
        """Where every buffer lies."""
        return self.planned.plan


@SILENT
def compile_model(
    source: Path, board: Board, options: CompileOptions | None = None, progress: Progress = _silent,
    order: Callable[[Sequence[Layer]], Order] | None = None,
) -> Compiled:  # fmt: skip
    """Compile the ONNX file `source` for `board`; nothing is written but dumps. `order` chooses variants by itself.

    Raises GlowcError for anything wrong with the model, the options or the fit on the board.
    """
    options = options or CompileOptions()
    progress("reading the model")
    imported = import_graph(source, options)
    graph, edge = _edge(imported, options)
    progress("optimising the graph")
    form = form_in_time(_optimise(graph, options), edge, options.input_stream, options.hop, options.time_axis)
    graph, edge = form.graph, form.edge
    progress("lowering and planning memory")
    if options.require_int8:
        require_int8(graph)

    tuned = read_tuned(options.tuned, board.cpu, options.opt) if options.tuned is not None else None
    selection = select_variants(graph, board.cpu, options.opt, tuned, _flash_room(options, board))
    if order is not None:
        selection = selection.ordered(order(selection.layers))
    elif (flash := _flash_limit(options, board)) is not None:
        selection = selection.within(flash)
    selection, planned = plan_selection(selection, _request(options, board))
    program, plan = place_markers(planned.program), planned.plan
    _check_arena(planned)
    if options.verify_plan:
        verify_plan(program, plan)
    verify_program(program, "planning", planned.program)
    if options.dump_dir is not None:
        (options.dump_dir / "98-graph.txt").write_text(dump(graph))
        (options.dump_dir / "99-program.txt").write_text(dump_program(program))
    progress("printing C")
    spec = replace(_spec(source, graph, board, options, edge), macros=form.macros)
    places = Places(local_offsets(plan), parts_of(plan))
    bundle = render_bundle(program, places, plan.arena_bytes, spec, _golden(options, imported, edge))
    if options.memory_map:
        bundle = replace(bundle, files={**bundle.files, **draw_plans(planned, spec.name)})
    _check_fit(planned, board, options, selection.lower)
    _check_flash(program, bundle, board, options, selection)
    report = _report(spec, board, program, plan, bundle, edge) | _plan_report(planned, options)
    _add_estimates(report, selection, program)
    report |= region_report(planned, _rooms(options, board), bundle)
    report["removed_channels"] = removed_channels(imported, graph)
    report |= form.report
    report["sbom"] = bill_of_materials(source, bundle.files, bundle.foreign)
    report["float_tolerance"] = _float_tolerance(source, imported, graph)
    return Compiled(board, options, imported, graph, program, planned, selection, bundle, edge, report)


@SILENT
def optimise(source: Path, options: CompileOptions) -> Graph:
    """Return the graph of `source` behind the passes, or behind `options.stop_after`."""
    graph, _ = _edge(import_graph(source, options), options)
    return _optimise(graph, options)


def import_graph(source: Path, options: CompileOptions) -> Graph:
    """Return the graph of the ONNX file `source` as the file has it. Raises ModelError and InputError.

    The operators known from here on are glowc's own and those of `options.plugins`.
    """
    load_plugins(options.plugins)
    return import_model(
        source, name=options.name, batch_size=options.batch_size, symbols=options.symbols,
        input_shapes=options.input_shapes, set_inputs=options.set_inputs,
    )  # fmt: skip


def _edge(imported: Graph, options: CompileOptions) -> tuple[Graph, Edge]:
    """Change the model's edge; raw integer inputs get their quantisation first."""
    if options.io_type != "model":
        imported = PropagateQuant().run(imported, PassCtx())
    return change_edge(imported, options.io_type, options.edge_layout)


def _optimise(graph: Graph, options: CompileOptions) -> Graph:
    ctx = PassCtx()
    if options.dump_dir is not None:
        try:
            options.dump_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            text = f"cannot write dumps to {options.dump_dir}: {error.strerror}"
            raise InputError(text, hint="choose another folder with --dump-ir DIR") from error
    graph = run_pipeline(
        graph, ctx=ctx, dump_dir=options.dump_dir, stop_after=options.stop_after, passes=options.passes
    )
    return Stateful().run(graph, ctx) if options.stateful and options.stop_after is None else graph


def write_bundle(compiled: Compiled, out_dir: Path, *, force: bool = False) -> None:
    """Write the bundle to `out_dir`; files appear only when all of them could be written.

    Raises GlowcError when files of others are in the way, unless `force` says to write beside and over them.
    """
    report = json.dumps(compiled.report, indent=1) + "\n"
    write_folder(out_dir, {**compiled.bundle.files, REPORT: report}, force=force)


def model_hash(source: Path) -> str:
    """Return what a bundle says of the file that it was compiled from."""
    return f"sha256:{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"


def _float_tolerance(source: Path, imported: Graph, graph: Graph) -> float:
    """Return by how much of the largest magnitude a float output may differ from the reference (machine.validate)."""
    if not any(imported.types[name].dtype.is_float for name in imported.outputs):
        return 0.0
    if is_half(source):
        return 1e-2
    return 1e-3 if any(t.quant is not None for t in graph.types.values()) else 1e-5


def _spec(source: Path, graph: Graph, board: Board, options: CompileOptions, edge: Edge) -> BundleSpec:
    entry = options.entry_name or ""
    return BundleSpec(
        graph.name, board.cpu.name, board.cpu.align_bytes, options.opt, model_hash(source), options.text(), entry,
        edge.exported, guard_bytes=_request(options, board).guard_bytes, features=board.cpu.features,
        cpu_flags=board.cpu.core_flags,
    )  # fmt: skip


def _golden(options: CompileOptions, imported: Graph, edge: Edge) -> Golden | None:
    if options.golden is None:
        return None
    if options.stateful or options.input_stream == "time":
        flag = "--stateful" if options.stateful else "--input-stream time"
        raise InputError(f"--golden computes each sample by itself; with {flag} samples depend on those before")
    samples = load_samples(options.golden, imported)
    count = len(next(iter(samples.values())))
    # As imported, a QDQ graph means float arithmetic between Q and DQ; the passes make it the integers that C computes.
    exact = _optimise(imported, replace(options, dump_dir=None, stop_after=None))
    results = [run_graph(exact, {name: a[i] for name, a in samples.items()}) for i in range(count)]
    outputs = {name: np.stack([r[name] for r in results]) for name in imported.outputs}
    return Golden(
        {n: np.stack([edge.to_bundle(n, s) for s in a]) for n, a in samples.items()},
        {n: np.stack([edge.to_bundle(n, s) for s in a]) for n, a in outputs.items()},
    )


_CODE_ROOM = 64 * 1024  # of flash, left to code where the user sets no limit


_SURE = 0.9  # of the predicted code is needed: it is off by as much as a tenth


def _flash_limit(options: CompileOptions, board: Board) -> int | None:
    """Return the bytes of flash that constants and code may take, None for any number."""
    flash = board.bytes_of("flash") if board.bare_metal else None
    return min((b for b in (options.flash_limit, flash) if b is not None), default=None)


def _flash_room(options: CompileOptions, board: Board) -> int | None:
    """Return the bytes that constants may take where a kernel would spend them for speed."""
    flash = board.bytes_of("flash") if board.bare_metal else None
    if options.flash_limit is not None:
        return options.flash_limit if flash is None else min(flash, options.flash_limit)
    return None if flash is None else max(flash - _CODE_ROOM, 0)


def _rooms(options: CompileOptions, board: Board) -> tuple[Room, ...]:
    return rooms_of(board, options.arena_split, options.regions)


def _request(options: CompileOptions, board: Board) -> Request:
    if options.input_stream == "rows" and options.io_buffers == "caller":
        raise InputError("--input-stream rows keeps what it needs of the input itself", hint="leave out --io-buffers")
    if options.guard and (options.plan not in ("auto", "plain") or options.input_stream == "rows"):
        raise InputError("--guard keeps every tensor apart: --plan plain", hint="leave out --plan and --input-stream")
    room, rooms = board.arena_room, _rooms(options, board)
    if options.guard and len(rooms) > 1:
        raise InputError("--guard needs an arena in one region", hint="leave out --arena-split and --region")
    if rooms:
        offered = sum(r.capacity_bytes for r in rooms)
        room = offered if room is None or board.arena_regions else min(room, offered)
    fed, caller_io = options.input_stream == "rows", options.io_buffers == "caller"
    kind = "plain" if options.guard else options.plan
    return Request(kind, options.ram_limit, room, fed, caller_io, rooms if len(rooms) > 1 else (), options.guard)


def _add_estimates(report: dict[str, object], selection: Selection, program: Program) -> None:
    """Add the predicted instructions of every layer, null where nothing is known of the kernel on this CPU."""
    estimates = selection.estimates(program)
    layers = report["layers"]
    assert isinstance(layers, list)
    for layer, insns in zip(layers, estimates, strict=True):
        layer["insns_estimate"] = insns
    report["insns_estimate"] = sum(i or 0 for i in estimates) if None not in estimates else None
    if selection.tuned:
        report["tuned_layers"] = len(selection.tuned)


def plans_of(compiled: Compiled) -> list[Planned]:
    """Return the plans of a compiled model that no other beats in bytes and instructions, the cheapest first."""
    selection = compiled.selection
    return pareto(selection.lower, _request(compiled.options, compiled.board), selection.predict)


def _check_arena(planned: Planned) -> None:
    """Raise LimitError for an arena beyond what the generated code can address."""
    if planned.plan.arena_bytes > LARGEST_TENSOR_BYTES:
        raise LimitError(
            f"the model needs {planned.plan.arena_bytes:,} bytes of RAM for its arena; "
            f"an arena has at most {LARGEST_TENSOR_BYTES:,} bytes",
            details=_peak(planned.program, planned.plan),
            hint="give its inputs smaller sizes, or choose a smaller model",
        )


def _check_fit(
    planned: Planned, board: Board, options: CompileOptions, lower: Callable[[Callable[[str], bool]], Program]
) -> None:  # fmt: skip
    program, plan = planned.program, planned.plan
    ram, rooms = _request(options, board).room_bytes, _rooms(options, board)
    bound = min((b for b in (options.ram_limit, ram) if b is not None), default=None)
    need = plan.arena_bytes
    if bound is not None and need > bound:
        offered = rooms and ram == sum(r.capacity_bytes for r in rooms)
        place = f"{named(rooms)} allow" if offered else f"board {board.name} allows"
        source = f"--ram-limit {bound} allows" if bound == options.ram_limit else place
        details = [f"the plan is {planned.title}", *_peak(program, plan)]
        smallest = pareto(lower, _request(options, board))[-1] if planned.kind in ("plain", "overlap") else planned
        if smallest.plan.arena_bytes < need:
            details.append(f"the smallest plan, {smallest.title}, needs {smallest.plan.arena_bytes} bytes")
        hint = "use --plan auto" if smallest.plan.arena_bytes <= bound else _larger("RAM")
        raise LimitError(
            f"the model needs {need} bytes of RAM for its arena, {source} {bound}", details=details, hint=hint
        )
    require_split(planned, rooms, _peak(program, plan), options.plan)


def _check_flash(program: Program, bundle: Bundle, board: Board, options: CompileOptions, selection: Selection) -> None:
    """Refuse what does not fit although `selection` has the smallest kernels; the code is predicted."""
    bound, constants = _flash_limit(options, board), bundle.weights_bytes
    if bound is None or constants + CODE_OF_ANY <= bound:
        return
    code = round(_SURE * selection.code_bytes(program))
    if constants + code <= bound:
        return
    source = f"--flash-limit {bound} allows" if bound == options.flash_limit else f"board {board.name} allows"
    raise LimitError(
        f"the model needs {constants + code} bytes of flash for its constants and its code, {source} {bound}",
        details=[
            f"the constants take {constants} bytes, the code about {code}, with the smallest kernels there are",
            *_largest_constants(program),
        ],
        hint=_larger("flash"),
    )


def _larger(kind: str) -> str:
    return f"choose a board with more {kind} (`glowc boards`) or a smaller model"


def _peak(program: Program, plan: MemoryPlan) -> list[str]:
    plain = strip_markers(program)
    live = live_bytes(plain)
    if not live:
        return []
    at = max(range(len(live)), key=lambda i: live[i])
    instr = plain.instrs[at]
    spans = root_lifetimes(plain)
    alive = [root for root, (first, last) in spans.items() if first <= at < last]
    alive.sort(key=lambda root: -plain.buffers[root].size_bytes)
    label = instr.origin[0] if instr.origin else instr.name
    sharing = " and share bytes" if live[at] > plan.arena_bytes else ""
    of = "" if sharing else f"of {live[at]} bytes "
    return [
        f'the peak {of}is at {instr.op} "{label}", where these are alive{sharing}:',
        *(f"  {plain.buffers[root].size_bytes:>10} {root}" for root in alive),
    ]


def _largest_constants(program: Program) -> list[str]:
    """Return lines with the bytes of constants of the layers that have most; what several read counts for the first."""
    counted: set[str] = set()
    sizes: dict[str, int] = {}
    for instr in strip_markers(program).instrs:
        own = {o.buffer for o in instr.operands if o.buffer in program.consts} - counted
        counted |= own
        label = f'{instr.op} "{instr.origin[0] if instr.origin else instr.name}"'
        sizes[label] = sizes.get(label, 0) + sum(program.consts[name].nbytes for name in own)
    most = sorted(((size, label) for label, size in sizes.items() if size), key=lambda s: -s[0])[:8]
    return ["largest constants, by layer:", *(f"  {size:>10} {label}" for size, label in most)]


def _edge_quant(name: str, scale: float | None, zero_point: int | None, edge: Edge) -> dict[str, object]:
    """Scale and zero point of a tensor, or of the integers that a float edge stands for."""
    quant = edge.changes[name].quant if name in edge.changes else None
    if scale is None and quant is not None:
        scale, zero_point = quant.scale[0], quant.zero_point[0]
    return {"scale": scale, "zero_point": zero_point}


def _plan_report(planned: Planned, options: CompileOptions) -> dict[str, object]:
    """Return what the report says of the plan; `profile_order` are the layers as the profile hooks see them."""
    return {
        "plan": planned.kind, "plan_extra_insns_estimate": planned.extra_insns, "input_stream": options.input_stream,
        "io_buffers": options.io_buffers,
        "profile_order": profile_order(planned.program, len(strip_markers(planned.program).instrs)),
    }  # fmt: skip


def _report(
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
