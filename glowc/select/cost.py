"""What kernels cost on a CPU: executed instructions and bytes of code, predicted from the shape of a layer.

The coefficients are measured: scripts/fit_costs.py counts single layers under QEMU and writes boards/_costs/<cpu>.json.
Instructions of a call are a sum of coefficient x feature (`glowc.kernels.features`), bytes of a function a + b x lines
of its C. Both are fitted per kernel, variant, path of the variant and form of its weights (`key_of`), and way of
printing (`MODES`). What variants state themselves counts where nothing was measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from glowc.board import Cpu
from glowc.kernels.choice import variant_of
from glowc.kernels.features import features
from glowc.paths import data_dir
from glowc.program.ir import Instr

MODES = ("size", "shared", "literal")
"""Functions that layers share, compiled by -Os and by -O2, and a function for each shape, by -O2."""


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
