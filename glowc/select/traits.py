"""What tells the code of a layer apart from that of other layers of its kernel and variant, and how large it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from glowc.kernels.choice import variant_of
from glowc.kernels.features import COUNTED, LIMITS, Image, features, inputs_of, last_axis, numbers
from glowc.program.ir import Access, Instr, Plan, Program
from glowc.program.lifetimes import strip_markers

_SMALL = 16  # numbers of a plan that may tell code apart
_GROUPS = (2, 4, 8, 16)
_FEW_FORMS = 3
_NAMES = ("biases", "scales")  # fields of plans that name operands
_KEEP_SIGNS = ("max_pool_f32", "avg_pool_f32", "copy", "transpose")

SIGNED = frozenset({"signed"})
"""The trait of calls that read floats which no ReLU made: functions of floats without FPU are faster at zeros."""


FEW = frozenset({"few"})
"""The trait of calls of kernels of which a program has few functions."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Sizes of the nest of loops of a call: pixels of rows of `width`, channels, a window of `lines` times `run`."""

    pixels: int
    width: int
    channels: int
    lines: int
    run: int

    @staticmethod
    def of(instr: Instr) -> Extent:
        """Return the sizes of a call."""
        p = numbers(instr)
        out, image = max(round(features(instr)["outputs"]), 1), Image.of(p)
        if image is not None:
            width, pixels = max(image.out_w, 1), max(image.pixels, 1)
        else:
            width, pixels = 1, max(out // max(last_axis(p, out), 1), 1)
        lines, columns = (max(image.k_h, 1), image.k_w) if image is not None else (1, 1)
        depth = round(instr.macs / out) if instr.macs else lines * columns
        return Extent(pixels, width, max(out // pixels, 1), lines, max(depth // lines, 1))

    @property
    def sizes(self) -> tuple[int, ...]:
        """All sizes."""
        return self.pixels, self.width, self.channels, self.lines, self.run


def place(sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Return the logarithms of sizes: a layer twice as large is as far away at any size."""
    return tuple(map(math.log2, sizes))


def traits(instr: Instr) -> frozenset[str]:
    """Return what tells the code of a call apart: words and small numbers of its plan, limits, strides, odd sizes."""
    p, extent, found = instr.params, Extent.of(instr), set(_fields(instr.plan, ""))
    found |= {f"{key}={value}" for key, value in p.items() if isinstance(value, str) and key != "expr"}
    found |= {key for key, value in LIMITS.items() if key in p and p[key] != value}
    found |= {f"{key}>{least}" for key in COUNTED for least in (0, 1) if int(p.get(key, 0)) > least}
    found |= {f"{key}=1" for key in ("contiguous", "scale") if p.get(key) == 1}
    found |= _average(instr)
    depth = inputs_of(numbers(instr))
    for name, size in (("depth", depth), ("channels", extent.channels), ("width", extent.width)):
        found |= {f"{name}%{n}" for n in _GROUPS if size % n}
    return frozenset(found)


def _average(instr: Instr) -> set[str]:
    """Return what tells averages of codes apart: factors beyond those of integer kernels, sums that may be ties."""
    p = instr.params
    if "in_scale" not in p or not p.get("out_scale"):
        return set()
    taps = int(p.get("n", int(p.get("k_h", 1)) * int(p.get("k_w", 1))))
    factor = float(p["in_scale"]) / float(p["out_scale"]) / max(taps, 1)
    found = {name for name, least in (("factor>1/4", 0.25), ("factor>1/2", 0.5)) if factor > least}
    return found | ({"ties"} if p["in_scale"] == p["out_scale"] and taps % 2 == 0 else set())


def given(program: Program) -> list[frozenset[str]]:
    """Return the traits that calls have by the calls before them: SIGNED, or none."""
    found, rectified = list[frozenset[str]](), set[str]()
    for instr in strip_markers(program).instrs:
        first = instr.operands[0]
        read = program.root(first.buffer)[0] in rectified
        found.append(SIGNED if first.type.dtype.is_float and not read else frozenset())
        written = {program.root(o.buffer)[0] for o in instr.operands if o.access is not Access.IN}
        rectified = rectified | written if _rectifies(instr, read) else rectified - written
    return found


def few_forms(calls: Sequence[tuple[Instr, str]]) -> list[frozenset[str]]:
    """Return the traits of a program's calls, each with its way of printing, by what else it calls: FEW, or none.

    Compilers make functions of a variant's header part of kernels with weights where few functions call them.
    """
    forms: dict[tuple[str, str], set[tuple[object, ...]]] = {}
    for i, mode in calls:
        shape = tuple(sorted(i.params.items())) if mode == "literal" else ()
        forms.setdefault((i.kernel, i.variant), set()).add((shape, i.plan))
    few = {form for form, found in forms.items() if len(found) <= _FEW_FORMS}
    return [FEW if (i.kernel, i.variant) in few and i.macs and variant_of(i).header else frozenset() for i, _ in calls]


def _rectifies(instr: Instr, read: bool) -> bool:
    is_relu = instr.params.get("act_min") == 0 or instr.params.get("op") == "relu"
    return is_relu or (read and instr.kernel.startswith(_KEEP_SIGNS))


def _fields(plan: Plan, prefix: str) -> Iterator[str]:
    for f in fields(plan):
        value, name = getattr(plan, f.name), f"{prefix}{f.name}"
        if isinstance(value, Plan):
            yield from _fields(value, f"{name}.")
        elif name in _NAMES:
            continue
        elif isinstance(value, bool | tuple):
            yield from [name] if value else []
        elif isinstance(value, str) or (isinstance(value, int) and abs(value) <= _SMALL):
            yield f"{name}={value}"
