"""Inferences in steps: two beside each other in any order give the bytes of whole ones, and no step takes too long."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board, load_chip
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.cycles.measure import measure_cycles
from glowc.machine.execute import load_bundle, random_inputs
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from tests.conftest import require_tool
from tests.e2e.models import DIGITS, board_tools, model_path
from tests.unit.conv_chain import conv_chain

STEPS = r"""
#include <string.h>
#include "net.h"
#include "other.h"

#define CHECK(condition) do { if (!(condition)) { return __LINE__ % 200 + 1; } } while (0)
enum { NETS = 3, STEPS = {{STEPS}} };

static _Alignas(64) uint8_t arenas[NETS][(NET_ARENA_BYTES + 63) / 64 * 64];
static int8_t images[NETS][NET_INPUT_ELEMENTS], wanted[NETS][NET_OUTPUT_ELEMENTS];
static const int8_t x[] = {{X}};

int main(void) {
  int8_t other_wanted[OTHER_OUTPUT_ELEMENTS], got[OTHER_OUTPUT_ELEMENTS];
  uint32_t state = 1u, done = 0u;
  CHECK(other_invoke(x, other_wanted) == GLOW_OK);
  for (int i = 0; i < NETS; i++) {
    for (uint32_t k = 0; k < NET_INPUT_ELEMENTS; k++) {
      images[i][k] = (int8_t)(k * (uint32_t)(2 * i + 3) >> 2);
    }
    CHECK(net_invoke_in(arenas[i], NET_ARENA_BYTES, images[i], wanted[i]) == GLOW_OK);
    CHECK(net_step_in(arenas[i], NET_ARENA_BYTES) == GLOW_ERROR_BEGIN);
    CHECK(net_begin_in(arenas[i], NET_ARENA_BYTES, images[i]) == GLOW_OK);
  }
  for (int n = 0; n < STEPS; n++) {
    state = state * 1664525u + 1013904223u;
    const uint32_t i = (state >> 16) % (NETS + 1u);
    if (i == NETS) {
      CHECK(other_invoke(x, got) == GLOW_OK && memcmp(got, other_wanted, sizeof got) == 0);
      continue;
    }
    const int status = net_step_in(arenas[i], NET_ARENA_BYTES);
    CHECK(status == GLOW_OK || status == GLOW_BUSY);
    if (status == GLOW_OK) {
      CHECK(memcmp(arenas[i] + NET_OUTPUT_OFFSET_BYTES, wanted[i], NET_OUTPUT_BYTES) == 0);
      CHECK(net_step_in(arenas[i], NET_ARENA_BYTES) == GLOW_ERROR_BEGIN);
      done++;
    }
    if (status == GLOW_OK || state >> 24 == 0u) {
      CHECK(net_abort_in(arenas[i], NET_ARENA_BYTES) == GLOW_OK);
      CHECK(net_step_in(arenas[i], NET_ARENA_BYTES) == GLOW_ERROR_BEGIN);
      memcpy(arenas[i] + NET_INPUT_OFFSET_BYTES, images[i], NET_INPUT_BYTES);
      CHECK(net_begin_in(arenas[i], NET_ARENA_BYTES, NULL) == GLOW_OK);
    }
  }
  CHECK(done > 0u);
  CHECK(net_begin(images[1]) == GLOW_OK);
  uint32_t steps = 1u;
  for (; net_step() == GLOW_BUSY; steps++) {
  }
  CHECK(steps == NET_STEP_COUNT && memcmp(net_output(), wanted[1], NET_OUTPUT_BYTES) == 0);
  CHECK(net_step_in(NULL, 0) == GLOW_ERROR_NULL && net_abort_in(arenas[0], 1) == GLOW_ERROR_ARENA_SIZE);
  CHECK(net_begin_in(arenas[0] + 1, NET_ARENA_BYTES, images[0]) == GLOW_ERROR_ARENA_ALIGN);
  memset(arenas[0], 0x5A, NET_ARENA_BYTES);
  CHECK(net_step_in(arenas[0], NET_ARENA_BYTES) == GLOW_ERROR_BEGIN);
  return 0;
}
"""


def net(name: str, folder: Path) -> Path:
    """Return a model file: a sample, or convolutions of which several calls compute each."""
    if not name.startswith("chain"):
        return model_path(name)
    if name == "chain_head":
        return conv_chain(folder / "head.onnx", (8, 8), (4, 64), kernel=1, classes=400)
    if name == "chain_wide":
        return conv_chain(folder / "wide.onnx", (4, 5), (48, 390, 256), kernel=1, classes=300)
    deep = name == "chain_depthwise"
    return conv_chain(folder / "chain.onnx", (28, 24), (16, 16, 16) if deep else (8, 12, 16, 16, 8), depthwise=deep)


def sliced(name: str, board: str, options: CompileOptions, folder: Path) -> Path:
    """Compile a model in steps; returns its folder."""
    write_bundle(compile_model(net(name, folder.parent), load_board(board), options), folder)
    return folder


@pytest.mark.parametrize(
    ("board", "name", "count"),
    [
        *(("host", name, 10_000) for name in ("chain", "chain_depthwise", "chain_head")),
        *(
            (board, name, 1_000)
            for board in ("mps2-an386", "mps2-an500", "mps3-an547", "linux-aarch64")
            for name in ("chain", "chain_depthwise", "chain_head")
        ),
        *((board, "chain_wide", 1_000) for board in ("mps2-an386", "mps2-an500")),
        ("mps2-an386", "mlperf_vww_mobilenetv1", 600), ("mps2-an500", "mlperf_vww_mobilenetv1", 600),
    ],
)  # fmt: skip
def test_steps_of_inferences_in_any_order(board: str, name: str, count: int, tmp_path: Path) -> None:
    board_tools(board)
    target = load_board(board)
    whole = compile_model(net(name, tmp_path), target).report["cycles_estimate"]
    share = 25 if name == "chain_wide" else 10
    folder = sliced(name, board, CompileOptions(name="net", slice=str(whole // share)), tmp_path / "net")
    report = load_bundle(folder).report["slices"]
    assert report is not None
    assert report["longest_cycles_estimate"] <= report["limit_cycles"]
    write_bundle(compile_model(model_path(DIGITS), target, CompileOptions(name="other")), tmp_path / "other")
    image = np.arange(64, dtype=np.int64).astype(np.int8)
    code = STEPS.replace("{{X}}", "{" + ", ".join(map(str, image)) + "}").replace("{{STEPS}}", str(count))
    (tmp_path / "main.c").write_text(code)
    sources = [tmp_path / "main.c", *(s for f in ("net", "other") for s in load_bundle(tmp_path / f).sources)]
    strict = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if board == "host" else []
    elf = build_elf(
        sources, target, tmp_path / "out.elf", include_dirs=[folder, tmp_path / "other"],
        extra_flags=[*strict, "-Wall", "-Wextra", "-Wconversion", "-Werror"],
    )  # fmt: skip
    run_elf(elf.path, target, cwd=tmp_path)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "board", "chip", "step"),
    [
        ("mlperf_ic_resnet8", "mps2-an386", "stm32l4r5", "1ms"),
        ("torch_tinybert_qdq", "mps2-an386", "stm32l4r5", "1ms"),
        ("mlperf_vww_mobilenetv1", "mps2-an500", "stm32h7a3", "0.25ms"),
    ],
)
def test_the_longest_step_takes_what_was_asked_for(
    name: str, board: str, chip: str, step: str, tmp_path: Path
) -> None:  # fmt: skip
    """At most 1.1 times as long, and the whole inference at most 1.05 times as long as without steps."""
    board_tools(board)
    require_tool("llvm-mca-19", "llvm-objdump-19")
    taken = []
    for number, options in enumerate((CompileOptions(), CompileOptions(slice=step, chip=chip))):
        info = load_bundle(sliced(name, board, options, tmp_path / str(number)))
        taken.append((info, measure_cycles(info, load_chip(chip), random_inputs(info))))
    (plain, whole), (info, steps) = taken
    slices = info.report["slices"]
    assert slices is not None
    assert steps.longest is not None
    assert steps.longest.cycles <= 1.1 * slices["limit_cycles"]
    assert steps.whole.cycles <= 1.05 * whole.whole.cycles
    assert info.report["arena_bytes"] <= 1.05 * plain.report["arena_bytes"]
