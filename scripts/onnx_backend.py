"""Runs the node tests of the onnx package through glowc, gcc and the machine it stands on; prints the counts.

--filter TEXT   only the tests whose name contains TEXT (a regular expression)
--show WHAT     refused: list the refused tests as well; reasons: count what is not supported yet
--update        write tests/onnx_backend/counts.toml and results.json, from which docs/OPERATORS.md is made
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.onnx_backend import report, suite  # noqa: E402
from tests.onnx_backend.build import PASS  # noqa: E402
from tests.onnx_backend.cases import all_tests  # noqa: E402


def main() -> int:
    """Run, print, and fail when something is wrong or fewer tests pass than recorded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--filter", default="", help="regular expression that the name of a test must contain")
    parser.add_argument("--show", default="", help="refused (each test with its reason) or reasons (counted)")
    parser.add_argument("--update", action="store_true", help="record the counts")
    parser.add_argument("-j", "--jobs", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    tests = [t for t in all_tests() if re.search(options.filter, t.name)]
    results = suite.run_all(tests, options.jobs)
    if options.show == "reasons":
        missing = Counter((r.op, suite.short_reason(r)) for r in results if suite.is_open(r))
        for (op, reason), count in missing.most_common():
            print(f"{count:4} {op}: {reason}")
    for r in results:
        if r.outcome in suite.MUST_BE_ZERO or (options.show == r.outcome and r.outcome != PASS):
            print(f"{r.outcome}: {r.name} ({r.op}, level {r.level})\n    " + r.reason.strip().replace("\n", "\n    "))
    print(report.table(results))
    print(f"{time.monotonic() - start:.0f} s")
    if options.update and not options.filter:
        report.record(results)
    problems = report.problems(results, complete=not options.filter)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
