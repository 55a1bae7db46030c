"""Models of ../shared/tflite on boards, every call against the TFLM runtime's answers: `make tflite-models`.

    python scripts/tflite_models.py [--boards host mps2-an386] [--models tflm_dtln_int8] [--calls N] [--folder DIR]

Integers must be equal, floats within 1e-5 of the largest magnitude. The status is 1 when one output differs. A model
without answers is only compiled.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from glowc.errors import GlowcError  # noqa: E402
from glowc.frontend import import_model  # noqa: E402
from tests.tflite.compare import difference  # noqa: E402

MODELS = ROOT.parent / "shared" / "tflite"
BOARDS = ("host", "mps2-an386", "mps3-an547", "linux-aarch64")
RTOL = 1e-5
Arrays = tuple[np.ndarray, ...]


def main() -> int:
    """Run all of them and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", nargs="*", default=list(BOARDS))
    parser.add_argument("--models", nargs="*", default=None)
    parser.add_argument("--calls", type=int, default=None, help="only the first calls of each")
    parser.add_argument("--folder", type=Path, default=MODELS, help="a folder for each: model, inputs, golden")
    options = parser.parse_args()
    names = options.models or sorted(p.parent.name for p in options.folder.glob("*/model.tflite"))
    wrong = 0
    for board in options.boards:
        for name in names:
            begin = time.monotonic()
            text = _run(options.folder / name, board, options.calls)
            wrong += bool(text)
            print(f"{board:14} {name:38} {text or 'equal'}  ({time.monotonic() - begin:.0f} s)", flush=True)
    count = len(names) * len(options.boards)
    print(f"{count - wrong} of {count} equal")
    return 1 if wrong else 0


def _calls(path: Path, most: int | None) -> list[Arrays]:
    """Return the arrays of every call."""
    found = np.load(path)
    roles = sorted(key for key in found.files if "litert" not in key)
    return list(zip(*(found[key][:most] for key in roles), strict=True))


def _run(folder: Path, board: str, most: int | None) -> str:
    """Return what is wrong; empty when all outputs of all calls are right."""
    try:
        graph = import_model(folder / "model.tflite")
    except GlowcError as error:
        return f"{error} ({error.hint})"
    if not (folder / "golden.npz").exists():
        return ""
    calls, want = _calls(folder / "inputs.npz", most), _calls(folder / "golden.npz", most)
    with tempfile.TemporaryDirectory(prefix="glowc-tflite-") as work:
        given, got = Path(work) / "in.npz", Path(work) / "out.npz"
        arrays = {name: np.stack([call[i] for call in calls]) for i, name in enumerate(graph.inputs)}
        np.savez(given, **arrays)
        command = [sys.executable, "-m", "glowc", "run", str(folder / "model.tflite"), "--board", board]
        done = subprocess.run([*command, "--input", str(given), "--output", str(got)], cwd=ROOT, capture_output=True,
                              text=True, check=False)  # fmt: skip
        if done.returncode:
            return (done.stdout + done.stderr).strip()[-300:]
        found = np.load(got)
        return difference(_split(found, graph.outputs), want, RTOL)


def _split(found: np.lib.npyio.NpzFile, outputs: Sequence[str]) -> list[Arrays]:
    return list(zip(*(found[name] for name in outputs), strict=True))


if __name__ == "__main__":
    sys.exit(main())
