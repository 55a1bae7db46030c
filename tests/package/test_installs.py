"""Wheel, source archive, `pip install .` and `pip install -e .` find the same data files as the checkout.

Everything happens in a copy of the checkout that also holds what a build leaves after, so that a
packed leftover is seen. Each install gets a virtual environment of its own; only the dependencies are
borrowed from the environment that runs the tests, so nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ("templates", "runtime_c", "boards", "docs", "examples")
LEFTOVERS = ("{}/__pycache__/left.cpython-311.pyc", "{}/left.pyc", "{}/.mypy_cache/left.json")
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


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command away from the checkout and return what it printed; show all of it when it fails."""
    drop = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    env = {key: value for key, value in os.environ.items() if key not in drop}
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def listed_by_git() -> list[str]:
    """Return the files of the checkout that are tracked, or new and not ignored."""
    listing = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    return sorted({name for name in listing.split("\0") if name and (ROOT / name).is_file()})


@dataclass(frozen=True)
class Checkout:
    """A copy of the checkout, and what git lists in each data folder of it."""

    path: Path
    data: dict[str, list[str]]
    archives: Path

    @property
    def wheel(self) -> Path:
        return next(self.archives.glob("*.whl"))

    @property
    def sdist(self) -> Path:
        return next(self.archives.glob("*.tar.gz"))


@dataclass(frozen=True)
class Install:
    """An environment into which glowc was installed in one of the four ways."""

    how: str
    bin: Path
    empty: Path

    def run(self, program: str, *arguments: str) -> str:
        return run(self.bin / program, *arguments, cwd=self.empty)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    folder = tmp_path_factory.mktemp("package")
    path, archives = folder / "checkout", folder / "archives"
    names = listed_by_git()
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, path / name)
    for pattern in LEFTOVERS:
        for top in ("glowc", *DATA):
            leftover = path / pattern.format(top)
            leftover.parent.mkdir(parents=True, exist_ok=True)
            leftover.write_bytes(b"left over")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", archives, cwd=path)
    build = ("wheel", "--no-deps", "--no-build-isolation", "-w", archives, ".")
    run(sys.executable, "-m", "pip", *build, cwd=path)
    data = {top: [n.removeprefix(f"{top}/") for n in names if n.startswith(f"{top}/")] for top in DATA}
    return Checkout(path, data, archives)


@pytest.fixture(scope="module", params=HOWS)
def install(request: pytest.FixtureRequest, checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Install:
    how: str = request.param
    what: dict[str, list[str | Path]] = {
        "wheel": [checkout.wheel],
        "sdist": [checkout.sdist],
        "folder": [checkout.path],
        "editable": ["-e", checkout.path],
    }
    folder = tmp_path_factory.mktemp(how)
    home, empty = folder / "venv", folder / "empty"
    empty.mkdir()
    venv.create(home, with_pip=False, symlinks=True)
    paths = {"base": str(home), "platbase": str(home)}
    # A path file adds the dependencies after the environment's own packages; path files in there,
    # such as the one of an editable glowc, are not followed.
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    (site / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = home / "bin" / "python"
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed", "-q")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, *what[how], cwd=empty)
    return Install(how, home / "bin", empty)


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
    install.run("glowc", "example", "firmware-cmake", str(tmp_path / "mine"))
    assert (tmp_path / "mine/cmake/glowc.cmake").is_file()


def test_sdist_builds_the_same_wheel(checkout: Checkout, tmp_path: Path) -> None:
    build = ("wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, checkout.sdist)
    run(sys.executable, "-m", "pip", *build, cwd=tmp_path)
    assert next(tmp_path.glob("*.whl")).read_bytes() == checkout.wheel.read_bytes()
