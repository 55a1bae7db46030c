"""Large models of random weights through `glowc compile` and the C compiler: seconds and memory of each step.

Networks are those of scripts/known_nets.py: `resnet50` in int8 has 25.6 M weights, `wide`, a chain of fully connected
layers, 54 MB of them, and `deep` 4,000 convolutions of few channels. A step is a process of its own: its seconds are
those of the clock, its memory is the largest that it or a child of it had.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from known_nets import NETS


def measured(argv: Sequence[str]) -> tuple[float, float, int]:
    """Run a command; return its seconds by the clock, those of processors, and its most bytes of memory."""
    begin = time.perf_counter()
    process = os.posix_spawn(argv[0], argv, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(f"error: {' '.join(argv)}")
    seconds = time.perf_counter() - begin
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> None:
    """Print a line for each step of each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(NETS)} (default: resnet50, wide, deep)")
    parser.add_argument("--board", default="virt-a53")
    parser.add_argument("--weights", help="the form of the constants (default: what glowc takes)")
    parser.add_argument("--keep", type=Path, help="folder for models and bundles")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="glowc-large-") as temporary:
        work = args.keep or Path(temporary)
        for name in args.models or ("resnet50", "wide", "deep"):
            path, bundle = work / f"{name}.onnx", work / name
            if not path.exists():
                NETS[name](path)
            more = ["--weights", args.weights] if args.weights else []
            glowc = [sys.executable, "-m", "glowc", "-q"]
            steps = {
                "glowc compile": ["compile", str(path), "--board", args.board, *more, "-o", str(bundle)],
                "glowc build": ["build", str(bundle), "-o", str(work / f"{name}.elf")],
            }
            for step, arguments in steps.items():
                clock, cpu, memory = measured([*glowc, *arguments])
                size = path.stat().st_size
                print(f"{name:10} {size / 1e6:6.1f} MB  {step:14} {clock:6.1f} s, {cpu:6.1f} s of CPU, "
                      f"{memory / 1e6:7.0f} MB = {memory / size:4.1f} x model")  # fmt: skip


if __name__ == "__main__":
    main()
