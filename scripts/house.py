"""Count what keeps the code from being one straight way through the rooms: `make house`.

A line for each figure: what there is now, and what the last release had. `--list FIGURE` names the places.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from draw_rooms import order

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, TEMPLATES, RUNTIME = (ROOT / name for name in ("glowc", "templates", "runtime_c"))
STATEMENT = re.compile(r"\{%[-+]?\s*(\w+).*?%\}", re.DOTALL)
PUTS_TOGETHER = frozenset({"extends", "block", "endblock", "include", "import", "from"})
UNTYPED = re.compile(r"(?:Mapping|dict)\[str, (?:object|Any|ParamValue)\]")
WIDTH = 140

Places = list[str]


def python_files() -> list[Path]:
    """Return the modules of glowc."""
    return sorted(PACKAGE.rglob("*.py"))


def templates() -> list[Path]:
    """Return the templates."""
    return sorted(TEMPLATES.rglob("*.j2"))


def lines_with(files: list[Path], found: Callable[[str], object]) -> Places:
    """Return file:line of every line for which `found` is true."""
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if found(line)
    ]


def module_name(path: Path) -> str:
    """Return the dotted name of a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, modules: frozenset[str]) -> Iterator[str]:
    """Yield the modules of glowc that a file imports, functions included; one of each statement and name."""
    for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names if alias.name in modules)
        elif isinstance(statement, ast.ImportFrom) and statement.module in modules:
            inner = [f"{statement.module}.{alias.name}" for alias in statement.names]
            yield from ([name for name in inner if name in modules] or [statement.module])


def import_graph() -> dict[str, set[str]]:
    """Return which modules each module of glowc imports."""
    files = python_files()
    modules = frozenset(map(module_name, files))
    return {module_name(path): set(imports(path, modules)) - {module_name(path)} for path in files}


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the sets of modules that import each other, by Tarjan's algorithm (SIAM J. Comput. 1, 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: Places = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            at = stack.index(name)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return [group for group in found if len(group) > 1]


def root_modules() -> Places:
    """Return the modules that lie at the root of glowc."""
    return [path.name for path in sorted(PACKAGE.glob("*.py"))]


def packings_of_operators() -> Places:
    """Return which operator imports what of a kernel besides the names of its parameters."""
    return [
        f"{path.name}: {name}"
        for path in sorted((PACKAGE / "ops").glob("*.py"))
        for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("glowc.kernels")
        for name in (f"{statement.module}.{alias.name}" for alias in statement.names)
        if not name.startswith("glowc.kernels.shapes.")
    ]


def exempt_modules() -> Places:
    """Return the imports that the order of the rooms does not allow."""
    rank = {room: row for row, rooms in enumerate(order()) for room in rooms}

    def room(module: str) -> str:
        return module.split(".")[1] if "." in module else "__init__"

    pairs = ((name, other) for name, others in import_graph().items() for other in sorted(others))
    return [f"{a} -> {b}" for a, b in pairs if room(a) != room(b) and rank[room(b)] >= rank[room(a)]]


def untyped_mappings() -> Places:
    """Return the mappings whose values may be anything."""
    return lines_with(python_files(), UNTYPED.search)


def split_in_templates() -> Places:
    """Return where templates take strings apart."""
    return lines_with(templates(), lambda line: ".split(" in line)


def types_asked_for_in_templates() -> Places:
    """Return where templates ask for the type or presence of a constant to learn a fact."""
    asked = re.compile(r"""["']\w+["'] (?:not )?in T\b|T\[["']?\w+["']?\]\s*==|T\.\w+\s*==""")
    return lines_with(templates(), asked.search)


def wide_lines() -> Places:
    """Return the lines over 140 columns."""
    files = [*python_files(), *templates(), *sorted(RUNTIME.rglob("*.[ch]"))]
    return lines_with(files, lambda line: len(line) > WIDTH)


def lines() -> Places:
    """Return the lines of what is shipped: glowc/, templates/ and runtime_c/."""
    shipped = (path for folder in (PACKAGE, TEMPLATES, RUNTIME) for path in sorted(folder.rglob("*")))
    return lines_with([path for path in shipped if path.is_file() and path.suffix != ".pyc"], lambda _: True)


def kernel_lines() -> Places:
    """Return the lines of templates of kernels and of the headers that they include."""
    headers = [path for path in sorted(RUNTIME.rglob("*.h")) if "io" not in path.relative_to(RUNTIME).parts]
    return lines_with([*sorted((TEMPLATES / "kernels").rglob("*.j2")), *headers], lambda _: True)


def kernel_bodies() -> list[Path]:
    """Return the templates that are bodies of kernels."""
    return [path for path in sorted((TEMPLATES / "kernels").rglob("*.c.j2")) if not path.name.startswith("_")]


def lines_per_kernel() -> Places:
    """Return the longest bodies of kernels: as many as a kernel has lines, a share of what is shared included."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in kernel_bodies()}
    longest = sorted(lengths, key=lambda path: -lengths[path])
    share = round(len(kernel_lines()) / len(lengths))
    return [f"{path.relative_to(ROOT)}: {lengths[path]}" for path in longest[:share]]


def logic_lines(text: str) -> int:
    """Return on how many lines any part of a statement {% .. %} stands, unless it just puts templates together."""
    logic: set[int] = set()
    for found in STATEMENT.finditer(text):
        if found[1] not in PUTS_TOGETHER:
            first, last = (text.count("\n", 0, at) for at in found.span())
            logic.update(range(first, last + 1))
    return len(logic)


def jinja_templates() -> Places:
    """Return the templates of which more than a third is logic, with their lines of it and all that are not empty."""
    texts = {path: path.read_text(encoding="utf-8") for path in templates()}
    shares = {
        path: (logic_lines(text), sum(bool(line.strip()) for line in text.splitlines())) for path, text in texts.items()
    }
    over = [path for path, (logic, lines) in shares.items() if 3 * logic > lines]
    over.sort(key=lambda path: -shares[path][0] / shares[path][1])
    return [f"{path.relative_to(ROOT)}: {shares[path][0]} of {shares[path][1]}" for path in over]


def modules_in_circles() -> Places:
    """Return the modules that import each other, a line for each circle."""
    return [" ".join(group) for group in circles(import_graph())]


FIGURES: Mapping[str, Callable[[], Places]] = {
    "root-modules": root_modules,
    "packings-of-operators": packings_of_operators,
    "exempt-modules": exempt_modules,
    "untyped-mappings": untyped_mappings,
    "split-in-templates": split_in_templates,
    "types-asked-for": types_asked_for_in_templates,
    "wide-lines": wide_lines,
    "lines": lines,
    "kernel-lines": kernel_lines,
    "lines-per-kernel": lines_per_kernel,
    "jinja-templates": jinja_templates,
    "import-circles": modules_in_circles,
}


def last_release() -> str | None:
    """Return the tag of the last release before this checkout, if it has any."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def figures_of(revision: str) -> dict[str, str]:
    """Return what these scripts count in another revision, by figure."""
    with tempfile.TemporaryDirectory(prefix="glowc-house-") as folder:
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "x"], cwd=folder, input=archive, check=True)
        for script in ("house.py", "draw_rooms.py"):
            shutil.copy(ROOT / "scripts" / script, Path(folder) / "scripts")
        command = [sys.executable, str(Path(folder) / "scripts" / "house.py")]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(line.split()[:2] for line in printed.splitlines())


def main() -> int:
    """Print the figures, or the places of some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="append", choices=FIGURES, metavar="FIGURE", help=", ".join(FIGURES))
    args = parser.parse_args()
    if args.list:
        print("\n".join(chain.from_iterable(FIGURES[name]() for name in args.list)))
        return 0
    release = last_release()
    before = figures_of(release) if release else {}
    for name, places in FIGURES.items():
        beside = f"   {release}: {before[name]}" if name in before else ""
        print(f"{name:24} {len(places()):7,}{beside}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
