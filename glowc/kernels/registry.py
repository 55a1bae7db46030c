"""Finds every variant by listing the folders of the instruction sets in sorted order.

A module of such a folder names its variants by kernel: `VARIANTS = {"conv_s8": (KernelVariant(...),)}`. A kernel has
a plain variant `ref` besides; one in `kernels/ref/` takes its place where that needs more than the definition says.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import glowc.kernels
from glowc.graph.scope import Table
from glowc.kernels.base import PLAIN, KernelVariant
from glowc.kernels.isas import ISAS
from glowc.program.kernel import AnyKernel, find_kernel

Variants = Mapping[str, tuple[KernelVariant, ...]]
_PLAIN_IN_PLACE = replace(PLAIN, in_place=True)
_foreign: Table[tuple[KernelVariant, ...]] = Table()


@cache
def _own(folder: str) -> Variants:
    found: dict[str, tuple[KernelVariant, ...]] = {}
    for variants in _modules(folder):
        for kernel, more in variants.items():
            found[kernel] = (*found.get(kernel, ()), *more)
    return found


@cache
def instruction_sets(features: frozenset[str] | None = None) -> tuple[str, ...]:
    """Return the names of the folders of instruction sets, or of those that a CPU with some features may have."""
    folders = (info.name for info in pkgutil.iter_modules(glowc.kernels.__path__) if info.ispkg)
    has = {isa.folder for isa in ISAS.values() if features is None or isa.needs <= features}
    return tuple(sorted(name for name in folders if name in has))


def _modules(folder: str) -> Iterator[Variants]:
    package = importlib.import_module(f"glowc.kernels.{folder}")
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
        yield getattr(importlib.import_module(f"{package.__name__}.{info.name}"), "VARIANTS", {})


def register_variants(variants: Mapping[str, Sequence[KernelVariant]]) -> None:
    """Add variants of a plugin, by kernel."""
    before = _foreign.all()
    _foreign.add({kernel: (*before.get(kernel, ()), *more) for kernel, more in variants.items()})


def plain_variant(kernel: AnyKernel) -> KernelVariant:
    """Return the variant that every kernel has for all CPUs."""
    return _PLAIN_IN_PLACE if kernel.in_place else PLAIN


def variants_of(kernel: str, features: frozenset[str] | None = None) -> tuple[KernelVariant, ...]:
    """Return the variants of a kernel, the plain one first; none of a kernel that nobody defines.

    With the `features` of a CPU those of its instruction sets, and perhaps others: no further module is imported.
    """
    definition = find_kernel(kernel)
    if definition is None:
        return ()
    foreign = _foreign.all().get(kernel)
    if foreign is None:
        return _usual(kernel, bool(definition.in_place), features)
    return _plain_first(plain_variant(definition), (*_found(kernel, features), *foreign))


def variant_named(kernel: str, name: str) -> KernelVariant | None:
    """Return the variant of a kernel with that name, None where it has none."""
    definition = find_kernel(kernel)
    if definition is None or kernel in _foreign.all():
        return next((v for v in variants_of(kernel) if v.name == name), None)
    return _usual_named(kernel, bool(definition.in_place), name)


@cache
def _usual_named(kernel: str, in_place: bool, name: str) -> KernelVariant | None:
    isa = ISAS.get(name.partition("_")[0])
    return next((v for v in _usual(kernel, in_place, isa.needs if isa else None) if v.name == name), None)


@cache
def _usual(kernel: str, in_place: bool, features: frozenset[str] | None) -> tuple[KernelVariant, ...]:
    return _plain_first(_PLAIN_IN_PLACE if in_place else PLAIN, _found(kernel, features))


def _found(kernel: str, features: frozenset[str] | None) -> tuple[KernelVariant, ...]:
    return tuple(v for folder in instruction_sets(features) for v in _own(folder).get(kernel, ()))


def _plain_first(plain: KernelVariant, found: Sequence[KernelVariant]) -> tuple[KernelVariant, ...]:
    refs = [v for v in found if v.isa == PLAIN.isa]
    return (*(refs or [plain]), *(v for v in found if v.isa != PLAIN.isa))
