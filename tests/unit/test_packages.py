"""What packages say of their maker: given by options, kept when the model is compiled again, for the right core."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import ROOT
from tests.unit.cli_calls import DIGITS, Glowc, refused

SINE = ROOT / "examples/firmware-cmake/models/sine.onnx"
EDITS = {
    "arduino": ("library.properties", [("author=glowc", "author=Me"), ("version=0.1.0", "version=3.2.1"),
                                       ("architectures=.*", "architectures=mbed_nano"), ("$", "\ndepends=Servo")]),
    "platformio": ("library.json", [('"0.1.0"', '"3.2.1"'), ('"name"', '"authors": [{"name": "Me"}],\n  "name"')]),
    "esp-idf": ("idf_component.yml", [('"0.1.0"', '"3.2.1"'), ("license: MIT-0", "license: Apache-2.0")]),
    "cmsis-pack": ("glowc.sine.pdsc", [("<vendor>glowc", "<vendor>Me"), ('"0.1.0"', '"3.2.1"')]),
}  # fmt: skip


def _compile(glowc: Glowc, form: str, *more: str, board: str = "host", model: Path = SINE) -> None:
    result = glowc("compile", model, "-o", "out", "--board", board, "--format", form, *more)
    assert result.status == 0, result.err


@pytest.mark.parametrize("form", EDITS)
def test_edited_description_is_kept_when_the_model_is_compiled_again(glowc: Glowc, form: str) -> None:
    name, edits = EDITS[form]
    _compile(glowc, form)
    file = Path("out") / name
    for old, new in edits:
        file.write_text(re.sub(old, new, file.read_text(), count=0 if old == '"0.1.0"' else 1))
    edited = file.read_text()
    for more in ((), ("--opt", "size")):
        _compile(glowc, form, *more)
        found = file.read_text()
        if form == "platformio":
            assert json.loads(found) == json.loads(edited)
        else:
            assert sorted(found.split()) == sorted(edited.split())
    listed = json.loads(Path("out/report.json").read_text())["sbom"]["files"]
    assert {f["sha256"] for f in listed if f["name"] == name} == {hashlib.sha256(found.encode()).hexdigest()}


def test_description_that_nobody_edited_is_the_new_one(glowc: Glowc) -> None:
    _compile(glowc, "arduino", board="nano33-ble")
    first = Path("out/library.properties").read_text()
    _compile(glowc, "arduino", "--opt", "size", board="microbit")
    assert "cortex-m0." in Path("out/library.properties").read_text()
    _compile(glowc, "arduino", board="nano33-ble")
    assert Path("out/library.properties").read_text() == first


def test_fields_are_given_by_options_and_kept_without_them(glowc: Glowc) -> None:
    given = ("author=Ada", "maintainer=Ada <ada@example.org>", "version=1.2.0", "url=https://example.org/sine")
    _compile(glowc, "arduino", *(text for pair in given for text in ("--package", pair)))
    _compile(glowc, "arduino")
    lines = Path("out/library.properties").read_text().splitlines()
    assert {*given} <= {*lines}
    _compile(glowc, "arduino", "--package", "version=1.3.0")
    assert "version=1.3.0" in Path("out/library.properties").read_text()
    assert "author=Ada" in Path("out/library.properties").read_text()


@pytest.mark.parametrize("form", ["platformio", "esp-idf", "cmsis-pack", "cmake"])
def test_every_package_has_the_fields_of_options(glowc: Glowc, form: str) -> None:
    _compile(glowc, form, "--package", "author=Ada", "--package", "version=1.2.0")
    texts = {path.name: path.read_text() for path in Path("out").rglob("*.*") if path.suffix not in (".c", ".h", ".md")}
    assert "1.2.0" in "".join(text for name, text in texts.items() if name != "report.json")
    if form == "platformio":
        assert json.loads(texts["library.json"])["authors"] == [{"name": "Ada"}]
    if form == "cmsis-pack":
        assert ElementTree.fromstring(texts["glowc.sine.pdsc"]).findtext("vendor") == "Ada"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--package", "author"), "a field is KEY=VALUE"),
        (("--package", "colour=red"), "no such field"),
        (("--package", "version=1"), "three numbers"),
        (("--package", "author=a<b"), "have a meaning"),
        (("--package", "author=a\nb=c"), "have a meaning"),
        (("--package", "author=Ada", "--format", "folder"), "is no package"),
    ],
)
def test_wrong_fields_are_refused(glowc: Glowc, more: tuple[str, ...], says: str) -> None:
    refused(glowc, "compile", SINE, "-o", "out", "--format", "arduino", *more, says=[says])


def test_component_for_esp_idf_with_kernels_of_another_core_is_refused(glowc: Glowc) -> None:
    argv = ("compile", SINE, "-o", "out", "--format", "esp-idf")
    refused(glowc, *argv, "-b", "nrf52840-dk", says=["cortex-m4", "ESP-IDF"], hint="--board host")
    assert glowc(*argv, "-b", "host").status == 0


@pytest.mark.parametrize(
    ("board", "arduino", "platforms"),
    [("nano33-ble", "mbed_nano", "nordicnrf52"), ("teensy41", "avr", "teensy"), ("host", r"\*", r"\*")],
)
def test_packages_name_the_architectures_that_have_the_core(
    glowc: Glowc, board: str, arduino: str, platforms: str
) -> None:
    _compile(glowc, "arduino", board=board, model=DIGITS)
    found = re.search("^architectures=(.*)$", Path("out/library.properties").read_text(), re.M)
    assert found is not None
    assert re.search(arduino, found[1])
    assert ("esp32" in found[1]) is False
    assert (found[1] == "*") == (board == "host")
    _compile(glowc, "platformio", board=board, model=DIGITS)
    assert re.search(platforms, str(json.loads(Path("out/library.json").read_text())["platforms"]))
