"""Shows machine code that stands twice in the objects of a bundle.

    python scripts/twice.py                                   every sample model, for a board of every CPU
    python scripts/twice.py --boards mps2-an386 --models M    some of them
    python scripts/twice.py --runs                            also what functions share that are not equal

Code stands twice where two functions of at least 64 bytes are equal but for what they refer to: every function is
compiled to a section of its own, so that calls are references. Exit status 1 when there is any. Tiles of different
sizes share runs of instructions, which --runs shows: those of at least 64 bytes that refer to the same.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from glowc.board import Board, load_board, require_tool  # noqa: E402
from glowc.board.load import board_names  # noqa: E402
from glowc.compiler.options import CompileOptions  # noqa: E402
from glowc.compiler.pipeline import compile_model, write_bundle  # noqa: E402
from glowc.errors import GlowcError  # noqa: E402
from glowc.machine.execute import load_bundle  # noqa: E402
from glowc.machine.link import build_elf  # noqa: E402

LEAST = 64  # bytes; shorter functions are calls of others, shorter runs are how functions begin and end
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_CODE = re.compile(r"^\s*[0-9a-f]+:\t((?:[0-9a-f]{2,8} )+)")
_REFERENCE = re.compile(r"^\s*[0-9a-f]+: (R_\S+\s+\S+)")


class Code(NamedTuple):
    """An instruction of a function, or data between them: its bytes in hexadecimal, and what it refers to."""

    raw: str
    reference: str = ""

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return len(self.raw) // 2


class Twice(NamedTuple):
    """`size` bytes of function `name` that function `first` has too."""

    name: str
    first: str
    size: int

    def __str__(self) -> str:
        return f"{self.size} bytes of {self.name} are in {self.first} too"


def functions(listing: Iterable[str]) -> dict[str, list[Code]]:
    """Return the code of every function of an object, from what `objdump -dr` prints."""
    found: dict[str, list[Code]] = {}
    body: list[Code] = []
    for line in listing:
        if named := _FUNCTION.match(line):
            body = found.setdefault(named[1], [])
        elif code := _CODE.match(line):
            body.append(Code(code[1].replace(" ", "")))
        elif (reference := _REFERENCE.match(line)) and body:
            body[-1] = body[-1]._replace(reference=body[-1].reference + " ".join(reference[1].split()))
    return found


def runs(body: Sequence[Code]) -> Iterator[tuple[int, tuple[Code, ...]]]:
    """Yield (place of the first, instructions) of the shortest runs of LEAST bytes or more."""
    end = size = 0
    for begin, first in enumerate(body):
        while size < LEAST and end < len(body):
            size, end = size + body[end].size, end + 1
        if size < LEAST:
            return
        yield begin, tuple(body[begin:end])
        size -= first.size


def equal(bodies: dict[str, list[Code]]) -> list[Twice]:
    """Return the functions that are equal to one before them but for what they refer to."""
    seen: dict[tuple[str, ...], str] = {}
    found = []
    for name, body in bodies.items():
        size = sum(code.size for code in body)
        first = seen.setdefault(tuple(code.raw for code in body), name)
        if first != name and size >= LEAST:
            found.append(Twice(name, first, size))
    return found


def shared_runs(bodies: dict[str, list[Code]]) -> list[Twice]:
    """Return the runs of functions that one before them has too, by pairs of functions."""
    seen: dict[tuple[Code, ...], str] = {}
    shared: dict[tuple[str, str], set[int]] = {}
    for name, body in bodies.items():
        for begin, run in runs(body):
            first = seen.setdefault(run, name)
            if first != name:
                shared.setdefault((name, first), set()).update(range(begin, begin + len(run)))
    return [Twice(n, first, sum(bodies[n][i].size for i in places)) for (n, first), places in shared.items()]


def of_bundle(folder: Path, board: Board) -> dict[str, list[Code]]:
    """Return the functions in the objects of a bundle."""
    info = load_bundle(folder)
    found: dict[str, list[Code]] = {}
    with tempfile.TemporaryDirectory(prefix="glowc-twice-") as work:
        built = build_elf(info.sources, board, Path(work) / "out.elf", include_dirs=[info.include_dir],
                          opt=info.optimisation, link=False)  # fmt: skip
        objdump = str(require_tool(f"{board.cpu.tool_prefix}objdump"))
        for path in sorted(built.path.glob("*.o")):
            listing = subprocess.run([objdump, "-drw", str(path)], capture_output=True, text=True, check=True).stdout
            found |= functions(listing.splitlines())
    return found


def of_model(model: Path, board: Board) -> dict[str, list[Code]]:
    """Return the functions in a model's objects for a board. Raises GlowcError where there is no bundle."""
    with tempfile.TemporaryDirectory(prefix="glowc-twice-") as folder:
        write_bundle(compile_model(model, board, CompileOptions()), Path(folder) / "bundle")
        return of_bundle(Path(folder) / "bundle", board)


def boards() -> list[str]:
    """Return one board for every CPU that has one as its default."""
    return sorted({load_board(name).cpu.name: name for name in reversed(board_names())}.values())


def samples() -> list[Path]:
    """Return the sample models beside the project where they are, else those of its examples."""
    shared = ROOT.parent / "shared"
    found = sorted((*shared.glob("models/*/model.onnx"), *shared.glob("tflite/*/model.tflite")))
    return found or sorted((*ROOT.glob("examples/*/*.onnx"), *ROOT.glob("examples/*/*.tflite")))


def main() -> int:
    """Print what stands twice; 1 when anything does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", nargs="+", default=boards(), metavar="BOARD")
    parser.add_argument("--models", nargs="+", type=Path, default=samples(), metavar="MODEL")
    parser.add_argument("--runs", action="store_true")
    options = parser.parse_args()
    bundles = wrong = 0
    for model in options.models:
        for board in map(load_board, options.boards):
            try:
                bodies = of_model(model, board)
            except GlowcError as error:
                print(f"{model.parent.name} {board.name}: {error.message.splitlines()[0]}", flush=True)
                continue
            found = equal(bodies)
            bundles, wrong = bundles + 1, wrong + bool(found)
            for line in (*found, *(shared_runs(bodies) if options.runs else ())):
                print(f"{model.parent.name} {board.name}: {line}", flush=True)
    print(f"twice: code stands twice in {wrong} of {bundles} bundles")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
