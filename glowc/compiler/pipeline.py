"""The whole pipeline on one page: each arrow of ONNX -> ... -> bundle is one line of `compile_model`."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from glowc.board import Board
from glowc.codegen.bundle import Bundle, BundleSpec, Golden, render_bundle
from glowc.codegen.places import Places
from glowc.compiler.bom import bill_of_materials, files_hash, with_files
from glowc.compiler.bundle_folder import REPORT, kept_files, write_folder
from glowc.compiler.chain import chained, with_states
from glowc.compiler.delegates import delegate
from glowc.compiler.fit import (
    check_aligned,
    check_arena,
    check_fit,
    check_flash,
    check_mapped,
    flash_limit,
    plan_selection,
    request_of,
    rooms_wanted,
)
from glowc.compiler.flash import Printed, counted, fitted
from glowc.compiler.least import check_least
from glowc.compiler.narrow import narrow_report, plan_narrow
from glowc.compiler.options import CompileOptions
from glowc.compiler.plugins import load_plugins
from glowc.compiler.positions import check_positions
from glowc.compiler.push import check_pushed, pushed
from glowc.compiler.report import Report, estimate_report, float_tolerance, plan_report, report_of
from glowc.compiler.report_tensors import data_report
from glowc.compiler.samples import load_samples
from glowc.compiler.slicing import check_sliced, divisible, fork_cycles, sharing, slice_plan
from glowc.compiler.time_form import TimeForm, form_in_time
from glowc.errors import InputError
from glowc.frontend import import_model, tflite_bytes
from glowc.frontend.writer import to_onnx
from glowc.graph.graph import Graph
from glowc.graph.scope import Known, known, scope, scoped
from glowc.graph.text import dump
from glowc.kernels.verify import verify_program
from glowc.memory.types import MemoryPlan
from glowc.ops.interp import run_graph
from glowc.passes.base import PassCtx
from glowc.passes.channels.dead_channels import removed_channels
from glowc.passes.layout.edge import Edge, change_edge
from glowc.passes.layout.splits import split_outputs
from glowc.passes.pipeline import run_pipeline
from glowc.passes.quant.float_layers import require_int8
from glowc.passes.quant.propagate_quant import PropagateQuant
from glowc.passes.time.states import Stateful
from glowc.place.places import local_offsets, verify_plan
from glowc.place.planning import Planned, pareto
from glowc.place.regions import draw_plans, parts_of, region_report
from glowc.program.ir import Program
from glowc.program.lifetimes import place_markers
from glowc.program.text import dump_program
from glowc.select.candidates import Candidates, Layer, Order
from glowc.select.choose import Selection, select_variants
from glowc.select.measured import read_tuned

Progress = Callable[[str], None]
# Scales of any size are computed with as the target computes: an overflow is infinity, and no warning to anybody.
SILENT = np.errstate(all="ignore")


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Compiled:
    """Everything known about a compiled model; `imported` is the graph as the file has it, `known` what plugins added.

    Whoever asks for its operators and kernels does so inside `with scope(compiled.known)`.
    """

    board: Board
    options: CompileOptions
    imported: Graph
    graph: Graph
    printed: Printed
    edge: Edge
    report: Report
    known: Known

    @property
    def program(self) -> Program:
        """The program, with the lifetimes of its buffers marked."""
        return self.printed.program

    @property
    def planned(self) -> Planned:
        """How the memory is planned."""
        return self.printed.planned

    @property
    def selection(self) -> Selection:
        """The kernels of its layers."""
        return self.printed.selection

    @property
    def bundle(self) -> Bundle:
        """The files."""
        return self.printed.bundle

    @property
    def plan(self) -> MemoryPlan:
        """Where every buffer lies."""
        return self.planned.plan


@scoped
@SILENT
def compile_model(
    source: Path, board: Board, options: CompileOptions | None = None, progress: Progress = _silent,
    order: Callable[[Sequence[Layer]], Order] | None = None,
) -> Compiled:  # fmt: skip
    """Compile the ONNX file `source` for `board`; nothing is written but dumps. `order` chooses variants by itself.

    Raises GlowcError for anything wrong with the model, the options or the fit on the board.
    """
    options = options or CompileOptions()
    check_sliced(options)
    check_pushed(options)
    check_mapped(options, board)
    board = _aligned(board, options)
    progress("reading the model")
    imported = import_graph(source, options)  # file -> graph
    progress("optimizing the graph")
    form = _optimised(imported, options, board)  # graph -> graph
    check_positions(imported, form.graph, options, partial(_read, source, board))
    check_least(form.graph, board, options)
    golden = _golden(options, imported, form.edge)
    spec = replace(spec_of(source, form.graph, board, options, form.edge), macros=form.macros, texts=imported.texts)
    known_candidates: dict[tuple[tuple[tuple[str, int], ...], bool], Candidates] = {}

    def attempt(flash: int | None) -> Printed:
        progress("lowering and planning memory")

        def planned_with(divided: Collection[str], parts: Mapping[str, int]) -> tuple[Selection, Planned]:
            whole = split_outputs(form.graph, parts)

            def plan(graph: Graph) -> tuple[Selection, Planned]:
                key = tuple(parts.items()), graph is whole  # the same at each attempt
                if key not in known_candidates:
                    known_candidates[key] = Candidates(graph, board.cpu)
                select = partial(_selected, known_candidates[key], board, options, order, flash, divided)  # -> kernels
                share = partial(sharing, cores=options.cores, fork=fork_cycles(board))
                return plan_selection(select, request_of(options, board), share)  # -> program -> places of its buffers

            return plan_narrow(whole, plan)

        selection, planned = divisible(planned_with, options, board)
        program = _verified(planned, form.graph, options)
        slices = cores = None
        if options.slice is not None or options.cores > 1:
            planned, slices, cores = slice_plan(selection, planned, options, board)
            program = _marked(planned.program, program)
        progress("printing C")
        bundle = _printed(spec, planned, program, options, golden)  # -> C
        return Printed(
            selection, planned, program, bundle, spec, selection.code_bytes(program), slices=slices, cores=cores
        )

    def count(printed: Printed) -> Printed:
        progress("compiling C to count its bytes")
        return counted(printed, board)

    bound = flash_limit(options, board) if order is None else None
    printed = fitted(attempt, count, bound)
    check_aligned(printed.bundle, options)
    check_fit(printed.planned, board, options, printed.selection.lower)
    check_flash(printed, board, options)
    report = _report(source, board, options, imported, form, printed)
    return Compiled(board, options, imported, form.graph, printed, form.edge, report, known())


def _read(source: Path, board: Board, options: CompileOptions) -> tuple[Graph, Graph]:
    """Return the graph of a file, and that after the passes."""
    imported = import_graph(source, options)
    return imported, _optimised(imported, options, board).graph


def _aligned(board: Board, options: CompileOptions) -> Board:
    """Return the board with the lines that --align asks for."""
    if options.align is None:
        return board
    return replace(board, cpu=replace(board.cpu, line_bytes=options.align))


def _optimised(imported: Graph, options: CompileOptions, board: Board) -> TimeForm:
    """Return the graph after the passes, with what the caller sees of it; back ends of plugins have their parts."""
    graph, edge = _edge(imported, options)
    form = form_in_time(_optimise(graph, options), edge, options.input_stream, options.hop, options.time_axis)
    if options.require_int8:
        require_int8(form.graph)
    _dump_onnx(form.graph, options)
    return replace(form, graph=delegate(form.graph, board.cpu))


def _selected(
    candidates: Candidates, board: Board, options: CompileOptions,
    order: Callable[[Sequence[Layer]], Order] | None, flash: int | None, divided: Collection[str],
    spare: Mapping[str, int],
) -> Selection:  # fmt: skip
    """Return the variants of all layers: by `order`, else by cost and measured choices.

    As small as `flash` bytes of constants and predicted code need, None where any number is there. Layers that are
    `divided` have variants that can be, where there are some. `spare` are the bytes of the arena that a plan leaves
    free beside layers, by name.
    """
    tuned = read_tuned(options.tuned, board.cpu, options.opt) if options.tuned is not None else None
    selection = select_variants(candidates, options.opt, tuned, spare)
    if order is not None:
        return selection.ordered(order(selection.layers))
    selection = selection.dividing(divided) if divided else selection
    return selection if flash is None else selection.within(flash)


def _verified(planned: Planned, graph: Graph, options: CompileOptions) -> Program:
    """Return the program with the lifetimes of its buffers marked; what it is made from is dumped where asked for."""
    check_arena(planned)
    program = place_markers(planned.program)
    verify_program(program, "planning", planned.program)
    verify_plan(program, planned.plan)
    if options.dump_dir is not None:
        (options.dump_dir / "98-graph.txt").write_text(dump(graph), encoding="utf-8", newline="\n")
        (options.dump_dir / "99-program.txt").write_text(dump_program(program), encoding="utf-8", newline="\n")
    return program


def _marked(sliced: Program, whole: Program) -> Program:
    """Return a program in slices with the lifetimes of its buffers marked."""
    program = place_markers(sliced)
    verify_program(program, "slicing", whole)
    return program


def _printed(
    spec: BundleSpec, planned: Planned, program: Program, options: CompileOptions, golden: Golden | None
) -> Bundle:
    plan = planned.plan
    places = Places(local_offsets(plan), parts_of(plan))
    bundle = render_bundle(program, places, plan.arena_bytes, spec, golden)
    maps = draw_plans(planned, spec.name) if options.memory_map else {}
    return replace(bundle, files={**bundle.files, **maps})


def _report(
    source: Path, board: Board, options: CompileOptions, imported: Graph, form: TimeForm, printed: Printed
) -> Report:  # fmt: skip
    planned, program, selection, bundle = printed.planned, printed.program, printed.selection, printed.bundle
    estimates = selection.estimates(program)
    head = report_of(printed.spec, board, program, planned.plan, bundle, form.edge, estimates)
    for port in (*head["inputs"], *head["outputs"]):
        if port["name"] in imported.aliases:
            port["alias"] = imported.aliases[port["name"]]
    return {
        **head,
        **plan_report(planned, options, printed.slices, printed.cores),
        **estimate_report(selection, program, estimates, printed.code_bytes),
        **region_report(planned, rooms_wanted(options, board), bundle),
        **data_report(program, planned.plan, form.graph), **narrow_report(form.graph, program),
        "removed_channels": removed_channels(imported, form.graph), **form.report,
        "sbom": bill_of_materials(
            (source, *options.chain), {**bundle.files, **bundle.binaries}, bundle.foreign
        ),
        "float_tolerance": float_tolerance(source, imported, form.graph),
    }  # fmt: skip


@scoped
@SILENT
def optimise(source: Path, options: CompileOptions) -> Graph:
    """Return the graph of `source` after the passes, or after `options.stop_after`."""
    graph, _ = _edge(import_graph(source, options), options)
    graph = _optimise(graph, options)
    _dump_onnx(graph, options)
    return graph


def _dump_onnx(graph: Graph, options: CompileOptions) -> None:
    """Write the graph as an ONNX file where that is asked for."""
    if options.dump_onnx is not None:
        data = to_onnx(graph).SerializeToString()
        try:
            options.dump_onnx.write_bytes(data)
        except OSError as error:
            text = f"cannot write {options.dump_onnx}: {error.strerror}"
            raise InputError(text, hint="choose another file with --dump-onnx FILE") from error


def import_graph(source: Path, options: CompileOptions) -> Graph:
    """Return the graph of a model file as the file has it, and of those chained behind it. Raises GlowcError.

    Until the caller's scope ends, the operators known are glowc's own and those of `options.plugins`.
    """
    load_plugins(options.plugins)
    graph = _import_first(source, options)
    graphs = [graph, *(_import_next(path, options) for path in options.chain)]
    labels, name = [path.name for path in (source, *options.chain)], options.name or graphs[-1].name
    if options.input_stream == "samples":
        graph = pushed(graphs, labels, options.hop, name)
    elif options.chain:
        graph = chained(graphs, labels, name)
    return with_states(graph, options.states)


def _import_first(source: Path, options: CompileOptions) -> Graph:
    return import_model(
        source, name=options.name, batch_size=options.batch_size, symbols=options.symbols,
        input_shapes=options.input_shapes, set_inputs=options.set_inputs,
    )  # fmt: skip


def _import_next(source: Path, options: CompileOptions) -> Graph:
    """Return the graph of a file that follows another: shapes of its inputs are those of the file."""
    if tflite_bytes(source) is not None:
        return import_model(source)
    return import_model(source, batch_size=options.batch_size, symbols=options.symbols)


def _edge(imported: Graph, options: CompileOptions) -> tuple[Graph, Edge]:
    """Change the model's edge; raw integer inputs get their quantisation first."""
    if options.io_type != "model":
        imported = PropagateQuant().run(imported, PassCtx())
    return change_edge(imported, options.io_type, options.edge_layout)


def _optimise(graph: Graph, options: CompileOptions) -> Graph:
    ctx = PassCtx(fastest=options.opt == "speed")
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
    bundle = compiled.bundle
    kept = kept_files(out_dir, bundle.files, compiled.options.package)
    report = {**compiled.report, "sbom": with_files(compiled.report["sbom"], kept)} if kept else compiled.report
    text = json.dumps(report, indent=1) + "\n"
    write_folder(out_dir, {**bundle.files, **kept, **bundle.binaries, REPORT: text}, force=force)


def model_hash(source: Path, *chain: Path) -> str:
    """Return what a bundle says of the files that it was compiled from."""
    return f"sha256:{files_hash((source, *chain))[:16]}"


def spec_of(source: Path, graph: Graph, board: Board, options: CompileOptions, edge: Edge) -> BundleSpec:
    """Return what the bundle of a model says about itself."""
    entry = options.entry_name or ""
    return BundleSpec(
        graph.name, board.cpu.name, board.cpu.align_bytes, options.opt, model_hash(source, *options.chain),
        options.text(), entry, edge.exported, guard_bytes=request_of(options, board).guard_bytes,
        features=board.cpu.features, cpu_flags=board.cpu.core_flags,
        loop_bytes=board.cpu.loop_bytes if options.code_section is None else None, code_section=options.code_section,
        weights=options.weights, cores_source=board.cores_source if options.cores > 1 else None,
        line_bytes=board.cpu.line_bytes, form=options.form, package=options.package,
    )  # fmt: skip


def _golden(options: CompileOptions, imported: Graph, edge: Edge) -> Golden | None:
    if options.golden is None:
        return None
    if options.stateful or options.input_stream in ("time", "samples"):
        flag = "--stateful" if options.stateful else f"--input-stream {options.input_stream}"
        raise InputError(f"--golden computes each sample by itself; with {flag} samples depend on those before")
    samples = load_samples(options.golden, imported)
    count = len(next(iter(samples.values())))
    # As imported, a QDQ graph means float arithmetic between Q and DQ; the passes make it the integers that C computes.
    exact = _optimise(imported, replace(options, dump_dir=None, stop_after=None))
    states: dict[str, np.ndarray] = {}
    results = [run_graph(exact, {name: a[i] for name, a in samples.items()}, states=states) for i in range(count)]
    outputs = {name: np.stack([r[name] for r in results]) for name in imported.outputs}
    return Golden(
        {n: np.stack([edge.to_bundle(n, s) for s in a]) for n, a in samples.items()},
        {n: np.stack([edge.to_bundle(n, s) for s in a]) for n, a in outputs.items()},
    )


def plans_of(compiled: Compiled) -> list[Planned]:
    """Return the plans of a compiled model that no other beats in bytes and instructions, the cheapest first."""
    selection = compiled.selection
    with scope(compiled.known):
        return pareto(selection.lower, request_of(compiled.options, compiled.board), selection.predict)
