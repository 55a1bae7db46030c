"""Sound to detection on modeled chips: milliseconds of a run and bytes of the arena of words of examples/wake-word.

MLPerf Tiny's network is a file of the user's; words whose network is not there are left out, by name.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples" / "wake-word"))

import demo  # noqa: E402  # of that folder

_BOARDS = ("mps2-an386", "mps2-an505")


def measured(word: demo.Word, board: str, folder: Path) -> Mapping[str, Any]:
    """Return what `glowc bench` says of a word's bundle on a board; `heard_ms` is the sound of a run."""
    made = demo.firmware(word, board, folder)
    report = json.loads(demo.glowc("bench", made.image.parent / "word", "--board", board, "--json"))
    return {**report, "heard_ms": made.run_ms}


def words(marvin: Path) -> list[demo.Word]:
    """Return the words for microcontrollers whose networks are there."""
    found = []
    for make in (demo.okay_nabu, lambda: demo.marvin(marvin)):
        try:
            found.append(make())
        except demo.DemoError as error:
            print(f"left out: {error}", file=sys.stderr)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each word and chip."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = ROOT.parent / "shared" / "tflite3" / "sww" / "model.tflite"
    parser.add_argument("--marvin", type=Path, default=default, help="MLPerf Tiny's str_ww_ref_model.tflite")
    options = parser.parse_args(arguments)
    print("| word | chip | sound of a run, ms | run, ms | cycles | arena bytes |\n|---|---|---|---|---|---|")
    for word in words(options.marvin):
        for board in _BOARDS:
            with tempfile.TemporaryDirectory() as folder:
                r = measured(word, board, Path(folder))
            chip = r["chip"]["name"]
            print(
                f"| {word.said} | {chip} | {r['heard_ms']:g} | {r['ms']:.2f} | {r['cycles']:,} | {r['arena_bytes']:,} |"
            )


if __name__ == "__main__":
    main()
