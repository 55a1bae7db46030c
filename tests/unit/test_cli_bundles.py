"""Bundles on the command line: what a folder may hold before, which board runs it, what it is compared with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import ToolError
from tests.unit.cli_calls import DIGITS, GOOD, Glowc, images, refused, tree

# ---- the folder ----


@pytest.mark.parametrize("name", ["README.md", "report.json", "digits.c", "notes.txt", "folder/file"])
def test_folder_with_files_of_others_is_left_alone(glowc: Glowc, name: str) -> None:
    path = Path("project") / name
    path.parent.mkdir(parents=True)
    path.write_text("{}" if name == "report.json" else "mine")
    says = ["folder project holds files and is no bundle of glowc", name.split("/")[0]]
    refused(glowc, "compile", DIGITS, "-o", "project", says=says, hint="--force")


def test_current_folder_with_a_model_in_it_is_left_alone(glowc: Glowc) -> None:
    Path("digits.onnx").write_bytes(DIGITS.read_bytes())
    refused(glowc, "compile", "digits.onnx", "-o", ".", says=["digits.onnx"], hint="--force")


def test_force_writes_beside_and_over_files_of_others(glowc: Glowc) -> None:
    Path("project").mkdir()
    Path("project/README.md").write_text("mine")
    Path("project/notes.txt").write_text("mine")
    result = glowc("compile", DIGITS, "-o", "project", "--force")
    assert result.status == 0, result.err
    assert Path("project/README.md").read_text().startswith("# digits")
    assert Path("project/notes.txt").read_text() == "mine"


def test_empty_folder_and_hidden_files_are_no_obstacle(glowc: Glowc) -> None:
    Path("empty").mkdir()
    Path("empty/.gitignore").write_text("*")
    result = glowc("compile", DIGITS, "-o", "empty")
    assert result.status == 0, result.err
    assert Path("empty/.gitignore").read_text() == "*"


def test_next_bundle_replaces_the_earlier_one_and_nothing_else(glowc: Glowc) -> None:
    """Files that only the earlier bundle had go; objects and stamps that a build put beside it stay."""
    images(image=GOOD)
    assert glowc("compile", DIGITS, "-o", "out", "--golden", "in.npz").status == 0
    Path("out/digits.o").write_text("object")
    assert Path("out/digits_golden.c").exists()
    assert glowc("compile", DIGITS, "-o", "out").status == 0
    assert not Path("out/digits_golden.c").exists()
    assert Path("out/digits.o").read_text() == "object"
    report = json.loads(Path("out/report.json").read_text())
    assert {p.name for p in Path("out").iterdir()} == {*report["files"], "digits.o"}


def test_file_of_others_that_a_bundle_would_replace_is_in_the_way(glowc: Glowc) -> None:
    images(image=GOOD)
    assert glowc("compile", DIGITS, "-o", "out").status == 0
    Path("out/digits_golden.c").write_text("mine")
    before = tree(Path("out"))
    result = glowc("compile", DIGITS, "-o", "out", "--golden", "in.npz")
    assert result.status == 1
    assert "digits_golden.c" in result.err
    assert tree(Path("out")) == before


def test_two_models_share_a_folder_and_each_may_be_compiled_again(glowc: Glowc) -> None:
    for name in ("one", "two", "one", "two"):
        assert glowc("compile", DIGITS, "-o", "out", "--name", name).status == 0
        assert Path(f"out/{name}.c").exists()
    assert Path("out/one.c").exists()
    report = json.loads(Path("out/report.json").read_text())
    assert {"one.c", "one.h"} <= set(report["other_files"])
    assert not set(report["files"]) & set(report["other_files"])


@pytest.mark.parametrize("name", ["../precious", "/precious", "..", "", "a/../../precious"])
def test_report_that_lists_files_elsewhere_removes_none(glowc: Glowc, name: str) -> None:
    Path("precious").write_text("mine")
    Path("out").mkdir()
    Path("out/report.json").write_text(json.dumps({"glowc": "1", "model": "digits", "files": [name]}))
    refused(glowc, "compile", DIGITS, "-o", "out", says=["no bundle of glowc"], hint="--force")


def test_folder_is_looked_at_before_the_model_is_compiled(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    from glowc.compiler import pipeline as driver

    monkeypatch.setattr(driver, "compile_model", lambda *_, **__: 1 // 0)
    Path("project").mkdir()
    Path("project/main.c").write_text("mine")
    refused(glowc, "compile", DIGITS, "-o", "project", says=["main.c"], hint="--force")


# ---- the board ----


@pytest.mark.parametrize("command", ["run", "bench", "validate"])
def test_bundle_runs_on_the_board_that_it_was_made_for(
    glowc: Glowc, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    from glowc.machine import execute

    seen = []

    def build(info: object, board: object, *_: object, **__: object) -> None:
        seen.append((board.name, board.cpu.name))  # type: ignore[attr-defined]
        raise ToolError("enough")

    monkeypatch.setattr(execute, "build_bundle", build)
    write_bundle(compile_model(DIGITS, load_board("linux-aarch64", "cortex-a76")), Path("out"))
    images(image=GOOD)
    argv = {"run": ("--output", "o.npz"), "bench": (), "validate": ("--model", DIGITS)}[command]
    for extra in ((), ("--board", "host"), ("--cpu", "cortex-a53")):
        glowc(command, "out", "--input", "in.npz", *argv, *extra)
    assert seen[0] == ("linux-aarch64", "cortex-a76")
    assert seen[1][0] == "host"
    assert seen[2] == ("linux-aarch64", "cortex-a53")


def test_bundle_of_a_board_that_is_not_known_here(glowc: Glowc, bundle: Path) -> None:
    report = json.loads((bundle / "report.json").read_text())
    Path("out").mkdir()
    Path("out/report.json").write_text(json.dumps(report | {"board": "our-board"}))
    refused(glowc, "bench", "out", says=["out was made for board 'our-board'"], hint="--board")


# ---- comparing ----


def test_bundle_is_compared_with_stored_outputs(glowc: Glowc, bundle: Path) -> None:
    images(image=GOOD)
    assert glowc("run", bundle, "--input", "in.npz", "--output", "out.npz").status == 0
    argv = ("validate", bundle, "--input", "in.npz", "--golden", "out.npz")
    assert glowc(*argv).status == 0
    wrong = {name: a + a.dtype.type(1) for name, a in np.load("out.npz").items()}
    np.savez("out.npz", **wrong)
    result = glowc(*argv)
    assert (result.status, result.err) == (3, ""), "a mismatch is no mistake of the user"
    assert "NOT equal" in result.out


def test_bundle_is_compared_with_its_model(glowc: Glowc, bundle: Path) -> None:
    images(image=GOOD)
    result = glowc("validate", bundle, "--input", "in.npz", "--model", DIGITS, "--json")
    assert result.status == 0, result.err
    assert json.loads(result.out)["ok"]


def test_bundle_without_anything_to_compare_with(glowc: Glowc, bundle: Path) -> None:
    images(image=GOOD)
    refused(glowc, "validate", bundle, "--input", "in.npz", says=["holds no model"], hint="--golden")
    Path("other.onnx").write_bytes(DIGITS.read_bytes() + b"\0")
    argv = ("validate", bundle, "--input", "in.npz", "--model", "other.onnx")
    refused(glowc, *argv, says=["was not compiled from other.onnx"], hint="compile the model again")
