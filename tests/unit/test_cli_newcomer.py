"""What somebody new runs into: the list of commands; folders, boards, bundles and samples that are not right."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.conftest import require_tool
from tests.unit.cli_calls import DIGITS, GOOD, Glowc, images, refused, save
from tests.unit.onnx_builders import model


def test_first_sentences_of_the_commands_fit_a_terminal_of_80_columns(
    glowc: Glowc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = glowc("-h").out.partition("Commands:\n")[2].splitlines()
    assert len(listed) > 20
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"arena_bytes": "many"}, "arena_bytes"), ({"insns": []}, "insns"), ({"layers": ["x"]}, "layers"),
        ({"layers": [{"name": "a"}]}, "kernel of a layer"), ({"outputs": []}, "outputs"), ({"model": "../x"}, "model"),
        ({"weights_bytes": None}, "weights_bytes"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["bench", "report", "run"])
def test_edited_report_of_a_bundle(
    glowc: Glowc, bundle: Path, command: str, change: dict[str, object], says: str
) -> None:
    Path("edited").mkdir()
    report = json.loads((bundle / "report.json").read_text())
    Path("edited/report.json").write_text(json.dumps(report | change))
    argv = ("--input", images(image=GOOD), "--output", "out.npz") if command == "run" else ()
    refused(glowc, command, "edited", *argv, says=["missing or wrong: ", says], hint="compile the model again")


def test_matrix_of_no_folder_says_so(glowc: Glowc) -> None:
    refused(glowc, "matrix", "--models", "gone", "-o", "r.sqlite", says=["gone does not exist"], hint="a folder")
    refused(glowc, "matrix", "--models", DIGITS, "-o", "r.sqlite", says=["is a file, not a folder"], hint="a folder")


def test_tensorflow_lite_model_where_only_onnx_will_do(glowc: Glowc) -> None:
    Path("net.tflite").write_bytes(b"\x1c\x00\x00\x00TFL3" + bytes(64))
    images(x=np.zeros((1, 1), np.float32))
    says = ["net.tflite is not an ONNX file but a TensorFlow Lite model"]
    refused(glowc, "quantize", "net.tflite", "--data", "in.npz", "-o", "q.onnx", says=says)


def test_board_without_its_linker_script(glowc: Glowc) -> None:
    assert glowc("board", "new", "own", "--from", "rpi-pico").status == 0
    script, board = Path("own/link.ld"), Path("own/board.toml")
    script.unlink()
    build = ("build", DIGITS, "--board", "own", "-o", "a.elf")
    refused(glowc, *build, says=["linker_script: ", "link.ld does not exist"], hint="docs/BOARDS.md")
    board.write_text(board.read_text().replace('linker_script = "link.ld"\n', ""))
    refused(glowc, *build, says=["stack_bytes: is for a board with a linker_script"], hint="docs/BOARDS.md")


def test_inputs_that_are_not_a_number_are_told(glowc: Glowc) -> None:
    require_tool("cc")
    save(model([helper.make_node("Relu", ["x"], ["y"])], {"x": "f32[1,4]"}, "y"))
    images(x=np.array([[1, np.nan, np.inf, np.nan]], np.float32))
    done = glowc("run", "net.onnx", "--input", "in.npz", "--output", "out.npz")
    assert (done.status, done.err) == (0, "note: 2 elements of x in in.npz are not a number (NaN)\n")
