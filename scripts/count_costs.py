"""Counts single layers for scripts/fit_costs.py: instructions, and cycles on a chip."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from cost_models import CALM, RECTIFIED, SPARSE, model_of
from cost_sample import Sample
from cost_tflite import is_tflite, tflite_of
from drawn_layers import Drawn, models_bytes

from glowc.board import Board, Chip, chip_names, find_tool, load_board, load_chip, machine_of
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.kernels.choice import variant_of
from glowc.kernels.features import features
from glowc.machine.cycles.measure import measure_layers
from glowc.machine.execute import BundleInfo, count_layers, load_bundle, random_inputs
from glowc.paths import data_dir
from glowc.program.ir import Instr, Plan
from glowc.program.lifetimes import strip_markers
from glowc.select.candidates import Layer, Order
from glowc.select.cost import key_of
from glowc.select.pricing import modes_of

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "costs"  # counts of programs that are not run again
OPTS = {"cortex-m": ("size", "balanced", "speed")}  # of a family; size stands for -Os
OTHER_OPTS = ("balanced", "speed")
SPREAD, CALM_SPREAD = np.float32(4), np.float32(0.5)  # of floats: functions of libm take longer for large numbers
FEW_ABOVE = np.float32(1.25)  # standard deviations: one number of nine is larger
MOST_DRAWN, MANY = 4, 99  # variants of a layer of random shape, of another one
SLOW_MACS = 50_000  # of a layer that portable C is not counted with


@dataclass(frozen=True)
class Target:
    """Where layers are counted: a board, and the chip whose cycles count, if any; `name` is what the user calls it."""

    name: str
    board: Board
    chip: Chip | None


def target_of(text: str) -> Target:
    """Return the target of a chip's name, or of `board/cpu`."""
    if text in chip_names():
        chip = load_chip(text)
        return Target(text, machine_of(chip), chip)
    name, _, cpu = text.partition("/")
    return Target(text, load_board(name, cpu or None), None)


@dataclass(frozen=True)
class Taken:
    """One layer as counted: features, instructions, and cycles where there is a chip; whether its shape was drawn."""

    values: Mapping[str, float]
    insns: float
    cycles: float
    is_drawn: bool = False


@dataclass
class Counts:
    """What a program gave: instructions and cycles of each layer."""

    insns: list[float]
    cycles: list[float]


@dataclass
class Measured:
    """What was counted: layers by key and way of printing."""

    taken: dict[tuple[str, str], list[Taken]] = field(default_factory=lambda: defaultdict(list))

    def add(self, key: str, mode: str, taken: Taken) -> None:
        """Add a layer, unless one with the same features is known."""
        if all(taken.values != known.values for known in self.taken[key, mode]):
            self.taken[key, mode].append(taken)


Counted = tuple[Compiled, Counts]
Wanted = Callable[[str], bool]
"""Whether the costs of a key are to be counted."""
Samples = Sequence[Sample] | Sequence[Drawn]


def nth(number: int, wanted: Wanted) -> Callable[[Sequence[Layer]], Order]:
    """Return the order that puts the n-th variant of each layer first, of those that are counted."""

    def order(layers: Sequence[Layer]) -> Order:
        firsts = {x.name: counted_of(x, wanted)[number : number + 1] for x in layers}
        return {x.name: tuple(dict.fromkeys(f.variant for f in (*firsts[x.name], *x.forms))) for x in layers}

    return order


def measure(target: Target, samples: Samples, wanted: Wanted, quick: bool) -> list[Counted]:
    """Count the layers of one model with each variant whose costs are wanted, and every way of printing.

    Drawn layers and `quick` counts are those by -O2.
    """
    found: list[Counted] = []
    is_drawn = isinstance(samples[0], Drawn)
    layout = "exported" if is_drawn or samples[0].planar or is_tflite(samples[0]) else "nhwc"  # type: ignore[union-attr]
    options = CompileOptions(io_layout=layout, plan="plain")
    with tempfile.TemporaryDirectory(prefix="glowc-costs-") as name:
        layers = compile_model(written(samples, Path(name)), target.board, options).selection.layers
        counted = [(sample_of(x), len(counted_of(x, wanted))) for x in layers]
        for number in range(min(max(forms for _, forms in counted), MOST_DRAWN if is_drawn else MANY)):
            chosen = {at for at, forms in counted if forms > number}
            if left := [sample for at, sample in enumerate(samples) if at in chosen]:
                folder = Path(name) / str(number)
                folder.mkdir()
                path = written(left, folder)
                for opt in OTHER_OPTS if is_drawn or quick else OPTS.get(target.board.cpu.family, OTHER_OPTS):
                    plain = compile_model(path, target.board, replace(options, opt=opt), order=nth(number, wanted))
                    found.append((plain, count(plain, target, folder / opt)))
                    if target.board.cpu.slow_flash and opt != "size":
                        wished = replace(options, opt=opt, plan="overlap")
                        spending = compile_model(path, target.board, wished, order=nth(number, wanted))
                        if plans_of(spending) != plans_of(plain):
                            found.append((spending, count(spending, target, folder / f"{opt}_overlap")))
    return found


def plans_of(compiled: Compiled) -> list[Plan]:
    """Return the plans of a program's layers."""
    return [instr.plan for instr in strip_markers(compiled.program).instrs]


def sample_of(layer: Layer) -> int:
    """Return the number of the sample that a layer is of, -1 where it is of none."""
    match = re.search(r"n_[xyz](\d+)", layer.name)
    return int(match[1]) if match else -1


def written(samples: Samples, folder: Path) -> Path:
    """Write one model of layers, and return its file."""
    if isinstance(samples[0], Drawn):
        path = folder / f"layers.{samples[0].form}"
        path.write_bytes(models_bytes(samples))  # type: ignore[arg-type]
        return path
    if is_tflite(samples[0]):
        path = folder / "layers.tflite"
        path.write_bytes(tflite_of(samples))
        return path
    onnx.save(model_of(samples), folder / "layers.onnx")
    return folder / "layers.onnx"


def counted_of(layer: Layer, wanted: Wanted) -> list[Instr]:
    """Return the forms of a layer that are wanted and worth their time under QEMU, as the first one always is."""
    return [
        form
        for form in layer.forms
        if wanted(key_of(form)) and (form is layer.forms[0] or variant_of(form).isa != "ref" or form.macs <= SLOW_MACS)
    ]


def measured_by(name: str, patterns: Sequence[str], quick: bool, samples: Samples) -> Measured:
    """Return what one model's layers take on a target, by variants of keys with one of the patterns."""

    def wanted(key: str) -> bool:
        return any(fnmatchcase(key, pattern) for pattern in patterns)

    measured = Measured()
    for compiled, counts in measure(target_of(name), samples, wanted, quick):
        add(compiled, counts, measured, is_drawn=isinstance(samples[0], Drawn))
    return measured


def add(compiled: Compiled, counts: Counts, measured: Measured, *, is_drawn: bool) -> None:
    """Add the layers of one program."""
    modes = modes_of(strip_markers(compiled.program), compiled.options.opt)
    for (instr, mode), insns, cycles in zip(modes, counts.insns, counts.cycles, strict=True):
        measured.add(key_of(instr), mode, Taken(features(instr), insns, cycles, is_drawn))


def merged(parts: Sequence[Measured]) -> Measured:
    """Return what several models gave together."""
    whole = Measured()
    for part in parts:
        for (key, mode), found in part.taken.items():
            for taken in found:
                whole.add(key, mode, taken)
    return whole


@cache
def rules_hash(name: str) -> str:
    """Return a hash of what decides the counts of a target besides the program: chip, compiler, rules."""
    target, cpu = target_of(name), target_of(name).board.cpu
    compiler = subprocess.run([str(find_tool(cpu.cc)), "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256(repr((target.chip, target.board.name, cpu.name, cpu.cflags)).encode() + compiler)
    plugin = data_dir("boards") / "_common" / "plugin"
    for path in sorted([*(ROOT / "glowc" / "machine" / "cycles").glob("*.py"), *plugin.glob("*.c")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def program_hash(info: BundleInfo, target: Target, folder: Path, *more: bytes) -> str:
    """Return a hash of a program in a folder, of what decides its counts on a target, and of what else tells it.

    The version of glowc is left out, which changes with everything.
    """
    version = info.report["glowc"].encode()
    digest = hashlib.sha256(rules_hash(target.name).encode() + b"".join(more))
    for name in sorted(info.report["files"]):
        if name.endswith((".c", ".h")):
            digest.update(name.encode() + (folder / name).read_bytes().replace(version, b""))
    return digest.hexdigest()[:32]


def count(compiled: Compiled, target: Target, folder: Path) -> Counts:
    """Count one compiled model, or return what is known of the same program."""
    write_bundle(compiled, folder)
    info = load_bundle(folder)
    known = KEPT / f"{program_hash(info, target, folder, compiled.options.opt.encode())}.json"
    if not known.is_file():
        counts = run(info, target, folder)
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(asdict(counts)), encoding="utf-8")
    return Counts(**json.loads(known.read_text(encoding="utf-8")))


def spread(name: str, numbers: np.ndarray) -> np.ndarray:
    """Return the numbers of an input as those of layers: floats spread as far, codes of which half are the least."""
    if numbers.dtype != np.float32:
        return np.where(numbers < 0, np.iinfo(numbers.dtype).min, numbers) if name.startswith(RECTIFIED) else numbers
    if name.startswith(RECTIFIED):
        return np.maximum(SPREAD * numbers, 0)
    if name.startswith(SPARSE):
        return np.maximum(SPREAD * (numbers - FEW_ABOVE), 0)
    return (CALM_SPREAD if name.startswith(CALM) else SPREAD) * numbers


def run(info: BundleInfo, target: Target, folder: Path) -> Counts:
    """Build and run one program."""
    inputs = {name: spread(name, x) if x.dtype == np.float32 else x for name, x in random_inputs(info).items()}
    if target.chip is not None:
        layers = measure_layers(info, target.chip, inputs, folder)
        return Counts([float(x.insns) for x in layers], [x.cycles for x in layers])
    insns = [float(n) for n in count_layers(info, target.board, inputs, folder)]
    return Counts(insns, insns)
