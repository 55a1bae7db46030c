"""How many bytes of each buffer an inference reads and writes: an estimate from the loops of the kernels.

It decides which buffers lie in the fastest memory, so what matters is which byte is touched more often than another.

    kind                         a buffer that is not constant is accessed
    products (conv, fc, matmul)  each input once per multiply-accumulate; a variant for an instruction set reads it once
                                 for four outputs, and a depthwise convolution has but one output
      with scratch               inputs once per window to fill the scratch, which is then read in their place; where a
                                 variant reads rows in place (path "rows"), only at the edges of the image
    pooling, windows             input: once per output and tap
    elementwise                  every operand once per output element, broadcast ones included
    lstm, gru, rnn               input and state once per multiply-accumulate with them; scratch twice per step
    softmax, layer_norm          input three times: maximum or mean, sum or variance, result
    interpolation                input once per output and tap, four taps where the kernel is bilinear
    top_k                        input k times
    sums by rows                 input once, sums twice per row
    anything else                every operand once, an inout one twice

Besides, the caller writes the inputs and reads the outputs. Rows of a streamed segment are counted like the whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from glowc.instr.ir import Access, BufferKind, Instr, Operand, Program
from glowc.instr.lifetimes import strip_markers
from glowc.instr.rows import variant_of
from glowc.ops.registry import get_kernel

_OUTPUTS_AT_ONCE = 4
_GATES = {"lstm": 4, "gru": 3, "rnn": 1}
_PASSES = {"softmax": 3, "layer": 3, "bilinear": 4, "grid": 4}
_PRODUCTS = ("conv", "dwconv", "fc", "matmul")
_PROGRESS_BYTES = 16  # of a model that is fed by rows: step and row, read and written, per step


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
    kind = kernel.name.split("_")[0]
    if kind in _PRODUCTS and instr.macs:
        return once | _products(instr, depthwise=kind == "dwconv")
    if kind in _GATES:
        return once | _recurrent(instr, _GATES[kind])
    if kernel.length:
        length = int(instr.params[kernel.length]) if int(instr.params.get("rank", 1)) == 1 else 0
        return dict.fromkeys(once, steps * max(length, 0) or instr.operand("out").type.elements)
    if kernel.name.startswith("sum_rows"):
        width, channels = int(instr.params["in_w"]), int(instr.params["in_c"])
        return once | {"in": steps * width * channels, "acc": 2 * steps * channels}
    return once | _repeated(instr, kind, once[next(o.role for o in instr.operands if o.access.writes)])


def _elements(operand: Operand) -> int:
    return operand.type.elements * (2 if operand.access is Access.INOUT else 1)


def _products(instr: Instr, *, depthwise: bool) -> dict[str, int]:
    """Inputs, and the scratch that holds the inputs of a window."""
    variant = variant_of(instr)
    at_once = 1 if depthwise or variant is None or variant.isa == "ref" else _OUTPUTS_AT_ONCE
    reads = -(-instr.macs // at_once)
    inputs = [o for o in instr.operands if o.role in ("in", "a", "b")]
    scratch = next((o for o in instr.operands if o.role == "scratch"), None)
    if scratch is None:
        return {o.role: reads for o in inputs}
    p = instr.params
    windows = instr.macs if depthwise else instr.macs // max(1, int(p.get("out_c", p.get("out_n", p.get("n", 1)))))
    path = variant.plan(instr).get("path", "") if variant is not None else ""
    share = _edge_share(p) if path in ("rows", "point") else 1.0
    through = share * inputs[0].type.dtype.bytes / scratch.type.dtype.bytes
    direct = {o.role: int(share * windows + (1 - share) * reads) for o in inputs}
    return direct | {"scratch": int(through * (windows + reads))}


def _edge_share(p: Mapping[str, int | float | str]) -> float:
    """Return the share of outputs whose windows reach over the image's edge."""
    inside = 1.0
    for axis, pad in (("h", "pad_top"), ("w", "pad_left")):
        out, stride, before = int(p[f"out_{axis}"]), int(p[f"stride_{axis}"]), int(p[pad])
        last = int(p[f"in_{axis}"]) - 1 - (int(p[f"k_{axis}"]) - 1) * int(p[f"dil_{axis}"])
        inside *= sum(0 <= i * stride - before <= last for i in range(out)) / max(out, 1)
    return 1 - inside


def _recurrent(instr: Instr, gates: int) -> dict[str, int]:
    p = {key: int(instr.params[key]) for key in ("seq", "batch", "dirs", "hidden", "in_k")}
    outputs = p["seq"] * p["batch"] * p["dirs"] * p["hidden"]
    scratch = instr.operand("scratch").type.elements
    return {
        "in": outputs * gates * p["in_k"], "h": outputs * (gates * p["hidden"] + 1),
        "scratch": 2 * scratch * p["seq"] * p["batch"] * p["dirs"],
    }  # fmt: skip


def _repeated(instr: Instr, kind: str, outputs: int) -> dict[str, int]:
    """Return what kernels that meet their input `in` several times read of it for so many outputs."""
    source = next((o for o in instr.operands if o.role == "in"), None)
    if source is None:
        return {}
    p = instr.params
    if "k_h" in p:
        return {"in": outputs * math.prod(int(p.get(f"k_{axis}", 1)) for axis in "dhw")}
    if kind == "interpolate":
        return {"in": outputs * int(p["taps"])}
    if kind == "top":
        return {"in": source.type.elements * int(p["k"])}
    if kind in ("gather", "pick", "remap2d"):
        return {"in": outputs}
    of = outputs if kind in ("bilinear", "grid") else source.type.elements
    return {"in": of * _PASSES.get(kind, 1)}
