"""runtime_c/glow_numeric.h against glowc.graph.numerics: float form, integer form, cross compilers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.graph.numerics import requantize, round_clamp
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from glowc.paths import data_dir
from tests.conftest import require_tool

I32 = np.iinfo(np.int32)
RECORD = np.dtype([("acc", "<i4"), ("scale", "<f4"), ("zp", "<i4"), ("lo", "<i4"), ("hi", "<i4"), ("v", "<f4")])
BATCH = 4096
RANGES = (  # (zp, lo, hi): int8, its corners, uint8, activations, int16
    (0, -128, 127),
    (-128, -128, 127),
    (127, -128, 127),
    (5, 5, 127),
    (-7, -20, 20),
    (128, 0, 255),
    (0, -32768, 32767),
    (-32768, -32768, 32767),
    (32767, -32768, 32767),
    (3, 3, 3),
)
_PROGRAM = """
#include "glow_io.h"
#include "glow_numeric.h"
typedef struct { int32_t acc; float scale; int32_t zp, lo, hi; float v; } record_t;
typedef struct { int32_t requant, round; } answer_t;
static record_t in[BATCH];
static answer_t out[BATCH];
int main(void) {
  const int from = glow_io_open_read("in.bin");
  const int to = glow_io_open_write("out.bin");
  for (;;) {
    const long got = glow_io_read(from, in, sizeof in);
    if (got <= 0) {
      break;
    }
    const size_t n = (size_t)got / sizeof in[0];
    for (size_t i = 0; i < n; i++) {
      const record_t *r = &in[i];
      out[i].requant = glow_requant(r->acc, r->scale, r->zp, r->lo, r->hi);
      out[i].round = glow_round_clamp(r->v, r->zp, r->lo, r->hi);
    }
    if (glow_io_write(to, out, n * sizeof out[0]) < 0) {
      return 1;
    }
  }
  glow_io_close(to);
  return 0;
}
"""
_FLAGS = ("-Wconversion", "-Wshadow", "-Wundef", "-Werror")
_SANITIZE = ("-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all")


def _accumulators(rng: np.random.Generator, n: int) -> np.ndarray:
    """All magnitudes alike, the edges of int32, and around 2^24 where the conversion starts to round."""
    edges = [0, 1, -1, I32.min, I32.min + 1, I32.max, I32.max - 1]
    edges += [s * ((1 << bit) + d) for bit in range(22, 31) for d in (-3, -2, -1, 0, 1, 2, 3) for s in (1, -1)]
    wide = rng.integers(I32.min, I32.max, n, endpoint=True) >> rng.integers(0, 32, n)
    wide[: len(edges)] = edges
    return wide[rng.permutation(n)]


def _spread(rng: np.random.Generator, n: int) -> np.ndarray:
    """Any float32 scale that is finite: tiny, huge, denormal, zero, negative."""
    bits = rng.integers(0, 1 << 32, n, dtype=np.uint64).astype(np.uint32)
    scale = bits.view(np.float32)
    scale = np.where(np.isfinite(scale), scale, np.float32(1.0))
    special = [0.0, -0.0, 1e-45, -1e-45, 1.1754942e-38, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 1.0, 0.5]
    scale[: len(special)] = special
    return scale[rng.permutation(n)].astype(np.float32)


def _usual(rng: np.random.Generator, n: int, acc: np.ndarray) -> np.ndarray:
    """Scales that bring the product into the output's range: both signs."""
    target = rng.uniform(-300, 300, n)
    return (target / np.where(acc == 0, 1, acc)).astype(np.float32)


def _near_tie(rng: np.random.Generator, n: int, acc: np.ndarray) -> np.ndarray:
    """Scales whose product lies on, just above or just below k + 1/2."""
    target = rng.integers(-140, 140, n) + 0.5
    scale = (target / np.where(acc == 0, 1, acc)).astype(np.float32)
    steps = rng.integers(-1, 2, n).astype(np.int32)
    nudged = (scale.view(np.int32) + steps).view(np.float32)
    return np.where(np.isfinite(nudged), nudged, scale)


def _values(rng: np.random.Generator, n: int) -> np.ndarray:
    """Arguments of glow_round_clamp: ties, near-ties, large, infinite; not NaN."""
    tie = (rng.integers(-70000, 70000, n) + 0.5).astype(np.float32)
    near = np.nextafter(tie, np.where(rng.integers(0, 2, n) == 1, np.inf, -np.inf).astype(np.float32))
    far = _spread(rng, n)
    v = np.choose(rng.integers(0, 3, n), [tie, near, far]).astype(np.float32)
    v[:4] = [np.inf, -np.inf, -0.0, 0.0]
    return v


def _records(n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    records = np.zeros(n, RECORD)
    acc = _accumulators(rng, n)
    kind = rng.integers(0, 4, n)
    half = np.float32(0.5) ** rng.integers(0, 24, n).astype(np.float32)  # exact ties
    scales = [_spread(rng, n), _usual(rng, n, acc), _near_tie(rng, n, acc), half.astype(np.float32)]
    records["acc"], records["scale"] = acc, np.choose(kind, scales)
    ranges = np.asarray(RANGES)[rng.integers(0, len(RANGES), n)]
    records["zp"], records["lo"], records["hi"] = ranges.T
    records["v"] = _values(rng, n)
    return records


def _expected(records: np.ndarray) -> np.ndarray:
    """Both answers per record; numerics takes one zero point and range at a time."""
    want = np.zeros((len(records), 2), np.int64)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for zp, lo, hi in RANGES:
            here = (records["zp"] == zp) & (records["lo"] == lo) & (records["hi"] == hi)
            r = records[here]
            want[here, 0] = requantize(r["acc"].astype(np.int64), r["scale"], zp, lo, hi)
            want[here, 1] = round_clamp(r["v"], zp, lo, hi)
    return want


@pytest.mark.parametrize(
    ("board_name", "defines", "flags", "count"),
    [
        pytest.param("host", (), _SANITIZE, 2_000_000, id="host-float"),
        pytest.param("host", ("GLOW_SOFT_REQUANT=1",), _SANITIZE, 2_000_000, id="host-integer"),
        pytest.param("mps2-an385", (), (), 500_000, id="mps2-an385", marks=pytest.mark.qemu),
        pytest.param("mps2-an386", (), (), 500_000, id="mps2-an386", marks=pytest.mark.qemu),
        pytest.param("mps3-an547", (), (), 500_000, id="mps3-an547", marks=pytest.mark.qemu),
        pytest.param("linux-aarch64", (), (), 500_000, id="linux-aarch64", marks=pytest.mark.qemu),
        pytest.param("linux-armhf", (), (), 500_000, id="linux-armhf", marks=pytest.mark.qemu),
    ],
)
def test_requant_gives_numpys_bits(
    board_name: str, defines: tuple[str, ...], flags: tuple[str, ...], count: int, tmp_path: Path
) -> None:
    board = load_board(board_name)
    require_tool(board.cpu.cc, *(() if board_name == "host" else (board.run_argv[0],)))
    runtime = data_dir("runtime_c")
    source = tmp_path / "numeric.c"
    source.write_text(_PROGRAM)
    elf = build_elf(
        [source],
        board,
        tmp_path / "numeric",
        include_dirs=[runtime, runtime / "io"],
        defines=[*defines, f"BATCH={BATCH}"],
        extra_flags=[*_FLAGS, *flags],
    )
    records = _records(count)
    (tmp_path / "in.bin").write_bytes(records.tobytes())
    run_elf(elf.path, board, cwd=tmp_path)
    got = np.frombuffer((tmp_path / "out.bin").read_bytes(), "<i4").reshape(-1, 2)
    want = _expected(records)
    assert got.shape == want.shape
    wrong = np.flatnonzero((got != want).any(axis=1))
    shown = [f"{records[i]}: got {got[i]}, want {want[i]}" for i in wrong[:10]]
    assert not len(wrong), f"{len(wrong)} of {count} records differ\n" + "\n".join(shown)
