"""`glowc compile --format`: what build systems ask of their files, as far as rules say it; whose files are replaced."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from glowc.app.export import Format
from glowc.board import load_board
from glowc.codegen.export import FOLDER, FORMS, SINGLE
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.errors import InputError
from tests.conftest import ROOT, require_module
from tests.unit.cli_calls import DIGITS, Glowc, refused, tree

SINE = ROOT / "examples/firmware-cmake/models/sine.onnx"
SINE_TEST = ROOT / "examples/firmware-cmake/models/sine_test.npz"
PLUGIN = ROOT / "examples/custom-op"
SEMVER = r"\d+\.\d+\.\d+"


@pytest.fixture
def made(glowc: Glowc) -> Glowc:
    """Compile a model in a format into `out`."""

    def call(form: str, *more: object) -> object:
        result = glowc("compile", SINE, "-o", "out", "--format", form, *more)
        assert result.status == 0, result.err
        return result

    return call  # type: ignore[return-value]


def test_formats_of_the_command_are_those_of_the_printer() -> None:
    assert [form.value for form in Format] == [FOLDER, *FORMS]
    assert {path.name for path in (ROOT / "templates/export").iterdir()} == set(FORMS)


@pytest.mark.parametrize("form", FORMS)
def test_report_lists_every_file_and_each_names_its_licence(made: Glowc, form: str) -> None:
    made(form, "--golden", SINE_TEST, "--board", "mps2-an386" if form != "esp-idf" else "host")
    report = json.loads(Path("out/report.json").read_text())
    files = sorted(path.relative_to("out").as_posix() for path in Path("out").rglob("*") if path.is_file())
    assert report["files"] == files
    assert report["format"] == form
    assert [entry["name"] for entry in report["sbom"]["files"]] == [name for name in files if name != "report.json"]
    without = {name for name in files if "MIT-0" not in (Path("out") / name).read_text()}
    assert without <= {"report.json", "library.properties", "keywords.txt"}
    assert "{%" not in "".join((Path("out") / name).read_text() for name in files)


def test_plain_folder_says_nothing_of_formats(made: Glowc) -> None:
    made("folder")
    assert "format" not in json.loads(Path("out/report.json").read_text())


def test_single_is_one_header_and_one_source(made: Glowc) -> None:
    made("single", "--board", "mps3-an547")
    assert sorted(path.name for path in Path("out").iterdir()) == ["README.md", "report.json", "sine.c", "sine.h"]
    included = re.findall(r'^#include "(.*)"', Path("out/sine.c").read_text() + Path("out/sine.h").read_text(), re.M)
    assert included == ["sine.h"]


def test_single_keeps_what_it_shares_once(glowc: Glowc) -> None:
    """A header that several headers include, some of them under a condition, is there no more often than needed."""
    assert glowc("compile", DIGITS, "-o", "out", "--format", "single", "--board", "mps3-an547").status == 0
    text = Path("out/digits.c").read_text()
    guards = re.findall(r"^#ifndef (GLOW_\w+_H)$", text, re.M)
    assert len(guards) > 5
    assert [guard for guard in set(guards) if guards.count(guard) > 2] == []


def test_single_leaves_the_files_of_a_plugin_apart(glowc: Glowc) -> None:
    argv = ("--plugin", PLUGIN / "my_ops.py", "--format", "single")
    assert glowc("compile", PLUGIN / "model.onnx", "-o", "out", *argv).status == 0
    assert Path("out/frame_energy.c").read_text() == (PLUGIN / "frame_energy.c").read_text()
    assert '#include "frame_energy.h"' in Path("out/model.c").read_text()


def test_zephyr_module_is_read_by_its_tools(made: Glowc) -> None:
    kconfiglib, yaml = require_module("kconfiglib"), require_module("yaml")
    made("zephyr", "--golden", SINE_TEST)
    module = yaml.safe_load(Path("out/zephyr/module.yml").read_text())
    assert re.fullmatch(r"[A-Za-z0-9_-]+", module["name"])
    assert (Path("out") / module["build"]["cmake"] / "CMakeLists.txt").is_file()
    kconfig = kconfiglib.Kconfig(str(Path("out") / module["build"]["kconfig"]), warn=False)
    assert kconfig.syms["GLOWC_SINE"].str_value == "n"
    kconfig.syms["GLOWC_SINE"].set_value("y")
    assert kconfig.syms["GLOWC_SINE_STATIC_ARENA"].str_value == "y"
    used = set(re.findall(r"CONFIG_(\w+)", Path("out/CMakeLists.txt").read_text()))
    assert used == {name for name in kconfig.syms if name.startswith("GLOWC_")}


def test_arduino_library_follows_the_specification(made: Glowc) -> None:
    """Arduino library specification, revision 2.2: fields, their forms, folders."""
    made("arduino")
    fields = dict(line.split("=", 1) for line in Path("out/library.properties").read_text().splitlines())
    required = "name version author maintainer sentence paragraph category url architectures"
    assert set(required.split()) <= set(fields)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}", fields["name"])
    assert not fields["name"].lower().startswith("arduino")
    assert re.fullmatch(SEMVER, fields["version"])
    assert fields["category"] in ("Communication", "Data Processing", "Data Storage", "Device Control", "Display",
                                  "Other", "Sensors", "Signal Input/Output", "Timing", "Uncategorized")  # fmt: skip
    assert (Path("out/src") / fields["includes"]).is_file()
    sketches = list(Path("out/examples").rglob("*.ino"))
    assert [path.stem for path in sketches] == [path.parent.name for path in sketches] == ["sine"]
    assert not list(Path("out").glob("*.[ch]"))
    for line in Path("out/keywords.txt").read_text().splitlines():
        assert re.fullmatch(r"\w+\t(KEYWORD[123]|LITERAL[12])", line), "a tab between, no spaces"


def test_platformio_library_follows_its_rules(made: Glowc) -> None:
    made("platformio")
    library = json.loads(Path("out/library.json").read_text())
    assert set(library) <= {"name", "version", "description", "keywords", "license", "frameworks", "platforms",
                            "headers", "build"}  # fmt: skip
    assert re.fullmatch(r"[a-zA-Z0-9 +_.-]{1,100}", library["name"])
    assert re.fullmatch(SEMVER, library["version"])
    assert set(library["build"]) <= {"flags", "srcDir", "includeDir"}
    assert (Path("out") / library["build"]["srcDir"] / library["headers"]).is_file()


def test_pack_description_has_what_the_schema_requires(made: Glowc) -> None:
    """The rules of PACK.xsd that concern these elements: which are required, what names and versions look like."""
    made("cmsis-pack")
    path = Path("out/glowc.sine.pdsc")
    package = ElementTree.parse(path).getroot()
    assert package.tag == "package"
    assert re.fullmatch(r"1\.7\.\d+", package.attrib["schemaVersion"])
    tags = [child.tag for child in package]
    assert len(tags) == len(set(tags))
    assert {"vendor", "name", "description", "url", "releases"} <= set(tags)
    assert set(tags) <= {"vendor", "name", "description", "url", "releases", "keywords", "components"}
    names = [package.findtext("vendor"), package.findtext("name")]
    assert all(re.fullmatch(r"[-_A-Za-z0-9]+", name or "") for name in names)
    assert path.stem == ".".join(str(name) for name in names)
    releases = package.findall("releases/release")
    assert releases
    assert all(re.fullmatch(SEMVER, release.attrib["version"]) for release in releases)
    (component,) = package.findall("components/component")
    assert {"Cclass", "Cgroup", "Cversion"} <= set(component.attrib)
    assert [child.tag for child in component] == ["description", "files"]
    for file in component.findall("files/file"):
        assert file.attrib["category"] in ("doc", "header", "include", "sourceC")
        assert (Path("out") / file.attrib["name"]).exists()


def test_layers_and_components_are_yaml_that_names_files(made: Glowc) -> None:
    yaml = require_module("yaml")
    made("cmsis-pack")
    layer = yaml.safe_load(Path("out/sine.clayer.yml").read_text())["layer"]
    assert set(layer) <= {"type", "description", "add-path", "groups"}
    assert all((Path("out") / file["file"]).is_file() for group in layer["groups"] for file in group["files"])
    made("esp-idf")
    component = yaml.safe_load(Path("out/idf_component.yml").read_text())
    assert set(component) == {"version", "description", "license", "dependencies"}
    assert re.fullmatch(SEMVER, component["version"])


# ---- whose files ----


def test_another_format_replaces_the_earlier_one_whole(made: Glowc) -> None:
    made("arduino")
    Path("out/src/mine.c").write_text("mine")
    made("zephyr")
    made("folder")
    left = {path.name for path in Path("out").iterdir() if path.is_dir()}
    assert left == {"src"}
    assert [path.name for path in Path("out/src").iterdir()] == ["mine.c"]


def test_description_of_another_model_is_not_replaced(glowc: Glowc) -> None:
    assert glowc("compile", SINE, "-o", "out", "--format", "cmake").status == 0
    for form in ("cmake", "folder"):
        refused(glowc, "compile", DIGITS, "-o", "out", "--format", form, says=["holds the model sine"], hint="-o DIR")
    assert glowc("compile", DIGITS, "-o", "out", "--format", "cmake", "--force").status == 0


def test_file_of_others_inside_is_in_the_way(made: Glowc, glowc: Glowc) -> None:
    made("folder")
    Path("out/src").mkdir()
    Path("out/src/sine.c").write_text("mine")
    refused(glowc, "compile", SINE, "-o", "out", "--format", "zephyr", says=["src/sine.c"], hint="--force")


def test_folder_that_leads_elsewhere_is_not_followed(made: Glowc, glowc: Glowc) -> None:
    made("folder")
    Path("elsewhere").mkdir()
    Path("out/src").symlink_to(Path("elsewhere").resolve())
    refused(glowc, "compile", SINE, "-o", "out", "--format", "zephyr", "--force", says=["src in it is no folder"])


def test_wrong_format_is_the_users_mistake(glowc: Glowc) -> None:
    with pytest.raises(InputError, match="form='zip': one of folder, single"):
        compile_model(SINE, load_board("host"), CompileOptions(form="zip"))
    assert glowc("compile", SINE, "-o", "out", "--format", "zip").status == 1


# ---- examples ----


def test_examples_are_listed_and_copied_whole(glowc: Glowc) -> None:
    listed = glowc("example").out
    assert "firmware-make" in listed
    assert "digits" in listed
    assert glowc("example", "firmware-cmake", "deep/mine").status == 0
    here, there = tree(Path("deep/mine")), tree(ROOT / "examples/firmware-cmake")
    assert here == {name: content for name, content in there.items() if "build" not in name.split("/")}
    assert sorted(path.name for path in Path("deep").iterdir()) == ["mine"]
    assert glowc("example", "arduino").status == 0
    assert Path("arduino/README.md").is_file()


def test_examples_never_replace_files(glowc: Glowc) -> None:
    Path("mine").mkdir()
    Path("mine/main.c").write_text("mine")
    refused(glowc, "example", "digits", "mine", says=["mine is there already"], hint="new folder")
    Path("digits").write_text("mine")
    refused(glowc, "example", "digits", says=["digits is there already"], hint="new folder")
    result = glowc("example", "digit", "new")
    assert (result.status, "known: accelerator, arduino, custom-op" in result.err) == (1, True)


def test_exported_folder_runs_as_a_bundle(made: Glowc, glowc: Glowc) -> None:
    """`run` finds the sources wherever the format has them."""
    for form in (SINGLE, "zephyr"):
        made(form)
        result = glowc("run", "out", "--input", SINE_TEST, "--output", "o.npz")
        assert result.status == 0, result.err
