"""Who imports whom: the rooms stand in one order, each knows only those before it; the command line starts fast."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from glowc.kernels.registry import instruction_sets
from tests.conftest import ROOT

PACKAGE = ROOT / "glowc"
ORDER = (
    ("__init__", "errors", "paths"),
    ("graph", "board", "asm"),
    ("program",),
    ("kernels",),
    ("ops",),
    ("frontend", "passes", "lower", "memory", "codegen"),
    ("place", "select", "quant"),
    ("compiler",),
    ("machine",),
    ("api",),
    ("app", "testing", "torch"),
    ("__main__",),
)
"""A room imports itself and the rooms of rows above; those of one row do not know each other."""
RANK = {room: row for row, rooms in enumerate(ORDER) for room in rooms}
ROOT_MODULES = {"__init__.py", "__main__.py", "errors.py", "paths.py"}
CORE_OF_KERNELS = {"base", "features", "isas", "records", "registry", "choice", "shapes", "tile_features", "verify"}
HEAVY = {"numpy", "onnx", "jinja2", "google", "rich.console", "onnxruntime"}
OPTIONS = {"glowc.compiler.options", "glowc.compiler.log_mel", "glowc.codegen.export"}  # what is declared once
LIGHT = {
    "glowc", "glowc.errors", "glowc.paths", "glowc.board", "glowc.compiler", "glowc.codegen", *OPTIONS,
    *(f"glowc.{room}.{path.stem}" for room in ("app", "board") for path in (PACKAGE / room).glob("*.py")),
}  # fmt: skip


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    """The first part below glowc/: a folder or the module itself."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Modules and names of glowc that a file imports anywhere, functions included, as dotted names below glowc."""
    found = set()
    for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{path}: relative import"
            found |= {f"{statement.module}.{alias.name}" for alias in statement.names}
    return {name.removeprefix("glowc.") for name in found if name.startswith("glowc.")}


def test_files_import_only_rooms_before_their_own() -> None:
    wrong = []
    for path in files():
        room = room_of(path)
        for name in imported(path):
            other = name.split(".")[0]
            other = "__init__" if other not in RANK else other  # a name of glowc/__init__.py
            if other != room and RANK[other] >= RANK[room]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong


def test_every_room_stands_in_the_order() -> None:
    assert {room_of(path) for path in files()} == set(RANK)


def test_only_four_modules_lie_at_the_root() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == ROOT_MODULES


def test_memory_knows_errors_only() -> None:
    for path in (PACKAGE / "memory").glob("*.py"):
        assert {name.split(".")[0] for name in imported(path)} <= {"errors", "memory"}


def test_instruction_set_knows_no_other() -> None:
    """What two of them share lies in kernels/common."""
    for isa in instruction_sets():
        for path in (PACKAGE / "kernels" / isa).glob("*.py"):
            rooms = {name.split(".")[1] for name in imported(path) if name.startswith("kernels.")}
            assert rooms <= {isa, "common", "base", "features", "records", "shapes", "tile_features"}, path


def test_core_of_kernels_knows_no_instruction_set() -> None:
    for path in (*(PACKAGE / "kernels").glob("*.py"), *(PACKAGE / "kernels" / "common").glob("*.py")):
        rooms = {name.split(".")[1] for name in imported(path) if name.startswith("kernels.")}
        assert rooms <= CORE_OF_KERNELS | {"common"}, path.name


def test_operators_know_of_kernels_only_what_parameters_are_called() -> None:
    for path in (PACKAGE / "ops").glob("*.py"):
        names = {name for name in imported(path) if name.startswith("kernels.")}
        assert {name.split(".")[1] for name in names} <= {"shapes"}, path.name


def test_command_line_loads_nothing_heavy() -> None:
    code = "import glowc.app.cli, sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded & HEAVY == set()
    assert {m for m in loaded if m.startswith("glowc.")} <= LIGHT | {"glowc.app", "glowc.app.cli"}


def test_command_line_imports_the_compiler_inside_functions() -> None:
    for file in ("cli.py", "lists.py", "measure.py", "options.py"):
        tree = ast.parse((PACKAGE / "app" / file).read_text(encoding="utf-8"))
        top = [node for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import)]
        modules = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in top}
        assert {m for m in modules if m and m.startswith("glowc")} <= LIGHT


def test_templates_and_runtime_are_reached_through_paths_only() -> None:
    """`data_dir` finds them in a checkout and in a wheel; a path from __file__ would not."""
    users = [path for path in files() if "__file__" in path.read_text(encoding="utf-8")]
    assert users == [PACKAGE / "paths.py"]
