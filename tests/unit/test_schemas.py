"""JSON that commands print is as its schema says; a report of a newer schema is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main

from glowc.app import cli
from glowc.app.schemas import documents, schema_of
from glowc.paths import SCHEMA
from tests.conftest import ROOT, require_module, require_tool
from tests.unit.cli_calls import DIGITS, GOOD, Glowc, accepted, images, refused

FLOAT = ROOT / "examples/digits/digits_fp32.onnx"


def strict(schema: Any) -> Any:
    """A schema that allows no other keys: each that is printed is in it."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return {**{key: strict(value) for key, value in schema.items()}, **closed}


def holds(name: str, text: str) -> Any:
    data = json.loads(text)
    require_module("jsonschema").validate(data, strict(schema_of(name)))
    assert data["schema"] == SCHEMA
    return data


@pytest.mark.parametrize("name", documents())
def test_schema_is_valid(name: str) -> None:
    require_module("jsonschema").Draft202012Validator.check_schema(schema_of(name))


def test_commands_without_tools(glowc: Glowc) -> None:
    for name in ("boards", "chips", "ops", "doctor"):
        holds(name, glowc(name, "--json").out)
    holds("ops", accepted(glowc, "ops", "--format", "tflite", "--json"))
    holds("error", glowc("compile", "gone.onnx", "-o", "out", "--json").out)
    holds("compile", accepted(glowc, "compile", DIGITS, "-o", "out", "--pareto", "--json"))
    holds("report", Path("out/report.json").read_text())
    accepted(glowc, "compile", DIGITS, "-o", "blob", "--weights", "blob")
    holds("weights-for", accepted(glowc, "compile", DIGITS, "--weights-for", "blob", "-o", "new", "--json"))
    both = ("compile", f"a={DIGITS}", f"b={DIGITS}", "--share-arena", "--group-name", "app", "-o", "app")
    holds("group", accepted(glowc, *both, "--json"))
    holds("page", accepted(glowc, "report", "out", "--no-measure", "--json"))


def test_commands_that_write_or_print_text(glowc: Glowc) -> None:
    written = (
        ("example", "digits", "there"), ("log-mel", "-o", "log_mel.onnx"), ("make-include", "-o", "glowc.mk"),
        ("board", "new", "own", "--from", "rpi-pico"), ("make-include",),
    )  # fmt: skip
    for argv in written:
        assert Path(holds("written", accepted(glowc, *argv, "--json"))["output"]).exists()
    for argv in (("example",), ("docs",), ("docs", "faq"), ("explain",), ("explain", "GL0101")):
        assert holds("text", accepted(glowc, *argv, "--json"))["text"]
    assert holds("error", glowc("explain", "GL0999", "--json").out)["error"]["code"] == "GL0201"


def test_every_command_has_json(glowc: Glowc) -> None:
    names = set(typer.main.get_command(cli.app).commands) - {"board", "schema"}  # a group; what is JSON anyway
    assert not [name for name in names if "--json" not in glowc(name, "--help").out]


def test_commands_that_quantise(glowc: Glowc) -> None:
    np.save("x.npy", np.random.default_rng(0).random((8, 1, 8, 8), np.float32))
    np.save("y.npy", np.arange(8))
    holds("profile", accepted(glowc, "profile", FLOAT, "--data", "x.npy", "-o", "p.yaml", "--json"))
    holds("quantize", accepted(glowc, "quantize", FLOAT, "--data", "x.npy", "-o", "q.onnx", "--json"))
    limited = ("quantize", FLOAT, "--data", "x.npy", "-o", "q.onnx", "--flash-limit", "64K", "--json")
    holds("quantize", accepted(glowc, *limited))
    search = ("--target-accuracy", "100", "--labels", "y.npy")
    holds("quantize", accepted(glowc, "quantize", FLOAT, "--data", "x.npy", "-o", "q.onnx", *search, "--json"))


def test_commands_that_run_on_this_machine(glowc: Glowc) -> None:
    require_tool("cc")
    images(image=GOOD)
    holds("run", accepted(glowc, "run", DIGITS, "-i", "in.npz", "-o", "o.npz", "--json"))
    kit = accepted(glowc, "test-kit", DIGITS, "kit", "-i", "in.npz", "--board", "host", "--json")
    assert holds("written", kit)["output"] == "kit"
    holds("validate", accepted(glowc, "validate", DIGITS, "-i", "in.npz", "--json"))
    holds("debug", accepted(glowc, "debug", DIGITS, "-i", "in.npz", "--json"))
    np.save("x.npy", np.random.default_rng(0).random((4, 1, 8, 8), np.float32))
    holds("eval", accepted(glowc, "eval", DIGITS, "--float", FLOAT, "--data", "x.npy", "--json"))


@pytest.mark.qemu
def test_commands_that_run_under_qemu(glowc: Glowc) -> None:
    require_tool("arm-none-eabi-gcc", "qemu-system-arm")
    accepted(glowc, "compile", DIGITS, "--board", "nucleo-l4r5zi", "--slice", "1ms", "-o", "out")
    holds("bench", accepted(glowc, "bench", "out", "--per-hour", "60", "--json"))
    holds("build", accepted(glowc, "build", DIGITS, "--board", "mps2-an386", "-o", "x.elf", "--json"))
    holds("tune", accepted(glowc, "tune", DIGITS, "--board", "mps2-an386", "-o", "t.json", "--json"))
    Path("models").mkdir()
    Path("models/digits.onnx").write_bytes(DIGITS.read_bytes())
    argv = ("--models", "models", "--boards", "mps2-an386", "-o", "m.sqlite")
    holds("matrix", accepted(glowc, "matrix", *argv, "--json"))


@pytest.mark.parametrize("number", [SCHEMA + 1, "1", None])
def test_report_of_a_newer_schema_is_refused(glowc: Glowc, bundle: Path, number: object) -> None:
    report = json.loads((bundle / "report.json").read_text())
    Path("new").mkdir()
    for name in ("new/report.json", "r.json"):
        Path(name).write_text(json.dumps({**report, "schema": number}))
    for argv in (("run", "new", "-i", "x.npz", "-o", "o.npz"), ("report", "r.json")):
        refused(glowc, *argv, says=[f"has schema {number!r}"], hint="update glowc")


def test_schemas_are_listed(glowc: Glowc) -> None:
    assert accepted(glowc, "schema").split() == list(documents())
    assert json.loads(accepted(glowc, "schema", "run"))["title"] == "run"
    refused(glowc, "schema", "rum", says=["no schema rum", 'did you mean "run"?'])
