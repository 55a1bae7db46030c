"""Inline assembly compiles at every level of optimisation, with gcc and clang, whatever it is inlined into."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import require_tool
from tests.kernels.assembly import asm_functions, asm_kernels, callers, compiler_argv
from tests.kernels.collect import all_cases
from tests.kernels.machines import machine

LEVELS = {
    "gcc": ("-O0", "-O1", "-O2", "-O3", "-Os"),
    "clang": ("-O0", "-O1", "-O3"),
}  # its others are like these
MACHINES = ("mps2-an385-m0", "mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64", "linux-armhf")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", MACHINES)
def test_assembly_of_headers_finds_its_registers(name: str, compiler: str, tmp_path: Path) -> None:
    cpu = machine(name).board.cpu
    require_tool(cpu.cc, compiler)
    source = tmp_path / "callers.c"
    source.write_text(callers(asm_functions(cpu)))
    wrong = [found for level in LEVELS[compiler] for found in _errors(compiler_argv(cpu, compiler), source, level)]
    # "auto": no warning of jobs in turn, so that the answer is kept (tests/compile_once.sh)
    wrong += _errors(compiler_argv(cpu, compiler), source, "-O2", "-flto=auto", linked=compiler == "gcc")
    assert wrong == []


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", MACHINES)
def test_kernels_compile_inlined_into_one_function(name: str, compiler: str, tmp_path: Path) -> None:
    cpu = machine(name).board.cpu
    require_tool(cpu.cc, compiler)
    source = tmp_path / "kernels.c"
    source.write_text(asm_kernels(all_cases(), machine(name)))
    assert [found for level in ("-O0", "-O2") for found in _errors(compiler_argv(cpu, compiler), source, level)] == []


def _errors(argv: list[str], source: Path, *flags: str, linked: bool = False) -> list[str]:
    """Compile and return what the compiler calls an error; `linked` generates the code of -flto, too."""
    how = ["-r", "-flinker-output=nolto-rel", "-nostdlib"] if linked else ["-c"]
    done = subprocess.run(
        [*argv, *flags, str(source), *how, "-o", str(source.with_suffix(".o"))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        return []
    lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    return [f"{' '.join(flags)}: {line}" for line in lines or done.stderr.splitlines()[:5]]
