"""A bundle on a core that it is not made for: one clear error, and with GLOW_ANY_CORE the same bytes by portable C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import execute, load_bundle, random_inputs
from tests.conftest import ROOT, require_tool
from tests.unit.quantize_nets import model

DIGITS = ROOT / "examples/digits/digits.onnx"
STRICT = ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror")
M0, M3, SOFT_M4 = ("-mcpu=cortex-m0",), ("-mcpu=cortex-m3",), ("-mcpu=cortex-m4",)
M4 = ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
# Boards whose kernels have twins in C, and cores that they are not made for.
TWINNED = {
    "microbit": (M3, M4), "mps2-an385": (M0,), "mps2-an386": (M0, M3, SOFT_M4),
    "mps2-an500": (M0, M3, SOFT_M4), "mps2-an505": (M0, M3, SOFT_M4),
}  # fmt: skip


@pytest.fixture(scope="module", params=TWINNED)
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    write_bundle(compile_model(DIGITS, load_board(request.param)), folder)
    return request.param, folder


def check(folder: Path, cc: str, *flags: str) -> subprocess.CompletedProcess[str]:
    argv = [cc, *STRICT, *flags, "-fsyntax-only", str(folder / "digits.c")]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.qemu
def test_wrong_core_is_one_error_that_names_the_flags_and_the_way_out(bundle: tuple[str, Path]) -> None:
    require_tool("arm-none-eabi-gcc")
    name, folder = bundle
    cpu = load_board(name).cpu
    own = check(folder, "arm-none-eabi-gcc", *cpu.core_flags)
    assert own.returncode == 0, own.stderr
    for flags in TWINNED[name]:
        done = check(folder, "arm-none-eabi-gcc", "-mthumb", *flags)
        assert done.returncode != 0
        assert done.stderr.count("error:") == 1, done.stderr
        for text in (f"digits is made for {cpu.name}", " ".join(cpu.core_flags), "GLOW_ANY_CORE"):
            assert text in done.stderr
        done = check(folder, "arm-none-eabi-gcc", "-mthumb", *flags, "-DGLOW_ANY_CORE")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_bundle_for_a_microcontroller_builds_on_the_host_when_told_so(bundle: tuple[str, Path], cc: str) -> None:
    require_tool(cc)
    _, folder = bundle
    assert "GLOW_ANY_CORE" in check(folder, cc, "-ffp-contract=off").stderr
    done = check(folder, cc, "-ffp-contract=off", "-DGLOW_ANY_CORE")
    assert done.returncode == 0, done.stderr


def test_float_depthwise_layer_of_a_planar_image_builds_on_the_host(tmp_path: Path) -> None:
    require_tool("gcc")
    weights = np.random.default_rng(1).normal(size=(4, 1, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=4, pads=[1] * 4)
    net = model([node], {"w": weights}, {"x": [1, 4, 6, 6]}, {"y": [1, 4, 6, 6]})
    (tmp_path / "digits.onnx").write_bytes(net.SerializeToString())
    write_bundle(compile_model(tmp_path / "digits.onnx", load_board("host")), tmp_path / "out")
    done = check(tmp_path / "out", "gcc", "-ffp-contract=off")
    assert done.returncode == 0, done.stderr


def test_portable_twins_answer_as_the_kernels_do(bundle: tuple[str, Path], tmp_path: Path) -> None:
    require_tool("gcc")
    _, folder = bundle
    info = load_bundle(folder)
    write_bundle(compile_model(DIGITS, load_board("host")), tmp_path)
    inputs = random_inputs(info, 8)
    got = execute(info, load_board("host"), inputs).outputs
    want = execute(load_bundle(tmp_path), load_board("host"), inputs).outputs
    assert all(np.array_equal(got[name], want[name]) for name in want)


@pytest.mark.qemu
@pytest.mark.parametrize(("made_for", "run_on"), [("mps2-an386", "microbit"), ("microbit", "mps2-an386")])
def test_bundle_runs_on_another_core_and_the_file_of_flags_names_its_own(
    made_for: str, run_on: str, tmp_path: Path
) -> None:
    require_tool("gcc", "arm-none-eabi-gcc", "qemu-system-arm")
    board = load_board(made_for)
    write_bundle(compile_model(DIGITS, board), tmp_path)
    for name in ("digits.mk", "README.md"):
        assert " ".join(board.cpu.core_flags) in (tmp_path / name).read_text()
    info = load_bundle(tmp_path)
    inputs = random_inputs(info, 2)
    got, want = (execute(info, load_board(name), inputs).outputs for name in (run_on, made_for))
    assert all(np.array_equal(got[name], want[name]) for name in want)
