"""Finds every operator and kernel by listing this folder in sorted order."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import glowc.ops
from glowc.errors import GlowcError, InternalError
from glowc.graph.attrs import Attr
from glowc.graph.graph import Node
from glowc.ops.base import Call, KernelDef, OpDef, OpError

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _load() -> tuple[dict[str, OpDef], dict[str, KernelDef]]:
    """Return operators and kernels by name: glowc's own, and those that `register` adds."""
    ops, kernels = _own()
    return dict(ops), dict(kernels)


@cache
def _own() -> tuple[dict[str, OpDef], dict[str, KernelDef]]:
    ops: dict[str, OpDef] = {}
    kernels: dict[str, KernelDef] = {}
    for info in sorted(pkgutil.iter_modules(glowc.ops.__path__), key=lambda m: m.name):
        module = importlib.import_module(f"glowc.ops.{info.name}")
        single = getattr(module, "OP", None)
        for op in (*((single,) if single else ()), *getattr(module, "OPS", ())):
            if op.name in ops:
                raise InternalError(f"two definitions of operator {op.name}")
            ops[op.name] = _blamed(op, "glowc")
        for kernel in getattr(module, "KERNELS", ()):
            if kernel.name in kernels:
                raise InternalError(f"two definitions of kernel {kernel.name}")
            kernels[kernel.name] = kernel
    return dict(sorted(ops.items())), dict(sorted(kernels.items()))


def _blamed(op: OpDef, whose: str) -> OpDef:
    """Return the operator with functions that name it, the node and whose it is when they fail as none should."""
    return replace(
        op,
        infer=_named(op.infer, "infer", op.name, whose),
        reference=_named(op.reference, "reference", op.name, whose),
        lower=_named(op.lower, "lower", op.name, whose),
    )


def _named(function: Callable[P, R], what: str, op: str, whose: str) -> Callable[P, R]:
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (GlowcError, OpError):
            raise
        except Exception as error:
            raise InternalError(
                f"{_label(args)}: {what} of operator {op} fails: {type(error).__name__}: {error}",
                hint=f"this is a bug in {whose}; run again with `glowc --debug ...` to see where",
            ) from error

    return call


def _label(args: tuple[Any, ...]) -> str:
    """Return the label of the node that a function of an operator was called for."""
    subject = args[0] if args else None
    node = subject.node if isinstance(subject, Call) else subject
    return node.label if isinstance(node, Node) else "a node"


_folders: dict[str, Path] = {}


def register(ops: Iterable[OpDef], kernels: Iterable[KernelDef], folder: Path, plugin: str) -> None:
    """Add the operators and kernels of a plugin, whose C lies in `folder`; the caller has checked the names."""
    known_ops, known_kernels = _load()
    known_ops.update((op.name, _blamed(op, f"plugin {plugin}")) for op in ops)
    for kernel in kernels:
        known_kernels[kernel.name] = kernel
        _folders[kernel.name] = folder


def forget_plugins() -> None:
    """Leave glowc's own operators and kernels only."""
    if _folders or len(all_ops()) > len(_own()[0]):
        _load.cache_clear()
        _folders.clear()


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


def declared(node: Node, key: str) -> Attr:
    """Return what a node's operator declares of an attribute; InternalError when it knows none of that name."""
    attr = get_op(node.op).attrs.get(key)
    if attr is None:
        raise InternalError(f"{node.label}: operator {node.op} declares no attribute {key}")
    return attr


def find_kernel(name: str) -> KernelDef | None:
    """Return the instruction kind of that name, or None."""
    return _load()[1].get(name)


def get_kernel(name: str) -> KernelDef:
    """Return the instruction kind of that name; InternalError when there is none."""
    kernel = find_kernel(name)
    if kernel is None:
        raise InternalError(f"no kernel named {name}")
    return kernel
