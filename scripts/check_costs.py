#!/usr/bin/env python3
"""Compare predicted with counted cycles of the sample models; list kernels without a fit. Runs as `make costs-check`.

    scripts/check_costs.py
    scripts/check_costs.py --targets stm32l4r5 rpi-zero2 --models mlperf_kws_dscnn
    scripts/check_costs.py --keys
    scripts/check_costs.py --targets stm32l4r5 --code --drawn 20

Each model of ../shared/models and each network of scripts/small_nets.py, of whose layers none was fitted, is compiled
for the CPU of a chip (scripts/fit_costs.py has the chips that stand for CPUs), and its layers are counted on that chip;
instructions are compared where no chip has the CPU. Layers above one
percent of their model should be off by at most 10 %, models by 5 %. `--keys` counts nothing: it lists kernels that a
layer of a model could have and nothing was fitted of. `--code` compares bytes of code instead, by `--opt balanced` and
`size`, also of the models of ../shared/tflite, of `--drawn` networks of random layers too, or of these alone with
`--models` and no name: all together should be off by 10 %.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench import MODELS, first_sample, model_file
from count_costs import KEPT, Target, program_hash, target_of
from fit_code import LEVELS, compiled_bytes
from fit_costs import TARGETS, rms
from small_nets import NETS, drawn, file_of, write

from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.machine.cycles.measure import measure_layers
from glowc.machine.execute import count_layers, load_bundle, random_inputs
from glowc.program.lifetimes import strip_markers
from glowc.select.cost import key_of

MOST_OF_LAYER, MOST_OF_MODEL, MOST_OF_CODE = 0.10, 0.05, 0.10  # relative errors
TFLITE = MODELS.parent / "tflite"
SMALL = 0.01  # of a model: a layer that does not matter


@dataclass(frozen=True)
class Compared:
    """One layer: predicted and counted cycles, or instructions where there is no chip."""

    model: str
    layer: str
    key: str
    fitted: bool
    predicted: int
    counted: int

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted / max(self.counted, 1) - 1

    def line(self) -> str:
        """Return the layer as it is printed."""
        how = "" if self.fitted else " (stated)"
        return f"{100 * self.error:+7.1f} %  {self.counted:>11,}  {self.model} {self.layer[:40]}  {self.key}{how}"


def model(name: str) -> Path:
    """Return the file of a sample model, or of a small network."""
    if name not in NETS:
        return model_file(name)
    (KEPT / "nets").mkdir(parents=True, exist_ok=True)
    return file_of(name, KEPT / "nets")[0]


def compare(name: str, path: Path, target: Target) -> list[Compared]:
    """Compile one model for a target and count its layers."""
    compiled = compile_model(path, target.board)
    with tempfile.TemporaryDirectory(prefix="glowc-check-") as folder:
        write_bundle(compiled, Path(folder))
        cycles = counted(path, target, Path(folder))
    instrs, costs = strip_markers(compiled.program).instrs, compiled.selection.costs
    layers = zip(instrs, compiled.report["layers"], cycles, strict=True)
    return [
        Compared(
            name,
            i.name,
            key_of(i),
            costs.fit(i, "shared") is not None,
            x["insns_estimate"] if target.chip is None else x["cycles_estimate"],
            round(n),
        )
        for i, x, n in layers
    ]


def counted(path: Path, target: Target, folder: Path) -> list[float]:
    """Return the cycles, or instructions, of each layer of a model's bundle, counted or known of the same program."""
    info = load_bundle(folder)
    inputs = first_sample(path, info.inputs) or random_inputs(info)
    data = b"".join(name.encode() + inputs[name].tobytes() for name in sorted(inputs))
    known = KEPT / "check" / f"{program_hash(info, target, folder, data)}.json"
    if not known.is_file():
        if target.chip is None:
            cycles = [float(insns) for insns in count_layers(info, target.board, inputs)]
        else:
            cycles = [count.cycles for count in measure_layers(info, target.chip, inputs)]
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(cycles), encoding="utf-8")
    found: list[float] = json.loads(known.read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True)
class Coded:
    """The code of one model: predicted and compiled bytes."""

    model: str
    predicted: int
    compiled: int

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted / self.compiled - 1


def coded(name: str, path: Path, target: Target, opt: str) -> Coded:
    """Compile the code of one model."""
    compiled = compile_model(path, target.board, CompileOptions(opt=opt))
    return Coded(name, compiled.report["text_bytes_estimate"] or 0, compiled_bytes(compiled, target.board))


def drawn_models(seeds: Sequence[int]) -> dict[str, Path]:
    """Return networks of random layers, which are written once."""
    folder = KEPT / "drawn"
    folder.mkdir(parents=True, exist_ok=True)
    found = {f"drawn_{seed}": folder / f"{seed}.onnx" for seed in seeds}
    for (name, path), seed in zip(found.items(), seeds, strict=True):
        if not path.is_file():
            write(name, drawn(seed), path)
    return found


def show_code(target: Target, models: Mapping[str, Path]) -> bool:
    """Print how far predicted bytes of code are off; return whether they are near enough."""
    good = True
    for opt in LEVELS:
        found = []
        for name, path in models.items():
            try:
                found.append(coded(name, path, target, opt))
            except GlowcError as error:
                print(f"  {name}: {type(error).__name__}: {error}", file=sys.stderr)
        errors = np.array([x.error for x in found])
        print(f"{target.board.cpu.name} --opt {opt}: code of {len(found)} models, rms {rms(errors):.1%}, "
              f"mean {errors.mean():+.1%}")  # fmt: skip
        for x in sorted(found, key=lambda x: -abs(x.error)):
            if abs(x.error) > MOST_OF_CODE:
                print(f"  {100 * x.error:+7.1f} %  {x.compiled:>11,}  {x.model}")
        sys.stdout.flush()
        good &= rms(errors) <= MOST_OF_CODE
    return good


def unfitted(compiled: Compiled) -> Iterator[str]:
    """Yield the keys of all forms of all layers that nothing is known of to choose by."""
    selection = compiled.selection
    yield from (key_of(f) for x in selection.layers for f in x.forms if selection.costs.fit(f, "shared") is None)


def show(target: Target, layers: Sequence[Compared]) -> bool:
    """Print how far predictions are off; return whether all are near enough."""
    models = {x.model: [y for y in layers if y.model == x.model] for x in layers}
    totals = {name: sum(x.counted for x in found) for name, found in models.items()}
    off = {name: sum(x.predicted for x in found) / totals[name] - 1 for name, found in models.items()}
    weighty = [x for x in layers if x.counted > SMALL * totals[x.model]]
    wrong = sorted((x for x in weighty if abs(x.error) > MOST_OF_LAYER), key=lambda x: -abs(x.error))
    far = {name: error for name, error in off.items() if abs(error) > MOST_OF_MODEL}
    print(f"{target.board.cpu.name} on {target.name}: {len(weighty)} layers, {len(wrong)} off by more than 10 %; "
          f"{len(models)} models, {len(far)} by more than 5 %")  # fmt: skip
    if weighty:
        errors = np.abs([x.error for x in weighty])
        middle, within = np.median(errors), np.mean(errors <= MOST_OF_LAYER)
        print(f"  layers: rms {rms(errors):.1%}, median {middle:.1%}, {within:.0%} are within {MOST_OF_LAYER:.0%}; "
              f"models: rms {rms(np.array(list(off.values()))):.1%}")  # fmt: skip
    for layer in wrong:
        print("  " + layer.line())
    for name, error in sorted(far.items(), key=lambda item: -abs(item[1])):
        print(f"  {100 * error:+7.1f} %  {totals[name]:>11,}  {name} (whole)")
    sys.stdout.flush()
    return not wrong and not far


def main() -> int:
    """Compare all models on all targets; exit status 1 when predictions are too far off, or keys have no fit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--targets", nargs="+", default=TARGETS, metavar="CHIP|BOARD/CPU")
    parser.add_argument(
        "--models", nargs="*", default=[*sorted(path.parent.name for path in MODELS.glob("*/model.onnx")), *NETS]
    )
    parser.add_argument("--code", action="store_true", help="compare bytes of code, and count nothing")
    parser.add_argument("--drawn", type=int, default=0, metavar="N", help="with --code: so many networks more")
    parser.add_argument("--keys", action="store_true", help="list kernels without a fit and count nothing")
    args = parser.parse_args()
    good = True
    if args.code:
        models = {name: model(name) for name in args.models}
        models |= {path.parent.name: path for path in sorted(TFLITE.glob("*/model.tflite")) if args.models}
        models |= drawn_models(range(args.drawn))
        near = [show_code(target_of(text), models) for text in args.targets]
        return 0 if all(near) else 1
    for target in map(target_of, args.targets):
        found: list[Compared] = []
        keys: set[str] = set()
        for name in args.models:
            try:
                if args.keys:
                    keys |= set(unfitted(compile_model(model(name), target.board)))
                else:
                    found += compare(name, model(name), target)
            except GlowcError as error:
                print(f"  {name}: {type(error).__name__}: {error}", file=sys.stderr)
        if args.keys:
            print(f"{target.board.cpu.name}: {len(keys)} kernels without a fit", *sorted(keys), sep="\n  ", flush=True)
        good &= not keys and (args.keys or show(target, found))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
