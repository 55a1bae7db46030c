"""Every board: a small program is built, linked where it belongs, run, and its instructions counted."""

from __future__ import annotations

import itertools
import struct
import subprocess
from pathlib import Path

import pytest

from glowc.board import Board, board_names, cpu_names, load_board, load_cpu
from glowc.errors import BoardError, ToolError
from glowc.machine.elf import sections, symbols
from glowc.machine.link import Elf, build_elf
from glowc.machine.qemu import RunResult, run_elf
from tests.conftest import require_tool

pytestmark = pytest.mark.qemu

# Every (board, CPU) of the repository.
TARGETS = [(name, cpu) for name in board_names() for cpu in load_board(name).cpus]

PROGRAM = r"""
#include <math.h>
#include <string.h>
#include "glow_io.h"

__attribute__((section(".glow_weights"))) const int8_t weights[64] = {1, -2, 3};
__attribute__((section(".bss.glow_arena"))) static uint8_t arena[1024];
static volatile uint32_t initialized = 12345u, two = 2u;
static volatile uint32_t zeroed;

__attribute__((noinline)) static void loop(uint32_t n) { /* the same on every run */
  for (uint32_t i = 0; i < n; i++) {
    __asm__ volatile("");
  }
}

__attribute__((noinline)) static uint32_t use_stack(uint32_t seed) {
  volatile uint8_t bytes[600];
  for (uint32_t i = 0; i < sizeof bytes; i++) {
    bytes[i] = (uint8_t)(seed + i);
  }
  return bytes[seed % sizeof bytes];
}

int main(void) {
  int in = glow_io_open_read("in.bin"), out = glow_io_open_write("out.bin");
  if (in < 0 || out < 0 || glow_io_open_read("no such file") >= 0) {
    return 10;
  }
  long n = glow_io_read(in, arena, sizeof arena);
  glow_io_close(in);
  if (n != 1000 || initialized != 12345u || zeroed != 0u || weights[two] != 3) {
    return 11;
  }
  uint32_t sum = 0;
  float total = 0.0f;
  for (long i = 0; i < n; i++) {
    sum = sum * 31u + arena[i];
    total += (float)arena[i] * 0.37f;
  }
  uint32_t unaligned;
  memcpy(&unaligned, arena + 1, sizeof unaligned);
  float root = sqrtf(total);
  double wave = log(1.0 + (double)expf(-1.0f)); /* library code that sets errno */
  uint32_t wave_micro = (uint32_t)(wave * 1e6);
  memmove(arena + 3, arena, 500);
  glow_stack_paint();
  uint32_t byte = use_stack(n > 0 ? 7u : 0u);
  uint32_t used = glow_stack_used_bytes();
  glow_mark();
  glow_mark();
  loop(1000);
  glow_mark();
  loop(2000);
  glow_mark();
  glow_io_puts("stack ");
  glow_io_put_u32(used);
  glow_io_puts("\nlargest ");
  glow_io_put_u32(4294967295u);
  glow_io_puts("\n");
  long put = glow_io_write(out, &sum, 4) + glow_io_write(out, &total, 4) + glow_io_write(out, &root, 4);
  put += glow_io_write(out, &unaligned, 4) + glow_io_write(out, &wave_micro, 4);
  put += glow_io_write(out, arena, 503);
  glow_io_close(out);
  return put == 523 && byte == 14u ? 0 : 12;
}
"""


def build(folder: Path, text: str, board: Board, name: str = "probe") -> Elf:
    require_tool(board.cpu.cc)
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}.c"
    source.write_text(text)
    return build_elf([source], board, folder / f"{name}.elf", extra_flags=["-Werror"])


def run(elf: Elf, board: Board, folder: Path, *, marks: bool = False, check: bool = True) -> RunResult:
    if board.run_argv[0] != "{elf}":
        require_tool(board.run_argv[0])
    return run_elf(elf.path, board, cwd=folder, marks=marks, check=check)


def input_bytes() -> bytes:
    return bytes((i * 37 + 11) & 255 for i in range(1000))


def f32(value: float) -> float:
    result: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return result


def expected_bytes(data: bytes) -> bytes:
    total, checksum = 0.0, 0
    for byte in data:
        checksum = (checksum * 31 + byte) & 0xFFFFFFFF
        total = f32(total + f32(byte * f32(0.37)))  # double holds the exact sum and product of two floats
    head = struct.pack("<Iff", checksum, total, f32(total**0.5)) + data[1:5]
    return head + struct.pack("<I", 313261) + data[:3] + data[:500]


@pytest.mark.parametrize(("name", "cpu"), TARGETS)
def test_program_computes_the_same_bytes_on_every_board(name: str, cpu: str, tmp_path: Path) -> None:
    board = load_board(name, cpu)
    elf = build(tmp_path, PROGRAM, board)
    assert elf.object_sizes["probe.c"].bss >= 1024
    assert elf.bss >= 1024
    assert elf.text > 0
    if not board.runs:
        with pytest.raises(BoardError, match="real hardware"):
            run_elf(elf.path, board, cwd=tmp_path)
        return
    (tmp_path / "in.bin").write_bytes(input_bytes())
    result = run(elf, board, tmp_path)
    lines = dict(line.split() for line in result.stdout.splitlines())
    assert 600 - 64 <= int(lines["stack"]) <= 600 + 64
    assert lines["largest"] == "4294967295"
    assert (tmp_path / "out.bin").read_bytes() == expected_bytes(input_bytes())


@pytest.mark.parametrize(("name", "cpu"), [t for t in TARGETS if load_board(t[0]).counts_insns])
def test_marks_count_instructions_exactly(name: str, cpu: str, tmp_path: Path) -> None:
    board = load_board(name, cpu)
    elf = build(tmp_path, PROGRAM, board)
    (tmp_path / "in.bin").write_bytes(input_bytes())
    require_tool("gcc")
    first, again = (run(elf, board, tmp_path, marks=True).marks for _ in range(2))
    assert len(first) == 4
    spans = [b - a for a, b in itertools.pairwise(first)]
    assert spans == [b - a for a, b in itertools.pairwise(again)]
    empty, thousand, two_thousand = spans
    assert 2 <= empty <= 6  # a call and a return
    per_turn, rest = divmod(two_thousand - thousand, 1000)
    assert rest == 0
    assert per_turn in (1, 2, 3, 4)  # 1: a low-overhead loop
    assert 0 <= thousand - empty - 1000 * per_turn <= 8  # entry and exit of the loop


CRASHES = {
    "undefined instruction": "int main(void) { __builtin_trap(); }",
    "stray store": "int main(void) { *(volatile int *)0xE8000000u = 1; return 0; }",
}


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("name", [name for name in board_names() if load_board(name).runs])
def test_crash_is_reported(name: str, crash: str, tmp_path: Path) -> None:
    board = load_board(name)
    elf = build(tmp_path, CRASHES[crash], board, "crash")
    if board.bare_metal:
        with pytest.raises(ToolError, match="exit status 3") as caught:
            run(elf, board, tmp_path)
        assert "fault: " in str(caught.value)
        assert " at pc 0x" in str(caught.value)
    else:
        with pytest.raises(ToolError, match="crashed by signal SIG"):
            run(elf, board, tmp_path)


@pytest.mark.parametrize("name", ["mps2-an505", "mps3-an547"])
def test_stack_overflow_is_a_fault_where_the_core_has_a_stack_limit(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    text = """
    __attribute__((noinline)) static int deeper(volatile int *n) {
      volatile int local[64];
      local[0] = *n;
      return *n == 0 ? local[0] : deeper(n) + local[0];
    }
    int main(void) { volatile int n = 1; return deeper(&n); }
    """
    elf = build(tmp_path, text, board, "overflow")
    with pytest.raises(ToolError, match="UsageFault"):
        run(elf, board, tmp_path)


@pytest.mark.parametrize("name", [name for name in board_names() if load_board(name).runs])
def test_exit_status_reaches_the_caller(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    elf = build(tmp_path, "int main(void) { return 77; }", board, "status")
    assert run(elf, board, tmp_path, check=False).exit_status == 77


def test_endless_program_is_stopped_at_the_time_limit(tmp_path: Path) -> None:
    board = load_board("mps2-an386")
    elf = build(
        tmp_path,
        '#include "glow_io.h"\nint main(void) { glow_io_puts("alive\\n"); for (;;) {} }',
        board,
        "endless",
    )
    require_tool(board.run_argv[0])
    with pytest.raises(ToolError, match="did not end within 1 s") as caught:
        run_elf(elf.path, board, cwd=tmp_path, timeout_s=1)
    assert "alive" in str(caught.value)


@pytest.mark.parametrize("name", [name for name in board_names() if load_board(name).bare_metal])
def test_sections_lie_in_the_regions_of_the_board(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    elf = build(tmp_path, PROGRAM, board)
    for section in sections(elf.path):
        homes = [r for r in board.memory.values() if r.holds(section.address, section.size)]
        assert homes, f"{section} lies in no region"
        kind = "flash" if section.kind in ("text", "rodata") else "ram"
        assert homes[0].kind == kind, section
    table = symbols(elf.path)
    assert board.memory[board.arena_region].holds(table["arena"].address, 1024)
    assert board.memory[board.weights_region].holds(table["weights"].address, 64)
    stack = table["__stack_top"].address - table["__stack_limit"].address
    assert stack == board.stack_bytes


@pytest.mark.parametrize("name", ["microbit", "virt-a53", "nucleo-h743zi"])
def test_image_that_does_not_fit_is_an_error_of_the_linker(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    size = board.memory[board.arena_region].size_bytes + 16
    text = f"""
    __attribute__((section(".bss.glow_arena"))) static unsigned char arena[{size}];
    int main(void) {{ return *(volatile unsigned char *)arena; }}
    """
    with pytest.raises(ToolError, match="overflowed by"):
        build(tmp_path, text, board, "big")


# clang has no C library for linux-armhf here; its glow_io is the host's.
CLANG_TRIPLES = {"cortex-m": "arm-none-eabi", "cortex-a64": "aarch64-none-elf", "host": None}
IO_BOARDS = ["host", "mps2-an385", "mps3-an547", "microbit", "virt-a53"]
STRICT = ["-Wconversion", "-Wshadow", "-Wundef", "-Werror"]


@pytest.mark.parametrize("name", [*IO_BOARDS, "linux-armhf"])
def test_io_and_start_up_compile_without_warnings_by_gcc(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    require_tool(board.cpu.cc)
    build_elf(board.sources, board, tmp_path / "io.elf", extra_flags=STRICT, link=False)


@pytest.mark.parametrize("name", IO_BOARDS)
def test_io_and_start_up_compile_without_warnings_by_clang(name: str, tmp_path: Path) -> None:
    require_tool("clang")
    board = load_board(name)
    triple = CLANG_TRIPLES[board.cpu.family]
    target = [f"--target={triple}", "-ffreestanding", "-nostdlibinc"] if triple else []
    keep = [flag for flag in board.cpu.cflags if flag.startswith(("-mcpu", "-mthumb", "-mfloat"))]
    for source in board.sources:
        if source.suffix == ".c" and "string" not in source.name:  # string.h is the C library's
            argv = ["clang", *target, *keep, "-std=c11", "-Wall", "-Wextra", *STRICT, "-O2"]
            argv += [f"-I{path}" for path in board.include_dirs]
            argv += [f"-D{define}" for define in board.defines]
            subprocess.run([*argv, "-c", str(source), "-o", str(tmp_path / "x.o")], check=True)


def test_every_cpu_is_used_by_a_board() -> None:
    assert {cpu for name in board_names() for cpu in load_board(name).cpus} == set(cpu_names())


# One instruction (or intrinsic) that only a CPU with the feature has, and the result it must give.
FEATURE_PROGRAMS = {
    "dsp": """
        int main(void) {
          int r = 0;
          __asm__ volatile("smlad %0, %1, %2, %3" : "=r"(r) : "r"(0x00020003), "r"(0x00040005), "r"(100));
          return r == 123 ? 0 : 1;
        }""",
    "mve": """
        #include <arm_mve.h>
        int main(void) {
          int8_t x[16] = {1, 2, 3};
          return vmladavq_s8(vld1q_s8(x), vld1q_s8(x)) == 14 ? 0 : 1;
        }""",
    "neon": """
        #include <arm_neon.h>
        int main(void) {
          volatile int8_t seven = 7;
          int16x8_t p = vmull_s8(vdup_n_s8(seven), vdup_n_s8(-3));
          return vgetq_lane_s16(p, 5) == -21 ? 0 : 1;
        }""",
    "dot": """
        #include <arm_neon.h>
        int main(void) {
          volatile int8_t seven = 7;
          int32x4_t a = vdotq_s32(vdupq_n_s32(1), vdupq_n_s8(seven), vdupq_n_s8(-3));
          return vgetq_lane_s32(a, 2) == -83 ? 0 : 1;
        }""",
    "i8mm": """
        #include <arm_neon.h>
        int main(void) {
          volatile int8_t seven = 7;
          int32x4_t a = vmmlaq_s32(vdupq_n_s32(1), vdupq_n_s8(seven), vdupq_n_s8(-3));
          return vgetq_lane_s32(a, 3) == -167 ? 0 : 1;
        }""",
    "vcvtn": """
        static int nearest(float x) {
          int r;
        #ifdef __aarch64__
          __asm__ volatile("fcvtns %w0, %s1" : "=r"(r) : "w"(x));
        #else
          __asm__ volatile("vcvtn.s32.f32 %1, %1; vmov %0, %1" : "=r"(r), "+t"(x));
        #endif
          return r;
        }
        int main(void) { return nearest(2.5f) == 2 && nearest(3.5f) == 4 ? 0 : 1; }""",
    "unaligned": """
        #include <stdint.h>
        static uint8_t b[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
        int main(void) {
          volatile uint32_t *p = (volatile uint32_t *)(uintptr_t)(b + 1);
          return *p == 0x04030201u ? 0 : 1;
        }""",
}
CLAIMS = [
    (name, cpu, feature)
    for name, cpu in TARGETS
    for feature in FEATURE_PROGRAMS
    if load_board(name).runs and load_cpu(cpu).has(feature)
]


@pytest.mark.parametrize(("name", "cpu", "feature"), CLAIMS)
def test_claimed_feature_exists_in_the_machine(name: str, cpu: str, feature: str, tmp_path: Path) -> None:
    board = load_board(name, cpu)
    run(build(tmp_path, FEATURE_PROGRAMS[feature], board, feature), board, tmp_path)


def test_weights_file_without_attributes_goes_to_the_weights_region(tmp_path: Path) -> None:
    board = load_board("mps3-an547")
    require_tool(board.cpu.cc)
    (tmp_path / "net_weights.c").write_text("extern const char w[9]; const char w[9] = {4};\n")
    (tmp_path / "main.c").write_text("extern const char w[9]; int main(void) { return w[0] - 4; }\n")
    elf = build_elf([tmp_path / "main.c", tmp_path / "net_weights.c"], board, tmp_path / "net.elf")
    assert board.memory["ddr"].holds(symbols(elf.path)["w"].address, 9)
    assert run(elf, board, tmp_path).exit_status == 0
