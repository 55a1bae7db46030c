"""examples/firmware-cmake as its users run it: configured and built by CMake, tested by ctest in qemu-aarch64."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import onnx
import onnx.numpy_helper
import pytest

from tests.conftest import require_tool

pytestmark = pytest.mark.qemu

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "firmware-cmake"
GLOWC = Path(sys.executable).parent / "glowc"
FOREIGN = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CC", "CFLAGS", "LDFLAGS", "CMAKE_GENERATOR")
BUNDLE = ("sine.c", "sine.h", "sine_weights.c", "sine_golden.c", "report.json")


def run(folder: Path, *command: str, ok: bool = True) -> str:
    """Run a command in `folder` and return all it printed."""
    env = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert (done.returncode == 0) == ok, done.stdout
    return done.stdout


def configure(folder: Path, *options: str, ok: bool = True) -> str:
    toolchain = "-DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake"
    return run(folder, "cmake", "-B", "build", "-G", "Unix Makefiles", toolchain, *options, ok=ok)


def build(folder: Path) -> str:
    return run(folder, "cmake", "--build", "build", "-j2")


def bundle_times(folder: Path) -> dict[str, int]:
    return {name: (folder / "build" / "models" / "sine" / name).stat().st_mtime_ns for name in BUNDLE}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, copied, configured and built."""
    require_tool("cmake", "make", "aarch64-linux-gnu-gcc", "qemu-aarch64")
    folder = tmp_path_factory.mktemp("cmake") / "firmware"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build"))
    configure(folder, f"-DGLOWC_EXECUTABLE={GLOWC}")
    assert "with glowc" in build(folder)
    return folder


def test_ctest_runs_the_vectors_in_qemu(project: Path) -> None:
    output = run(project, "ctest", "--test-dir", "build", "-V")
    assert "sine: 20 of 20 ok" in output
    assert "qemu-aarch64" in output
    assert "100% tests passed, 0 tests failed out of 2" in output


def test_program_is_static_and_computes(project: Path) -> None:
    app = (project / "build" / "app").read_bytes()
    assert app[18:20] == b"\xb7\x00"  # e_machine: AArch64
    assert b"\x00.interp\x00" not in app
    assert run(project, "qemu-aarch64", "build/app", "3.9").startswith("sin(3.9) is about -0.6")


def test_second_build_does_nothing(project: Path) -> None:
    build(project)
    before, app = bundle_times(project), (project / "build" / "app").stat().st_mtime_ns
    output = build(project)
    assert "Building" not in output
    assert "with glowc" not in output
    assert (bundle_times(project), (project / "build" / "app").stat().st_mtime_ns) == (before, app)


@pytest.mark.parametrize("changed", ["sine.onnx", "sine_test.npz"])
def test_touched_model_is_compiled_again_and_nothing_is_built_for_equal_files(project: Path, changed: str) -> None:
    build(project)
    before, app = bundle_times(project), (project / "build" / "app").stat().st_mtime_ns
    time.sleep(0.02)
    (project / "models" / changed).touch()
    assert "with glowc" in build(project)
    assert (bundle_times(project), (project / "build" / "app").stat().st_mtime_ns) == (before, app)
    assert "with glowc" not in build(project)


def test_changed_model_is_compiled_and_linked_again(project: Path) -> None:
    build(project)
    model, before = project / "models" / "sine.onnx", bundle_times(project)
    app = (project / "build" / "app").stat().st_mtime_ns
    time.sleep(0.02)
    proto = onnx.load(model)
    weights = next(t for t in proto.graph.initializer if len(t.dims) == 2)
    changed = 1 - onnx.numpy_helper.to_array(weights)
    weights.CopyFrom(onnx.numpy_helper.from_array(changed.astype(changed.dtype), weights.name))
    original = model.read_bytes()
    model.write_bytes(proto.SerializeToString())
    assert "with glowc" in build(project)
    after = bundle_times(project)
    assert all(after[name] > before[name] for name in BUNDLE if name != "sine.h")
    assert (project / "build" / "app").stat().st_mtime_ns > app
    model.write_bytes(original)
    build(project)


def test_changed_source_does_not_run_glowc(project: Path) -> None:
    build(project)
    time.sleep(0.02)
    (project / "src" / "main.c").touch()
    output = build(project)
    assert "src/main.c.o" in output
    assert "with glowc" not in output


def test_changed_option_compiles_the_model_again(project: Path) -> None:
    build(project)
    time.sleep(0.02)
    lists = project / "CMakeLists.txt"
    text = lists.read_text()
    changed = text.replace("BOARD linux-aarch64", "BOARD linux-aarch64 CPU cortex-a76 OPTIONS --opt size")
    assert changed != text
    lists.write_text(changed)
    assert "with glowc" in build(project)
    assert "for cortex-a76" in (project / "build" / "models" / "sine" / "sine.h").read_text()
    assert "100% tests passed" in run(project, "ctest", "--test-dir", "build")


def test_c_for_another_core_says_so(tmp_path: Path) -> None:
    require_tool("cmake", "make", "aarch64-linux-gnu-gcc")
    folder = tmp_path / "firmware"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build"))
    lists = folder / "CMakeLists.txt"
    options = "OPTIONS --cpu cortex-a76 --opt speed"  # the model is so small that otherwise C for any core will do
    lists.write_text(lists.read_text().replace("BOARD linux-aarch64", f"BOARD linux-aarch64 {options}"))
    configure(folder, f"-DGLOWC_EXECUTABLE={GLOWC}")
    output = run(folder, "cmake", "--build", "build", ok=False)
    assert "sine is made for cortex-a76: compile it for that core, or make it for yours with glowc --cpu" in output


def test_missing_glowc_stops_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("cmake", "make", "aarch64-linux-gnu-gcc")
    folder = tmp_path / "firmware"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build"))
    without = [part for part in os.environ["PATH"].split(os.pathsep) if not (Path(part) / "glowc").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join(without))
    assert "glowc is not in PATH; give its place with" in configure(folder, ok=False)


def test_models_are_those_of_firmware_make() -> None:
    for name in ("sine.onnx", "sine_test.npz"):
        assert (EXAMPLE / "models" / name).read_bytes() == (
            ROOT / "examples" / "firmware-make" / "models" / name
        ).read_bytes()
