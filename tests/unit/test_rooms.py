"""Who imports whom: the working rooms never meet, the vocabulary is everybody's, the command line starts fast."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "glowc"
WORKING = {"frontend", "passes", "lower", "codegen", "build", "run", "memory", "instr_passes"}
VOCABULARY = {"graph", "instr", "ops", "target", "errors", "paths", "cache", "__init__"}
COMBINING = {
    "driver", "planning", "regions", "costs", "selection", "tuned", "tune", "plugins", "execute", "validate", "show",
    "cli", "cli_options", "__main__", "time_form", "layers", "flash", "constants",
    "files", "samples", "terminal", "bundle_folder", "bom",
}  # fmt: skip
HEAVY = {"numpy", "onnx", "jinja2", "google", "rich.console", "onnxruntime"}
# The vocabulary among itself: what each room may know of the others.
LOWER_ROOMS = {
    "errors": set(),
    "paths": set(),
    "cache": {"paths"},
    "graph": {"errors", "ops"},
    "instr": {"errors", "graph", "ops"},
    "ops": {"errors", "graph", "instr", "target"},
    "target": {"errors", "paths"},
}


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    """The first part below glowc/: a folder or the module itself."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms of glowc that a file imports anywhere, functions included."""
    rooms = set()
    for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{path}: relative import"
            module = statement.module or ""
            names = [f"glowc.{alias.name}" for alias in statement.names] if module == "glowc" else [module]
        for name in names:
            first, _, rest = name.partition(".")
            if first == "glowc":
                rooms.add(rest.split(".")[0] or "__init__")
    return {room if not room.startswith("__") else "__init__" for room in rooms}


@pytest.mark.parametrize("path", files(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_file_imports_only_what_its_room_may_know(path: Path) -> None:
    room, known = room_of(path), imported_rooms(path)
    known -= {room, "__init__"}
    if room in COMBINING or room == "__init__":
        return
    if room in WORKING:
        assert known <= ({"errors"} if room == "memory" else VOCABULARY)
    else:
        assert known <= LOWER_ROOMS[room]


def test_every_room_is_known_to_this_test() -> None:
    rooms = {room_of(path) for path in files()}
    assert rooms == WORKING | VOCABULARY | COMBINING


def test_only_the_combining_modules_know_the_order_of_the_rooms() -> None:
    for path in files():
        if len(imported_rooms(path) & WORKING - {room_of(path)}) > 0:
            assert room_of(path) in COMBINING


def test_command_line_loads_nothing_heavy() -> None:
    code = "import glowc.app.cli, sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded & HEAVY == set()
    assert {m for m in loaded if m.startswith("glowc.")} <= {
        "glowc.app.cli", "glowc.app.options", "glowc.errors", "glowc.app.terminal",
    }  # fmt: skip


def test_command_line_imports_the_compiler_inside_functions() -> None:
    for file in ("app/cli.py", "app/options.py"):
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        top = [node for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import)]
        modules = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in top}
        light = {"glowc", "glowc.errors", "glowc.paths", "glowc.app.options", "glowc.app.terminal"}
        assert {m for m in modules if m and m.startswith("glowc")} <= light


def test_templates_and_runtime_are_reached_through_paths_only() -> None:
    """`data_dir` finds them in a checkout and in a wheel; a path from __file__ would not."""
    users = [path for path in files() if "__file__" in path.read_text(encoding="utf-8")]
    assert users == [PACKAGE / "paths.py"]
