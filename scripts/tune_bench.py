#!/usr/bin/env python3
"""Say what `glowc tune` and `--opt speed` gain over the default choice. Runs as `make tune-bench`.

    scripts/tune_bench.py
    scripts/tune_bench.py --boards rpi-zero2 --models mobilenet_v3 ../shared/tflite3/ic02/model.tflite --layers

Cycles are counted on the chips of boards, each layer with all of its kernels. Printed are the cycles of the default,
what tuning and `--opt speed` change of them, and with `--layers` those layers for which tuning takes another kernel
that saves more than one percent of the model. The models are TensorFlow Lite files and networks that no cost was
measured on. The exit status is 1 where tuning gains more than 3 %, or `--opt speed` loses more than 0.5 %.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from small_nets import file_of

from glowc.board import Board, default_chip, emulated, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.machine.cycles.measure import measure_layers
from glowc.machine.execute import load_bundle, random_inputs
from glowc.machine.tune import Choice, tune_model

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"
BOARDS = ("nucleo-l4r5zi", "alif-e7", "rpi-zero2")
FILES = (
    "tflite3/ic02", "tflite3/spelling_cnn_mel_int8", "tflite3/sww", "tflite3/tinyvad_cnn_speech_mel_head16",
    "tflite/tflm_person_detect_int8", "tflite/tinymaix_cifar10_q", "tflite/tflm_micro_speech_int8",
    "tflite/microwakeword_okay_nabu", "tflite/tflm_keyword_svdf_int8",
)  # fmt: skip
MODELS = ("mobilenet_v3", "yolov8", *(str(SHARED / name / "model.tflite") for name in FILES))
MOST_GAIN, MOST_LOSS = 0.03, 0.005


def counted(path: Path, board: Board, options: CompileOptions) -> dict[str, tuple[str, float]]:
    """Return the kernel variant and the cycles of each layer of a model on the chip of a board."""
    chip, machine = default_chip(board), emulated(board)
    assert chip is not None
    assert machine is not None
    with tempfile.TemporaryDirectory(prefix="glowc-tune-bench-") as folder:
        write_bundle(compile_model(path, machine, options), Path(folder))
        info = load_bundle(Path(folder))
        layers = zip(info.report["layers"], measure_layers(info, chip, random_inputs(info)), strict=True)
        return {f"{at} {x['name']}": (x["kernel"], count.cycles) for at, (x, count) in enumerate(layers)}


def cycles(layers: dict[str, tuple[str, float]]) -> float:
    """Return the cycles of all layers."""
    return sum(taken for _, taken in layers.values())


def gains(choices: list[Choice], usual: dict[str, tuple[str, float]]) -> list[str]:
    """Return the layers that are faster with another kernel than the default by more than one percent of the model."""
    least, kernels = cycles(usual) / 100, {name.split(" ", 1)[1]: kernel for name, (kernel, _) in usual.items()}
    lines = []
    for x in choices:
        default, now = kernels.get(x.layer, "").removeprefix(f"{x.kernel}__"), x.cycles[x.chosen]
        if x.cycles.get(default, 0) - now > least:
            lines.append(f"    {x.layer}: {x.kernel} {default} {x.cycles[default]:,}, {x.chosen} {now:,}\n")
    return lines


def compare(path: Path, name: str, board: Board, *, layers: bool) -> bool:
    """Count a model in all three ways, print what they take, and return whether the choices are good enough."""
    with tempfile.TemporaryDirectory(prefix="glowc-tune-bench-") as folder:
        file = Path(folder) / "tuned.json"
        usual, fast = (counted(path, board, CompileOptions(name="net", opt=opt)) for opt in ("balanced", "speed"))
        choices = tune_model(path, board, CompileOptions(name="net"), file, lambda _: None)
        tuned = counted(path, board, CompileOptions(name="net", tuned=file))
    gain, change = 1 - cycles(tuned) / cycles(usual), cycles(fast) / cycles(usual) - 1
    print(f"{board.name:14} {cycles(usual):>12,.0f}  tune {-gain:+6.1%}  speed {change:+6.1%}  {name}", flush=True)
    print("".join(gains(choices, usual) if layers else []), end="", flush=True)
    return gain <= MOST_GAIN and change <= MOST_LOSS


def main() -> int:
    """Compare the models on the boards; the exit status is 1 when a choice is not good enough."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--boards", nargs="+", default=BOARDS)
    parser.add_argument(
        "--models", nargs="+", default=MODELS, help="files, or networks of scripts/small_nets.py, known_nets.py"
    )
    parser.add_argument("--layers", action="store_true", help="list the layers that tuning makes faster")
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="glowc-tune-bench-") as folder:
        for path, name in (file_of(model, Path(folder)) for model in args.models):
            for board in map(load_board, args.boards):
                try:
                    good &= compare(path, name, board, layers=args.layers)
                except GlowcError as error:
                    print(f"{board.name:14} {name}: {error}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
