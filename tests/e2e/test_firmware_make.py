"""examples/firmware-make as its users run it: built by make, tested in QEMU without Python, built again only
where something changed. Also the test vectors of a bundle (`glowc compile --golden`) in C.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.conftest import require_tool

pytestmark = pytest.mark.qemu

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "firmware-make"
GLOWC = Path(sys.executable).parent / "glowc"
STRICT = ("-std=c11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror")
# Set by a make that runs the tests, or by the user's shell: not for the make under test.
FOREIGN = (
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "CROSS",
    "CPU",
    "OPT",
    "BUILD",
    "PROFILE",
    "CONTROL",
    "V",
    "QEMU",
    "GLOWC",
)


def make(folder: Path, *arguments: str, path: str | None = None, ok: bool = True) -> str:
    """Run make in `folder` and return all it printed."""
    env = {key: value for key, value in os.environ.items() if key not in FOREIGN}
    env["PATH"] = path or env["PATH"]
    if not any(a.startswith("GLOWC=") for a in arguments):
        env["GLOWC"] = str(GLOWC)
    command = [str(shutil.which("make")), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert (done.returncode == 0) == ok, done.stdout
    return done.stdout


def times(folder: Path) -> dict[str, int]:
    """Return when each file under build/ was written."""
    build = folder / "build"
    return {str(p.relative_to(build)): p.stat().st_mtime_ns for p in build.rglob("*") if p.is_file()}


def compiled_models(output: str) -> list[str]:
    """Return the models that glowc compiled, by the commands that make printed."""
    return sorted(re.findall(r"^\S*glowc compile models/(\w+)\.onnx ", output, re.MULTILINE))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The example, copied and built, and what make printed."""
    require_tool("make", "arm-none-eabi-gcc", "qemu-system-arm")
    folder = tmp_path_factory.mktemp("make") / "firmware"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build"))
    return folder, make(folder, "-j2")


@pytest.fixture
def project(built: tuple[Path, str], tmp_path: Path) -> Path:
    """A built copy of the example that the test may change; times of files are kept."""
    folder = tmp_path / "firmware"
    shutil.copytree(built[0], folder)
    time.sleep(0.02)  # what the test writes is newer, on any file system's clock
    return folder


def test_builds_both_bundles_in_one_parallel_make(built: tuple[Path, str]) -> None:
    folder, output = built
    assert compiled_models(output) == ["digits", "sine"]
    assert (folder / "build" / "firmware.elf").is_file()
    for model in ("digits", "sine"):
        assert (folder / "build" / "models" / model / f"{model}_golden.o").is_file()


def test_control_is_no_later_than_a_step_is_long(project: Path) -> None:
    """QEMU counts instructions as time, so that the figure is the same on every machine."""
    output = make(project, "CONTROL=1", "qemu-test")
    found = re.search(r"20 digits right in (\d+) periods; control began at most (\d+) us late", output)
    assert found is not None, output
    assert int(found[1]) >= 20
    assert 0 < int(found[2]) <= 250


def test_second_make_does_nothing(project: Path) -> None:
    before = times(project)
    assert make(project).strip() == "make: Nothing to be done for 'all'."
    make(project, "-q")
    assert times(project) == before


def test_qemu_test_needs_no_python(project: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "make", "cat", "echo", "mkdir", "arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm"):
        (tools / name).symlink_to(str(shutil.which(name)))
    assert shutil.which("python3", path=str(tools)) is None
    (project / "src" / "main.c").touch()
    output = make(project, "GLOWC=/bin/false", "qemu-test", path=str(tools))
    assert "CC    build/main.o" in output
    assert "the first picture shows a 3" in output
    assert re.search(r"^digits: 20 of 20 ok$", output, re.MULTILINE)
    assert re.search(r"^sine: 20 of 20 ok$", output, re.MULTILINE)


def test_wrong_output_fails_the_qemu_test(project: Path) -> None:
    vectors = project / "build" / "models" / "sine" / "sine_golden.c"
    text = vectors.read_text()
    head, _, tail = text.partition("sine_golden_output")
    wrong = re.sub(r"\n  (-?\d+),", lambda m: f"\n  {int(m[1]) ^ 1},", tail, count=1)
    assert wrong != tail
    vectors.write_text(f"{head}sine_golden_output{wrong}")
    output = make(project, "qemu-test", ok=False)
    assert "digits: 20 of 20 ok" in output
    assert "sine: 19 of 20 ok" in output


@pytest.mark.parametrize("changed", ["sine.onnx", "sine_test.npz"])
def test_touching_a_model_writes_its_bundle_again_and_builds_nothing(project: Path, changed: str) -> None:
    model = re.split(r"[._]", changed)[0]
    before = times(project)
    (project / "models" / changed).touch()
    output = make(project, "-j2")
    after = times(project)
    assert compiled_models(output) == [model]
    assert {f for f in before if after[f] != before[f]} == {f"models/{model}/bundle.stamp"}  # the rest has equal bytes
    make(project)
    assert times(project) == after


def test_changed_model_rebuilds_its_objects_and_no_others(project: Path) -> None:
    shutil.copy(project / "models/digits.onnx", project / "models/sine.onnx")
    (project / "models/sine_test.npz").unlink()
    before = times(project)
    make(project, "build/models/sine/sine.o", "build/models/digits/digits.o")
    after = times(project)
    for name in ("sine.c", "sine_weights.c", "report.json", "bundle.stamp", "sine.o"):
        assert after[f"models/sine/{name}"] > before[f"models/sine/{name}"], name
    assert {f: t for f, t in after.items() if "digits" in f} == {f: t for f, t in before.items() if "digits" in f}


def test_lost_file_of_a_bundle_is_written_again(project: Path) -> None:
    (project / "build" / "models" / "sine" / "sine_weights.c").unlink()
    assert compiled_models(make(project, "-j2")) == ["sine"]
    assert "Nothing to be done" in make(project)


def test_changed_options_rebuild_the_bundles(project: Path) -> None:
    options = "GLOWC_FLAGS=--board 'mps2-an386' --opt size"  # a quote must survive the stamp
    assert compiled_models(make(project, options)) == ["digits", "sine"]
    assert "Nothing to be done" in make(project, options)
    one = "GLOWC_FLAGS_sine=--opt speed"
    assert compiled_models(make(project, options, one)) == ["sine"]


def test_a_source_recompiles_alone(project: Path) -> None:
    (project / "src" / "semihost.c").touch()
    output = make(project)
    assert compiled_models(output) == []
    assert re.findall(r"CC +(\S+)", output) == ["build/semihost.o"]


def test_cross_prefix_is_the_projects(project: Path, tmp_path: Path) -> None:
    tools = tmp_path / "cross"
    tools.mkdir()
    for name in ("gcc", "size"):
        real, log = shutil.which(f"arm-none-eabi-{name}"), tools / "log"
        wrapper = tools / f"mine-{name}"
        wrapper.write_text(f'#!/bin/sh\necho {name} >> "{log}"\nexec "{real}" "$@"\n')
        wrapper.chmod(0o755)
    cross = f"CROSS={tools}/mine-"
    output = make(project, cross, "-j2")
    assert compiled_models(output) == []  # C depends on the CPU chosen for glowc, not on the compiler
    objects = re.findall(r"CC +(\S+)", output)
    assert len(objects) == 9
    assert (tools / "log").read_text().split() == ["gcc"] * (len(objects) + 1) + ["size"]
    assert "Nothing to be done" in make(project, cross)


def test_profile_prints_every_layer(project: Path) -> None:
    output = make(project, "PROFILE=1", "qemu-test")
    ticks = re.findall(r"^(\w+) layer (\d+) ([\w/]+): (\d+) ticks$", output, re.MULTILINE)
    models = project / "build" / "models"
    for model in ("digits", "sine"):
        count = re.findall(r"_LAYER_COUNT (\d+)u", (models / model / f"{model}.h").read_text())
        assert [int(layer) for name, layer, _, _ in ticks if name == model] == list(range(int(count[0])))
    assert any(name == "stem" and int(count) > 100 for _, _, name, count in ticks)
    assert output.endswith(make(project, "PROFILE=1", "V=1", "qemu-test").partition(".elf\n")[2])  # same counts
    assert "ticks" not in make(project, "qemu-test")


def test_weights_and_arena_are_where_placement_says(built: tuple[Path, str]) -> None:
    table = subprocess.run(
        ["arm-none-eabi-nm", built[0] / "build" / "firmware.elf"], capture_output=True, text=True, check=True
    ).stdout
    symbols = {name: int(address, 16) for address, _, name in map(str.split, table.splitlines())}
    assert 0x20000000 <= symbols["arena"] < 0x20400000
    assert not {"digits_arena", "sine_arena", "malloc", "_sbrk"} & symbols.keys()
    weights = {name for name in symbols if re.match(r"(digits|sine)_w_", name)}
    assert {name.split("_")[0] for name in weights} == {"digits", "sine"}
    assert all(0x21000000 <= symbols[name] < 0x22000000 for name in weights)


def test_missing_model_names_the_file(project: Path) -> None:
    (project / "models" / "sine.onnx").unlink()
    assert "No rule to make target 'models/sine.onnx'" in make(project, ok=False)


def test_broken_model_stops_make_and_is_tried_again(project: Path) -> None:
    (project / "models" / "sine.onnx").write_text("no model")
    for _ in range(2):
        assert "error[GL0101]: models/sine.onnx is not an ONNX file" in make(project, ok=False)


def test_clean_needs_no_glowc(project: Path) -> None:
    make(project, "GLOWC=/bin/false", "clean")
    assert not (project / "build").exists()


def test_make_include_names_the_shipped_fragment() -> None:
    done = subprocess.run([GLOWC, "make-include"], capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == ROOT / "runtime_c" / "make" / "glowc.mk"


def test_models_are_what_their_script_writes(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_models", EXAMPLE / "models" / "make_models.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path)
    for name in ("digits", "sine"):
        assert onnx.load(EXAMPLE / "models" / f"{name}.onnx") == onnx.load(tmp_path / f"{name}.onnx")
        with np.load(EXAMPLE / "models" / f"{name}_test.npz") as old, np.load(tmp_path / f"{name}_test.npz") as new:
            assert old.files == new.files
            for key in old.files:
                np.testing.assert_array_equal(old[key], new[key])


# --- test vectors in C -------------------------------------------------------------------------------

GOLDEN_MAIN = r"""
#include <stdio.h>
#include "net_golden.h"
static _Alignas(NET_ARENA_ALIGN) unsigned char arena[NET_ARENA_BYTES + NET_ARENA_ALIGN];
int main(void) {
#ifdef NET_NO_STATIC_ARENA
  const unsigned own = 0u;
#else
  const unsigned own = (unsigned)net_golden_failures();
#endif
  printf("%u %u %u %u %u\n", own, (unsigned)net_golden_failures_in(arena, NET_ARENA_BYTES),
         (unsigned)net_golden_failures_in(arena, NET_ARENA_BYTES - 1u),
         (unsigned)net_golden_failures_in(arena + 1, NET_ARENA_BYTES), (unsigned)net_golden_failures_in(NULL, 9999u));
  return 0;
}
"""


def write_float_model(folder: Path) -> tuple[Path, Path]:
    """Write a float network y = relu(x @ w) and five inputs."""
    rng = np.random.default_rng(7)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(rng.standard_normal((8, 4)).astype(np.float32), "w")],
    )
    model, npz = folder / "net.onnx", folder / "net.npz"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), model)
    np.savez(npz, x=rng.standard_normal((5, 1, 8)).astype(np.float32))
    return model, npz


def golden_counts(bundle: Path, *flags: str) -> list[int]:
    """Build the bundle with its test vectors for this machine, and return the failures of each call."""
    (bundle / "main.c").write_text(GOLDEN_MAIN)
    sources = sorted(str(p) for p in bundle.glob("*.c"))
    program = bundle / "golden"
    built = subprocess.run(
        ["gcc", *STRICT, "-fsanitize=address,undefined", *flags, *sources, "-o", program, "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [int(n) for n in done.stdout.split()]


@pytest.mark.parametrize("kind", ["int8", "float"])
def test_golden_functions_with_and_without_a_static_arena(tmp_path: Path, kind: str) -> None:
    require_tool("gcc")
    model, npz = EXAMPLE / "models" / "sine.onnx", EXAMPLE / "models" / "sine_test.npz"
    if kind == "float":
        model, npz = write_float_model(tmp_path)
    bundle = tmp_path / "bundle"
    command: list[str | Path] = [
        GLOWC,
        "compile",
        model,
        "--board",
        "host",
        "--name",
        "net",
        "--golden",
        npz,
        "-o",
        bundle,
    ]
    subprocess.run(command, check=True, capture_output=True)
    count = {"int8": 20, "float": 5}[kind]
    expected = [0, 0, count, count, count]
    assert golden_counts(bundle) == expected
    assert golden_counts(bundle, "-DNET_NO_STATIC_ARENA") == expected
    vectors = bundle / "net_golden.c"
    head, _, tail = vectors.read_text().partition("net_golden_output")
    wrong = re.sub(r"\n  (-?[\d.e+-]+f?),", r"\n  \1 + 1,", tail, count=1)
    vectors.write_text(f"{head}net_golden_output{wrong}")
    assert golden_counts(bundle)[:2] == [1, 1]


def test_tensorflow_lite_model_beside_an_onnx_one(tmp_path: Path) -> None:
    require_tool("make")
    (tmp_path / "models").mkdir()
    shutil.copy(ROOT / "examples/tflite/sine.tflite", tmp_path / "models/wave.tflite")
    shutil.copy(EXAMPLE / "models/sine.onnx", tmp_path / "models/sine.onnx")
    fragment = ROOT / "runtime_c/make/glowc.mk"
    (tmp_path / "Makefile").write_text(f"GLOWC_MODELS := sine wave\ninclude {fragment}\nall: $(GLOWC_SRCS)\n")
    output = make(tmp_path, "all")
    assert sorted(re.findall(r"compile (models/\S+)", output)) == ["models/sine.onnx", "models/wave.tflite"]
    assert (tmp_path / "build/models/wave/wave.c").is_file()
    assert make(tmp_path, "all").strip() == "make: Nothing to be done for 'all'."
    time.sleep(0.02)
    (tmp_path / "models/wave.tflite").touch()
    assert re.findall(r"compile (models/\S+)", make(tmp_path, "all")) == ["models/wave.tflite"]


def test_soft_float_abi_takes_kernels_without_fpu(tmp_path: Path) -> None:
    """The command of the example's README.md: the bundles were made for an FPU, and stopped at #error."""
    require_tool("make", "arm-none-eabi-gcc", "qemu-system-arm")
    shutil.copytree(EXAMPLE, tmp_path / "firmware", ignore=shutil.ignore_patterns("build"))
    output = make(tmp_path / "firmware", "CPU=-mthumb -mcpu=cortex-m4 -mfloat-abi=soft", "qemu-test")
    assert "--cpu cortex-m4-soft" in output
    assert len(re.findall(r"^(?:digits|sine): 20 of 20 ok$", output, re.MULTILINE)) == 2
