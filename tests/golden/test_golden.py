"""Golden files: the graph as imported and after the passes, the program, the C file and the memory map of small nets.

`make golden` (GLOWC_UPDATE_GOLDEN=1) rewrites them. A file that is missing, or that no test reads, is a failure.
"""

from __future__ import annotations

import difflib
import os
import re
from functools import cache
from pathlib import Path

import pytest

from glowc import memory
from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.graph.text import dump
from glowc.paths import full_version
from glowc.place.places import memory_blocks
from glowc.program.text import dump_program
from tests.golden.nets import NETS

FILES = Path(__file__).parent / "files"
UPDATE = os.environ.get("GLOWC_UPDATE_GOLDEN") == "1"
BOARD, OPT = "mps2-an385", "size"  # has the portable kernels only: new variants for other CPUs change no file here


@cache
def compiled(net: str, folder: Path) -> Compiled:
    path = folder / f"{net}.onnx"
    path.write_bytes(NETS[net]().SerializeToString())
    return compile_model(path, load_board(BOARD), CompileOptions(opt=OPT))


def source(result: Compiled, name: str) -> str:
    """A generated file without what changes with the version of glowc or of the onnx package."""
    text = re.sub(r"sha256:[0-9a-f]+", "sha256:...", result.bundle.files[name])
    return text.replace(f"glowc {full_version()} ", "glowc ")


def kernels(result: Compiled) -> str:
    """The part of NAME.c that the network decides: functions, arguments and the calls."""
    text = source(result, f"{result.graph.name}.c")
    first = re.search(r"^(GLOW_KERNEL|.*static) ", text, re.MULTILINE)
    assert first is not None
    begin = text.rindex("/*", 0, first.start())  # the first function's comment
    return text[begin : text.index(f"static int {result.graph.name}_check(")].rstrip() + "\n"


def api(result: Compiled) -> str:
    """The rest of NAME.c, the same for every network but for names."""
    return source(result, f"{result.graph.name}.c").replace(kernels(result), "/* ... */\n")


STAGES = {
    "import.txt": lambda r: dump(r.imported),
    "graph.txt": lambda r: dump(r.graph),
    "program.txt": lambda r: dump_program(r.program),
    "memory.txt": lambda r: memory.render_text(r.plan, memory_blocks(r.program)),
    "kernels.c": kernels,
    "api.c": api,
    "h": lambda r: source(r, f"{r.graph.name}.h"),
}
ONCE = {"api.c": "dense", "h": "dense"}  # one network shows what is alike in all
CASES = [(net, stage) for net in NETS for stage in STAGES if ONCE.get(stage, net) == net]


def file_of(net: str, stage: str) -> Path:
    return FILES / f"{net}.{stage}"


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.mark.parametrize(("net", "stage"), CASES)
def test_output_equals_the_golden_file(net: str, stage: str, models: Path) -> None:
    path, text = file_of(net, stage), STAGES[stage](compiled(net, models))
    if UPDATE:
        FILES.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    if not path.exists():
        pytest.fail(f"golden file {path.relative_to(FILES.parent)} is missing; if intended: make golden", pytrace=False)
    golden = path.read_text(encoding="utf-8")
    if text != golden:
        lines = difflib.unified_diff(
            golden.splitlines(), text.splitlines(), f"golden/files/{path.name}", "now", lineterm=""
        )
        pytest.fail("\n".join([*lines, "", "if intended: make golden"]), pytrace=False)


def test_every_golden_file_is_read_by_a_test() -> None:
    wanted = {file_of(net, stage) for net, stage in CASES}
    stale = sorted(set(FILES.iterdir()) - wanted) if FILES.exists() else []
    if UPDATE:
        for path in stale:
            path.unlink()
        return
    assert [path.name for path in stale] == []


@pytest.mark.parametrize("net", NETS)
def test_text_forms_of_the_golden_files_are_read_back(net: str, models: Path) -> None:
    """The dumps are a language: what they print parses to a program and a graph that print the same."""
    from glowc.graph.text import parse
    from glowc.program.text import parse_program

    result = compiled(net, models)
    for graph in (result.imported, result.graph):
        assert dump(parse(dump(graph), graph.consts)) == dump(graph)
    text = dump_program(result.program)
    assert dump_program(parse_program(text, result.program.consts)) == text
