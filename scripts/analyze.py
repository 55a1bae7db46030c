"""Static analysis of generated C: gcc -fanalyzer, clang --analyze, cppcheck with the MISRA addon: `make analyze`.

Bundles of a few models for a few boards at every --opt are checked, with runtime_c as they include it. A finding is
an error unless scripts/deviations.toml gives a reason for its rule; docs/MISRA.md is that list. `--check` compares the
page only, `--page` writes it; both run no tool.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from glowc.board import Board, find_tool, load_board, require_tool
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import BoardError, GlowcError

ROOT = Path(__file__).resolve().parents[1]
MODELS = (ROOT / "examples/digits/digits.onnx", ROOT / "examples/firmware-make/models/sine.onnx")
BOARDS = ("host", "microbit", "mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64", "linux-armhf")
OPTS = ("size", "balanced", "speed")
DEVIATIONS = ROOT / "scripts" / "deviations.toml"
PAGE = ROOT / "docs" / "MISRA.md"
_GCC = re.compile(
    r"^(?P<file>[^:\s]+):(?P<line>\d+):\d+: (?:warning|error): (?P<text>.*?)(?: \[CWE-\d+\])? \[(?P<rule>[\w.-]+)\]"
)
_CPPCHECK = "{file}:{line}:{severity}:{id}:{message}"
_PREDEFINED = re.compile(r"^#define (__(?:ARM|arm|thumb|aarch64|GNUC__|BYTE_ORDER__|ORDER_)\w*) ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one tool says of one line."""

    tool: str
    rule: str
    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Deviation:
    """A rule that generated code does not follow, and why."""

    tool: str
    rule: str
    reason: str


def deviations() -> tuple[Deviation, ...]:
    """Return the rules with a reason, in the order of the file."""
    data = tomllib.loads(DEVIATIONS.read_text(encoding="utf-8"))
    return tuple(Deviation(tool, rule, reason) for tool, rules in data.items() for rule, reason in rules.items())


def page() -> str:
    """Return docs/MISRA.md."""
    rows = [f"| {d.tool} | `{d.rule}` | {' '.join(d.reason.split())} |" for d in deviations()]
    return "\n".join([
        "# Static analysis",
        "",
        "<!-- written by `make analyze` from scripts/deviations.toml -->",
        "",
        "`make analyze` checks generated code with three tools: gcc's `-fanalyzer`, clang's `--analyze`, and",
        "cppcheck with its addon for MISRA C:2012. It checks bundles for Cortex-M0 to M55, Cortex-A7, A53 and the",
        "host, at every `--opt`, and the runtime that they include.",
        "",
        "A finding is an error, unless its rule is in this table. Rules are named by number; their text belongs to",
        "MISRA.",
        "",
        "| tool | rule | why generated code does not follow it |",
        "|---|---|---|",
        *rows,
        "",
    ])  # fmt: skip


def run(argv: Sequence[object], cwd: Path) -> str:
    """Return what a tool prints, on both streams."""
    done = subprocess.run([str(a) for a in argv], cwd=cwd, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def gcc_findings(board: Board, source: str, folder: Path) -> Iterator[Finding]:
    """Yield what gcc's analyser finds; its optimiser inlines, so that it sees whole layers."""
    cc = require_tool(board.cpu.cc)
    argv = [cc, *board.cpu.cflags, "-std=c11", "-O2", "-Wall", "-Wextra", "-fanalyzer", "-c", source, "-o", "/dev/null"]
    yield from parsed("gcc", run(argv, folder))


def clang_findings(board: Board, source: str, folder: Path) -> Iterator[Finding]:
    """Yield what clang's analyser finds."""
    clang = require_tool("clang")
    argv = [clang, *clang_target(board), "-std=c11", "--analyze", "-Xclang", "-analyzer-output=text", source]
    yield from parsed("clang", run([*argv, "-o", "/dev/null"], folder))


def clang_target(board: Board) -> list[str]:
    """Return the flags by which clang compiles for a board's CPU with the headers of gcc's C library."""
    if board.cpu.family == "host":
        return []
    cc = require_tool(board.cpu.cc)
    listed = run([cc, *board.cpu.core_flags, "-xc", "-E", "-v", "/dev/null"], ROOT)
    folders = listed.split("search starts here:")[-1].split("End of search")[0].split()
    own = [str(Path(p).resolve()) for p in folders]
    flags = [flag for flag in board.cpu.core_flags if flag != "-mfpu=auto"]
    triple = board.cpu.tool_prefix.removesuffix("-")
    return [f"--target={triple}", *flags, *(f"-isystem{p}" for p in own if "/lib/gcc" not in p)]


def cppcheck_findings(board: Board, source: str, folder: Path) -> Iterator[Finding]:
    """Yield what cppcheck and its MISRA addon find, under the macros of the board's compiler."""
    asked = [require_tool(board.cpu.cc), *board.cpu.cflags, "-dM", "-E", "-xc", "/dev/null"]
    defines = [f"-D{name}={value}" for name, value in _PREDEFINED.findall(run(asked, ROOT))]
    argv = [cppcheck(), "--quiet", "--enable=all", "--std=c11", "--addon=misra", f"--template={_CPPCHECK}", "-I."]
    suppressed = ("missingIncludeSystem", "unusedFunction", "unmatchedSuppression")
    for row in run([*argv, *defines, *(f"--suppress={s}" for s in suppressed), source], folder).splitlines():
        parts = row.split(":", 4)
        if len(parts) == 5 and parts[1].isdigit():
            yield Finding("cppcheck", parts[3], Path(parts[0]).name, int(parts[1]), parts[4])


def cppcheck() -> Path:
    """Return the program; GlowcError when it is not installed."""
    found = find_tool("cppcheck")
    if found is None:
        raise GlowcError("cppcheck is not installed", hint="scripts/setup.sh analyze")
    return found


def parsed(tool: str, text: str) -> Iterator[Finding]:
    """Yield the warnings and errors of a compiler's output."""
    for line in text.splitlines():
        if found := _GCC.match(line):
            yield Finding(tool, found["rule"], Path(found["file"]).name, int(found["line"]), found["text"])
        elif "error:" in line:
            yield Finding(tool, "does-not-compile", "", 0, line)


def analyse(model: Path, board: Board, opt: str) -> set[Finding]:
    """Return all findings in one bundle."""
    with tempfile.TemporaryDirectory(prefix="glowc-analyze-") as name:
        folder = Path(name)
        compiled = compile_model(model, board, CompileOptions(opt=opt))
        write_bundle(compiled, folder)
        source = f"{compiled.report['model']}.c"
        found: set[Finding] = set()
        for tool in (gcc_findings, clang_findings, cppcheck_findings):
            found.update(tool(board, source, folder))
        return found


def analyse_all(models: Sequence[Path], boards: Sequence[str], opts: Sequence[str]) -> dict[Finding, str]:
    """Return the findings with the first bundle that has each, bundle by bundle on two cores."""
    cases = [(m, b, o) for m in models for b in boards for o in opts]

    def one(case: tuple[Path, str, str]) -> tuple[str, set[Finding]]:
        model, board, opt = case
        try:
            return f"{model.stem} {board} --opt {opt}", analyse(model, load_board(board), opt)
        except BoardError as error:  # no room on this board
            print(f"left out: {model.stem} on {board}: {error.message}", file=sys.stderr)
            return "", set()

    found: dict[Finding, str] = {}
    with ThreadPoolExecutor(2) as pool:
        for where, some in pool.map(one, cases):
            for finding in some:
                found.setdefault(finding, where)
    print(f"{len(cases)} bundles, {len(found)} findings")
    return found


def main() -> int:
    """Analyse and write the page; 1 when a finding has no reason or the page is stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL", default=MODELS, help="an .onnx file")
    parser.add_argument("--board", action="append", help=f"default: {' '.join(BOARDS)}")
    parser.add_argument("--opt", action="append", choices=OPTS, help="default: all")
    parser.add_argument("--check", action="store_true", help="say whether docs/MISRA.md is what the list gives")
    parser.add_argument("--page", action="store_true", help="write docs/MISRA.md")
    args = parser.parse_args()
    if args.check:
        fresh = PAGE.read_text(encoding="utf-8") == page()
        print("fresh" if fresh else "docs/MISRA.md is stale: scripts/analyze.py --page")
        return int(not fresh)
    if args.page:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    try:
        found = analyse_all(args.models, args.board or BOARDS, args.opt or OPTS)
    except GlowcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return report(found)


def report(found: dict[Finding, str]) -> int:
    """Print counts by rule, and every finding without a reason; 1 when there is one."""
    known = {(d.tool, d.rule) for d in deviations()}
    counts = Counter((f.tool, f.rule) for f in found)
    for (tool, rule), count in sorted(counts.items()):
        print(f"  {count:5} {tool} {rule}{'' if (tool, rule) in known else '  NO REASON GIVEN'}")
    open_ = [f for f in found if (f.tool, f.rule) not in known]
    for f in sorted(open_, key=lambda f: (f.tool, f.rule, f.file, f.line))[:200]:
        print(f"{f.file}:{f.line}: {f.text} [{f.tool} {f.rule}] in {found[f]}")
    PAGE.write_text(page(), encoding="utf-8")
    return int(bool(open_))


if __name__ == "__main__":
    sys.exit(main())
