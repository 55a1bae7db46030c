"""Damaged TensorFlow Lite files through the compiler: each a bundle or a message (`make tflite-mutants`)."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fuzz.importing import GOOD  # noqa: E402
from tests.tflite.mutants import run_damaged  # noqa: E402

BATCH = 60


def main() -> int:
    """Try them; the exit status is 1 when one ended in anything but a bundle or a message."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=2000, help="how many files")
    parser.add_argument("--found", type=Path, default=ROOT / "build" / "tflite-mutants", help="where bad ones go")
    options = parser.parse_args()
    kinds = Counter[str]()
    for first in range(options.seed, options.seed + options.count, BATCH):
        seeds = range(first, min(first + BATCH, options.seed + options.count))
        with tempfile.TemporaryDirectory(prefix="glowc-mutants-") as folder:
            for mutant in run_damaged(seeds, Path(folder)):
                kinds[mutant.outcome] += 1
                if mutant.outcome in GOOD:
                    continue
                print(f"seed {mutant.seed}: {mutant.outcome} of {mutant.origin} {mutant.changes} for {mutant.board}")
                print("  " + mutant.text.strip()[-900:].replace("\n", "\n  "), flush=True)
                options.found.mkdir(parents=True, exist_ok=True)
                name = f"m{mutant.seed}"
                shutil.copyfile(Path(folder) / name / f"{name}.tflite", options.found / f"{name}.tflite")
    for kind, count in kinds.most_common():
        print(f"{count:8,} {kind}")
    return 1 if set(kinds) - GOOD else 0


if __name__ == "__main__":
    sys.exit(main())
