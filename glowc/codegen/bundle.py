"""Renders the files of a bundle: sources, header, constants, NAME.mk, README.md; returns text by file name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from glowc import __version__
from glowc.codegen.blob import HEADER as BLOB_HEADER
from glowc.codegen.blob import assembly, blob_bytes, c_bytes, code_hash, lay_out
from glowc.codegen.elf_object import elf_object, machine_of
from glowc.codegen.export import FOLDER, check_core, check_package, check_weights, exported, placed, weights_of
from glowc.codegen.headers import RUNTIME_FILES
from glowc.codegen.kernels import environment, extern_files, foreign_headers
from glowc.codegen.names import c_lines, c_string, is_ident, prints_math
from glowc.codegen.package import package_fields
from glowc.codegen.places import Places, check_parts, guard_zones, unused_pointers
from glowc.codegen.segments import PieceView, piece_views, printed_layer, slices_view
from glowc.codegen.view import (
    ConstView,
    FunctionTable,
    LayerView,
    StateView,
    TensorView,
    caller_names,
    const_views,
    core_guard,
    kernel_headers,
    layer_views,
    literal_kernels,
    needs_math,
    prefix_of,
    state_starts,
    state_views,
    tensor_views,
)
from glowc.codegen.viewed import PrintedModel, printed_tensor
from glowc.errors import InputError, PluginError
from glowc.paths import runtime_header
from glowc.program.ir import Program

CORES_HEADER, CORES_SOURCE = "glow_cores.h", "glow_cores.c"
"""By which cores are started, and the file of a bundle that does so on its board."""


@dataclass(frozen=True, slots=True)
class BundleSpec:
    """What the bundle says about itself, decided by the driver."""

    name: str
    cpu: str
    align_bytes: int
    opt: str
    model_hash: str
    options: str
    entry_name: str = ""
    exported: Mapping[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    macros: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    guard_bytes: int = 0
    features: frozenset[str] = frozenset()
    cpu_flags: tuple[str, ...] = ()  # of a compiler with gcc's options, for that core
    loop_bytes: int | None = None  # of hot code that chips with that core keep of their flash
    code_section: str | None = None  # of the kernels' code
    weights: str = "c"  # the form of the constants: "auto", or one of export.WEIGHTS
    cores_source: Path | None = None  # what starts the cores that share layers
    line_bytes: int = 1  # of the data cache that the arena shares no line of with other variables
    form: str = FOLDER  # of the files: FOLDER or one of export.FORMS
    package: Mapping[str, str] = field(default_factory=dict)  # what it says of its maker, where it is a package
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # what numbers of outputs mean


@dataclass(frozen=True, slots=True)
class Golden:
    """Test vectors: arrays by tensor name with a leading sample axis."""

    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Rendered files, and the layers and tensors that reports talk about."""

    files: Mapping[str, str]
    layers: tuple[LayerView, ...]
    inputs: tuple[TensorView, ...]
    outputs: tuple[TensorView, ...]
    weights_bytes: int
    states: tuple[StateView, ...] = ()
    extern_sources: tuple[str, ...] = ()
    foreign: frozenset[str] = frozenset()  # files that plugins brought along
    binaries: Mapping[str, bytes] = field(default_factory=dict)
    weights: str = "c"  # the form of the constants


@dataclass(frozen=True, slots=True)
class ViewedModel:
    """A model as the templates print it (`m`), and the layers and tensors that reports talk about."""

    spec: BundleSpec
    m: PrintedModel
    layers: tuple[LayerView, ...]
    inputs: tuple[TensorView, ...]
    outputs: tuple[TensorView, ...]
    states: tuple[StateView, ...]
    headers: tuple[str, ...]
    extern_headers: Mapping[str, str]
    extern_sources: Mapping[str, str]
    own_sources: Mapping[str, str]


def model_constants(program: Program, spec: BundleSpec) -> dict[str, ConstView]:
    """Return the constants of a model by buffer name, what resets write among them."""
    every = {**program.consts, **state_starts(program)}
    return const_views(replace(program, consts=every), prefix_of(spec.name), spec.align_bytes)


def view_model(
    program: Program, places: Places, arena_bytes: int, spec: BundleSpec, table: FunctionTable,
    consts: Mapping[str, ConstView], *, golden: bool = False,
) -> ViewedModel:  # fmt: skip
    """Return what the templates print of a model; `arena_bytes` of a split arena is the sum of its parts.

    Its functions are added to `table`. Raises InputError when the names that the user chose clash with its own.
    """
    prefix = prefix_of(spec.name)
    states = state_views(program, consts, places)
    inputs = tensor_views(program.inputs, program, places, "input", spec.exported)
    outputs = tensor_views(program.outputs, program, places, "output", spec.exported)
    callers = caller_names(program, inputs, outputs)
    layers = layer_views(program, table, consts, places, prefix, callers)
    pieces = piece_views(program, layers, places)
    align = max([spec.align_bytes, spec.line_bytes, *(b.align_bytes for b in program.buffers.values())])
    tensors = [*inputs, *outputs]
    check_parts(places.parts)
    _check_names(spec, prefix, [*table.names, *(f"{prefix}_{t.ident}" for t in tensors)])
    of_variants = kernel_headers(program)
    extern_headers, extern_sources = extern_files(program)
    extern_headers |= foreign_headers(of_variants)
    headers = [name for name in of_variants if name not in extern_headers]
    printed = list(consts.values())
    weights = weights_of(spec.weights, spec.form, sum(c.size_bytes for c in printed))
    blob = None if weights == "c" else lay_out(printed)
    headers += [BLOB_HEADER] if blob else []
    headers += [CORES_HEADER] if program.slices is not None and program.slices.cores > 1 else []
    _check_extern(spec, [*extern_headers, *extern_sources])
    own_sources = {CORES_SOURCE: spec.cores_source.read_text(encoding="utf-8")} if spec.cores_source else {}
    m = PrintedModel(
        name=spec.name, prefix=prefix, cpu=spec.cpu, opt=spec.opt, model_hash=spec.model_hash, options=spec.options,
        entry=spec.entry_name or f"{prefix}_invoke", macros=[(name, *entry) for name, entry in spec.macros.items()],
        texts={name: [" ".join(c_string(t).split("\n        ")) for t in texts] for name, texts in spec.texts.items()},
        cpu_flags=" ".join(spec.cpu_flags), features=spec.features, guard=core_guard(program, spec.features),
        loop_bytes=spec.loop_bytes, code_section=spec.code_section,
        arena_bytes=max(arena_bytes, 1), arena_align=align, line_bytes=spec.line_bytes,
        parts=places.parts, arena=places.texts(prefix), lacking=places.lacking(prefix),
        bases={region: places.base(region) for region in ("", *(part.region for part in places.parts))},
        shared_arena=places.shared, share_arena=bool(places.shared), unused=_unused(places, pieces),
        zones=guard_zones(program, places, spec.guard_bytes), guard_bytes=spec.guard_bytes,
        slices=slices_view(program, places), inputs=[printed_tensor(t, prefix, places) for t in inputs],
        outputs=[printed_tensor(t, prefix, places) for t in outputs],
        in_arena=[printed_tensor(t, prefix, places) for t in _in_arena(program, tensors)],
        caller_io=program.caller_io, states=states, layers=[printed_layer(layer) for layer in layers], pieces=pieces,
        macs=sum(layer.macs for layer in layers), structs=table.structs, functions=table.definitions,
        consts=printed, blob=blob, weights=weights,
        needs_math=needs_math(program), kernel_headers=[*headers, *extern_headers],
        runtime_files=[*RUNTIME_FILES, *headers, *extern_headers], extern_sources=[*own_sources, *extern_sources],
        tested=[spec.name] if golden else [],
    )  # fmt: skip
    return ViewedModel(
        spec,
        m,
        layers,
        inputs,
        outputs,
        states,
        (*RUNTIME_FILES, *headers),
        extern_headers,
        extern_sources,
        own_sources,
    )


def render_bundle(
    program: Program,
    places: Places,
    arena_bytes: int,
    spec: BundleSpec,
    golden: Golden | None = None,
) -> Bundle:
    """Return every file of the bundle but report.json; `arena_bytes` of a split arena is the sum of its parts.

    Raises InputError when the names that the user chose clash with those of the bundle.
    """
    check_weights(spec.form, spec.weights)
    table = FunctionTable(prefix_of(spec.name), literal_kernels(program, spec.opt))
    consts = model_constants(program, spec)
    viewed = view_model(program, places, arena_bytes, spec, table, consts, golden=golden is not None)
    model = viewed.m
    templates = {
        f"{spec.name}.h": "model.h.j2",
        f"{spec.name}.c": "model.c.j2",
        f"{spec.name}_weights.h": "weights.h.j2",
        f"{spec.name}_weights.c": "weights.c.j2",
        f"{spec.name}.mk": "model.mk.j2",
        "README.md": "bundle_readme.md.j2",
    }
    env = environment()
    code, linked, binaries = b"", dict[str, str](), dict[str, bytes]()
    if model.blob is not None:
        templates |= {name: f"weights_blob.{name[-1]}.j2" for name in templates if "_weights." in name}
        code = code_hash(env.get_template("model.c.j2").render(m=model), model.consts, model.blob)
        blob = blob_bytes(model.blob, [c.array for c in model.consts], code, spec.model_hash)
        linked, binaries = _constants(model, blob)
    if model.linked:
        del templates[f"{spec.name}_weights.c"]
    files = linked | {
        file: env.get_template(template).render(m=model, code=c_bytes(code)) for file, template in templates.items()
    }
    if golden is not None:
        view = _golden_view(golden, prefix_of(spec.name), viewed.inputs, viewed.outputs)
        for suffix in ("h", "c"):
            text = env.get_template(f"golden.{suffix}.j2").render(m=model, golden=view)
            files[f"{spec.name}_golden.{suffix}"] = text
    files |= copied_files(viewed)
    foreign = frozenset({**viewed.extern_headers, **viewed.extern_sources})
    check_package(spec.form, spec.package)
    if spec.form != FOLDER:
        check_core(spec.form, spec.cpu, model.guard.lacking)
        package = package_fields(spec.package, spec.form, spec.cpu, release(), not model.guard.lacking)
        model = replace(model, package=package)
        apart = foreign | {CORES_HEADER, CORES_SOURCE}  # may be the firmware's own
        files = exported(spec.name, spec.form, files, apart, lambda name: env.get_template(name).render(m=model))
        foreign = frozenset(placed(spec.form, file) for file in foreign)
    return Bundle(
        files,
        viewed.layers,
        viewed.inputs,
        viewed.outputs,
        model.weights_bytes,
        viewed.states,
        (*viewed.own_sources, *viewed.extern_sources),
        foreign,
        binaries,
        model.weights,
    )


def _constants(model: PrintedModel, blob: bytes) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the texts and the other files that hold the constants of a model whose C does not."""
    symbol, align = f"{model.prefix}_weights", model.blob.align_bytes if model.blob is not None else 1
    if model.weights == "object":
        return {}, {model.weights_source: elf_object(symbol, blob, align, machine_of(model.features))}
    file = f"{model.name}_weights.bin"
    if model.weights != "asm":
        return {}, {file: blob}
    title = f"The constants of {model.name} (glowc {model.version}, model {model.model_hash}) from {file}."
    return {model.weights_source: assembly(symbol, file, blob, align, title, f"{model.P}_WEIGHTS_SECTION")}, {
        file: blob
    }


def release() -> str:
    """Return the version of glowc as packages have it: three numbers."""
    return ".".join(__version__.split(".")[:3])


def copied_files(viewed: ViewedModel) -> dict[str, str]:
    """Return the files of a bundle that are the same for every model: the runtime's headers, and those of plugins."""
    runtime = {name: runtime_header(name).read_text(encoding="utf-8") for name in viewed.headers}
    return {**runtime, **viewed.own_sources, **viewed.extern_headers, **viewed.extern_sources}


def _check_extern(spec: BundleSpec, names: Iterable[str]) -> None:
    own = {f"{spec.name}{end}" for end in (".c", ".h", ".mk", "_weights.c", "_weights.h", "_golden.c", "_golden.h")}
    for name in names:
        if name in own or name.startswith("glow_") or name == "main_run.c":
            raise PluginError(f"plugin file {name} is named like a file of the bundle", hint="rename it")


def _check_names(spec: BundleSpec, prefix: str, used: Iterable[str]) -> None:
    entry = spec.entry_name
    if f"{spec.name}.h".startswith("glow_"):
        raise InputError(f"{spec.name}.h is a file of glowc's runtime", hint=f"use e.g. --name {spec.name}_net")
    if not entry:
        return
    hint = f"use e.g. --entry-name {prefix}_classify"
    if not is_ident(entry):
        raise InputError(f"{entry!r} is no C identifier", hint=hint)
    own = (
        "abort", "abort_in", "arena", "arenas", "begin", "begin_in", "check", "infer", "layer_name", "part", "parts",
        "push", "push_in", "reset", "reset_in", "run", "run_in", "step", "step_in", "use_weights",
        "use_weights_file", "use_weights_if", "weights",
    )  # fmt: skip
    taken = {*used, *(f"{prefix}_{word}" for word in own), "memcmp", "memcpy", "memmove", "memset"}
    families = ("glow_", f"{prefix}_arena_", f"{prefix}_w_", f"{prefix}_args_", f"{prefix}_golden_")
    if entry.startswith(families) or not taken.isdisjoint((entry, f"{entry}_in")):
        raise InputError(f"--entry-name {entry} is a name that the generated code uses itself", hint=hint)


def _unused(places: Places, pieces: Sequence[PieceView]) -> list[str]:
    """Return the pointers to arenas that the inference function ignores; segments take all of them."""
    called = [piece for piece in pieces if piece.feed is None]
    if any(piece.streamed for piece in called):
        return []
    return unused_pointers(places, frozenset().union(*(piece.pointers for piece in called)))


def _in_arena(program: Program, tensors: Sequence[TensorView]) -> list[TensorView]:
    """Return the inputs and outputs that lie whole in the arena."""
    fed = {o.role for o in program.inputs for s in program.segments if s.feed and s.feed.role == o.buffer}
    return [t for t in tensors if not program.caller_io and t.name not in fed]


@dataclass(frozen=True, slots=True)
class PrintedGolden:
    """Test vectors as the templates know them: C lines by tensor, and the float types that outputs have.

    `arguments`: vector i in a call, inputs, then buffers of outputs.
    """

    count: int
    texts: Mapping[str, list[str]]
    needs_math: bool
    float_types: list[str]
    arguments: str


def _golden_view(
    golden: Golden, prefix: str, inputs: Sequence[TensorView], outputs: Sequence[TensorView]
) -> PrintedGolden:
    texts = {t.ident: [c_lines(a) for a in golden.inputs[t.name]] for t in inputs}
    texts |= {t.ident: [c_lines(a) for a in golden.outputs[t.name]] for t in outputs}
    count = len(next(iter(texts.values())))
    floats = sorted({t.ctype for t in outputs if t.type.dtype.is_float and t.ctype in ("float", "double")})
    arrays = [*(golden.inputs[t.name] for t in inputs), *(golden.outputs[t.name] for t in outputs)]
    needs_math = any(map(prints_math, arrays))
    arguments = [f"{prefix}_golden_{t.ident}[i]" for t in inputs] + [f"{prefix}_got_{t.ident}" for t in outputs]
    return PrintedGolden(count, texts, needs_math, floats, ", ".join(arguments))
