"""Several models compiled into one bundle: `glowc compile a.onnx b.onnx --share-arena --share-weights`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from glowc.board import Board
from glowc.codegen.group import Group, GroupModel, GroupSpec, render_group
from glowc.codegen.names import c_ident, is_ident
from glowc.codegen.places import Places
from glowc.compiler.bom import Sbom, bill_of_materials
from glowc.compiler.bundle_folder import REPORT, write_folder
from glowc.compiler.fit import check_group, flash_limit
from glowc.compiler.flash import group_bytes
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, spec_of
from glowc.compiler.report import Report
from glowc.errors import GroupError
from glowc.graph.scope import know_only, scoped
from glowc.paths import SCHEMA, full_version, refused_by_windows
from glowc.place.places import local_offsets


class GroupReport(TypedDict):
    """All of report.json of a group: what it takes as a whole, and the reports of its models."""

    schema: int
    glowc: str
    model: str
    board: str
    cpu: str
    arena_bytes: int
    weights_bytes: int
    separate_arena_bytes: int
    separate_weights_bytes: int
    functions: int
    share_arena: bool
    share_weights: bool
    sources: list[str]
    files: list[str]
    models: list[Report]
    sbom: Sbom


@dataclass(frozen=True, slots=True)
class CompiledGroup:
    """A group that was compiled."""

    models: tuple[Compiled, ...]
    group: Group
    report: GroupReport


@scoped
def compile_group(
    sources: Sequence[str], board: Board, options: CompileOptions, spec: GroupSpec,
    progress: Callable[[str], None] = lambda _: None, golden: Mapping[str, Path] | None = None,
) -> CompiledGroup:  # fmt: skip
    """Compile several models, each PATH or NAME=PATH, for one board; `golden` are inputs of test vectors by NAME.

    Raises InputError for what models cannot have in a group, and whatever `compile_model` raises for one of them.
    """
    _check_options(options)
    if not is_ident(spec.name) or spec.name.startswith("glow_") or refused_by_windows(spec.name):
        raise GroupError(f"--group-name {spec.name} is no name for files and C symbols", hint="--group-name app")
    named = [_named(source) for source in sources]
    golden, compiled = golden or {}, []
    _check_golden(golden, [name or path.stem for name, path in named])
    _check_symbols(options.symbols, [name or path.stem for name, path in named])
    for name, path in named:
        progress(f"compiling {path}")
        called = name or path.stem
        symbols = _symbols_of(options.symbols, called)
        own = replace(options, name=name, weights="c", golden=golden.get(called), symbols=symbols)
        compiled.append(compile_model(path, board, own))
        know_only(compiled[-1].known)
    _check_names([c.report["model"] for c in compiled], spec.name)
    _check_models(compiled, spec)
    models = [_model(c, path) for c, (_, path) in zip(compiled, named, strict=True)]
    group = render_group(models, spec)
    limit = flash_limit(options, board)
    printed = [c.printed for c in compiled]
    flash = 0 if limit is None else group_bytes(group.files, printed, board, limit, group.weights_bytes)
    check_group(board, group.arena_bytes, flash, options)
    return CompiledGroup(tuple(compiled), group, _report(compiled, [path for _, path in named], group, spec))


def _named(source: str) -> tuple[str | None, Path]:
    """Return the name of a model, where one is given, and its file."""
    name, equals, path = source.partition("=")
    if Path(source).exists() or not equals or not name or set(name) & {"/", "\\"}:
        return None, Path(source)
    return name, Path(path)


def _check_golden(golden: Mapping[str, Path], names: Sequence[str]) -> None:
    if unknown := [name for name in golden if name not in names]:
        raise GroupError(f"--golden {unknown[0]}=...: no model of that name", hint=f"the models are {', '.join(names)}")


def _symbols_of(symbols: Mapping[str, int], model: str) -> dict[str, int]:
    """Return the sizes of dimensions of a model; those of MODEL:SYMBOL are its own."""
    parts = [(*symbol.rpartition(":")[::2], size) for symbol, size in symbols.items()]
    return {symbol: size for owner, symbol, size in sorted(parts) if owner in ("", model)}


def _check_symbols(symbols: Mapping[str, int], names: Sequence[str]) -> None:
    owners = {symbol.rpartition(":")[0] for symbol in symbols}
    if unknown := sorted(owners - {"", *names}):
        hint = f"the models are {', '.join(names)}"
        raise GroupError(f"--define-symbol {unknown[0]}:...: no model of that name", hint=hint)


def _check_options(options: CompileOptions) -> None:
    wrong = [
        flag
        for flag, given in (
            ("--name", options.name), ("--entry-name", options.entry_name), ("--golden", options.golden),
            ("--dump-ir", options.dump_dir), ("--dump-onnx", options.dump_onnx),
            ("--stop-after", options.stop_after),
            ("--stateful", options.stateful), ("--input-stream", options.input_stream != "whole"),
            ("--io-buffers", options.io_buffers != "arena"), ("--arena-split", options.arena_split),
            ("--region", options.regions), ("--memory-map", options.memory_map), ("--guard", options.guard),
            (f"--weights {options.weights}", options.weights not in ("auto", "c", "array")), ("--slice", options.slice),
        ) if given
    ]  # fmt: skip
    if wrong:
        raise GroupError(f"several models in one bundle cannot have {', '.join(wrong)}",
                         hint="compile that model by itself; models are named as NAME=PATH")  # fmt: skip


def _check_names(names: Sequence[str], whole: str) -> None:
    idents = [c_ident(name).upper() for name in (*names, whole)]
    twice = sorted({name for name, ident in zip((*names, whole), idents, strict=True) if idents.count(ident) > 1})
    if twice:
        hint = "name them: glowc compile kws=a/model.onnx vww=b/model.onnx --group-name app ..."
        raise GroupError(f"several models, or a model and the whole, are called {', '.join(twice)}", hint=hint)


def _check_models(compiled: Sequence[Compiled], spec: GroupSpec) -> None:
    """A state would be written over by another model; where all have the same states, they go on with them in turn."""
    kept = [c.report["model"] for c in compiled if c.report["states"]]
    alike = all(c.report["states"] == compiled[0].report["states"] for c in compiled)
    if kept and spec.share_arena and not alike:
        text = f"{', '.join(kept)} keeps a state in the arena between calls; another model would write over it"
        raise GroupError(text, hint="leave out --share-arena, or give all models the same states")


def _model(compiled: Compiled, source: Path) -> GroupModel:
    program, plan = compiled.program, compiled.plan
    spec = spec_of(source, compiled.graph, compiled.board, compiled.options, compiled.edge)
    spec = replace(spec, texts=compiled.imported.texts)
    vectors = (f"{spec.name}_golden.h", f"{spec.name}_golden.c")
    golden = {name: text for name, text in compiled.bundle.files.items() if name in vectors}
    return GroupModel(program, Places(local_offsets(plan)), plan.arena_bytes, spec, golden)


def _report(compiled: Sequence[Compiled], paths: Sequence[Path], group: Group, spec: GroupSpec) -> GroupReport:
    sources = [f"{spec.name}.c", f"{spec.name}_weights.c"]
    models: list[Report] = [{**c.report, "sources": sources} for c in compiled]
    first = compiled[0].report
    return {
        "schema": SCHEMA, "glowc": full_version(), "model": spec.name, "board": first["board"], "cpu": first["cpu"],
        "arena_bytes": group.arena_bytes, "weights_bytes": group.weights_bytes,
        "separate_arena_bytes": sum(m["arena_bytes"] for m in models),
        "separate_weights_bytes": sum(m["weights_bytes"] for m in models),
        "functions": group.functions, "share_arena": spec.share_arena, "share_weights": spec.share_weights,
        "sources": sources, "files": sorted([*group.files, REPORT]), "models": models,
        "sbom": bill_of_materials(paths, group.files, group.foreign),
    }  # fmt: skip


def write_group(compiled: CompiledGroup, folder: Path, *, force: bool = False) -> None:
    """Write the bundle as `write_bundle` does."""
    text = json.dumps(compiled.report, indent=1) + "\n"
    write_folder(folder, {**compiled.group.files, REPORT: text}, force=force)
