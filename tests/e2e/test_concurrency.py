"""Two inferences at a time: threads with an arena each, an interrupt that runs another model, buffers that are one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.board import load_board
from glowc.codegen.names import c_lines
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from tests.conftest import ROOT, require_tool
from tests.e2e.models import board_tools
from tests.golden.nets import float_mlp

DIGITS = ROOT / "examples/digits/digits.onnx"

THREADS = """
#include <pthread.h>
#include <string.h>
#include "digits.h"
#define ROUNDS 20

static _Alignas(DIGITS_ARENA_ALIGN) uint8_t arenas[2][DIGITS_ARENA_BYTES];
static int8_t images[2][DIGITS_INPUT_ELEMENTS], alone[2][DIGITS_OUTPUT_ELEMENTS];

static void *worker(void *argument) {
  const int i = *(const int *)argument;
  for (int round = 0; round < ROUNDS; round++) {
    int8_t got[DIGITS_OUTPUT_ELEMENTS];
    if (digits_invoke_in(arenas[i], sizeof arenas[i], images[i], got) != GLOW_OK ||
        memcmp(got, alone[i], sizeof got) != 0) {
      return "differs";
    }
  }
  return NULL;
}

int main(void) {
  static const int numbers[2] = {0, 1};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < DIGITS_INPUT_ELEMENTS; k++) {
      images[i][k] = (int8_t)(k * (i + 3));
    }
    (void)digits_invoke_in(arenas[i], sizeof arenas[i], images[i], alone[i]);
  }
  void *wrong[2];
  for (int i = 0; i < 2; i++) {
    (void)pthread_create(&threads[i], NULL, worker, (void *)&numbers[i]);
  }
  for (int i = 0; i < 2; i++) {
    (void)pthread_join(threads[i], &wrong[i]);
  }
  return wrong[0] != NULL || wrong[1] != NULL;
}
"""

INTERRUPT = """
#include <string.h>
#include "digits.h"
#include "float_mlp.h"
#include "glow_io.h"

extern uint32_t __stack_top[];
static const float x[] = {{X}};
static float expected[FLOAT_MLP_OUTPUT_ELEMENTS];
static volatile uint32_t interrupts, wrong;

static void check_other(void) {
  float got[FLOAT_MLP_OUTPUT_ELEMENTS];
  interrupts++;
  wrong += float_mlp_invoke(x, got) != GLOW_OK || memcmp(got, expected, sizeof got) != 0;
}

static _Alignas(128) void (*vectors[16])(void);

int main(void) {
  static int8_t image[DIGITS_INPUT_ELEMENTS], alone[DIGITS_OUTPUT_ELEMENTS], got[DIGITS_OUTPUT_ELEMENTS];
  for (int k = 0; k < DIGITS_INPUT_ELEMENTS; k++) {
    image[k] = (int8_t)(k * 5);
  }
  (void)float_mlp_invoke(x, expected);
  (void)digits_invoke(image, alone);
  memcpy((void *)vectors, (const void *)*(volatile uint32_t *)0xE000ED08u, sizeof vectors);
  vectors[15] = check_other;
  *(volatile uint32_t *)0xE000ED08u = (uint32_t)(uintptr_t)vectors;
  *(volatile uint32_t *)0xE000E014u = 20000u; /* SysTick: reload, then clock and interrupt on */
  *(volatile uint32_t *)0xE000E018u = 0u;
  *(volatile uint32_t *)0xE000E010u = 7u;
  uint32_t differ = 0u;
  for (int round = 0; round < 400 || (interrupts < 50u && round < 100000); round++) {
    differ += digits_invoke(image, got) != GLOW_OK || memcmp(got, alone, sizeof got) != 0;
  }
  *(volatile uint32_t *)0xE000E010u = 0u;
  glow_io_put_u32(interrupts);
  glow_io_puts(" interrupts, wrong ");
  glow_io_put_u32(wrong);
  glow_io_puts(" and ");
  glow_io_put_u32(differ);
  glow_io_exit(interrupts < 50u || wrong != 0u || differ != 0u);
}
"""

OVERLAP = """
#include <string.h>
#include "digits.h"
#define MOST (DIGITS_INPUT_ELEMENTS > DIGITS_OUTPUT_ELEMENTS ? DIGITS_INPUT_ELEMENTS : DIGITS_OUTPUT_ELEMENTS)

int main(void) {
  static int8_t image[DIGITS_INPUT_ELEMENTS], alone[DIGITS_OUTPUT_ELEMENTS], both[MOST];
  for (int k = 0; k < DIGITS_INPUT_ELEMENTS; k++) {
    image[k] = (int8_t)(k * 7);
  }
  (void)digits_invoke(image, alone);
  memcpy(both, image, sizeof image);
  int wrong = digits_invoke(both, both) != GLOW_OK || memcmp(both, alone, sizeof alone) != 0;
  memcpy(digits_input(), image, sizeof image); /* the tensors' own places */
  wrong += digits_invoke(digits_input(), digits_output()) != GLOW_OK;
  wrong += memcmp(digits_output(), alone, sizeof alone) != 0;
  return wrong;
}
"""


def host_program(folder: Path, text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    require_tool("gcc")
    write_bundle(compile_model(DIGITS, load_board("host")), folder)
    (folder / "main.c").write_text(text)
    sources = [str(folder / name) for name in ("main.c", "digits.c", "digits_weights.c")]
    argv = ["gcc", "-std=c11", "-O1", "-g", *flags, f"-I{folder}", *sources, "-o", str(folder / "program"), "-lm"]
    argv.append("-pthread")
    built = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    # Fixed addresses: the thread sanitizer cannot map its shadow everywhere.
    command = ["setarch", os.uname().machine, "-R", str(folder / "program")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_threads_with_an_arena_each_share_nothing(tmp_path: Path) -> None:
    require_tool("setarch")
    done = host_program(tmp_path, THREADS, "-fsanitize=thread")
    assert done.returncode == 0, done.stderr
    assert "data race" not in done.stderr


def test_input_and_output_may_be_one_buffer_or_the_tensors_themselves(tmp_path: Path) -> None:
    done = host_program(tmp_path, OVERLAP, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    assert done.returncode == 0, done.stderr


@pytest.mark.qemu
def test_interrupt_may_run_another_model(tmp_path: Path) -> None:
    """SysTick on a Cortex-M4 runs a float model while an int8 one is computed: neither notices, the FPU included."""
    board_tools("mps2-an386")
    board = load_board("mps2-an386")
    proto = float_mlp()
    onnx.save(proto, tmp_path / "float_mlp.onnx")
    write_bundle(compile_model(DIGITS, board), tmp_path)
    write_bundle(compile_model(tmp_path / "float_mlp.onnx", board), tmp_path)
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    values = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    (tmp_path / "main.c").write_text(INTERRUPT.replace("{X}", c_lines(values)))
    names = ("main.c", "digits.c", "digits_weights.c", "float_mlp.c", "float_mlp_weights.c")
    elf = build_elf([tmp_path / n for n in names], board, tmp_path / "m.elf", include_dirs=[tmp_path])
    result = run_elf(elf.path, board, cwd=tmp_path, check=False)
    assert result.exit_status == 0, result.stdout
    assert " interrupts, wrong 0 and 0" in result.stdout
