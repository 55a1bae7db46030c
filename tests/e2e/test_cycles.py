"""Loops written by hand, run under QEMU: their cycles are those that the manual gives, iteration by iteration."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import onnx
import onnx.helper as oh
import pytest

from glowc.board import Chip, chip_names, find_tool, load_chip, machine_of
from glowc.board.chips import Flash
from glowc.machine.cycles.mca import MCA
from glowc.machine.cycles.measure import Count, cache_arguments, count_segment
from glowc.machine.cycles.pipeline import read_pipeline
from glowc.machine.cycles.trace import read_trace
from glowc.machine.link import build_elf
from glowc.machine.qemu import trace_elf
from tests.conftest import require_tool
from tests.e2e.models import board_tools
from tests.unit.cli_calls import DIGITS, Glowc, accepted

pytestmark = pytest.mark.qemu
WITHOUT_WAITS = {name: replace(load_chip(name), flash=Flash()) for name in ("stm32l4r5", "stm32u575", "stm32f103")}
PROGRAM = """
#include <stdint.h>
#include "glow_io.h"
static const uint32_t table[1024] = {1};
uint32_t words[64];
void loop(uint32_t n, const uint32_t *constants, uint32_t *data);
__attribute__((naked, noinline)) void loop(uint32_t n, const uint32_t *constants, uint32_t *data) {
  __asm__ volatile(".syntax unified\\n push {r4-r11, lr}\\n b.n 1f\\n .balign 64\\n 1:\\n BODY\\n"
                   " subs.w r0, r0, #1\\n bne.w 1b\\n pop {r4-r11, pc}\\n");
}
int main(void) {
  glow_mark();
  glow_mark();
  loop(ITERATIONS, table, words);
  glow_mark();
  return 0;
}
"""


def cycles(chip: Chip, body: str, iterations: int, folder: Path) -> Count:
    """Return what a loop with this body takes on a chip, its call and return included."""
    folder.mkdir()
    board = machine_of(chip)
    board_tools(board.name)
    source = folder / "main.c"
    source.write_text(PROGRAM.replace("BODY", body.replace("\n", "\\n")).replace("ITERATIONS", f"{iterations}u"))
    elf = build_elf([source], board, folder / "main.elf").path
    areas = [f"area={r.origin:#x}:{r.size_bytes:#x}:{'f' if r.kind == 'flash' else 't'}" for r in board.memory.values()]
    none = ["area=0:0:f", "area=0:0:t"]  # no constants and no arena of a model
    segments = read_trace(trace_elf(elf, board, cwd=folder, caches=(*cache_arguments(chip), *none, *areas)))
    pipeline = read_pipeline(elf, board, chip.core, (block for s in segments for block in s.blocks))
    return count_segment(segments[2], pipeline, chip)


def per_iteration(chip: Chip, body: str, folder: Path) -> float:
    """Return what 1000 further iterations take, each."""
    few, many = (cycles(chip, body, n, folder / str(n)).cycles for n in (1000, 2000))
    return (many - few) / 1000


# chip, body of a loop that ends by SUBS and a taken BNE, cycles of an iteration: the body's, 1 and 1 + P
LOOPS = [
    ("stm32l4r5", "nop", 1 + 4),
    ("stm32l4r5", "ldr r3, [r1]\nldr r4, [r1, #4]\nsmlad r5, r3, r4, r5", 2 + 1 + 1 + 4),
    ("stm32l4r5", "ldm r1, {r3-r10}\nstr r3, [r2]", 9 + 1 + 4),
    ("stm32l4r5", "vldm r1, {s0-s7}\nvmul.f32 s8, s0, s1\nvadd.f32 s9, s8, s2", 9 + 1 + 2 + 4),
    ("stm32l4r5", "ldr r3, [r1, #2]", 2 + 1 + 4),  # across two words
    ("stm32l4r5", "cmp r0, #0\nblt.n 2f\nnop\n2:", 1 + 1 + 1 + 4),  # a branch that is never taken
    ("stm32l4r5", "b.n 2f\nnop\n2:", 3 + 4),
    ("stm32l4r5", "nop\n" + "nop.w\n" * 256, 1 + 256 + 4),  # an instruction is in two pages of QEMU
    ("stm32f103", "mla r3, r4, r5, r6\nldrd r4, r5, [r1]", 2 + 3 + 4),
    ("stm32u575", "ldr r3, [r1]\nadd r4, r3", 1 + 2 + 3),
    ("stm32u575", "ldr r3, [r1]\nadd r4, r4\nadd r5, r3", 3 + 3),
]


@pytest.mark.parametrize(("chip", "body", "expected"), LOOPS)
def test_iteration_takes_the_cycles_of_the_manual(chip: str, body: str, expected: float, tmp_path: Path) -> None:
    assert per_iteration(WITHOUT_WAITS[chip], body, tmp_path) == expected


def test_loop_inside_the_flash_cache_misses_once(tmp_path: Path) -> None:
    count = cycles(load_chip("stm32l4r5"), "\n".join(["nop.w"] * 224), 100, tmp_path / "in")  # 896 bytes of 1024
    assert count.fetch_misses < 150


def test_loop_longer_than_the_flash_cache_misses_on_every_line(tmp_path: Path) -> None:
    chip, body = load_chip("stm32l4r5"), "\n".join(["nop.w"] * 272)  # 1096 bytes with its end: 137 lines of 8
    few, many = (cycles(chip, body, n, tmp_path / str(n)) for n in (100, 200))
    assert many.fetch_misses - few.fetch_misses == 100 * 137
    assert many.fetch - few.fetch == 100 * (136 * 3 + 5)  # all but the first follow in sequence


@pytest.mark.parametrize(("bits", "misses"), [(6, 0), (12, 100)])
def test_constants_miss_the_data_cache_when_they_do_not_fit(bits: int, misses: int, tmp_path: Path) -> None:
    # An address that goes round in 64 bytes stays in the 256 bytes of the cache, one that goes round in 4096 does not.
    body = f"adds r4, #8\nubfx r4, r4, #0, #{bits}\nldr.w r3, [r1, r4]"
    chip = load_chip("stm32l4r5")
    few, many = (cycles(chip, body, n, tmp_path / str(n)) for n in (100, 200))
    assert many.data_misses - few.data_misses == misses
    assert many.data - few.data == 6 * misses


@pytest.mark.parametrize("name", chip_names())
def test_bench_counts_cycles_on_every_chip(name: str, glowc: Glowc) -> None:
    chip = load_chip(name)
    board_tools(chip.machine)
    if chip.core not in ("cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33"):
        assert find_tool(MCA), "llvm-19 is not installed"
    report = json.loads(accepted(glowc, "bench", DIGITS, "--chip", name, "--json"))
    assert report["chip"]["name"] == name
    assert report["ms"] == pytest.approx(report["cycles"] / 1000 / chip.clock_mhz, rel=0.01, abs=5e-5)
    assert sum(report["cycles_by_cause"].values()) == pytest.approx(report["cycles"], abs=5)
    layers = [layer["cycles"] for layer in report["layers"]]
    assert all(count > 0 for count in layers)
    assert sum(layers) == pytest.approx(report["cycles"], rel=0.1)
    assert report["weights_read_bytes"] >= report["weights_bytes"] * 0.9
    if chip.memory is not None:  # as above: what fills constants to whole vectors is not read
        assert report["memory_misses"] >= report["weights_bytes"] * 0.9 / chip.memory.cache.line_bytes


def test_inputs_are_in_the_second_cache_when_an_inference_begins(glowc: Glowc, tmp_path: Path) -> None:
    for tool in ("aarch64-linux-gnu-gcc", "qemu-aarch64", MCA):
        require_tool(tool)
    shape = (1, 64, 40, 40)  # 6,400 lines
    x, y = (oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ("x", "y"))
    graph = oh.make_graph([oh.make_node("Neg", ["x"], ["y"])], "inputs", [x], [y])
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)]), tmp_path / "inputs.onnx")
    report = json.loads(accepted(glowc, "bench", tmp_path / "inputs.onnx", "--chip", "rpi5", "--json"))
    assert report["data_misses"] > 6000
    assert report["memory_misses"] < 64
