"""How many bytes of each buffer an inference reads and writes: an estimate from the loops of the kernels.

It decides which buffers lie in the fastest memory, so what matters is which byte is touched more often than another.

    kind                         a buffer that is not constant is accessed
    products (conv, fc, matmul)  each input once per multiply-accumulate; a variant for an instruction set reads it once
                                 for several outputs (`KernelVariant.reads`), a depthwise convolution has but one
      with scratch               inputs once per window to fill the scratch, which is then read in their place; where
                                 Helium reads rows in place (path "rows"), only at the edges of the image; steps that
                                 it keeps there, for every group of outputs of two pixels
      Plan.touched               as the plan says
    pooling, windows             input: once per output and tap
    elementwise                  every operand once per output element, broadcast ones included
    KernelDef.touched            as the kernel says
    lstm, gru, rnn               input and state once per element of the next state (all gates at once); scratch twice
                                 per step
    softmax, layer_norm          input three times: maximum or mean, sum or variance, result
    interpolation                input once per output and tap, four taps where the kernel is bilinear
    top_k                        input k times
    sums by rows                 input once, sums twice per row
    anything else                every operand once, an inout one twice

Besides, the caller writes the inputs and reads the outputs. Rows of a streamed segment are counted like the whole.
Measured by QEMU's memory callbacks on Cortex-M3, M4 and M55, bytes by buffer: docs/MEMORY.md has the comparison.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from glowc.kernels.base import Reads
from glowc.kernels.choice import variant_of
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.shapes import Shape
from glowc.program.ir import Access, BufferKind, Instr, Operand, Program
from glowc.program.kernel import get_kernel
from glowc.program.lifetimes import strip_markers
from glowc.program.params import typed

_STEP_OUTPUTS = 4  # of a pixel, for which Helium's list of steps is read once
_RECURRENT = ("lstm", "gru", "rnn")
_PASSES = {"softmax": 3, "layer": 3, "bilinear": 4, "grid": 4}
_PRODUCTS = ("conv", "dwconv", "fc", "matmul")
_PROGRESS_BYTES = 16  # of a model that is fed by rows: step and row, read and written, per step


@dataclass(frozen=True, slots=True)
class Sweep(Shape):
    """What all kernels have that move a window over the rows and columns of an image."""

    in_h: int
    in_w: int
    out_h: int
    out_w: int
    k_h: int
    k_w: int
    stride_h: int
    stride_w: int
    dil_h: int
    dil_w: int
    pad_top: int
    pad_left: int

    def axes(self) -> Iterator[tuple[range, int, int, int]]:
        """Yield, of rows and columns, where windows begin, taps, their distance, and the size of the image."""
        for before, stride, out, taps, step, size in (
            (self.pad_top, self.stride_h, self.out_h, self.k_h, self.dil_h, self.in_h),
            (self.pad_left, self.stride_w, self.out_w, self.k_w, self.dil_w, self.in_w),
        ):
            yield range(-before, out * stride - before, stride), taps, step, size


def _sweep(instr: Instr) -> Sweep | None:
    return Sweep.of(instr) if instr.params.keys() >= set(Sweep.names()) else None


def accesses(program: Program) -> dict[str, int]:
    """Return the bytes read and written by root, constants and buffers of the caller left out."""
    plain = strip_markers(program)
    counts: Counter[str] = Counter()
    steps = {s.begin + n: s.steps.count(n) for s in plain.segments for n in range(s.end - s.begin)}
    for index, instr in enumerate(plain.instrs):
        elements = elements_touched(instr, steps.get(index, 1))
        for operand in instr.operands:
            counts[plain.root(operand.buffer)[0]] += elements[operand.role] * operand.type.dtype.bytes
    for operand in (*plain.inputs, *plain.outputs):
        counts[plain.root(operand.buffer)[0]] += operand.type.size_bytes
    for segment in plain.segments:
        if segment.progress:
            counts[plain.root(segment.progress)[0]] += _PROGRESS_BYTES * len(segment.steps)
    kept = {r: b for r, b in plain.buffers.items() if b.kind is not BufferKind.CONST and not plain.is_callers(r)}
    return {root: count for root, count in counts.items() if root in kept}


def elements_touched(instr: Instr, steps: int = 1) -> dict[str, int]:
    """Return the elements read and written by operand role; `steps` are the calls of an elementwise or sum kernel."""
    kernel = get_kernel(instr.kernel)
    once = {o.role: _elements(o) for o in instr.operands}
    if kernel.rows and "out_h" in instr.params:  # in a segment the operand is a ring of a few rows
        once["out"] = math.prod(int(instr.params[key]) for key in ("batch", "out_h", "out_w", "out_c"))
    if kernel.touched is not None:
        return once | kernel.touched(typed(kernel.takes, instr.params))
    kind = kernel.name.split("_")[0]
    if kind in _PRODUCTS and instr.macs:
        return {**once, **(instr.plan.touched(instr) or _products(instr, kind))}
    if kind in _RECURRENT:
        return once | _recurrent(instr)
    if kernel.length:
        length = int(instr.params[kernel.length]) if int(instr.params.get("rank", 1)) == 1 else 0
        return dict.fromkeys(once, steps * max(length, 0) or instr.operand("out").type.elements)
    if kernel.name.startswith("sum_rows"):
        width, channels = int(instr.params["in_w"]), int(instr.params["in_c"])
        return once | {"in": steps * width * channels, "acc": 2 * steps * channels}
    return once | _repeated(instr, kind, once[next(o.role for o in instr.operands if o.access.writes)])


def _elements(operand: Operand) -> int:
    return operand.type.elements * (2 if operand.access is Access.INOUT else 1)


def _products(instr: Instr, kind: str) -> dict[str, int]:
    """Inputs, and the scratch that holds the inputs of a window."""
    sweep, plan, how = _sweep(instr), instr.plan, variant_of(instr).reads
    windows, reads = _windows(instr, kind), instr.macs / _at_once(sweep if kind == "dwconv" else None, how)
    inside = _share_inside(sweep) if sweep is not None else 1.0
    inputs = [o for o in instr.operands if o.role in ("in", "a", "b")]
    scratch = next((o for o in instr.operands if o.role == "scratch"), None)
    if scratch is None:
        return {o.role: round(inside * reads) for o in inputs}
    value_bytes = (how.value_bytes or inputs[0].type.dtype.bytes) / scratch.type.dtype.bytes
    steps = _steps(instr) if plan.lists_steps else 0
    if plan.reads_in_place and sweep is not None:
        edge = _edge_share(sweep)
        direct = edge * windows + (1 - edge) * reads
        return dict.fromkeys((o.role for o in inputs), round(direct)) | {
            "scratch": round(edge * value_bytes * (windows + reads)) + steps
        }
    copied = round(value_bytes * (windows + reads)) + steps
    return {o.role: round(inside * windows) for o in inputs} | {"scratch": copied}


def _steps(instr: Instr) -> int:
    """Return the bytes of steps that a convolution reads, and of those that it moves on to the next pixels."""
    p = {key: int(instr.params[key]) for key in ("k_h", "k_w", "in_c", "out_c")}
    steps = p["k_h"] * (1 if p["k_w"] * p["in_c"] % 16 == 0 else 2) + 2
    pairs = instr.macs / (2 * p["k_h"] * p["k_w"] * p["in_c"] * p["out_c"])
    step_bytes = header_number("glow_mve_dot.h", "GLOW_MVE_STEP_BYTES")
    return round(step_bytes * steps * pairs * (-(-p["out_c"] // _STEP_OUTPUTS) + 2))


def _windows(instr: Instr, kind: str) -> int:
    """Return the inputs of all windows: what is left of the multiplications when each window has one output."""
    p = instr.params
    return instr.macs if kind == "dwconv" else instr.macs // max(1, int(p.get("out_c", p.get("out_n", p.get("n", 1)))))


def _at_once(depthwise: Sweep | None, how: Reads) -> float:
    """Return for how many multiply-accumulates an input is read once."""
    if depthwise is not None:
        return max(1.0, depthwise.k_w / depthwise.stride_w) if how.along else 1.0
    return how.at_once


def _share_inside(sweep: Sweep) -> float:
    """Return the share of taps that lie inside of the image."""
    share = 1.0
    for begins, taps, step, size in sweep.axes():
        share *= sum(0 <= at + k * step < size for at in begins for k in range(taps)) / max(1, len(begins) * taps)
    return share


def _edge_share(sweep: Sweep) -> float:
    """Return the share of outputs whose windows reach over the image's edge."""
    inside = 1.0
    for begins, taps, step, size in sweep.axes():
        inside *= sum(at >= 0 and at + (taps - 1) * step < size for at in begins) / max(1, len(begins))
    return 1 - inside


def _recurrent(instr: Instr) -> dict[str, int]:
    p = {key: int(instr.params[key]) for key in ("seq", "batch", "dirs", "hidden", "in_k")}
    steps = p["seq"] * p["batch"] * p["dirs"]
    scratch = instr.operand("scratch").type.elements
    return {
        "in": steps * p["hidden"] * p["in_k"], "h": steps * p["hidden"] * (p["hidden"] + 1),
        "scratch": 2 * scratch * steps,
    }  # fmt: skip


def _repeated(instr: Instr, kind: str, outputs: int) -> dict[str, int]:
    """Return what kernels that meet their input `in` several times read of it for so many outputs."""
    source = next((o for o in instr.operands if o.role == "in"), None)
    if source is None:
        return {}
    p, sweep = instr.params, _sweep(instr)
    if "k_h" in p:
        share = _share_inside(sweep) if sweep is not None else 1.0
        return {"in": round(share * outputs * math.prod(int(p.get(f"k_{axis}", 1)) for axis in "dhw"))}
    if kind == "interpolate":
        return {"in": outputs * int(p["taps"])}
    if kind == "top":
        return {"in": source.type.elements * int(p["k"])}
    if kind in ("gather", "pick", "remap2d"):
        return {"in": outputs}
    of = outputs if kind in ("bilinear", "grid") else source.type.elements
    return {"in": of * _PASSES.get(kind, 1)}
