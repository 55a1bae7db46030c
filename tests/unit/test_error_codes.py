"""Codes of errors: each kind has one, each has its section; JSON of errors, and the exit statuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import glowc.machine.stack
import glowc.machine.wire.client  # noqa: F401 - kinds of errors of their own
from glowc import errors
from glowc.app import cli
from glowc.errors import MISMATCH, GlowcError, InternalError, LimitError
from tests.conftest import ROOT
from tests.unit.cli_calls import DIGITS, Glowc, accepted

FLOAT = ROOT / "examples/digits/digits_fp32.onnx"
PAGE = (ROOT / "docs/ERRORS.md").read_text()


def kinds(of: type[GlowcError] = GlowcError) -> set[type[GlowcError]]:
    return {of}.union(*(kinds(kind) for kind in of.__subclasses__() if kind.__module__.startswith("glowc.")))


def test_every_kind_has_a_section_and_every_section_a_kind() -> None:
    sections = re.findall(r"^## (GL\d{4}): ", PAGE, re.M)
    assert sections == sorted(set(sections))
    assert {kind.code for kind in kinds()} == set(sections)


def test_no_two_kinds_have_one_code_but_those_that_are_one() -> None:
    own = [kind for kind in kinds() if "code" in vars(kind)]
    assert len({kind.code for kind in own}) == len(own)


def test_exit_statuses_are_those_of_the_page() -> None:
    wrong = []
    for kind in kinds():
        section = PAGE.partition(f"## {kind.code}: ")[2].partition("\n## ")[0]
        said = re.search(r"Exit status (\d)\.", section)
        if kind.exit_status != int(said[1] if said else 1):
            wrong.append(kind.code)
    assert not wrong
    table = (ROOT / "docs/OUTPUT.md").read_text().partition("## Exit statuses")[2].partition("\n## ")[0]
    listed = {int(status) for status in re.findall(r"^\| (\d+) \|", table, re.M)}
    assert listed == {0, *(kind.exit_status for kind in kinds()), MISMATCH, cli.INTERRUPTED}


def test_explain_prints_a_section_and_lists_all(glowc: Glowc) -> None:
    assert accepted(glowc, "explain", "gl0101").startswith("GL0101: the model file cannot be read\n")
    assert len(accepted(glowc, "explain").splitlines()) == len(re.findall(r"^## ", PAGE, re.M))
    done = glowc("explain", "GL9999")
    assert (done.status, "no error has the code GL9999" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("argv", "code", "status"),
    [
        (("compile", "gone.onnx", "-o", "out"), "GL0101", 1),
        (("compile", DIGITS, "-o", "out", "--board", "moon"), "GL0401", 1),
        (("compile", DIGITS, "-o", "out", "--wubble"), "GL0201", 1),
        (("compile",), "GL0201", 1),
        (("compile", DIGITS, "-o", "out", "--opt", "wubble"), "GL0201", 1),
        (("compile", DIGITS, "-o", "out", "--ram-limit", "100"), "GL0501", 3),
        (("compile", DIGITS, "-o", "out", "--flash-limit", "100"), "GL0502", 3),
        (("compile", DIGITS, "-o", "out", "--define-symbol", "M=1"), "GL0103", 1),
        (("compile", DIGITS, "-o", "out", "--plugin", "gone.py"), "GL0203", 1),
        (("compile", DIGITS, "-o", "out", "--tuned", "gone.json"), "GL0206", 1),
        (("compile", DIGITS, "-o", "file"), "GL0202", 1),
        (("run", DIGITS, "-i", "gone.npz", "-o", "o.npz"), "GL0205", 1),
        (("bench", "folder"), "GL0204", 1),
        (("validate", DIGITS, "-i", "gone.npz"), "GL0205", 1),
        (("profile", FLOAT, "--data", "gone", "-o", "p.yaml"), "GL0301", 1),
        (("quantize", DIGITS, "--data", "file", "-o", "q.onnx"), "GL0100", 1),
        (("report", "gone.json"), "GL0204", 1),
        (("eval", DIGITS, "--float", "gone.onnx", "--data", "file"), "GL0101", 1),
        (("debug", DIGITS, "-i", "gone.npz"), "GL0205", 1),
        (("build", DIGITS, "--board", "moon", "-o", "x.elf"), "GL0401", 1),
        (("matrix", "--models", "gone"), "GL0201", 1),
    ],
    ids=lambda value: "-".join(map(str, value[:1])) if isinstance(value, tuple) else None,
)
def test_json_tells_the_error(glowc: Glowc, argv: tuple[object, ...], code: str, status: int) -> None:
    Path("file").write_text("x")
    Path("folder").mkdir()
    done = glowc(*argv, "--json")
    assert done.status == status, done.err
    error = json.loads(done.out)["error"]
    assert (error["code"], error["exit_status"]) == (code, status)
    assert done.err.startswith(f"error[{code}]: {error['message']}")
    assert done.err.count("\n  ") == len(error["details"]) + (error["hint"] is not None)


def test_bug_has_a_code_too(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise KeyError("x")

    monkeypatch.setattr("glowc.app.show.boards_data", fails)
    done = glowc("boards", "--json")
    assert done.status == InternalError.exit_status == 2
    assert json.loads(done.out)["error"]["code"] == "GL0900"
    assert done.err.startswith("internal error[GL0900]: KeyError")


def test_codes_never_change() -> None:
    """A code that was released keeps its kind."""
    assert {name: kind.code for name, kind in vars(errors).items() if hasattr(kind, "code")} == {
        "GlowcError": "GL0201", "ModelError": "GL0100", "ModelFileError": "GL0101", "UnsupportedError": "GL0102",
        "SizesError": "GL0103", "StreamError": "GL0104", "FloatLayerError": "GL0105", "InputError": "GL0201",
        "FileError": "GL0202", "PluginError": "GL0203", "BundleError": "GL0204", "ArraysError": "GL0205",
        "TunedError": "GL0206", "GroupError": "GL0207", "DataError": "GL0301", "LabelsError": "GL0302",
        "ProfileError": "GL0303", "LikeError": "GL0304", "NoChoiceError": "GL0305", "BoardError": "GL0400",
        "UnknownBoardError": "GL0401", "DescriptionError": "GL0402", "LimitError": "GL0500", "RamError": "GL0501",
        "FlashError": "GL0502", "ToolError": "GL0600", "MissingToolError": "GL0601", "InternalError": "GL0900",
    }  # fmt: skip
    assert issubclass(errors.RamError, LimitError)
