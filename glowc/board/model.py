"""Cpu, Region and Board: what the compiler knows about a machine. Plain data, read by `load.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FAMILIES = ("cortex-m", "cortex-a64", "cortex-a32", "host")

# Where the bare-metal linker scripts put the arena and the weights: into the board's arena_region and
# weights_region; `<ARENA_SECTION>.<region>` into one of its arena_regions; code with a section of its own into RAM. A
# generated model carries them as attributes; an operating system ignores them.
ARENA_SECTION = ".bss.glow_arena"
WEIGHTS_SECTION = ".glow_weights"
CODE_SECTION = ".glow_code"


@dataclass(frozen=True, slots=True)
class Cpu:
    """One CPU: its instruction set as feature names, its compiler and the flags that select it."""

    name: str
    summary: str
    url: str
    family: str  # one of FAMILIES
    features: frozenset[str]  # fpu, fp64, dsp, mve, mve-fp, neon, dot, i8mm, vcvtn, a64, a32, thumb, ...
    cc: str
    cflags: tuple[str, ...]
    align_bytes: int  # what the arena and packed weights are aligned to
    line_bytes: int = (
        1  # of the data cache: an input or output begins with a line, and shares none with other variables
    )
    qemu_cpu: str | None = None  # QEMU's `-cpu`; None where no QEMU models it
    loop_bytes: int | None = None  # of hot code that chips with this core keep of their flash; None: enough
    slow_flash: bool = False  # constants that are read again and again wait for the flash each time
    near_bytes: int = 0  # of constants that caches of such a flash keep until they are read for the next pixels
    cycles_per_100_insns: int = 100  # roughly, of kernels that were never measured on it

    def has(self, *features: str) -> bool:
        """Say whether this CPU has all of `features`."""
        return self.features.issuperset(features)

    @property
    def core_flags(self) -> tuple[str, ...]:
        """Return the compiler flags that name the core: those that are not about arithmetic."""
        return tuple(flag for flag in self.cflags if flag.startswith("-m"))

    @property
    def tool_prefix(self) -> str:
        """Return what precedes `gcc`, `nm` and the like: "arm-none-eabi-", or "" natively."""
        return self.cc.removesuffix("gcc")


@dataclass(frozen=True, slots=True)
class Region:
    """One range of addresses of a board's memory."""

    name: str
    origin: int
    size_bytes: int
    kind: str  # "flash" (constants, loaded once) or "ram"

    @property
    def end(self) -> int:
        """Return the address after the last byte."""
        return self.origin + self.size_bytes

    def holds(self, address: int, size_bytes: int = 0) -> bool:
        """Say whether `size_bytes` from `address` on lie inside."""
        return self.origin <= address and address + size_bytes <= self.end


_STATIC_BYTES = 128  # of start-up code and glow_io


@dataclass(frozen=True, slots=True)
class ArenaRegion:
    """A memory region that may hold a part of the arena; `reserve_bytes` stay free for stack and firmware data."""

    region: str
    reserve_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Board:
    """One board with the CPU chosen for it, as `boards/<name>/board.toml` describes it."""

    name: str
    summary: str
    url: str
    folder: Path
    cpu: Cpu
    cpus: tuple[str, ...]  # names of the CPUs it may be built for; the first is the default
    memory: Mapping[str, Region]
    arena_region: str
    weights_region: str
    linker_script: Path | None  # None: an operating system loads the program
    sources: tuple[Path, ...]  # start-up and glow_io, linked into every image
    include_dirs: tuple[Path, ...]
    defines: tuple[str, ...]
    cflags: tuple[str, ...]  # beyond the CPU's
    ldflags: tuple[str, ...]
    stack_bytes: int | None  # what the linker reserves; None under an operating system
    run_argv: tuple[str, ...]  # with {elf}, {qemu_cpu} and {plugin}; empty: cannot be run from here
    timeout_s: int
    flash: str | None = None  # the command that puts {elf} on a real board
    arena_regions: tuple[ArenaRegion, ...] = ()  # for an arena that is split, the fastest first; empty: never split
    wire_sources: tuple[Path, ...] = ()  # the functions of glow_wire.h; empty: the user's firmware has them
    wire_defines: tuple[str, ...] = ()
    cores_source: Path | None = None  # the functions of glow_cores.h; None: the user's firmware has them
    chips: tuple[str, ...] = ()  # that it has or stands for; the first with its CPU is the default of `glowc bench`

    @property
    def bare_metal(self) -> bool:
        """Say whether the image starts at reset, without an operating system."""
        return self.linker_script is not None

    @property
    def runs(self) -> bool:
        """Say whether `run_elf` can run a program for it."""
        return bool(self.run_argv)

    @property
    def counts_insns(self) -> bool:
        """Say whether `run_elf(marks=True)` can count executed instructions."""
        return "{plugin}" in self.run_argv

    @property
    def arena_room(self) -> int | None:
        """Return the bytes that an arena may have; stack and start-up code's data share an only RAM with it."""
        if not self.bare_metal:
            return None
        whole = self.memory[self.arena_region].size_bytes
        shared = sum(region.kind == "ram" for region in self.memory.values()) == 1
        return whole - (self.stack_bytes or 0) - _STATIC_BYTES if shared else whole

    @property
    def arena_rooms(self) -> dict[str, int]:
        """Return the bytes that each of the arena_regions has for an arena, in their order."""
        return {r.region: self.memory[r.region].size_bytes - r.reserve_bytes for r in self.arena_regions}

    def bytes_of(self, kind: str) -> int:
        """Return the total bytes of the regions of `kind` ("flash" or "ram")."""
        return sum(region.size_bytes for region in self.memory.values() if region.kind == kind)
