"""Layers with codes of 4 bits by blocks (MatMulNBits): instructions of a multiply-accumulate, portable C and vectors.

    scripts/bench_blocks.py
    scripts/bench_blocks.py --cpu cortex-a53 --nets blocks blocks_32

QEMU counts on linux-aarch64. `make bench-blocks` also prints the time on this machine (bench_host.py).
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from bench_wide import instructions_of
from known_nets import NETS

from glowc.board import load_board

_PLAIN = frozenset({"dot", "i8mm", "neon", "sve2"})


def main() -> None:
    """Print a line for each net and CPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", nargs="+", default=["cortex-a53", "cortex-a76"])
    parser.add_argument("--nets", nargs="+", default=["blocks", "blocks_4"], help="of scripts/known_nets.py")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="glowc-blocks-") as folder:
        for net in args.nets:
            model = Path(folder) / f"{net}.onnx"
            NETS[net](model)
            macs = 3 * 2048 * 2048 * int(net.partition("_")[2] or 1)
            for cpu in args.cpu:
                board = load_board("linux-aarch64", cpu)
                plain = replace(board, cpu=replace(board.cpu, features=board.cpu.features - _PLAIN))
                work = Path(folder) / f"{net}-{cpu}"
                before, after = (instructions_of(model, b, work / str(i)) / macs for i, b in enumerate((plain, board)))
                print(f"{net:10} {cpu:12} instructions a MAC: portable C {before:.2f}, vectors {after:.2f}", flush=True)


if __name__ == "__main__":
    main()
