"""The machines on which every kernel variant is run, and what each of them can show."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache

from glowc.board import Board, load_board
from glowc.kernels.base import PLAIN, KernelVariant
from glowc.kernels.registry import variants_of
from glowc.program.kernel import all_kernels
from tests.conftest import ROOT

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Wvla", "-Werror")
SANITIZERS = (
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    # what is wrong, and in which line: half of the time for all kernels
    "-g1" if "GLOWC_KERNELS" in os.environ else "-fsanitize-trap=undefined,float-cast-overflow",
)
SAMPLE = int(os.environ.get("GLOWC_SAMPLE", "12"))
OTHERS = max(1, SAMPLE // 3)
_EIGHT = "-O2 -O0 -Og -O0 -O0 -Os -O0 -O0"
LEVELS, _HELIUM_LEVELS = (  # gcc 12 had errors of its own at -O1 in Helium
    tuple(os.environ.get("GLOWC_LEVELS", f"{_EIGHT} {last}").split()) for last in ("-Og", "-O1")
)
POOL_BYTES = 1 << 20  # operands of one case on bare metal; the arena region of these boards holds 4 MB


@cache
def _board(name: str, cpu: str | None) -> Board:
    return load_board(name, cpu)


@dataclass(frozen=True)
class Machine:
    """A board, a compiler and a way to fence operands ("malloc", "page", "mpu" or "pool").

    `twins` are features whose instructions runtime_c replaces by exact C twins. With `beyond`, only variants
    run for which the machine of that name has not the features. `programs` is how many images the functions are
    spread over: all together need not fit the board's code memory. At least `literals` cases of each variant run with
    their parameters printed as literals, too. `code_for` names a board for whose CPU
    the code is, where this one's runs it as well. `longer` runs the variants of DSP, whose loops are longer where a CPU
    keeps more hot code. Of the variants that the machine `sampled` runs over the whole grid, on the same instructions,
    this one runs every SAMPLE-th case: what is new here is what the compiler makes of them. So it does of those that it
    runs by twins, which other machines run by their own instructions, and of portable C but where `portable` says so.
    Cases about the kernels of another instruction set are run every OTHERS-th, where all would be.
    With `divides` every call is done in parts too, elsewhere one of each path. SVE has vectors of `vector_bytes`. The
    files of a program are compiled at `levels` in turn, as users compile bundles at any of them.
    """

    name: str
    board_name: str
    guard: str
    cpu: str | None = None
    cc: str | None = None
    levels: tuple[str, ...] = LEVELS
    defines: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    twins: frozenset[str] = frozenset()
    beyond: str | None = None
    programs: int = 1
    literals: int = 1
    code_for: str | None = None
    longer: bool = False
    sampled: str | None = None
    portable: bool = False
    divides: bool = False
    vector_bytes: int = 0

    @property
    def board(self) -> Board:
        """The board, with this machine's CPU and compiler."""
        board = _board(self.board_name, self.cpu)
        if self.code_for:
            board = replace(board, cpu=_board(self.code_for, None).cpu)
        if self.vector_bytes:
            emulated = f"max,sve-default-vector-length={self.vector_bytes}"
            board = replace(board, cpu=replace(board.cpu, qemu_cpu=emulated))
        return replace(board, cpu=replace(board.cpu, cc=self.cc)) if self.cc else board

    @property
    def features(self) -> frozenset[str]:
        """What a variant may need."""
        return self.board.cpu.features | self.twins

    @property
    def all_defines(self) -> tuple[str, ...]:
        """What a bundle for this CPU defines, and what only this machine does."""
        loop_bytes = self.board.cpu.loop_bytes
        return self.defines if loop_bytes is None else (*self.defines, f"GLOW_LOOP_BYTES={loop_bytes}")

    @property
    def tools(self) -> tuple[str, ...]:
        """Programs that must be installed."""
        run = self.board.run_argv[0]
        return (self.board.cpu.cc, *(() if run == "{elf}" else (run,)))

    def runs(self, variant: KernelVariant) -> bool:
        """Say whether this machine tests `variant`."""
        known = machine(self.beyond).features if self.beyond is not None else None
        if self.longer and variant.isa != "dsp":
            return False
        return variant.needs <= self.features and (known is None or not variant.needs <= known)

    def step(self, variant: KernelVariant, folder: str) -> int:
        """Return which cases about the kernels of `folder` run here by `variant`: each, or one of so many."""
        known = self.sampled is not None and variant.needs <= machine(self.sampled).features
        plain = variant.isa == PLAIN.isa
        if known or (plain and not self.portable) or variant.needs & self.twins:
            return SAMPLE
        return 1 if plain or folder in ("", variant.folder) else OTHERS


_TWINS = frozenset({"dsp", "dual-issue", "thumb"})  # as Cortex-M4F, M7 and M33
_AARCH64 = "linux-aarch64"
_PARTIAL = ROOT / "tests/e2e/boards"
MACHINES = (
    Machine(
        "host",
        "host",
        "malloc",
        cc="clang",
        levels=("-O0",),
        flags=SANITIZERS,
        twins=_TWINS,
        portable=True,
        divides=True,
    ),
    Machine("host-gcc", "host", "page", twins=_TWINS, sampled="host"),
    Machine(
        "host-soft-requant",
        "host",
        "page",
        defines=("GLOW_SOFT_REQUANT=1",),
        twins=_TWINS,
        sampled="host",
    ),
    Machine("host-x86", "host", "page", cpu="x86-64", beyond="host"),
    Machine(
        "host-x86-avx2",
        "host",
        "page",
        cpu="x86-64",
        cc="clang",
        defines=("GLOW_WIDE_MOST=1",),
        beyond="host",
        sampled="host-x86",
    ),
    Machine(
        "host-x86-vnni",
        "host",
        "page",
        cpu="x86-64",
        defines=("GLOW_WIDE_MOST=2",),
        beyond="host",
        sampled="host-x86",
    ),
    Machine(
        "host-x86-plain",
        "host",
        "malloc",
        cpu="x86-64",
        cc="clang",
        levels=("-O0",),
        flags=SANITIZERS,
        defines=("GLOW_WIDE_MOST=0",),
        beyond="host",
        sampled="host-x86",
    ),
    Machine("mps2-an385", "mps2-an385", "mpu", programs=2, literals=2, portable=True),
    Machine("mps2-an385-m0", "mps2-an385", "mpu", code_for="microbit", beyond="mps2-an385"),
    Machine("mps2-an386", "mps2-an386", "mpu", programs=2, literals=2, sampled="mps2-an385"),
    Machine("mps2-an500", "mps2-an500", "mpu", beyond="mps2-an386"),
    Machine(
        "mps2-an500-longer",
        "mps2-an500",
        "mpu",
        longer=True,
        programs=2,
        literals=2,
        sampled="mps2-an500",
    ),
    Machine("mps2-an505", "mps2-an505", "pool", longer=True, programs=2, literals=2),
    Machine("m4-nofpu", str(_PARTIAL / "m4-nofpu"), "mpu", beyond="mps2-an385", sampled="mps2-an386"),
    Machine("m33-nodsp", str(_PARTIAL / "m33-nodsp"), "pool", beyond="mps2-an385", sampled="mps2-an386"),
    Machine(
        "mps3-an547",
        "mps3-an547",
        "mpu",
        levels=_HELIUM_LEVELS,
        beyond="mps2-an385",
        programs=12,
        literals=3,
        sampled="mps2-an386",
    ),
    Machine(_AARCH64, "linux-aarch64", "page"),
    Machine(f"{_AARCH64}-a76", "linux-aarch64", "page", cpu="cortex-a76", beyond=_AARCH64),
    Machine(f"{_AARCH64}-i8mm", "linux-aarch64", "page", cpu="armv8.6-i8mm", beyond=f"{_AARCH64}-a76"),
    *(
        Machine(
            f"{_AARCH64}-sve{8 * n}",
            "linux-aarch64",
            "page",
            cpu="armv9-sve2",
            beyond=f"{_AARCH64}-i8mm",
            vector_bytes=n,
        )
        for n in (16, 32, 64)
    ),
    Machine("linux-armhf", "linux-armhf", "page"),
    Machine("linux-armhf-a9", "linux-armhf", "page", cpu="cortex-a9", sampled="linux-armhf"),
)


def machine(name: str) -> Machine:
    """Return the machine of that name; KeyError when there is none."""
    return {m.name: m for m in MACHINES}[name]


@cache
def used_machines() -> tuple[Machine, ...]:
    """Return the machines that have a variant to run."""
    variants = [v for kernel in all_kernels().values() for v in variants_of(kernel.name)]
    return tuple(m for m in MACHINES if any(m.runs(v) for v in variants))
