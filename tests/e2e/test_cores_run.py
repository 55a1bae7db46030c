"""Layers that cores share: the bytes of one core, on threads, on two emulated cores, in steps, in any number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board, load_chip
from glowc.codegen.group import GroupSpec
from glowc.compiler.group import compile_group, write_group
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import InputError
from glowc.machine.cycles.measure import measure_cycles
from glowc.machine.elf import symbols
from glowc.machine.execute import BundleInfo, build_bundle, execute, load_bundle, random_inputs
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from glowc.place.places import verify_plan
from tests.conftest import require_tool
from tests.e2e.models import board_tools, model_path
from tests.unit.conv_chain import conv_chain

THREADS = r"""
#include <pthread.h>
#include <string.h>
#include "net.h"

enum { TURNS = 40, THREADS = 2 };
static _Alignas(64) uint8_t arenas[THREADS][(NET_ARENA_BYTES + 63) / 64 * 64];
static int8_t images[THREADS][NET_INPUT_ELEMENTS], wanted[THREADS][NET_OUTPUT_ELEMENTS];
static int failures[THREADS];

static void *work(void *given) {
  const int i = (int)(intptr_t)given;
  int8_t got[NET_OUTPUT_ELEMENTS];
  for (int turn = 0; turn < TURNS; turn++) {
    const int status = net_invoke_in(arenas[i], NET_ARENA_BYTES, images[i], got);
    failures[i] += status != GLOW_OK || memcmp(got, wanted[i], sizeof got) != 0;
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    for (uint32_t k = 0; k < NET_INPUT_ELEMENTS; k++) {
      images[i][k] = (int8_t)(k * (uint32_t)(2 * i + 3) >> 2);
    }
    net_invoke_in(arenas[i], NET_ARENA_BYTES, images[i], wanted[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  return failures[0] + failures[1] == 0 ? 0 : 1;
}
"""

STEPS = r"""
#include <string.h>
#include "net.h"

int main(void) {
  static int8_t image[NET_INPUT_ELEMENTS], wanted[NET_OUTPUT_ELEMENTS];
  for (uint32_t k = 0; k < NET_INPUT_ELEMENTS; k++) {
    image[k] = (int8_t)(5u * k >> 2);
  }
  if (net_invoke(image, wanted) != GLOW_OK || net_begin(image) != GLOW_OK) {
    return 1;
  }
  uint32_t steps = 1u;
  for (; net_step() == GLOW_BUSY; steps++) {
  }
  return steps == NET_STEP_COUNT && memcmp(net_output(), wanted, NET_OUTPUT_BYTES) == 0 ? 0 : 2;
}
"""


def net(folder: Path, *, depthwise: bool = False) -> Path:
    """Write convolutions of 3x3 with rows that no number of cores divides evenly."""
    channels = (16, 16, 16) if depthwise else (8, 12, 16, 16, 8)
    return conv_chain(folder / "net.onnx", (27, 22), channels, depthwise=depthwise)


def compiled(model: Path, board: str, folder: Path, cores: int = 1, step: str | None = None) -> BundleInfo:
    """Compile a model for so many cores."""
    options = CompileOptions(name="net", cores=cores, slice=step)
    write_bundle(compile_model(model, load_board(board), options), folder)
    return load_bundle(folder)


def _bytes_are_equal(one: BundleInfo, other: BundleInfo, board: str) -> bool:
    inputs = random_inputs(one)
    results = [execute(info, load_board(board), inputs).outputs for info in (one, other)]
    return all(np.array_equal(results[0][name], results[1][name]) for name in results[0])


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize(
    ("board", "cores"),
    [
        *(("host", cores) for cores in range(2, 9)), ("linux-aarch64", 4), ("linux-armhf", 2), ("musca-b1", 2),
        ("mps2-an521", 2), ("mps2-an386", 3), ("mps2-an500", 2), ("mps3-an547", 4),
    ],
)  # fmt: skip
def test_bytes_are_those_of_one_core(board: str, cores: int, depthwise: bool, tmp_path: Path) -> None:
    board_tools(board)
    model = net(tmp_path, depthwise=depthwise)
    one, several = (compiled(model, board, tmp_path / str(n), n) for n in (1, cores))
    shared = several.report["cores"]
    assert shared is not None
    assert shared["count"] == cores
    assert shared["shared_layers"] == len(several.report["layers"])
    assert (several.folder / "glow_cores.c").is_file() == (load_board(board).cores_source is not None)
    assert _bytes_are_equal(one, several, board)


@pytest.mark.shared
@pytest.mark.parametrize("board", ["host", "musca-b1"])
@pytest.mark.parametrize(
    "name", ["mlperf_ic_resnet8", "mlperf_vww_mobilenetv1", "torch_tinybert_qdq", "torch_gru_kws_fp32"]
)
def test_sample_models(name: str, board: str, tmp_path: Path) -> None:
    """Layers of all kinds: attention, recurrent layers, which one core computes, and residual connections."""
    board_tools(board)
    one, two = (compiled(model_path(name), board, tmp_path / str(n), n) for n in (1, 2))
    assert _bytes_are_equal(one, two, board)


def test_a_plan_for_cores_keeps_its_data(tmp_path: Path) -> None:
    made = compile_model(net(tmp_path), load_board("mps2-an505"), CompileOptions(cores=4))
    verify_plan(made.planned.program, made.plan)
    assert made.planned.program.slices is not None
    assert max(map(len, made.planned.program.slices.stages)) == 4
    assert not made.planned.program.slices.progress
    outputs = {o.buffer for i in made.planned.program.instrs for o in i.operands if o.role == "out"}
    scratch = [o for i in made.planned.program.instrs for o in i.operands if o.role == "scratch"]
    assert outputs
    assert all(made.planned.program.buffers[o.buffer].size_bytes >= 4 * o.type.size_bytes for o in scratch)


@pytest.mark.parametrize("form", ["single", "cmake"])
def test_other_forms_of_bundles(form: str, tmp_path: Path) -> None:
    """The functions that start cores are files of their own: firmware may have others."""
    board_tools("host")
    model = net(tmp_path)
    one = compiled(model, "host", tmp_path / "1")
    options = CompileOptions(name="net", cores=2, form=form)
    write_bundle(compile_model(model, load_board("host"), options), tmp_path / form)
    assert (tmp_path / form / "glow_cores.c").is_file()
    assert (tmp_path / form / "glow_cores.h").is_file()
    assert _bytes_are_equal(one, load_bundle(tmp_path / form), "host")


def test_models_in_one_bundle_share_the_cores(tmp_path: Path) -> None:
    board_tools("host")
    one, sources = compiled(net(tmp_path), "host", tmp_path / "1"), [f"{name}={tmp_path / 'net.onnx'}" for name in "ab"]
    spec = GroupSpec("app", share_arena=True, share_weights=False)
    write_group(compile_group(sources, load_board("host"), CompileOptions(cores=2), spec), tmp_path / "app")
    assert "glow_cores.c" in (tmp_path / "app" / "app.mk").read_text()
    assert _bytes_are_equal(one, load_bundle(tmp_path / "app" / "b"), "host")


@pytest.mark.parametrize(
    "strict", [["-fsanitize=thread"], ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]]
)
def test_two_threads_that_share_the_cores(strict: list[str], tmp_path: Path) -> None:
    """With more cores than the machine may have, and no data race."""
    board_tools("host")
    info = compiled(net(tmp_path), "host", tmp_path / "net", 4)
    (tmp_path / "main.c").write_text(THREADS)
    flags = [*strict, "-DGLOW_CORES=4", "-pthread", "-g", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    sources = [tmp_path / "main.c", *info.sources]
    elf = build_elf(
        sources, load_board("host"), tmp_path / "out.elf", include_dirs=[info.folder], extra_flags=flags, opt="-O1"
    )
    run_elf(elf.path, load_board("host"), cwd=tmp_path)


@pytest.mark.parametrize("board", ["host", "musca-b1"])
def test_steps_of_several_cores(board: str, tmp_path: Path) -> None:
    board_tools(board)
    whole = compile_model(net(tmp_path), load_board(board)).report["cycles_estimate"]
    info = compiled(net(tmp_path), board, tmp_path / "net", 2, str(max(1000, whole // 12)))
    slices, cores = info.report["slices"], info.report["cores"]
    assert slices is not None
    assert cores is not None
    assert slices["longest_cycles_estimate"] <= slices["limit_cycles"]
    assert sum(slices["step_parts"]) == sum(cores["stage_parts"])
    (tmp_path / "main.c").write_text(STEPS)
    elf = build_elf(
        [tmp_path / "main.c", *info.sources], load_board(board), tmp_path / "out.elf", include_dirs=[info.folder]
    )
    run_elf(elf.path, load_board(board), cwd=tmp_path)


@pytest.mark.parametrize("board", ["rpi-pico", "rpi-pico2"])
def test_a_chip_with_two_cores_builds(board: str, tmp_path: Path) -> None:
    board_tools(board)
    info = compiled(net(tmp_path), board, tmp_path / "net", 2)
    elf = build_bundle(
        info, load_board(board), tmp_path, extra_flags=["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    )
    assert "glow_cores_start" in symbols(elf.path)


@pytest.mark.shared
def test_two_cores_are_nearly_twice_as_fast(tmp_path: Path) -> None:
    """1.85 times at least, by the core that computes most of each layer."""
    board_tools("mps2-an505")
    require_tool("llvm-mca-19", "llvm-objdump-19")
    chip = load_chip("stm32u575")
    model = model_path("mlperf_ic_resnet8")
    one, two = (compiled(model, "mps2-an505", tmp_path / str(n), n) for n in (1, 2))
    before, after = (measure_cycles(info, chip, random_inputs(info)) for info in (one, two))
    assert before.cores is None
    assert after.cores is not None
    assert before.whole.cycles / after.cores >= 1.85


def test_what_cores_do_not_go_with(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        compile_model(net(tmp_path), load_board("host"), CompileOptions(cores=2, io_buffers="caller", guard=True))
    assert caught.value.details == ("--io-buffers caller does not go with --cores", "--guard does not go with --cores")
