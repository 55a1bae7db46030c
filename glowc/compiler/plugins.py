"""Operators from the user's own files: `--plugin my_op.py` registers them before the model is read.

A plugin defines OP, OPS and KERNELS like a file of glowc/ops. Templates lie beside it, or a kernel names a C
function (`extern`) whose header and sources lie there; docs/PLUGINS.md is the manual.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from glowc.codegen.kernels import add_templates, forget_templates, plugin_template, template_of
from glowc.errors import InputError
from glowc.kernels.base import KernelVariant
from glowc.kernels.isas import ISAS
from glowc.kernels.registry import forget_variants, plain_variant, register_variants
from glowc.ops.base import OpDef
from glowc.ops.registry import all_ops, forget_plugins, register
from glowc.program.kernel import AnyKernel, KernelDef, all_kernels

Kind = TypeVar("Kind")
MANUAL = "docs/PLUGINS.md shows a plugin"
_loaded: dict[Path, tuple[str, ModuleType]] = {}
"""Digest and module of each file that was run; a file that has changed since is run again."""


def plugin_in(error: BaseException) -> Path | None:
    """Return the plugin whose code an exception passed through, None for glowc's own."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        path = Path(frame.f_code.co_filename)
        if path in _loaded:
            return path
    return None


def load_plugins(paths: Iterable[Path]) -> None:
    """Register the operators and kernels of these files, and of no others: those of an earlier call are forgotten.

    Raises InputError for a file that is missing, fails, defines nothing, clashes or lacks its C.
    """
    forget_plugins()
    forget_variants()
    forget_templates()
    for path in dict.fromkeys(paths):
        file = path.resolve()
        if not file.is_file():
            raise InputError(f"plugin {path} does not exist", hint=MANUAL)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        known, module = _loaded.get(file, ("", None))
        if module is None or known != digest:
            module = _execute(path, file, digest)
        _register(path, file, module)
        _loaded[file] = digest, module


def _execute(path: Path, file: Path, digest: str) -> ModuleType:
    name = f"glowc_plugin_{file.stem}_{digest[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"plugin {path} is no Python file", hint=MANUAL)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(f"plugin {path}, line {error.lineno}: {error.msg}", hint=MANUAL) from error
    except Exception as error:
        raise InputError(f"plugin {path} fails: {type(error).__name__}: {error}", hint=MANUAL) from error
    return module


def _register(path: Path, file: Path, module: ModuleType) -> None:
    single = getattr(module, "OP", None)
    ops = _of_kind(path, (*(() if single is None else (single,)), *_list(path, module, "OPS")), OpDef)
    kernels = _of_kind(path, _list(path, module, "KERNELS"), KernelDef)
    if not ops and not kernels:
        raise InputError(f"plugin {path} defines neither OP, OPS nor KERNELS", hint=MANUAL)
    variants = _variants(path, module, kernels)
    _check_names(path, ops, kernels)
    _check_c(path, file.parent, kernels, variants)
    add_templates(file.parent)
    register(ops, kernels, file.parent, str(path))
    register_variants(variants)


def _list(path: Path, module: ModuleType, name: str) -> tuple[object, ...]:
    return _tuple(path, getattr(module, name, ()), name)


def _tuple(path: Path, value: object, name: str) -> tuple[object, ...]:
    if not isinstance(value, tuple | list):
        raise InputError(f"plugin {path}: {name} is a {type(value).__name__}, not a tuple", hint=MANUAL)
    return tuple(value)


def _of_kind(path: Path, values: Sequence[object], kind: type[Kind]) -> list[Kind]:
    result = []
    for value in values:
        if not isinstance(value, kind):
            raise InputError(f"plugin {path}: {value!r} is no {kind.__name__}", hint=MANUAL)
        result.append(value)
    return result


def _variants(path: Path, module: ModuleType, kernels: Sequence[AnyKernel]) -> dict[str, list[KernelVariant]]:
    """Return the variants by kernel; a kernel without any has the plain one."""
    named = getattr(module, "VARIANTS", {})
    if not isinstance(named, Mapping):
        raise InputError(f"plugin {path}: VARIANTS is a {type(named).__name__}, not a mapping", hint=MANUAL)
    unknown = sorted(set(named) - {kernel.name for kernel in kernels})
    if unknown:
        raise InputError(f"plugin {path}: VARIANTS of {', '.join(unknown)}, which KERNELS does not define", hint=MANUAL)
    variants = {
        name: _of_kind(path, _tuple(path, found, f"VARIANTS of {name}"), KernelVariant) for name, found in named.items()
    }
    for name, isa in ((name, variant.isa) for name, found in variants.items() for variant in found):
        if isa not in ISAS:
            raise InputError(f"plugin {path}: {name} has a variant for {isa}", hint=f"one of {', '.join(ISAS)}")
    return variants


def _check_names(path: Path, ops: Sequence[OpDef], kernels: Sequence[AnyKernel]) -> None:
    for what, values, taken in (("operator", ops, all_ops()), ("kernel", kernels, all_kernels())):
        seen: set[str] = set()
        for value in values:
            if value.name in taken or value.name in seen:
                whose = "itself" if value.name in seen else "glowc or another plugin"
                raise InputError(
                    f"plugin {path}: {what} {value.name} is already defined by {whose}", hint="give it another name"
                )
            seen.add(value.name)


def _check_c(
    path: Path, folder: Path, kernels: Sequence[AnyKernel], variants: Mapping[str, Sequence[KernelVariant]]
) -> None:  # fmt: skip
    missing = []
    for kernel in kernels:
        if kernel.extern:
            names = [name for name in (kernel.extern_header, *kernel.extern_sources) if name]
            missing += [f"{kernel.name}: {name}" for name in names if not (folder / name).is_file()]
            continue
        for variant in variants.get(kernel.name) or [plain_variant(kernel)]:
            name = plugin_template(kernel, variant)
            if not next(folder.rglob(name), None) and template_of(kernel, variant) is None:
                missing.append(f"{kernel.name}: {name}")
    if missing:
        raise InputError(f"plugin {path} lacks files beside it", details=missing, hint=MANUAL)
