"""What every test may use: required tools, the shared sample models, one cache folder for the whole run."""

from __future__ import annotations

import gc
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.unit.cli_calls import Glowc, Result

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # `from tests.kernels.case import make_case`, with any way to start pytest

_RUNTIME = ROOT / "runtime_c"
RUNTIME_DIRS = (_RUNTIME, *sorted({path.parent for path in _RUNTIME.rglob("glow_*.h")} - {_RUNTIME / "harness"}))
"""Where the headers lie that bundles have beside each other."""

_COMPILERS = ("cc", "gcc", "clang", "arm-none-eabi-gcc", "aarch64-linux-gnu-gcc", "arm-linux-gnueabihf-gcc")

_OBJECTS, _OBJECT_DAYS = "objects", 7
_CPU = Path("/proc/cpuinfo")

SHARED_MODELS = ROOT.parent / "shared" / "models"
SHARED_TFLITE = ROOT.parent / "shared" / "tflite"


def require(present: bool, what: str) -> None:
    """Skip saying `what` when something is missing; fail instead when GLOWC_REQUIRE_TOOLS=1."""
    if present:
        return
    if os.environ.get("GLOWC_REQUIRE_TOOLS") == "1":
        pytest.fail(f"{what} (GLOWC_REQUIRE_TOOLS=1)", pytrace=False)
    pytest.skip(what)


def require_tool(*names: str) -> None:
    """Skip, naming the first program that is not installed; fail instead when GLOWC_REQUIRE_TOOLS=1."""
    for name in names:
        require(shutil.which(name) is not None, f"{name} is not installed")


def require_module(name: str) -> Any:
    """Return a module; as `require_tool` when it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        require(False, f"{name} is not installed")
        raise


def require_tflite(*names: str) -> None:
    """As `require_module` for the packages of TFLite Micro; where they have no wheel, the tests at it are skipped."""
    for name in names or ("tflite_micro",):
        if importlib.util.find_spec(name) is None:
            has_wheel = sys.platform == "linux" and platform.machine() == "x86_64"
            if has_wheel and os.environ.get("GLOWC_REQUIRE_TOOLS") == "1":
                pytest.fail(f"{name} is not installed (GLOWC_REQUIRE_TOOLS=1)", pytrace=False)
            pytest.skip(f"{name} is not installed", allow_module_level=True)


@pytest.fixture(name="require_tool", scope="session")
def _require_tool() -> object:
    """`require_tool("qemu-system-arm")`: the function of that name, as a fixture."""
    return require_tool


@pytest.fixture(scope="session")
def shared_models() -> Path:
    """Folder of the sample models beside the repository; they are no part of it, so absence is always a skip."""
    if not SHARED_MODELS.is_dir():
        pytest.skip("models not found at ../shared/models")
    return SHARED_MODELS


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of a run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def _session_cache(run_folder: Path) -> object:
    """Keep compiled templates and plugins out of the user's cache; all workers of a run share one folder."""
    if "GLOWC_CACHE_DIR" in os.environ:
        yield
        return
    folder = run_folder / "cache"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLOWC_CACHE_DIR", str(folder))
        yield


def pytest_collection_finish() -> None:
    """Leave what all tests share out of every later collection of garbage: a fifth of the CPU time of some."""
    gc.collect()
    gc.freeze()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Forget objects that were compiled long ago."""
    cache = getattr(session.config, "cache", None)
    if cache is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        remove_older(cache.mkdir(_OBJECTS), time.time() - _OBJECT_DAYS * 24 * 3600)


def remove_older(folder: Path, time_s: float) -> None:
    """Remove the files of a folder that were written before a time; another run may remove some, too."""
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time_s:
                path.unlink()


@pytest.fixture(scope="session", autouse=True)
def _compile_once(run_folder: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> object:
    """Let compilers compile each text once, for processes that tests start, too (tests/compile_once.sh).

    Objects are kept from run to run, as pytest keeps its cache: `--cache-clear` compiles all again.
    """
    cache, folder = getattr(pytestconfig, "cache", None), tmp_path_factory.mktemp("compilers")
    store = run_folder / _OBJECTS if cache is None else cache.mkdir(_OBJECTS)
    store.mkdir(exist_ok=True)
    script = Path(__file__).with_name("compile_once.sh")
    for name, real in ((name, shutil.which(name)) for name in _COMPILERS):
        if real is not None:
            who = f"real='{real}' version='{_version(real)}' store='{store}'"
            (folder / name).write_text(f"#!/bin/sh\n{who}\n. '{script}'\n")
            (folder / name).chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder), prepend=os.pathsep)
        yield


def _version(compiler: str) -> str:
    """Return what differs where another object is made of the same text: a compiler's parts, the CPU of "native"."""
    names = [_said(compiler, f"-print-prog-name={name}").strip() for name in ("cc1", "as", "ld")]
    parts = [(path, Path(path).stat().st_mtime_ns) for path in map(shutil.which, names) if path]
    cpu = (
        next((line for line in _CPU.read_text().splitlines() if line.startswith("flags")), "") if _CPU.exists() else ""
    )
    return sha256(repr((_said(compiler, "--version"), parts, cpu)).encode()).hexdigest()


def _said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


@pytest.fixture(autouse=True)
def _own_random_numbers(request: pytest.FixtureRequest) -> None:
    """Seed the generators that a test module shares by the test's name: its data depend on no test before it."""
    fresh = np.random.default_rng(zlib.crc32(request.node.name.encode())).bit_generator.state
    shared = sys.modules.get("tests.unit.quirk_models")
    for module in (request.module, shared):
        generator = getattr(module, "RNG", None)
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = fresh


@pytest.fixture
def glowc(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Glowc:
    """Run the command line in this process, in a folder of its own."""
    from glowc.app import cli
    from tests.unit.cli_calls import Result

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "_debug", False)

    def call(*argv: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["glowc", *map(str, argv)])
        capsys.readouterr()
        status: object = 0
        try:
            cli.main()
        except SystemExit as stop:
            status = stop.code
        printed = capsys.readouterr()
        return Result(int(str(status or 0)), printed.out, printed.err)

    return call
