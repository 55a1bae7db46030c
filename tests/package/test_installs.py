"""Wheel, source archive, `pip install .` and `pip install -e .` find the same data files as the checkout."""

from __future__ import annotations

import json
import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.package.installs import DATA, Checkout, Install, installed, run

HOWS = ("wheel", "sdist", "folder", "editable")
LIST_DATA = """
import json, sys
from pathlib import Path
from glowc.paths import data_dir
found = {}
for name in sys.argv[1:]:
    base = data_dir(name)
    files = sorted(p.relative_to(base).as_posix() for p in base.rglob("*") if p.is_file())
    found[name] = [str(base), files]
print(json.dumps(found))
"""


@pytest.fixture(scope="module", params=HOWS)
def install(request: pytest.FixtureRequest, checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Install:
    how: str = request.param
    if how == "wheel":
        ready: Install = request.getfixturevalue("wheel")
        return ready
    return installed(how, checkout, tmp_path_factory.mktemp(how))


def ignored(name: str) -> bool:
    return "__pycache__" in name or ".mypy_cache" in name or name.endswith(".pyc")


def test_data_files_equal_the_checkout(checkout: Checkout, install: Install) -> None:
    found = json.loads(install.run("python", "-c", LIST_DATA, *DATA))
    for top in DATA:
        base, files = found[top]
        if install.how == "editable":  # the live folder, in which leftovers lie
            assert Path(base) == checkout.path / top
            files = [name for name in files if not ignored(name)]
        else:
            assert Path(base).is_relative_to(install.bin.parent)
            files = [name for name in files if "__pycache__" not in name or "left" in name]  # pip compiles examples
        assert files == sorted(checkout.data[top])


def test_command_line_starts(install: Install) -> None:
    assert "compile" in install.run("glowc", "--help")
    assert "compile" in install.run("python", "-m", "glowc", "--help")


def test_installed_package_is_not_the_checkout(install: Install) -> None:
    where = Path(install.run("python", "-c", "import glowc; print(glowc.__file__)").strip())
    assert not where.is_relative_to(ROOT)


def test_archives_hold_no_leftovers(checkout: Checkout) -> None:
    wheel = zipfile.ZipFile(checkout.wheel).namelist()
    with tarfile.open(checkout.sdist) as archive:
        sdist = archive.getnames()
    for names in (wheel, sdist):
        assert [name for name in names if "left" in Path(name).name] == []


def test_wheel_holds_one_top_level_package_and_the_licence(checkout: Checkout) -> None:
    names = zipfile.ZipFile(checkout.wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"glowc"}
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_page_of_the_package_has_no_links_into_the_checkout(checkout: Checkout) -> None:
    archive = zipfile.ZipFile(checkout.wheel)
    metadata = archive.read(next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))).decode()
    assert "docs/OUTPUT.md" in metadata
    assert re.findall(r"\]\((?!https?:)[^)]*\)", metadata) == []


def test_examples_come_with_the_package(install: Install, tmp_path: Path) -> None:
    assert "firmware-make" in install.run("glowc", "example")
    assert install.run("glowc", "docs", "wire") == (ROOT / "docs" / "WIRE.md").read_text()
    install.run("glowc", "example", "firmware-cmake", str(tmp_path / "mine"))
    assert (tmp_path / "mine/cmake/glowc.cmake").is_file()


def test_archives_are_equal_bytes_on_another_day(checkout: Checkout, tmp_path: Path) -> None:
    """Files have the time of SOURCE_DATE_EPOCH, or one that never changes; only equal contents count."""
    for path in (checkout.path / "glowc").glob("*.py"):
        os.utime(path, (1, 1))
    for kind in ("wheel", "sdist"):
        run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", tmp_path, cwd=checkout.path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in (checkout.wheel, checkout.sdist)
    }


def test_sdist_builds_the_same_wheel(checkout: Checkout, tmp_path: Path) -> None:
    build = ("wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, checkout.sdist)
    run(sys.executable, "-m", "pip", *build, cwd=tmp_path)
    assert next(tmp_path.glob("*.whl")).read_bytes() == checkout.wheel.read_bytes()
