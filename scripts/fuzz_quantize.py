"""Random float networks and data of every kind through `glowc quantize`: `make fuzz-quantize`.

The file that is written must mean the same to onnxruntime, to glowc's passes in numpy and to the C on the host, its
error must be within reason, and what the quantiser refuses it must say in a sentence. What is not so is printed with
its seed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.fuzz import batches  # noqa: E402
from tests.fuzz.check import EXPLAINED, UNEXPECTED, Finding  # noqa: E402
from tests.fuzz.check_quantise import INACCURATE, check_quantised_c, examine_quantised  # noqa: E402
from tests.fuzz.dice import Dice  # noqa: E402
from tests.fuzz.floats import FloatCase, draw_case  # noqa: E402


def main() -> int:
    """Fuzz; the exit status is 1 when something was found that nothing explains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=None, help="first seed (default: the time)")
    parser.add_argument("--count", type=int, default=None, help="networks (default: as many as fit into --seconds)")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to go on without --count")
    options = parser.parse_args()
    first = int(time.time()) * 1000 if options.first is None else options.first
    print(f"seeds from {first}")
    kinds: Counter[str] = Counter()
    failures = 0
    for seeds in batches(first, options.count, options.seconds):
        for seed, (case, finding) in run(seeds).items():
            kinds[_label(finding)] += 1
            if finding.kind in UNEXPECTED | {INACCURATE}:
                failures += 1
                ops = ", ".join(layer.op for layer in case.recipe.layers)
                print(f"seed {seed}, {case.data} data, {ops}: {finding.kind}\n{finding.text[-1500:]}", flush=True)
        print(f"{sum(kinds.values())} networks, {failures} unexplained", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:8,} {kind}")
    return 1 if failures else 0


def run(seeds: range) -> dict[int, tuple[FloatCase, Finding]]:
    """Return what became of each network."""
    cases = {seed: draw_case(Dice(random.Random(seed).randint)) for seed in seeds}
    findings = {seed: examine_quantised(case) for seed, case in cases.items()}
    with tempfile.TemporaryDirectory(prefix="glowc-fuzz-") as work:
        findings |= check_quantised_c(findings, Path(work))
    return {seed: (cases[seed], finding) for seed, finding in findings.items()}


def _label(finding: Finding) -> str:
    """Return what became of a network, without names and numbers."""
    text = re.sub(r"'[^']*' |[0-9,]+", "", finding.text)
    return f"{finding.kind}: {text[:60]}" if finding.kind == EXPLAINED else finding.kind


if __name__ == "__main__":
    sys.exit(main())
