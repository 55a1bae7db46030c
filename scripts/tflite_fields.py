"""Fields of TensorFlow Lite files cleared, moved and widened, against the TFLM runtime: `make tflite-fields`.

    python scripts/tflite_fields.py [--seed N] [--count 2000]

What the runtime answers must be glowc's answer; a file that glowc refuses needs a message.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.tflite.fields import BROKEN, DIFFERENT, tried  # noqa: E402
from tests.tflite.runtime import Runtime  # noqa: E402


def main() -> int:
    """Try them; the exit status is 1 when one differs or ends in an error that is no message."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=2000, help="how many files")
    options = parser.parse_args()
    kinds = Counter[str]()
    with Runtime() as runtime:
        for seed in range(options.seed, options.seed + options.count):
            outcome = tried(seed, runtime)
            kinds[outcome.kind] += 1
            if outcome.kind in (DIFFERENT, BROKEN):
                print(f"seed {seed}: {outcome.kind}: {outcome.text}", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:8,} {kind}")
    return 1 if kinds[DIFFERENT] or kinds[BROKEN] else 0


if __name__ == "__main__":
    sys.exit(main())
