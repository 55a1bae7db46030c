"""runtime_c/glow_elementary.h over all of float32 against libm in double: the errors that the header states."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.graph.tanh_codes import FUNCTIONS as CODE_FUNCTIONS
from glowc.graph.tanh_codes import exact_real
from glowc.graph.types import DType
from glowc.kernels.common.reals import SAME_FUNCTIONS as SAME
from glowc.kernels.common.reals import with_same_functions
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from glowc.ops.unary import words
from glowc.paths import data_dir
from tests.conftest import require_tool

BATCH = 1024
SAME_FUNCTIONS = tuple(sorted(SAME))
FUNCTIONS = ("exp", "expm1", "tanh", "erf", "sigmoid", "gelu", "gelu_tanh")
SMALL, TINY = 2.0**-125, 2.0**-100
_CALL = "  {{ glow_{isa}_fn_store_four(out + {index} * BATCH + i, glow_{isa}_fn_{name}(x)); }}\n"
_PROGRAM = """
#include "glow_io.h"
#include "{header}"
#define BATCH {batch}
static float in[BATCH];
static float out[{count} * BATCH];
{four}
int main(void) {{
  const int from = glow_io_open_read("in.bin");
  const int to = glow_io_open_write("out.bin");
  while (glow_io_read(from, in, sizeof in) == (long)sizeof in) {{
    for (int32_t i = 0; i < BATCH; i += 4) {{
      const {vector} x = {load};
{calls}
    }}
    if (glow_io_write(to, out, sizeof out) < 0) {{
      return 1;
    }}
  }}
  glow_io_close(to);
  return 0;
}}
"""
MACHINES = {  # board, or with its CPU: header, vector, load, store
    "host x86-64": ("wide", "glow_wide_fn_t", "glow_wide_fn_read(in + i)", "glow_wide_fn_write(to, v)"),
    "host": ("fpu", "glow_fpu_four_t", "glow_fpu_fn_load(in + i)", "glow_fpu_fn_store(to, v, 4)"),
    "mps2-an386": ("fpu", "glow_fpu_four_t", "glow_fpu_fn_load(in + i)", "glow_fpu_fn_store(to, v, 4)"),
    "mps3-an547": ("mve", "float32x4_t", "vldrwq_f32(in + i)", "vstrwq_f32(to, v)"),
    "linux-aarch64": ("neon", "float32x4_t", "vld1q_f32(in + i)", "vst1q_f32(to, v)"),
    "linux-armhf": ("neon", "float32x4_t", "vld1q_f32(in + i)", "vst1q_f32(to, v)"),
}


def _program(board: str) -> str:
    isa, vector, load, store = MACHINES[board]
    four = f"static inline void glow_{isa}_fn_store_four(float *to, {vector} v) {{ {store}; }}"
    calls = "".join(_CALL.format(isa=isa, index=k, name=name) for k, name in enumerate(FUNCTIONS))
    return _printed(f"glow_{isa}_elementary.h", len(FUNCTIONS), four, vector, load, calls)


def _same_program(board: str) -> str:
    """Return a program of the functions of vectors, each with that of single floats after it."""
    isa, vector, load, store = MACHINES[board]
    calls = ""
    for k, name in enumerate(SAME_FUNCTIONS):
        more = ", 1.702f" if name in ("swish", "quick_gelu") else ""
        to = f"out + {2 * k} * BATCH + i"
        calls += f"  glow_store_four({to}, glow_{isa}_same_fn_{name}(x{more}));\n"
        calls += f"  glow_store_plain({to} + BATCH, in + i);\n".replace("plain", name)
    four = f"static inline void glow_store_four(float *to, {vector} v) {{ {store}; }}\n"
    for name in SAME_FUNCTIONS:
        text = words(4, name, DType.F32, 1.702, 0.0).expr
        body = "for (int32_t k = 0; k < 4; k++) { const float x = in4[k]; (void)a; to[k] = " + text + "; }"
        head = f"static inline void glow_store_{name}(float *to, const float *in4) "
        four += head + "{ const float a = 1.702f; " + with_same_functions(body) + " }\n"
    headers = f'glow_{isa}_same.h"\n#include "glow_same.h'
    return _printed(headers, 2 * len(SAME_FUNCTIONS), four, vector, load, calls)


def _printed(header: str, count: int, four: str, vector: str, load: str, calls: str) -> str:
    return _PROGRAM.format(header=header, batch=BATCH, count=count, four=four, vector=vector, load=load, calls=calls)


def _inputs(count: int) -> np.ndarray:
    """Return numbers at equal steps over all bit patterns, without those that are not numbers, and edges."""
    bits = np.linspace(0, 2**32 - 1, count).astype(np.uint64).astype(np.uint32)
    near = np.linspace(-20, 20, count // 4, dtype=np.float32)
    edges = np.float32([0, 1e-30, -1e-30, 88.7, 88.73, 89, 1e30, -1e30, 3.4e38, -3.4e38, np.inf, -86.9, -87.4, 4, -4])
    x = np.concatenate([edges, bits.view(np.float32), near])
    x = x[~np.isnan(x) & (np.abs(x) > 1e-30)]
    return x[: len(x) // BATCH * BATCH]


def _run(board_name: str, x: np.ndarray, folder: Path) -> dict[str, np.ndarray]:
    out = _outputs(board_name, _program(board_name), x, folder, len(FUNCTIONS))
    return dict(zip(FUNCTIONS, out, strict=True))


def _outputs(board_name: str, program: str, x: np.ndarray, folder: Path, count: int) -> np.ndarray:
    """Return [count, n] of what a program for a board makes of n numbers."""
    board = load_board(*board_name.split())
    require_tool(board.cpu.cc)
    if board.run_argv[0] != "{elf}":
        require_tool(board.run_argv[0])
    source = folder / "main.c"
    source.write_text(program)
    runtime = data_dir("runtime_c")
    includes = (runtime, *(runtime / name for name in ("io", "fpu", "simd", "mve", "wide")))
    elf = build_elf([source], board, folder / "elementary.elf", include_dirs=includes)
    x.tofile(folder / "in.bin")
    run_elf(elf.path, board, cwd=folder)
    out = np.fromfile(folder / "out.bin", np.float32).reshape(-1, count, BATCH)
    return out.transpose(1, 0, 2).reshape(count, -1)


def _ulps(y: np.ndarray, want: np.ndarray) -> float:
    """Return the largest error in units in the last place of what is wanted; what is less than 2^-125 may be 0."""
    normal = np.abs(want) > SMALL
    assert np.all(np.abs(y[~normal]) <= SMALL)
    single = want[normal].astype(np.float32)
    same = y[normal] == single
    apart = np.abs(y[normal][~same].astype(np.float64) - want[normal][~same])
    return float(np.max(apart / np.spacing(np.abs(single[~same])), initial=0.0))


@pytest.mark.qemu
@pytest.mark.parametrize("board", MACHINES)
def test_errors_are_as_stated(board: str, tmp_path: Path) -> None:
    x = _inputs(2_000_000 if board == "host" else 40_000)
    y = _run(board, x, tmp_path)
    exact = x.astype(np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        assert _ulps(y["exp"], np.exp(exact)) <= 2
        moderate = np.abs(x) <= 60
        assert _ulps(y["expm1"][moderate], np.expm1(exact[moderate])) <= 3
        assert _ulps(y["tanh"], np.tanh(exact)) <= 5
        assert _ulps(y["erf"], np.array([math.erf(v) for v in exact])) <= 3
        assert _ulps(y["sigmoid"], 1 / (1 + np.exp(-exact))) <= 4
        finite = np.abs(x) < 1e12
        v = exact[finite]
        gelu = np.array([0.5 * a * math.erfc(-a * math.sqrt(0.5)) for a in v])
        assert np.max(np.abs(y["gelu"][finite] - gelu) / np.abs(v)) <= 1.6e-7
        by_tanh = v / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
        assert np.max(np.abs(y["gelu_tanh"][finite] - by_tanh) / np.abs(v)) <= 2e-7


@pytest.mark.qemu
@pytest.mark.parametrize("board", ["mps3-an547", "linux-aarch64"])
def test_functions_between_codes_of_16_bits_have_the_bits_of_single_floats(board: str, tmp_path: Path) -> None:
    codes = np.arange(-32768, 32768, dtype=np.float32)
    x = np.concatenate([codes * np.float32(scale) for scale in (8 / 32768, 3.1e-5, 0.0023)])
    out = _outputs(board, _same_program(board), x, tmp_path, 2 * len(SAME_FUNCTIONS))
    for name, lanes, single in zip(SAME_FUNCTIONS, out[::2], out[1::2], strict=True):
        normal = np.abs(single) > TINY
        assert np.array_equal(lanes[normal].view(np.uint32), single[normal].view(np.uint32)), name
        assert np.all(np.abs(lanes[~normal]) <= TINY), name
        if name in CODE_FUNCTIONS:
            np.testing.assert_array_equal(exact_real(name, x), single)
