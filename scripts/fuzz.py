"""Random quantised networks against onnxruntime, new ones for as long as it is told: `make fuzz`.

Every network is compared in numpy, its C on the host, and now and then on a board. What differs is shrunk and written
to build/fuzz as a recipe, which belongs into tests/fuzz/cases once it is understood.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fuzz.board import check_board  # noqa: E402
from tests.fuzz.check import BUG, DIFFERENT, EXPLAINED, NOT_TAKEN, UNEXPECTED, Finding, check_c, examine  # noqa: E402
from tests.fuzz.recipe import to_json  # noqa: E402
from tests.fuzz.shrink import shrunk  # noqa: E402
from tests.fuzz.strategy import seeded  # noqa: E402

BATCH = 100


def main() -> int:
    """Fuzz; the exit status is 1 when a network was found that nothing explains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=None, help="first seed (default: the time)")
    parser.add_argument("--count", type=int, default=None, help="networks (default: as many as fit into --seconds)")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to go on without --count")
    parser.add_argument("--board", default=None, help="also run every network on this board")
    parser.add_argument("--found", type=Path, default=ROOT / "build" / "fuzz", help="where recipes of failures go")
    options = parser.parse_args()
    first = int(time.time()) * 1000 if options.first is None else options.first
    print(f"seeds from {first}")
    kinds: Counter[str] = Counter()
    failures = 0
    for seeds in batches(first, options.count, options.seconds):
        findings = run(seeds, options.board)
        for seed, finding in findings.items():
            label = f"{finding.kind}: {finding.text.split(':')[0]}" if finding.kind == EXPLAINED else finding.kind
            kinds[label] += 1
            if finding.kind in UNEXPECTED:
                failures += 1
                report(seed, finding, options.found)
        print(f"{sum(kinds.values())} networks, {failures} unexplained", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:8,} {kind}")
    return 1 if failures else 0


def batches(first: int, count: int | None, seconds: float) -> Iterator[range]:
    """Yield ranges of seeds until `count` networks, or `seconds`, are over."""
    end, at = time.monotonic() + seconds, first
    while at < first + count if count is not None else time.monotonic() < end:
        stop = at + BATCH if count is None else min(at + BATCH, first + count)
        yield range(at, stop)
        at = stop


def run(seeds: range, board: str | None) -> dict[int, Finding]:
    """Return what became of each network: in numpy, in C on the host, on the board."""
    recipes = {seed: seeded(seed)[0] for seed in seeds}
    findings = {seed: examine(recipe) for seed, recipe in recipes.items()}
    with tempfile.TemporaryDirectory(prefix="glowc-fuzz-") as work:
        findings |= check_c(recipes, findings, Path(work))
        for seed, finding in findings.items() if board is not None else ():
            if finding.codes is not None:
                findings[seed] = check_board(finding, board or "", Path(work)) or finding
    return findings


def report(seed: int, finding: Finding, folder: Path) -> None:
    """Print a failure and write its recipe, shrunk where it shows without C."""
    recipe, rolled = seeded(seed)
    print(f"seed {seed}: {finding.kind}: {finding.text[-600:]}")
    if finding.kind in (BUG, DIFFERENT, NOT_TAKEN):
        try:
            recipe = shrunk(rolled, lambda r: examine(r).kind == finding.kind) or recipe
        except Exception:  # the shrinker is a help, not a judge
            traceback.print_exc()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{seed}.json"
    path.write_text(to_json(recipe) + "\n")
    print(f"  written to {path}: {', '.join(layer.op for layer in recipe.layers)}")


if __name__ == "__main__":
    sys.exit(main())
