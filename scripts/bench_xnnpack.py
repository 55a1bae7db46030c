"""Instructions of an inference on Cortex-A53 and A76: glowc compared with LiteRT and its XNNPACK, with one thread.

    scripts/xnnpack_nets.py nets
    scripts/bench_xnnpack.py ROOT nets/*.tflite

ROOT is a folder with Python 3.11 and LiteRT for arm64; docs/OPPONENTS.md tells how to fill it. QEMU counts both.
XNNPACK chooses kernels by the kind of CPU in /proc/cpuinfo, for which QEMU takes the file in ROOT.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from bench_wide import instructions_of
from known_nets import model_of

from glowc.board import load_board
from glowc.machine.qemu import compiled_plugin

_PARTS = {"cortex-a53": "0xd03", "cortex-a76": "0xd0b"}  # MIDR_EL1.PartNum (the cores' technical reference manuals)
_CPUINFO = "processor: 0\nCPU implementer: 0x41\nCPU architecture: 8\nCPU variant: 0x0\nCPU part: {}\nCPU revision: 0\n"
_MARK = "Py_GetCopyright"  # a function of the interpreter that nothing else calls
_GUEST = f"""
import ctypes, sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter

mark, rng = ctypes.pythonapi.{_MARK}, np.random.default_rng(0)
net = Interpreter(sys.argv[1], num_threads=1)
net.allocate_tensors()
for port in net.get_input_details():
    low, high = (-128, 128) if port["dtype"] == np.int8 else (-1, 1)
    net.set_tensor(port["index"], rng.uniform(low, high, port["shape"]).astype(port["dtype"]))
net.invoke()
mark()
mark()
net.invoke()
mark()
"""


def _mark_of(python: Path) -> str:
    lines = subprocess.check_output(["aarch64-linux-gnu-nm", "-D", python], text=True).splitlines()
    return next(f"0x{line.split()[0]}" for line in lines if line.endswith(f" {_MARK}"))


def theirs(root: Path, model: Path, cpu: str, marks: Path) -> int:
    """Return the instructions that LiteRT takes for the second inference of a model."""
    python, info = root / "usr/bin/python3.11", root / "proc/cpuinfo"
    info.parent.mkdir(exist_ok=True)
    info.write_text(_CPUINFO.format(_PARTS[cpu]))
    plugin = f"{compiled_plugin('glow_count')},mark={_mark_of(python)},out={marks}"
    argv: list[str | Path] = ["qemu-aarch64", "-cpu", cpu, "-L", root, "-plugin", plugin]
    argv += [python, "-S", "-B", "-c", _GUEST, model]
    subprocess.run(argv, check=True, env=os.environ | {"PYTHONPATH": str(root / "site")}, stderr=subprocess.DEVNULL)
    empty, begin, end = (int(count) for count in marks.read_text().split())
    return end - begin - (begin - empty)


def line(root: Path, model: Path, work: Path) -> str:
    """Return glowc / LiteRT for each CPU, as a row of a table."""
    cells = [model_of(str(model), work)[1]]
    for cpu in _PARTS:
        own = instructions_of(model, load_board("linux-aarch64", cpu), work / cpu)
        cells.append(f"{own / 1e6:.2f} / {theirs(root, model, cpu, work / 'marks') / 1e6:.2f} M")
    return " | ".join(cells)


def main() -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, metavar="ROOT")
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL.tflite")
    args = parser.parse_args()
    for model in args.models:
        with tempfile.TemporaryDirectory(prefix="glowc-xnnpack-") as folder:
            print(f"| {line(args.root.resolve(), model, Path(folder))} |", flush=True)


if __name__ == "__main__":
    main()
