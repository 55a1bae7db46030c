"""What tells the code of a layer apart from that of other layers of its kernel and variant, and how large it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

from glowc.kernels.features import COUNTED, LIMITS, Image, features, inputs_of, last_axis, numbers
from glowc.program.ir import Access, Instr, Plan, Program
from glowc.program.lifetimes import strip_markers

_SMALL = 16  # numbers of a plan that may tell code apart
_GROUPS = (2, 4, 8, 16)
_NAMES = ("biases", "scales")  # fields of plans that name operands
_KEEP_SIGNS = ("max_pool_f32", "avg_pool_f32", "copy", "transpose")

SIGNED = frozenset({"signed"})
"""The trait of calls that read floats which no ReLU made: functions of floats without FPU are faster at zeros."""


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
    depth = inputs_of(numbers(instr))
    for name, size in (("depth", depth), ("channels", extent.channels), ("width", extent.width)):
        found |= {f"{name}%{n}" for n in _GROUPS if size % n}
    return frozenset(found)


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
