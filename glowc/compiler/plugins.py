"""Operators and targets from the user's own files: `--plugin my_op.py` registers them before the model is read.

A plugin defines OP, OPS and KERNELS like a file of glowc/ops. Templates lie beside it, or a kernel names a C
function (`extern`) whose header and sources lie there. ISAS are instruction sets, with variants for glowc's own
kernels; BACKENDS take parts of the graph. `--target NAME` is such a file of an installed package, by its entry point in
the group glowc.targets. docs/PLUGINS.md is the manual.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TypeVar

from glowc.codegen.kernels import add_files, plugin_template, template_of
from glowc.errors import PluginError
from glowc.graph.scope import NOTHING, know_only
from glowc.kernels.base import KernelVariant
from glowc.kernels.isas import FOREIGN, InstructionSet, is_foreign, set_names
from glowc.kernels.registry import plain_variant, register_variants
from glowc.ops.base import OpDef
from glowc.ops.delegated import Backend, register_backends
from glowc.ops.registry import all_ops, register
from glowc.paths import module_spec
from glowc.program.kernel import AnyKernel, KernelDef, all_kernels

Kind = TypeVar("Kind")
MANUAL = "docs/PLUGINS.md shows a plugin"
_loaded: dict[Path, tuple[str, ModuleType]] = {}
"""Digest and module of each file that was run; a file that has changed since is run again."""
_running = RLock()


def plugin_in(error: BaseException) -> Path | None:
    """Return the plugin whose code an exception passed through, None for glowc's own."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        path = Path(frame.f_code.co_filename)
        if path in _loaded:
            return path
    return None


def load_plugins(paths: Iterable[Path]) -> None:
    """Let the operators and kernels of these files, and of no others, be known as long as this scope lasts.

    Raises InputError for a file that is missing, fails, defines nothing, clashes or lacks its C.
    """
    know_only(NOTHING)
    for path in dict.fromkeys(paths):
        file = path.resolve()
        if not file.is_file():
            raise PluginError(f"plugin {path} does not exist", hint=MANUAL)
        _register(path, file, _module(path, file))


def _module(path: Path, file: Path) -> ModuleType:
    """Return what a file defines; of threads that want one at the same time, the first runs it."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    with _running:
        known, module = _loaded.get(file, ("", None))
        if module is None or known != digest:
            module = _execute(path, file, digest)
            _loaded[file] = digest, module
    return module


def _execute(path: Path, file: Path, digest: str) -> ModuleType:
    name = f"glowc_plugin_{file.stem}_{digest[:8]}"
    spec = module_spec(name, file)
    if spec is None or spec.loader is None:
        raise PluginError(f"plugin {path} is no Python file", hint=MANUAL)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise PluginError(f"plugin {path}, line {error.lineno}: {error.msg}", hint=MANUAL) from error
    except Exception as error:
        raise PluginError(f"plugin {path} fails: {type(error).__name__}: {error}", hint=MANUAL) from error
    return module


def _register(path: Path, file: Path, module: ModuleType) -> None:
    single = getattr(module, "OP", None)
    ops = _of_kind(path, (*(() if single is None else (single,)), *_list(path, module, "OPS")), OpDef)
    kernels = _of_kind(path, _list(path, module, "KERNELS"), KernelDef)
    sets = _sets(path, module)
    backends = _of_kind(path, _list(path, module, "BACKENDS"), Backend)
    if not ops and not kernels and not sets and not backends:
        raise PluginError(f"plugin {path} defines neither OP, OPS, KERNELS, ISAS nor BACKENDS", hint=MANUAL)
    FOREIGN.add(sets)
    variants = _variants(path, module, kernels, sets)
    _check_names(path, ops, kernels)
    headers = _check_c(path, file.parent, kernels, variants)
    add_files(file.parent, headers)
    register(ops, kernels, file.parent, str(path))
    register_variants(variants)
    register_backends((replace(backend, folder=file.parent) for backend in backends), str(path))


def _sets(path: Path, module: ModuleType) -> dict[str, InstructionSet]:
    """Return the instruction sets that a plugin brings."""
    named = getattr(module, "ISAS", {})
    if not isinstance(named, Mapping):
        raise PluginError(f"plugin {path}: ISAS is a {type(named).__name__}, not a mapping", hint=MANUAL)
    _of_kind(path, tuple(named.values()), InstructionSet)
    taken = sorted(set(named) & set(set_names()))
    if taken:
        raise PluginError(f"plugin {path}: there is an instruction set {', '.join(taken)}", hint="give it another name")
    return dict(named)


def _list(path: Path, module: ModuleType, name: str) -> tuple[object, ...]:
    return _tuple(path, getattr(module, name, ()), name)


def _tuple(path: Path, value: object, name: str) -> tuple[object, ...]:
    if not isinstance(value, tuple | list):
        raise PluginError(f"plugin {path}: {name} is a {type(value).__name__}, not a tuple", hint=MANUAL)
    return tuple(value)


def _of_kind(path: Path, values: Sequence[object], kind: type[Kind]) -> list[Kind]:
    result = []
    for value in values:
        if not isinstance(value, kind):
            raise PluginError(f"plugin {path}: {value!r} is no {kind.__name__}", hint=MANUAL)
        result.append(value)
    return result


def _variants(
    path: Path, module: ModuleType, kernels: Sequence[AnyKernel], sets: Mapping[str, InstructionSet]
) -> dict[str, list[KernelVariant]]:  # fmt: skip
    """Return the variants by kernel; a kernel without any has the plain one.

    Kernels of glowc's own may have variants for the instruction sets that the plugin brings.
    """
    named = getattr(module, "VARIANTS", {})
    if not isinstance(named, Mapping):
        raise PluginError(f"plugin {path}: VARIANTS is a {type(named).__name__}, not a mapping", hint=MANUAL)
    unknown = sorted(set(named) - {kernel.name for kernel in kernels} - (set(all_kernels()) if sets else set()))
    if unknown:
        raise PluginError(
            f"plugin {path}: VARIANTS of {', '.join(unknown)}, which KERNELS does not define", hint=MANUAL
        )
    variants = {
        name: _of_kind(path, _tuple(path, found, f"VARIANTS of {name}"), KernelVariant) for name, found in named.items()
    }
    own = {kernel.name for kernel in kernels}
    for name, isa in ((name, variant.isa) for name, found in variants.items() for variant in found):
        allowed = set_names() if name in own else tuple(sets)
        if isa not in allowed:
            raise PluginError(f"plugin {path}: {name} has a variant for {isa}", hint=f"one of {', '.join(allowed)}")
    return variants


def _check_names(path: Path, ops: Sequence[OpDef], kernels: Sequence[AnyKernel]) -> None:
    for what, values, taken in (("operator", ops, all_ops()), ("kernel", kernels, all_kernels())):
        seen: set[str] = set()
        for value in values:
            if value.name in taken or value.name in seen:
                whose = "itself" if value.name in seen else "glowc or another plugin"
                raise PluginError(
                    f"plugin {path}: {what} {value.name} is already defined by {whose}", hint="give it another name"
                )
            seen.add(value.name)


def _check_c(
    path: Path, folder: Path, kernels: Sequence[AnyKernel], variants: Mapping[str, Sequence[KernelVariant]]
) -> list[Path]:  # fmt: skip
    """Return the headers that variants name. InputError for a template or file that is missing."""
    missing, headers = [], []
    for kernel in kernels:
        if kernel.extern:
            names = [name for name in (kernel.extern_header, *kernel.extern_sources) if name]
            missing += [f"{kernel.name}: {name}" for name in names if not (folder / name).is_file()]
    known = {**all_kernels(), **{kernel.name: kernel for kernel in kernels}}
    plain = {k.name: [plain_variant(k)] for k in kernels if k.name not in variants and not k.extern}
    for kernel_name, found in {**plain, **variants}.items():
        kernel = known[kernel_name]
        for variant in found:
            name = plugin_template(kernel, variant)
            if not next(folder.rglob(name), None) and template_of(kernel, variant) is None and not kernel.extern:
                missing.append(f"{kernel.name}: {name}")
            own = is_foreign(variant.isa) and variant.header
            headers += [folder / variant.header] if own else []
            if own and not (folder / variant.header).is_file():
                missing.append(f"{kernel.name}: {variant.header}")
    if missing:
        raise PluginError(f"plugin {path} lacks files beside it", details=missing, hint=MANUAL)
    return headers
