"""The same matrix on two local processes and on two Dask workers, row by row: `make matrix-proof`.

    python scripts/matrix_proof.py [--models ../shared/models] [--boards host mps2-an386] [--resume]

Every folder of --models with a model.onnx and an inputs.npz is a row on every board. All that a cell says must be equal
but its seconds. Results are in build/matrix-proof; --resume goes on from those that are there. The status is 1 when a
row differs, 3 when a cell is different or failed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from distributed import LocalCluster

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from glowc.machine.matrix import Result  # noqa: E402

BOARDS = ("host", "mps2-an386", "mps3-an547", "linux-aarch64")
WORKERS = 2
Rows = dict[str, Result]


def main() -> int:
    """Run both, print the table and the rows that differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models")
    parser.add_argument("--boards", nargs="*", default=list(BOARDS))
    parser.add_argument("--resume", action="store_true", help="leave out what is done")
    options = parser.parse_args()
    build = ROOT / "build" / "matrix-proof"
    argv = ["--models", str(_copies(options.models, build / "models")), "--boards", ",".join(options.boards)]
    argv += ["--data", "inputs.npz", "--resume" if options.resume else "--restart"]
    here = _matrix("two processes", [*argv, "-o", str(build / "here.sqlite"), "--jobs", str(WORKERS)])
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster:
        argv += ["--scheduler", cluster.scheduler_address]
        there = _matrix("two workers", [*argv, "-o", str(build / "there.sqlite")])
    differ = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
    for key in differ:
        print(f"differs:\n  here  {here.get(key)}\n  there {there.get(key)}")
    _table(list(here.values()), options.boards)
    print(f"{len(here) - len(differ)} of {len(here)} rows are the same")
    bad = any(row["status"] in ("different", "failed") for row in here.values())
    return 1 if differ else 3 if bad else 0


def _copies(models: Path, folder: Path) -> Path:
    """Copy what is used, so that other forms of a model beside it are no rows."""
    shutil.rmtree(folder, ignore_errors=True)
    for model in sorted(models.glob("*/model.onnx")):
        own = folder / model.parent.name
        own.mkdir(parents=True, exist_ok=True)
        for name in ("model.onnx", "inputs.npz"):
            shutil.copyfile(model.parent / name, own / name)
    return folder


def _matrix(title: str, argv: Sequence[str]) -> Rows:
    """Run `glowc matrix` and return its results by key, with no seconds."""
    begin = time.monotonic()
    argv = [sys.executable, "-m", "glowc", "matrix", *argv, "--json"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(done.returncode)
    said = json.loads(done.stdout)
    cells = sum(row["seconds"] for row in said["results"])
    took = time.monotonic() - begin
    print(f"{title}: {said['cells']} cells, {said['ran']} ran now in {took:.0f} s; {cells:.0f} s in cells", flush=True)
    for row in said["results"]:
        row["seconds"] = 0.0
    return {row["key"]: row for row in said["results"]}


def _table(rows: Sequence[Result], boards: Sequence[str]) -> None:
    for board in boards:
        counts = Counter(row["status"] for row in rows if row["board"] == board)
        shares = [row["equal_share"] for row in rows if row["board"] == board and row["equal_share"] is not None]
        exact = sum(share == 1.0 for share in shares)
        states = ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
        print(f"{board:14} {states}; outputs equal to the byte in {exact} of {len(shares)}")
    for row in rows:
        if row["status"] != "done":
            print(f"{row['name']} on {row['board']}: {row['status']}: {row['message']}")


if __name__ == "__main__":
    sys.exit(main())
