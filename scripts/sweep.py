"""Compiles models for every CPU with every value of every option, and the C with all warnings as errors: `make sweep`.

    python scripts/sweep.py                     the whole product (hours)
    python scripts/sweep.py --count 200 --seed 7 a sample of it

Nothing runs. Every C file becomes an object of its own. What the objects lack together may only be the C library's
memory functions, libm's, and what the compiler calls by itself. A refusal with a reason is fine, an internal error
is not.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, get_args, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from glowc.board import Board, load_board  # noqa: E402
from glowc.board.checked import OneOf  # noqa: E402
from glowc.board.load import board_names  # noqa: E402
from glowc.compiler.options import CompileOptions  # noqa: E402
from glowc.compiler.pipeline import compile_model, write_bundle  # noqa: E402
from glowc.errors import GlowcError, InternalError  # noqa: E402

STRICT = ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Wvla", "-Werror")
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
_FROM_OUTSIDE = ("mem", "__", "_GLOBAL_OFFSET", "glow_cores_", "pthread_", "sched_", "sysconf")
_NUMBERS: tuple[dict[str, object], ...] = ({"cores": 2}, {"slice": "200000"})
BUILT, REFUSED, BUG, DOES_NOT_BUILD = "built", "refused", "internal error", "does not build"


class Case(NamedTuple):
    """A model for a CPU of a board with one option that is not the default's, compiled at a level."""

    model: Path
    board: str
    cpu: str
    option: Mapping[str, object]
    level: str


def option_values() -> list[dict[str, object]]:
    """Return the default, every other value of every option that has a list, and some numbers, one at a time."""
    hints = get_type_hints(CompileOptions, include_extras=True)
    plain = CompileOptions()
    found: list[dict[str, object]] = [{}, *_NUMBERS]
    for name, hint in hints.items():
        kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        listed = next((a.words for a in marks if isinstance(a, OneOf)), ())
        words: tuple[object, ...] = (False, True) if kind is bool else listed
        found += [{name: word} for word in words if word != getattr(plain, name)]
    return found


def cpus() -> list[tuple[str, str]]:
    """Return (board, CPU) with one board for every CPU that has one."""
    pairs = {cpu: name for name in reversed(board_names()) for cpu in load_board(name).cpus}
    return sorted((board, cpu) for cpu, board in pairs.items())


def models(folder: Path) -> list[Path]:
    """Return the sample models beside the project where they are, else those of its examples."""
    shared = sorted((*folder.glob("models/*/model.onnx"), *folder.glob("tflite/*/model.tflite")))
    return shared or sorted((*ROOT.glob("examples/*/*.onnx"), *ROOT.glob("examples/*/*.tflite")))


def product(paths: Sequence[Path]) -> list[Case]:
    """Return every case; the level changes from one to the next."""
    pairs = itertools.product(paths, cpus(), option_values())
    return [Case(m, b, c, o, level) for (m, (b, c), o), level in zip(pairs, itertools.cycle(LEVELS), strict=False)]


def attempt(case: Case, work: Path) -> tuple[str, str]:
    """Return what became of a case, and why."""
    board = load_board(case.board, case.cpu)
    try:
        compiled = compile_model(case.model, board, CompileOptions(name="net", **case.option))  # type: ignore[arg-type]
        write_bundle(compiled, work, force=True)
    except InternalError as error:
        return BUG, str(error)
    except GlowcError as error:
        return REFUSED, str(error)
    except Exception as error:
        return BUG, f"{type(error).__name__}: {error}"
    wrong = wrong_c(sorted((*work.rglob("*.c"), *work.rglob("*.S"))), work, board, case.level)
    return (DOES_NOT_BUILD, wrong) if wrong else (BUILT, "")


def wrong_c(sources: Sequence[Path], work: Path, board: Board, level: str) -> str:
    """Return what the compiler says of files, or which symbols they and the objects lack; nothing if all is well."""
    folders = [f"-I{folder}" for folder in sorted({path.parent for path in work.rglob("*.h")})]
    objects = [str(path) for path in work.rglob("*.o")]
    for n, source in enumerate(sources):
        made = work / f"sweep{n}.obj"
        argv = [board.cpu.cc, *board.cpu.cflags, *STRICT, level, *folders, "-c", str(source), "-o", str(made)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{source.name}: {done.stderr[-1500:]}"
        objects.append(str(made))
    lacking = [name for name in _lacking(board, objects) if not name.startswith(_FROM_OUTSIDE)]
    return f"lacks {', '.join(lacking)}" if lacking and not _are_of_libm(lacking) else ""


def _lacking(board: Board, objects: Sequence[str]) -> list[str]:
    nm = board.cpu.cc.replace("gcc", "nm") if "gcc" in board.cpu.cc else "nm"
    text = subprocess.run([nm, "-P", *objects], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in text.splitlines() if len(line.split()) > 1]
    defined = {row[0] for row in rows if row[1] != "U"}
    return sorted({row[0] for row in rows if row[1] == "U"} - defined)


def _are_of_libm(names: Sequence[str]) -> bool:
    """Say whether libm has them all: a name and f for float."""
    import math

    bases = [name.removesuffix("f") for name in names]
    return all(hasattr(math, base) or base in ("rint", "nearbyint", "round", "fabs", "fmin", "fmax") for base in bases)


def sampled(cases: Sequence[Case], count: int | None, seed: int) -> Iterator[Case]:
    """Yield all cases, or `count` of them."""
    yield from cases if count is None else random.Random(seed).sample(cases, min(count, len(cases)))


def main() -> int:
    """Sweep; the exit status is 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=None, help="cases (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared", help="folder of models/ and tflite/")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    for case in sampled(product(models(options.models)), options.count, options.seed):
        with tempfile.TemporaryDirectory(prefix="glowc-sweep-") as work:
            kind, why = attempt(case, Path(work))
        kinds[kind] += 1
        if kind in (BUG, DOES_NOT_BUILD):
            label = os.path.relpath(case.model, ROOT)
            print(f"{label} {case.cpu} {dict(case.option)} {case.level}: {kind}: {why}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    return int(bool(kinds[BUG] + kinds[DOES_NOT_BUILD]))


if __name__ == "__main__":
    sys.exit(main())
