"""Environments of their own into which glowc is installed, from a copy of the checkout.

The copy also holds what a build leaves after, so that a packed leftover is seen. Only the dependencies are borrowed
from the environment that runs the tests, so nothing is downloaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

DATA = ("templates", "runtime_c", "boards", "docs", "examples")
LEFTOVERS = ("{}/__pycache__/left.cpython-311.pyc", "{}/left.pyc", "{}/.mypy_cache/left.json")


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


def copied_checkout(folder: Path) -> Checkout:
    """Copy the checkout into a folder, with leftovers, and build its two archives."""
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


def installed(how: str, checkout: Checkout, folder: Path) -> Install:
    """Install glowc from its wheel, its source archive (`sdist`), its `folder`, or that as `editable`."""
    what: dict[str, list[str | Path]] = {
        "wheel": [checkout.wheel],
        "sdist": [checkout.sdist],
        "folder": [checkout.path],
        "editable": ["-e", checkout.path],
    }
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
