"""What kernels cost on a CPU: executed instructions and bytes of code, predicted from the shape of a layer.

The coefficients are measured: scripts/fit_costs.py counts single layers under QEMU and writes boards/_costs/<cpu>.json.
Instructions of a call are a sum of coefficient x feature (`features`), bytes of a function a + b x lines of its C. Both
are fitted per kernel, variant, path of the variant and form of its weights (`key_of`), and way of printing (`MODES`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from glowc.board import Cpu
from glowc.kernels.choice import variant_of
from glowc.paths import data_dir
from glowc.program.ir import Access, Instr

MODES = ("size", "shared", "literal")
"""Functions that layers share, compiled by -Os and by -O2, and a function for each shape, by -O2."""

FEATURES = (
    "call", "outputs", "inputs", "macs", "pixels", "rows", "blocks", "products", "vectors", "strips", "taps",
    "visits", "kernel_rows", "steps", "padding", "edges", "tiles", "tile_products", "tile_inputs",
)  # fmt: skip


def features(instr: Instr) -> dict[str, float]:
    """Return what the instructions of a call may grow with.

    outputs, inputs: elements; pixels, rows: of the output; blocks, vectors: groups of 4 and of 16 output channels of
    all pixels; products: of a block with four inputs; strips: three pixels of a block; taps, kernel_rows: of the
    windows of all pixels; visits: taps of all outputs; steps: groups of 16 inputs over all sums; padding:
    multiply-accumulates beside the input; edges: pixels whose window is not whole; tiles: 2x4 pixels of four output
    channels; tile_products, tile_inputs: input channels of tiles, and of 2x4 pixels.
    """
    p = {key: int(v) for key, v in instr.params.items() if isinstance(v, int) and not isinstance(v, bool)}
    out = sum(o.type.elements for o in instr.operands if o.access is not Access.IN and o.role != "scratch")
    found = {"call": 1.0, "outputs": float(out), "inputs": float(_inputs(instr)), "macs": float(instr.macs)}
    if instr.macs and out:
        depth, last = instr.macs / out, p.get("out_n", p.get("out_c", out))
        groups = {n: float(out // last * math.ceil(last / n)) for n in (4, 16)}
        found |= {"steps": float(out * math.ceil(depth / 16)), "blocks": groups[4], "vectors": groups[16]}
        found["products"] = groups[4] * math.ceil(depth / 4)
    if "out_h" not in p or "out_w" not in p:
        return found
    pixels = p.get("batch", 1) * p["out_h"] * p["out_w"]
    channels = p.get("out_c", 0)
    blocks, rows = math.ceil(channels / 4), p.get("batch", 1) * p["out_h"]
    found |= {"pixels": pixels, "rows": rows, "blocks": pixels * blocks, "vectors": pixels * math.ceil(channels / 16)}
    found["strips"] = rows * math.ceil(p["out_w"] / 3) * blocks
    tiles, inputs = p.get("batch", 1) * math.ceil(p["out_h"] / 2) * math.ceil(p["out_w"] / 4), p.get("in_c", 0)
    found |= {"tiles": tiles * blocks, "tile_products": tiles * blocks * inputs, "tile_inputs": tiles * inputs}
    if "k_h" in p and "k_w" in p:
        found |= {"taps": pixels * p["k_h"] * p["k_w"], "kernel_rows": pixels * p["k_h"]}
        found["visits"] = float(out * p["k_h"] * p["k_w"])
        inside, whole = _window(p, "h"), _window(p, "w")
        share = inside[0] * whole[0]
        found |= {"padding": instr.macs * (1 - share), "edges": pixels * (1 - inside[1] * whole[1])}
        if instr.macs and out:
            per_row = math.ceil(instr.macs / out / p["k_h"] / 16)
            found["steps"] = out * p["k_h"] * per_row
    return found


def _inputs(instr: Instr) -> int:
    sizes = [o.type.elements for o in instr.operands if o.access is not Access.OUT]
    return sizes[0] if sizes else 0


def _window(p: Mapping[str, int], axis: str) -> tuple[float, float]:
    """Return the share of taps that lie inside the input, and of outputs all of whose taps do, along "h" or "w"."""
    pad = p.get("pad_top" if axis == "h" else "pad_left", 0)
    size, count, kernel = p[f"in_{axis}"], p[f"out_{axis}"], p[f"k_{axis}"]
    stride, dilation = p.get(f"stride_{axis}", 1), p.get(f"dil_{axis}", 1)
    start = np.arange(count, dtype=np.int64) * stride - pad  # of a window; taps are counted before and inside the input
    before, until = (np.clip(-((start - end) // dilation), 0, kernel) for end in (0, size))
    inside = until - before
    return int(inside.sum()) / max(count * kernel, 1), int((inside == kernel).sum()) / max(count, 1)


def key_of(instr: Instr) -> str:
    """Return the name of the costs of an instruction: kernel, variant, path, kind or element type of the weights."""
    variant, path = variant_of(instr), instr.plan.cost_path
    weights = next((o.type.dtype.value for o in instr.operands if o.role == "weights"), "")
    return f"{instr.kernel}.{variant.like or instr.variant}.{path}.{instr.plan.cost_kind or weights}"


_ENOUGH = 5


@dataclass(frozen=True, slots=True)
class Fit:
    """One fitted kernel. `error` is the largest relative error of a sample, `text` (a, b) of bytes a + b x lines."""

    insns: Mapping[str, float]
    text: tuple[float, float]
    error: float
    samples: int

    @property
    def trusted(self) -> bool:
        """Whether enough was measured to choose by: a fit of few samples says nothing of other shapes."""
        return self.samples >= _ENOUGH

    def predict(self, values: Mapping[str, float]) -> float:
        """Return the instructions of a call."""
        return sum(c * values.get(name, 0.0) for name, c in self.insns.items())


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one CPU; empty for a CPU of a family that nothing is known of.

    `functions` are bytes of the runtime's functions by name, `uses` which of them a kernel needs, `base` the bytes of a
    program besides its kernels: fixed, and per layer.
    """

    cpu: str = ""
    kernels: Mapping[str, Mapping[str, Fit]] = field(default_factory=dict)
    uses: Mapping[str, frozenset[str]] = field(default_factory=dict)
    functions: Mapping[str, int] = field(default_factory=dict)
    base: tuple[float, float] = (0.0, 0.0)

    def fit(self, instr: Instr, mode: str) -> Fit | None:
        """Return the fit of an instruction's kernel, of another way of printing when that one was not measured."""
        modes = self.kernels.get(key_of(instr), {})
        return next((modes[m] for m in (mode, *MODES) if m in modes), None)

    def insns(self, instr: Instr, mode: str) -> int | None:
        """Return the predicted instructions of a call; None when the kernel was not measured."""
        fit = self.fit(instr, mode)
        return None if fit is None else round(fit.predict(features(instr)))

    def text(self, instr: Instr, mode: str, lines: int) -> float:
        """Return the predicted bytes of a function of `lines` lines of C, without the functions that it calls."""
        fit = self.fit(instr, mode)
        return 12.0 * lines if fit is None else fit.text[0] + fit.text[1] * lines

    def callees(self, instr: Instr) -> frozenset[str]:
        """Return the runtime's functions that the kernel calls, directly or not."""
        return self.uses.get(key_of(instr), frozenset())


def parse_costs(data: Mapping[str, Any]) -> Costs:
    """Return the costs that a file holds."""
    kernels = {
        key: {mode: Fit(fit["insns"], (fit["text"][0], fit["text"][1]), fit["error"], fit["samples"])
              for mode, fit in entry["modes"].items()}
        for key, entry in data["kernels"].items()
    }  # fmt: skip
    uses = {key: frozenset(entry["uses"]) for key, entry in data["kernels"].items()}
    return Costs(data["cpu"], kernels, uses, data["functions"], (data["base"][0], data["base"][1]))


@cache
def _tables() -> tuple[dict[str, Any], ...]:
    folder = data_dir("boards") / "_costs"
    return tuple(json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json")))


def cost_file(cpu: str) -> Path:
    """Return where the costs of a CPU are kept."""
    return data_dir("boards") / "_costs" / f"{cpu}.json"


def load_costs(cpu: Cpu) -> Costs:
    """Return the costs of a CPU, or of the most similar one of its family that has no feature more."""
    best: tuple[bool, int, str] | None = None
    chosen: Mapping[str, Any] | None = None
    for table in _tables():
        has = frozenset(table["features"])
        if table["cpu"] != cpu.name and (table["family"] != cpu.family or not has <= cpu.features):
            continue
        order = (table["cpu"] == cpu.name, len(has), table["cpu"])
        if best is None or order > best:
            best, chosen = order, table
    return Costs() if chosen is None else parse_costs(chosen)
