"""Compiles every model for every board in one process: what codegen_diff.sh runs once per tree.

    PYTHONPATH=TREE python scripts/compile_all.py OUT "BOARD ..." MODEL ...

Each pair is `glowc compile` of the glowc in TREE, which starts only once. The bundle goes to OUT/MODEL-BOARD/bundle;
where glowc refuses the model, what it says goes to error.txt beside it. OPTIONS in the environment are further options.
"""

from __future__ import annotations

import io
import os
import runpy
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path


def compiles(model: Path, board: Path, out: Path) -> str:
    """Write the bundle of a model to `out`; return what glowc says where it refuses, else nothing."""
    said = io.StringIO()
    options = os.environ.get("OPTIONS", "").split()
    sys.argv = ["glowc", "compile", str(model), "--board", str(board), "-o", str(out), *options]
    try:
        with redirect_stdout(said), redirect_stderr(said):
            runpy.run_module("glowc", run_name="__main__")
    except SystemExit as end:
        return said.getvalue() + (end.code if isinstance(end.code, str) else "") if end.code else ""
    except Exception:
        return traceback.format_exc()
    return ""


def main() -> None:
    """Compile all pairs of the command line."""
    out, boards, models = Path(sys.argv[1]), sys.argv[2].split(), [Path(name) for name in sys.argv[3:]]
    for model in models:
        for board in map(Path, boards):
            folder = out / "-".join((*model.with_suffix("").parts[-3:], board.name))
            folder.mkdir(parents=True)
            error = compiles(model, board, folder / "bundle")
            if error:
                (folder / "error.txt").write_text(error.replace(str(out), "OUT"))


if __name__ == "__main__":
    main()
