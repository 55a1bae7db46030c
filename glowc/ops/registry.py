"""Finds every operator and kernel by listing this folder in sorted order."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import glowc.ops
from glowc.errors import InternalError
from glowc.ops.base import KernelDef, OpDef


@cache
def _load() -> tuple[dict[str, OpDef], dict[str, KernelDef]]:
    ops: dict[str, OpDef] = {}
    kernels: dict[str, KernelDef] = {}
    for info in sorted(pkgutil.iter_modules(glowc.ops.__path__), key=lambda m: m.name):
        module = importlib.import_module(f"glowc.ops.{info.name}")
        single = getattr(module, "OP", None)
        for op in (*((single,) if single else ()), *getattr(module, "OPS", ())):
            if op.name in ops:
                raise InternalError(f"two definitions of operator {op.name}")
            ops[op.name] = op
        for kernel in getattr(module, "KERNELS", ()):
            if kernel.name in kernels:
                raise InternalError(f"two definitions of kernel {kernel.name}")
            kernels[kernel.name] = kernel
    return dict(sorted(ops.items())), dict(sorted(kernels.items()))


_folders: dict[str, Path] = {}


def register(ops: Iterable[OpDef], kernels: Iterable[KernelDef], folder: Path) -> None:
    """Add the operators and kernels of a plugin, whose C lies in `folder`; the caller has checked the names."""
    known_ops, known_kernels = _load()
    known_ops.update((op.name, op) for op in ops)
    for kernel in kernels:
        known_kernels[kernel.name] = kernel
        _folders[kernel.name] = folder


def kernel_folder(name: str) -> Path | None:
    """Return the folder of the plugin that brought a kernel, None for glowc's own."""
    return _folders.get(name)


def all_ops() -> dict[str, OpDef]:
    """Every operator by name."""
    return _load()[0]


def all_kernels() -> dict[str, KernelDef]:
    """Every instruction kind by name."""
    return _load()[1]


def find_op(name: str) -> OpDef | None:
    """Return the operator of that name, or None."""
    return _load()[0].get(name)


def get_op(name: str) -> OpDef:
    """Return the operator of that name; InternalError when there is none."""
    op = find_op(name)
    if op is None:
        raise InternalError(f"no operator named {name}")
    return op


def get_kernel(name: str) -> KernelDef:
    """Return the instruction kind of that name; InternalError when there is none."""
    kernel = _load()[1].get(name)
    if kernel is None:
        raise InternalError(f"no kernel named {name}")
    return kernel
