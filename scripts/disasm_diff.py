"""Compares the machine code of two trees' bundles: what codegen_diff.sh runs in place of diff for `make disasm-diff`.

    python scripts/disasm_diff.py BASE THIS

BASE and THIS hold the bundles of compile_all.py. Each NAME.c that is not the same text (comments and spaces apart) is
compiled by the bundle's CPU's gcc with -O2, and what objdump lists of code and constants is compared, without
addresses. Exit status 1 when any instruction differs.

gcc breaks ties, such as which operand of a compare comes first, by numbers that it gives to variables and labels: code
that never runs changes those numbers. The count of instructions tells such a difference from a real one.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CPUS = Path(__file__).resolve().parent.parent / "boards" / "_cpu"
FLAGS = ("-std=c11", "-O2", "-g0", "-w")
# Strings before comments: a string may contain what looks like one.
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|/\*.*?\*/|//[^\n]*', re.DOTALL)
INSTRUCTION = re.compile(r"[a-z][\w.]*(\t|$)")
# Places that move with every instruction before them: shown they would hide what differs.
PLACE = re.compile(r"(?<=\[pc, #)-?\d+|\+0x[0-9a-f]+(?=>)|\s*(@|//) .*$|; 0x.*$")
ADDRESS = re.compile(r"^\s*[0-9a-f]+:\s*|\b[0-9a-f]+ (?=<)|\s*@ \(.*\)$")


def tokens(text: str) -> str:
    """Return C text without comments and spaces."""
    return " ".join(COMMENT.sub(lambda match: match[1] or " ", text).split())


def same_text(a: Path, b: Path) -> bool:
    """Say whether the files of two bundles that model.c is made of are the same, comments and spaces apart."""
    names = sorted(path.name for path in a.glob("*.[ch]"))
    if names != sorted(path.name for path in b.glob("*.[ch]")):
        return False
    return all(tokens((a / name).read_text()) == tokens((b / name).read_text()) for name in names)


def listing(bundle: Path) -> list[str]:
    """Return what a bundle's NAME.c is as machine code; its constants as bytes."""
    report = json.loads((bundle / "report.json").read_text())
    cpu = tomllib.loads((CPUS / f"{report['cpu']}.toml").read_text())
    with tempfile.TemporaryDirectory() as folder:
        command = [cpu["cc"], *cpu["cflags"], *FLAGS, "-c", f"{report['model']}.c", "-o", f"{folder}/out.o"]
        done = subprocess.run(command, cwd=bundle, capture_output=True, text=True)
        if done.returncode:
            return done.stderr.splitlines()
        objdump = re.sub("gcc$", "objdump", cpu["cc"])
        code = _objdump(objdump, "-dr", "--no-show-raw-insn", f"{folder}/out.o")
        data = _objdump(objdump, "-sr", "-j.rodata", "-j.data.rel.ro.local", f"{folder}/out.o")
    return [ADDRESS.sub("", line).rstrip() for line in code] + data


def instructions(lines: list[str]) -> int:
    """Return how many instructions a listing has."""
    return sum(bool(INSTRUCTION.match(line)) for line in lines)


def _objdump(tool: str, *arguments: str) -> list[str]:
    """Return what objdump prints, without the name of the file; it complains where a section is missing."""
    done = subprocess.run([tool, *arguments], capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if "file format" not in line]


def compare(pair: tuple[Path, Path]) -> tuple[str, list[str], bool]:
    """Return the name of two bundles, how their code differs, and whether it had to be compiled."""
    base, this = (path / "bundle" for path in pair)
    name = pair[0].name
    if base.is_dir() != this.is_dir():
        return name, [f"only one tree compiles {name}"], False
    if not base.is_dir() or same_text(base, this):
        return name, [], False
    a, b = listing(base), listing(this)
    if a == b:
        return name, [], True
    old, new = ([PLACE.sub("", line) for line in lines] for lines in (a, b))
    shown = difflib.unified_diff(old, new, f"base/{name}", f"this/{name}", lineterm="", n=1)
    return name, [f"{name}: {instructions(b)} instructions, {instructions(a)} in base", *shown], True


def pairs(base: Path, this: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the folders of both trees for one model and board."""
    for name in sorted({path.name for root in (base, this) for path in root.iterdir()}):
        yield base / name, this / name


def main() -> None:
    """Compare all bundles of the command line's two folders."""
    work = list(pairs(*map(Path, sys.argv[1:3])))
    compiled = 0
    differing = []
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for name, lines, was_compiled in pool.map(compare, work):
            compiled += was_compiled
            if lines:
                differing.append(name)
                print("\n".join(lines[:40]), flush=True)
    if differing:
        sys.exit(f"disasm-diff: {len(differing)} of {len(work)} bundles differ: {' '.join(differing)}")
    print(f"disasm-diff: the same machine code in {len(work)} bundles ({compiled} of them had another text)")


if __name__ == "__main__":
    main()
