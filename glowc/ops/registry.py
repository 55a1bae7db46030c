"""Finds every operator by listing this folder in sorted order, and fills the tables of attributes and kernels.

The tables belong to the rooms that know the form of a definition but no operator: `glowc.graph.attrs`
and `glowc.program.kernel`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import glowc.ops
from glowc.errors import GlowcError, InternalError
from glowc.graph.attrs import declare_attrs
from glowc.graph.graph import Node
from glowc.ops.base import Call, OpDef, OpError
from glowc.program.kernel import AnyKernel, all_kernels, define_kernels

P = ParamSpec("P")
R = TypeVar("R")


_ops: dict[str, OpDef] = {}


@cache
def _own() -> tuple[dict[str, OpDef], tuple[AnyKernel, ...]]:
    """Return glowc's own operators by name, and kernels."""
    ops: dict[str, OpDef] = {}
    kernels: list[AnyKernel] = []
    for info in sorted(pkgutil.iter_modules(glowc.ops.__path__), key=lambda m: m.name):
        module = importlib.import_module(f"glowc.ops.{info.name}")
        single = getattr(module, "OP", None)
        for op in (*((single,) if single else ()), *getattr(module, "OPS", ())):
            if op.name in ops:
                raise InternalError(f"two definitions of operator {op.name}")
            ops[op.name] = _blamed(op, "glowc")
        kernels += getattr(module, "KERNELS", ())
    return ops, tuple(kernels)


def _fill(ops: Mapping[str, OpDef], kernels: Iterable[AnyKernel]) -> None:
    """Let these be the operators and kernels that there are."""
    _ops.clear()
    _ops.update(sorted(ops.items()))
    declare_attrs({name: op.attrs for name, op in _ops.items()})
    define_kernels(kernels)


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


def register(ops: Iterable[OpDef], kernels: Sequence[AnyKernel], folder: Path, plugin: str) -> None:
    """Add the operators and kernels of a plugin, whose C lies in `folder`; the caller has checked the names."""
    _fill({**_ops, **{op.name: _blamed(op, f"plugin {plugin}") for op in ops}}, (*all_kernels().values(), *kernels))
    _folders.update((kernel.name, folder) for kernel in kernels)


def forget_plugins() -> None:
    """Leave glowc's own operators and kernels only."""
    _folders.clear()
    _fill(*_own())


def kernel_folder(name: str) -> Path | None:
    """Return the folder of the plugin that brought a kernel, None for glowc's own."""
    return _folders.get(name)


def all_ops() -> Mapping[str, OpDef]:
    """Every operator by name."""
    return _ops


def find_op(name: str) -> OpDef | None:
    """Return the operator of that name, or None."""
    return _ops.get(name)


def get_op(name: str) -> OpDef:
    """Return the operator of that name; InternalError when there is none."""
    op = _ops.get(name)
    if op is None:
        raise InternalError(f"no operator named {name}")
    return op


_fill(*_own())
