"""Each runtime header compiles alone, all of them on every CPU, and a bundle has those that its functions need."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from glowc.board import Cpu, cpu_names, load_cpu
from glowc.codegen.blob import HEADER as BLOB_HEADER
from glowc.codegen.headers import RUNTIME_FILES, with_included
from glowc.kernels.common.reals import SAME_HEADER
from glowc.kernels.registry import variants_of
from glowc.paths import runtime_header
from glowc.program.kernel import all_kernels
from tests.conftest import RUNTIME_DIRS, require_tool
from tests.kernels.assembly import compiler_of
from tests.kernels.functions import runtime_headers
from tests.kernels.machines import WARNINGS

HEADERS = {name: runtime_header(name).read_text(encoding="utf-8") for name in (h.strip('"') for h in runtime_headers())}
INCLUDE = [f"-I{folder}" for folder in RUNTIME_DIRS]
ALONE = ("host", "x86-64", "cortex-m0", "cortex-m4", "cortex-m7", "cortex-m55", "cortex-a53", "armv9-sve2", "cortex-a7")
CLANG = ("host", "armv8.6-i8mm", "cortex-a53", "cortex-a7", "cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55")
# What assembly reads of a struct is asserted next to it, so a check that is wrong must be an error.
WRONG = """
#include "glow_runtime.h"
typedef struct { uint32_t first, second; } pair_t;
"""


def errors(argv: list[str], sources: Mapping[str, str], folder: Path) -> list[str]:
    """Return what a compiler calls an error in `sources` by name, with all warnings as errors."""
    for name, text in sources.items():
        (folder / f"{name}.c").write_text(f"{text}typedef int alone;\n")
    flags = ["-std=c11", "-pedantic", *WARNINGS]
    flags += ["-Wno-overlength-strings"] if "clang" in argv else []  # to gcc assembly is no string
    argv = [*argv, *flags, *INCLUDE, "-fsyntax-only", *(str(folder / f"{name}.c") for name in sources)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if "error" in line] or [""] * done.returncode


def included_on(cpu: Cpu) -> list[str]:
    """Return the headers that bundles for a CPU may have."""
    variants = [variant for kernel in all_kernels() for variant in variants_of(kernel)]
    named = {variant.header for variant in variants if variant.needs <= cpu.features} - {""}
    return [*RUNTIME_FILES, *with_included(named | {BLOB_HEADER, SAME_HEADER})]


@pytest.mark.parametrize("name", ALONE)
def test_header_compiles_alone(name: str, tmp_path: Path) -> None:
    cpu = load_cpu(name)
    require_tool(cpu.cc)
    headers = HEADERS if name == "host" else included_on(cpu)
    assert errors(compiler_of(cpu, "gcc"), {header: f'#include "{header}"\n' for header in headers}, tmp_path) == []


@pytest.mark.parametrize(("name", "compiler"), [*((n, "gcc") for n in cpu_names()), *((n, "clang") for n in CLANG)])
def test_headers_compile_for_every_cpu(name: str, compiler: str, tmp_path: Path) -> None:
    cpu = load_cpu(name)
    require_tool(cpu.cc, compiler)
    every = "".join(f'#include "{header}"\n' for header in HEADERS)
    assert errors(compiler_of(cpu, compiler), {"every": every}, tmp_path) == []


@pytest.mark.parametrize("check", ["GLOW_AT(pair_t, second, 8);", "GLOW_SIZE(pair_t, 4);"])
def test_wrong_offset_or_size_is_an_error(check: str, tmp_path: Path) -> None:
    require_tool("gcc")
    right = check.replace("8)", "4)") if "AT" in check else check.replace("4)", "8)")
    found = []
    for text in (right, check):
        source = tmp_path / "check.c"
        source.write_text(f"{WRONG}{text}\n")
        argv = ["gcc", "-std=c11", *INCLUDE, "-fsyntax-only", source]
        found.append(subprocess.run(argv, capture_output=True, text=True, check=False))
    assert found[0].returncode == 0
    assert "pair_t" in found[1].stderr
    assert found[1].returncode != 0


def test_variants_name_headers_that_exist() -> None:
    named = {variant.header for kernel in all_kernels() for variant in variants_of(kernel)} - {""} | {
        BLOB_HEADER,
        SAME_HEADER,
    }
    assert with_included(named) == [name for name in HEADERS if name not in RUNTIME_FILES]


def test_included_headers_come_once_and_sorted() -> None:
    assert with_included(["glow_mve_single.h", "glow_reach.h"]) == [
        "glow_mve.h", "glow_mve_dot.h", "glow_mve_gather.h", "glow_mve_point.h", "glow_mve_run.h", "glow_mve_single.h",
        "glow_mve_zero.h", "glow_reach.h",
    ]  # fmt: skip


def defined(argv: list[str], header: str) -> tuple[set[str], str]:
    """Return the functions that a header defines to a compiler, and the header as that sees it."""
    text = f'#include "{header}"\n'
    argv = [*argv, *INCLUDE, "-E", "-P", "-xc", "-"]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=True)
    return set(re.findall(r"\b(glow_\w+)\s*\([^;{}]*\)\s*\{", done.stdout)), done.stdout


@pytest.mark.parametrize("name", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33"])
def test_what_kernels_of_a_microcontroller_call_has_a_twin_in_portable_c(name: str) -> None:
    cpu = load_cpu(name)
    require_tool(cpu.cc, "gcc")
    folders = [folder for folder in RUNTIME_DIRS if Path(folder).name in ("thumb", "dsp", "fpu")]
    for header in sorted(path.name for folder in folders for path in Path(folder).glob("*.h")):
        own, text = defined([cpu.cc, *cpu.core_flags], header)
        twins, _ = defined(["gcc", "-DGLOW_NO_ASM"], header)
        lacking = {function for function in own - twins if len(re.findall(rf"\b{function}\b", text)) == 1}
        assert not lacking, header
