"""Measured instructions and cycles of kernel variants, which `glowc tune` writes and `glowc compile --tuned` reads.

A layer is found by a hash of what decides its speed: the C that every variant prints for it, the runtime headers, the
way of optimising and the compiler's flags. When any of them changes the entry is not found, and the cost model predicts
again. The compiler's version stands beside the entry: a compiler is not needed to read the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glowc.board import Cpu
from glowc.codegen.headers import RUNTIME_FILES
from glowc.codegen.kernels import render_kernel
from glowc.codegen.view import headers_of
from glowc.errors import TunedError
from glowc.paths import runtime_header
from glowc.select.candidates import Layer
from glowc.select.cost import Cost, Costs

VERSION = 2
_HINT = "write it with `glowc tune MODEL.onnx --board B -o FILE`"


@dataclass(frozen=True, slots=True)
class Entry:
    """One measured layer: instructions by variant, and cycles on `chip`; `compiler` built it, with its version.

    Without a chip there are no cycles. One that is not `complete` lacks variants, because measuring was interrupted; it
    decides nothing yet.
    """

    layer: str
    kernel: str
    cpu: str
    compiler: str
    insns: Mapping[str, int] = field(default_factory=dict)
    cycles: Mapping[str, int] = field(default_factory=dict)
    chip: str = ""
    complete: bool = True

    def costs(self, cpu: Cpu) -> dict[str, Cost]:
        """Return what each variant takes; without a chip, cycles are those that instructions take on the CPU."""
        of_cpu = Costs(cycles_per_insn=cpu.cycles_per_100_insns / 100)
        return {v: Cost(n, self.cycles[v]) if self.chip else of_cpu.of_insns(n) for v, n in self.insns.items()}


def layer_key(layer: Layer, cpu: Cpu, opt: str) -> str:
    """Return the hash of everything that decides how fast the variants of a layer are."""
    digest = hashlib.sha256(json.dumps([VERSION, cpu.name, cpu.cflags, opt]).encode())
    for form in layer.forms:
        digest.update(f"{form.variant}|{form.rows}|{form.macs}|{render_kernel(form, 'fn')}".encode())
    for name in (*RUNTIME_FILES, *headers_of(layer.forms)):
        digest.update(runtime_header(name).read_bytes())
    return digest.hexdigest()[:32]


def load_entries(path: Path) -> dict[str, Entry]:
    """Return the measured layers of a file by key. Raises InputError when it is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
        if data["glowc_tune"] != VERSION:
            raise TunedError(f"{path} was written by another version of glowc", hint=_HINT)
        return {key: _entry(value) for key, value in data["layers"].items()}
    except FileNotFoundError:
        raise TunedError(f"no file {path}", hint=_HINT) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TunedError(f"{path} holds no measured choices: {error}", hint=_HINT) from error


def _entry(value: Mapping[str, object]) -> Entry:
    entry = Entry(**value)  # type: ignore[arg-type]
    if not entry.insns or not all(isinstance(n, int) for n in (*entry.insns.values(), *entry.cycles.values())):
        raise ValueError(f"layer {entry.layer} has no instructions")
    if entry.chip and entry.cycles.keys() != entry.insns.keys():
        raise ValueError(f"layer {entry.layer} has no cycles of each variant")
    return entry


def read_tuned(path: Path, cpu: Cpu, opt: str) -> Callable[[Layer], Mapping[str, Cost]]:
    """Return the function that tells what a layer takes as measured, by variant; empty when nothing was."""
    entries = load_entries(path)

    def measured(layer: Layer) -> Mapping[str, Cost]:
        entry = entries.get(layer_key(layer, cpu, opt)) if len(layer.forms) > 1 else None
        return {} if entry is None or not entry.complete else entry.costs(cpu)

    return measured
