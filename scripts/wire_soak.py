"""Inferences over a line that damages one frame in a hundred, on a board that is reset at random: `make wire-soak`.

Every output is compared with what the bundle gives on this machine. Prints how much was asked again; ends with 1 when
an inference was lost or wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.wire.soak import soak  # noqa: E402


def main() -> int:
    """Run the inferences and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inferences", type=int, default=10_000)
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = soak(args.board, Path(folder), args.inferences, random.Random(args.seed))
    took_s = time.monotonic() - start
    told = f"{found.inferences} inferences on {args.board} in {took_s:.0f} s, {found.wrong} wrong"
    line = f"{found.spoiled} of {found.frames} frames damaged or lost, {found.asked_again} asked again"
    print(f"seed {args.seed}: {told}; {line}; {found.resets} resets")
    return int(found.wrong > 0 or found.inferences != args.inferences)


if __name__ == "__main__":
    sys.exit(main())
