"""Several models as one bundle: equal kernel functions once, and where asked for equal constants once and one arena."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from glowc.codegen.bundle import (
    BundleSpec,
    ViewedModel,
    copied_files,
    model_constants,
    view_model,
)
from glowc.codegen.kernels import environment
from glowc.codegen.names import unique_idents
from glowc.codegen.places import Places
from glowc.codegen.view import ConstView, FunctionTable, Guard, literal_kernels, prefix_of
from glowc.codegen.viewed import PrintedGroup
from glowc.program.ir import Program


@dataclass(frozen=True, slots=True)
class GroupModel:
    """A model of a group: what its own bundle would be printed from."""

    program: Program
    places: Places
    arena_bytes: int
    spec: BundleSpec
    golden: Mapping[str, str] = field(default_factory=dict)  # files with its test vectors


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """What is shared besides functions, and the name of the whole."""

    name: str
    share_arena: bool
    share_weights: bool


@dataclass(frozen=True, slots=True)
class Group:
    """The files of a group but report.json, and what they take."""

    files: Mapping[str, str]
    arena_bytes: int
    weights_bytes: int
    functions: int
    foreign: frozenset[str]


def render_group(models: Sequence[GroupModel], spec: GroupSpec) -> Group:
    """Return the C of several models. Raises InputError as `render_bundle` does."""
    prefix = prefix_of(spec.name)
    table = FunctionTable(prefix, frozenset())
    own = [model_constants(m.program, m.spec) for m in models]
    consts, shared = _constants(own, prefix) if spec.share_weights else (own, ())
    printed = shared if spec.share_weights else tuple(c for each in own for c in each.values())
    viewed = [_viewed(model, table, c, prefix, spec) for model, c in zip(models, consts, strict=True)]
    g = _view(viewed, spec, table, printed)
    files = _files(g, viewed, spec.name)
    for model in models:
        files |= model.golden
    foreign = {name for v in viewed for name in (*v.extern_headers, *v.extern_sources)}
    return Group(files, g.arena_bytes, g.weights_bytes, len(table.names), frozenset(foreign))


def _viewed(
    model: GroupModel, table: FunctionTable, consts: Mapping[str, ConstView], prefix: str, spec: GroupSpec
) -> ViewedModel:  # fmt: skip
    table.begin_model(model.spec.name, literal_kernels(model.program, model.spec.opt))
    places = replace(model.places, shared=f"{prefix}_arena" if spec.share_arena else "")
    return view_model(model.program, places, model.arena_bytes, model.spec, table, consts, golden=bool(model.golden))


def _constants(
    own: Sequence[Mapping[str, ConstView]], prefix: str
) -> tuple[list[dict[str, ConstView]], list[ConstView]]:
    """Return the constants of each model by buffer name, and each different one once; the largest alignment counts."""
    different: dict[tuple[str, str, int], ConstView] = {}
    keys = {view.ident: (view.ctype, view.text, view.count) for each in own for view in each.values()}
    for view in (c for each in own for c in each.values()):
        key = keys[view.ident]
        known = different.get(key, view)
        different[key] = replace(known, align_bytes=max(known.align_bytes, view.align_bytes))
    names = unique_idents((view.ident for view in different.values()), longest=1000)  # they are short already
    final = {k: replace(v, ident=f"{prefix}_w_{names[v.ident]}") for k, v in different.items()}
    found = [{name: final[keys[c.ident]] for name, c in each.items()} for each in own]
    return found, list(final.values())


def _view(
    viewed: Sequence[ViewedModel], spec: GroupSpec, table: FunctionTable, consts: Sequence[ConstView]
) -> PrintedGroup:  # fmt: skip
    """Return what the templates print of the whole; the names are those of a model where it has the same."""
    first, models = viewed[0].m, [v.m for v in viewed]
    return PrintedGroup(
        name=spec.name, prefix=prefix_of(spec.name), cpu=first.cpu, opt=first.opt, options=first.options,
        cpu_flags=first.cpu_flags, features=first.features, guard=_guard([m.guard for m in models]),
        loop_bytes=first.loop_bytes, code_section=first.code_section,
        model_hash=" ".join(m.model_hash for m in models), models=models,
        states=[s for m in models for s in m.states], structs=table.structs, functions=table.definitions,
        consts=consts, needs_math=any(m.needs_math for m in models), tested=[m.name for m in models if m.golden],
        arena_bytes=max(m.arena_bytes for m in models) if spec.share_arena else sum(m.arena_bytes for m in models),
        line_bytes=max(m.line_bytes for m in models), arena_align=max(m.arena_align for m in models),
        share_arena=spec.share_arena, share_weights=spec.share_weights,
        kernel_headers=_once(h for m in models for h in m.kernel_headers),
        runtime_files=_once(h for m in models for h in m.runtime_files),
        extern_sources=_once(name for v in viewed for name in (*v.own_sources, *v.extern_sources)),
    )  # fmt: skip


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _guard(guards: Sequence[Guard]) -> Guard:
    """Return what keeps any of the models from a core; portable twins help where all of them have some."""
    lacking = tuple(sorted({condition for guard in guards for condition in guard.lacking}))
    return Guard(lacking, twins=all(guard.twins for guard in guards if guard.lacking))


def _files(g: PrintedGroup, viewed: Sequence[ViewedModel], name: str) -> dict[str, str]:
    env = environment()
    templates = {
        f"{name}.h": "group.h.j2", f"{name}.c": "group.c.j2", f"{name}.mk": "model.mk.j2",
        "README.md": "group_readme.md.j2", f"{name}_weights.h": "weights.h.j2",
        f"{name}_weights.c": "weights.c.j2",
    }  # fmt: skip
    files = {file: env.get_template(template).render(m=g) for file, template in templates.items()}
    files |= {f"{v.spec.name}.h": env.get_template("model.h.j2").render(m=v.m) for v in viewed}
    for one in viewed:
        files |= copied_files(one)
    return files
