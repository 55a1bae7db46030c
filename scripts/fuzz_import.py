"""Mutated models through the compiler, for as long as it is told: `make fuzz-import`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fuzz.importing import GOOD, run_mutants  # noqa: E402

BATCH = 60


def main() -> int:
    """Fuzz; the exit status is 1 when a mutant ended in anything but a bundle or a message."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=None, help="first seed (default: the time)")
    parser.add_argument("--count", type=int, default=None, help="mutants (default: as many as fit into --seconds)")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to go on without --count")
    parser.add_argument("--found", type=Path, default=ROOT / "build" / "fuzz-import", help="where bad mutants go")
    options = parser.parse_args()
    first = at = int(time.time()) * 1000 if options.first is None else options.first
    print(f"seeds from {first}")
    end, kinds = time.monotonic() + options.seconds, Counter[str]()
    while at < first + options.count if options.count is not None else time.monotonic() < end:
        stop = at + BATCH if options.count is None else min(at + BATCH, first + options.count)
        with tempfile.TemporaryDirectory(prefix="glowc-mutants-") as folder:
            for mutant in run_mutants(range(at, stop), Path(folder)):
                kinds[mutant.outcome] += 1
                if mutant.outcome not in GOOD:
                    print(
                        f"seed {mutant.seed}: {mutant.outcome} of {mutant.origin} {mutant.changes} for {mutant.board}"
                    )
                    print("  " + mutant.text.strip()[-900:].replace("\n", "\n  "), flush=True)
                    options.found.mkdir(parents=True, exist_ok=True)
                    name = f"m{mutant.seed}"
                    shutil.copyfile(Path(folder) / name / f"{name}.onnx", options.found / f"{name}.onnx")
        at = stop
    for kind, count in kinds.most_common():
        print(f"{count:8,} {kind}")
    return 1 if set(kinds) - GOOD else 0


if __name__ == "__main__":
    sys.exit(main())
