"""Finds every operator by listing this folder in sorted order, and fills the tables of attributes and kernels.

The tables belong to the rooms that know the form of a definition but no operator: `glowc.graph.attrs`
and `glowc.program.kernel`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import glowc.ops
from glowc.errors import GlowcError, InternalError
from glowc.graph.attrs import DECLARED
from glowc.graph.graph import Node
from glowc.graph.scope import Table
from glowc.ops.base import Call, OpDef, OpError
from glowc.program.kernel import KNOWN_KERNELS, AnyKernel

P = ParamSpec("P")
R = TypeVar("R")
Named = TypeVar("Named", OpDef, AnyKernel)
_OPS: Table[OpDef] = Table()
_FOLDERS: Table[Path] = Table()
"""Where the C of a plugin's kernel lies."""


def _fill() -> None:
    """Let glowc's own operators and kernels be known. InternalError where two have one name."""
    ops: list[OpDef] = []
    kernels: list[AnyKernel] = []
    for info in sorted(pkgutil.iter_modules(glowc.ops.__path__), key=lambda m: m.name):
        module = importlib.import_module(f"glowc.ops.{info.name}")
        single = getattr(module, "OP", None)
        ops += (_blamed(op, "glowc") for op in (*((single,) if single else ()), *getattr(module, "OPS", ())))
        kernels += getattr(module, "KERNELS", ())
    _OPS.own, KNOWN_KERNELS.own = _by_name("operator", ops), _by_name("kernel", kernels)
    DECLARED.own = {op.name: op.attrs for op in ops}


def _by_name(what: str, values: Iterable[Named]) -> dict[str, Named]:
    found: dict[str, Named] = {}
    for value in sorted(values, key=lambda v: v.name):
        if value.name in found:
            raise InternalError(f"two definitions of {what} {value.name}")
        found[value.name] = value
    return found


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


def register(ops: Iterable[OpDef], kernels: Sequence[AnyKernel], folder: Path, plugin: str) -> None:
    """Add the operators and kernels of a plugin, whose C lies in `folder`; the caller has checked the names."""
    mine = [_blamed(op, f"plugin {plugin}") for op in ops]
    _OPS.add({op.name: op for op in mine})
    DECLARED.add({op.name: op.attrs for op in mine})
    KNOWN_KERNELS.add({kernel.name: kernel for kernel in kernels})
    _FOLDERS.add({kernel.name: folder for kernel in kernels})


def kernel_folder(name: str) -> Path | None:
    """Return the folder of the plugin that brought a kernel, None for glowc's own."""
    return _FOLDERS.all().get(name)


def all_ops() -> Mapping[str, OpDef]:
    """Every operator by name."""
    return _OPS.all()


def find_op(name: str) -> OpDef | None:
    """Return the operator of that name, or None."""
    return _OPS.all().get(name)


def get_op(name: str) -> OpDef:
    """Return the operator of that name; InternalError when there is none."""
    op = _OPS.all().get(name)
    if op is None:
        raise InternalError(f"no operator named {name}")
    return op


_fill()
