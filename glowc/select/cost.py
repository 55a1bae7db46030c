"""What kernels cost on a CPU: executed instructions, cycles and bytes of code, predicted from the shape of a layer.

The coefficients are measured: scripts/fit_costs.py counts single layers under QEMU, their cycles on a chip of the CPU
that the file names, and writes boards/_costs/<cpu>.json. Instructions and cycles of a call are sums of coefficient x
feature (`glowc.kernels.features`). All are fitted per kernel, variant, path of the variant, form of its weights or
operation (`key_of`), and way of printing (`MODES`). What variants state themselves counts where nothing was measured.
Bytes of code are those of glowc/select/code.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from glowc.board import Cpu
from glowc.kernels.choice import guessed_insns, variant_of
from glowc.kernels.features import features
from glowc.paths import data_dir
from glowc.program.ir import Instr
from glowc.select.code import CodeSizes, parse_code

SINGLE = "single"  # of a gather
MODES = ("size", "shared", "literal")
"""Functions that layers share, compiled by -Os and by -O2, and a function for each shape, by -O2."""

_NEXT = ("shared", "literal", "size")  # where one was not measured: -O2 before -Os


def key_of(instr: Instr) -> str:
    """Return the name of the costs of an instruction: kernel, variant, path, and what tells its loops apart.

    That is the plan's kind, the element type of the weights, or the operation that is done on each element.
    """
    variant, path = variant_of(instr), instr.plan.cost_path
    weights = next((o.type.dtype.value for o in instr.operands if o.role == "weights"), "")
    kind = instr.plan.cost_kind or weights or _operation(instr)
    return f"{instr.kernel}.{variant.cost_name}.{path}.{kind}"


def keys_like(key: str) -> tuple[str, ...]:
    """Return a key and, of a kernel that ends in a shift, that of the one which ends in a float32 product.

    Elements of other widths move as those of four bytes do, and a window of time steps moves as a flat copy. Products
    that may leave 16 bits are rounded as those that do not.
    """
    like = _WIDTH.sub(r"\1_b4.", _PUSH.sub(r"copy_b\1.ref..flat", _unshifted(key)))
    return (key, like, _UNBOUNDED.sub(r".u\1", like))


_WIDTH = re.compile(r"^(copy|fill|gather)_b(?:2|8|16)\.")
_UNBOUNDED = re.compile(r"\.s(16|32)$")  # of kernels whose streams are filed under words
_PUSH = re.compile(r"^push_b(\d+)\.ref\.\.$")


def _unshifted(key: str) -> str:
    kernel, rest = key.split(".", 1)
    return f"{kernel.removesuffix('rs')}.{rest}" if kernel.endswith("rs") else _floating(key)


def _floating(key: str) -> str:
    """Return the key of the kernel with a float32 scale, of one that ends in a multiplier and a shift."""
    kernel, rest = key.split(".", 1)
    return f"{kernel.removesuffix('q31').removesuffix('q15')}.{rest}"


def _operation(instr: Instr) -> str:
    """Return the operation of a kernel that has several; whether a copy is flat, and a gather of single elements."""
    if instr.params.get("inner") == 1 and "index_n" in instr.params:
        return SINGLE
    return "flat" if instr.params.get("contiguous") == 1 else str(instr.params.get("op", ""))


_ENOUGH = 5
_ROUGH = 0.2


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call takes: executed instructions, and cycles on the chip that stands for the CPU."""

    insns: int
    cycles: int


@dataclass(frozen=True, slots=True)
class Fit:
    """One fitted kernel: coefficients of the features for its instructions and its cycles.

    `error` is the relative error of the cycles of a layer that was left out of the fit (root of the mean square).
    """

    insns: Mapping[str, float]
    cycles: Mapping[str, float]
    error: float
    samples: int

    @property
    def trusted(self) -> bool:
        """Whether the fit is good enough to choose by: one of few samples says nothing of other shapes."""
        return self.samples >= _ENOUGH and self.error <= _ROUGH

    def predict(self, values: Mapping[str, float]) -> Cost:
        """Return what a call takes."""
        insns, cycles = (sum(c * values.get(name, 0.0) for name, c in t.items()) for t in (self.insns, self.cycles))
        return Cost(round(insns), round(cycles))


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one CPU; empty for a CPU of a family that nothing is known of.

    `reread_cycles` are those of the chip for a byte of constants that it reads again from the flash, as its cache is
    small; 0 where that was not told apart. `stack` is what `glowc.select.stack` reads.
    """

    cpu: str = ""
    kernels: Mapping[str, Mapping[str, Fit]] = field(default_factory=dict)
    code: CodeSizes = field(default_factory=CodeSizes)
    cycles_per_insn: float = 1.0
    reread_cycles: float = 0.0
    stack: Mapping[str, Any] = field(default_factory=dict)

    def fit(self, instr: Instr, mode: str) -> Fit | None:
        """Return the fit of an instruction's kernel, of another way of printing when that one was not measured.

        A layer that ends in a shift, where that was not measured, has the fit of one that ends in a float32 product.
        """
        modes = next((self.kernels[key] for key in keys_like(key_of(instr)) if key in self.kernels), {})
        return next((modes[m] for m in (mode, *_NEXT) if m in modes), None)

    def predict(self, instr: Instr, mode: str) -> Cost | None:
        """Return what a call is predicted to take; None when the kernel was not measured."""
        fit = self.fit(instr, mode)
        if fit is None:
            return None
        values = features(instr)
        cost, spared = fit.predict(values), 0 if "reread" in values else variant_of(instr).spared_bytes(instr)
        return cost if not spared else Cost(cost.insns, cost.cycles - round(self.reread_cycles * spared))

    def stated(self, instr: Instr) -> Cost:
        """Return what a call takes, roughly, by what its variant states."""
        return self.of_insns(guessed_insns(instr))

    def of_insns(self, insns: int) -> Cost:
        """Return what a call of so many instructions takes, roughly."""
        return Cost(insns, round(insns * self.cycles_per_insn))

    def text(self, instr: Instr, way: int, lines: int) -> float:
        """Return the predicted bytes of a function of `lines` lines of C, without the functions that it calls."""
        return self.code.text(keys_like(key_of(instr)), way, lines)


def parse_costs(data: Mapping[str, Any], cycles_per_insn: float = 1.0) -> Costs:
    """Return the costs that a file holds; where it names no chip, an instruction takes `cycles_per_insn`."""

    def fit(entry: Mapping[str, Any]) -> Fit:
        cycles = entry.get("cycles") or {name: c * cycles_per_insn for name, c in entry["insns"].items()}
        return Fit(entry["insns"], cycles, entry["error"], entry["samples"])

    kernels = {key: {mode: fit(values) for mode, values in modes.items()} for key, modes in data["kernels"].items()}
    code = parse_code(data["code"]) if "code" in data else CodeSizes()
    reread, stack = data.get("reread_cycles", 0.0), data.get("stack", {})
    return Costs(data["cpu"], kernels, code, cycles_per_insn, reread, stack)


@cache
def _table(path: Path) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table


def cost_file(cpu: str) -> Path:
    """Return where the costs of a CPU are kept."""
    return data_dir("boards") / "_costs" / f"{cpu}.json"


def load_costs(cpu: Cpu) -> Costs:
    """Return the costs of a CPU, or of the most similar one of its family that has no feature more."""
    cycles_per_insn, own = cpu.cycles_per_100_insns / 100, cost_file(cpu.name)
    tables = [_table(path) for path in ([own] if own.is_file() else sorted(own.parent.glob("*.json")))]
    usable = [t for t in tables if t["cpu"] == cpu.name or _is_of_family(t, cpu)]
    if not usable:
        return Costs(cycles_per_insn=cycles_per_insn)
    return parse_costs(max(usable, key=lambda t: (len(t["features"]), t["cpu"])), cycles_per_insn)


def _is_of_family(table: Mapping[str, Any], cpu: Cpu) -> bool:
    """Say whether the costs are those of a CPU of the same family that has no feature more."""
    return bool(table["family"] == cpu.family and frozenset(table["features"]) <= cpu.features)
