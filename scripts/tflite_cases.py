"""Random models of one operator against the TFLM runtime, or LiteRT: `make tflite-cases`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from glowc.errors import GlowcError  # noqa: E402
from tests.tflite.cases import LITERT, MAKERS, make_case  # noqa: E402
from tests.tflite.compare import difference, lowered  # noqa: E402
from tests.tflite.runtime import Runtime, RuntimeRefusalError  # noqa: E402

EQUAL, REFUSED, DIFFERENT = "equal", "refused by the runtime", "different"


def main() -> int:
    """Compare; the exit status is 1 when one case differs or cannot be compiled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed of each operator")
    parser.add_argument("--each", type=int, default=20, help="cases of each operator")
    parser.add_argument("--only", nargs="*", help="these operators (default: all)")
    parser.add_argument("--litert", default="", metavar="PYTHON", help="LiteRT instead: a Python with ai-edge-litert")
    options = parser.parse_args()
    only = options.only or sorted(LITERT if options.litert else MAKERS)
    total = Counter[str]()
    with Runtime(options.litert) as runtime:
        for code in only:
            found = Counter(_outcome(code, seed, runtime) for seed in range(options.seed, options.seed + options.each))
            total += found
            print(f"{code:30} " + ", ".join(f"{n} {kind}" for kind, n in sorted(found.items())), flush=True)
    print(f"{len(only)} operators: " + ", ".join(f"{total[kind]:,} {kind}" for kind in (EQUAL, REFUSED, DIFFERENT)))
    return 1 if total[DIFFERENT] else 0


def _outcome(code: str, seed: int, runtime: Runtime) -> str:
    case = make_case(code, seed)
    try:
        want = runtime.run(case.model, case.calls)
    except RuntimeRefusalError:
        return REFUSED
    try:
        found = difference(lowered(case.model, case.calls), want, case.rtol)
    except GlowcError as error:
        found = str(error)
    if found:
        print(f"seed {seed}, {case.label}: {found}")
    return DIFFERENT if found else EQUAL


if __name__ == "__main__":
    sys.exit(main())
