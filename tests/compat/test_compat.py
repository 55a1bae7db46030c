"""Files and command lines of released versions: this version uses them, or refuses them and says what to do."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import typer.main

from glowc import __version__
from glowc.app import cli
from glowc.app.schemas import schema_of
from tests.conftest import require_module, require_tool
from tests.unit.cli_calls import Glowc, Result, accepted

FOLDERS = sorted(path for path in Path(__file__).parent.iterdir() if (path / "bundle").is_dir())
GONE: frozenset[str] = frozenset()  # options that went away, two minor versions after CHANGELOG.md said so


@pytest.fixture(params=FOLDERS, ids=lambda path: path.name)
def old(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def usable(done: Result, old: Path) -> bool:
    """Say whether a command took a file; one that did not says what to do, and the file is of an earlier version."""
    if done.status == 0:
        return True
    assert (done.status, old.name) != (1, __version__), done.err
    assert done.status == 1, done.err
    assert "\n  hint: " in done.err
    return False


def test_bundle(glowc: Glowc, old: Path) -> None:
    require_tool("cc")
    (port,) = json.loads((old / "bundle/report.json").read_text())["inputs"]
    np.savez("in.npz", **{port["name"]: np.zeros((2, *port["exported_shape"]), np.int8)})
    for argv in (
        ("run", old / "bundle", "-i", "in.npz", "-o", "out.npz"),
        ("validate", old / "bundle", "--model", old / "sine.tflite", "-i", "in.npz"),
        ("report", old / "bundle", "--no-measure"),
    ):
        usable(glowc(*argv), old)
    copytree(old / "bundle", "copy")
    accepted(glowc, "compile", old / "sine.tflite", "--name", "sine", "-o", "copy")  # replaces it


def test_profile(glowc: Glowc, old: Path) -> None:
    if usable(glowc("quantize", old / "net.onnx", "--profile", old / "profile.yaml", "-o", "q.onnx"), old):
        assert Path("q.onnx").is_file()


def test_tuned_file(glowc: Glowc, old: Path) -> None:
    argv = ("compile", old / "int8.onnx", "--board", "mps2-an386", "--tuned", old / "tune.json", "-o", "out")
    usable(glowc(*argv), old)


def test_printed_measurements(glowc: Glowc, old: Path) -> None:
    usable(glowc("report", old / "bench.json", "--eval", old / "eval.json", "--against", old / "bundle"), old)


@pytest.mark.qemu
def test_history(glowc: Glowc, old: Path) -> None:
    require_tool("arm-none-eabi-gcc", "qemu-system-arm")
    Path("h.jsonl").write_bytes((old / "history.jsonl").read_bytes())
    done = glowc("bench", old / "int8.onnx", "--chip", "stm32l4r5", "--history", "h.jsonl", "--fail-if", "insns>+1000%")
    if usable(done, old):
        assert len(Path("h.jsonl").read_text().splitlines()) == 2


def test_json_holds_the_schema_of_its_number(old: Path) -> None:
    """As long as that is the number of today: keys are added, none goes."""
    for name, file in (("report", "bundle/report.json"), ("bench", "bench.json"), ("eval", "eval.json")):
        data, schema = json.loads((old / file).read_text()), schema_of(name)
        if data["schema"] == schema["properties"]["schema"]["const"]:
            known = {key: value for key, value in schema.items() if key != "required"}
            require_module("jsonschema").validate(data, known)
            missing = set(data) - set(schema["properties"])
            assert not missing, f"{file} had {missing}"


def options_of(command: Any) -> set[str]:
    return {"-h", "--help"} | {name for param in command.params for name in (*param.opts, *param.secondary_opts)}


def test_command_lines_are_still_known(old: Path) -> None:
    program = typer.main.get_command(cli.app)
    wrong = []
    for line in (old / "commands.txt").read_text(encoding="utf-8").splitlines():
        command: Any = program
        words = shlex.split(line)[1:]
        known = options_of(command)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
            known |= options_of(command)
        given = [word.partition("=")[0] for word in words if word.startswith("-") and not word[1:2].isdigit()]
        lost = [option for option in given if option not in known | GONE and not option.startswith("-O")]
        wrong += [line] if (command is program and words) or lost else []
    assert not wrong
