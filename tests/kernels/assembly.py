"""C that puts every function holding inline assembly, and every kernel that calls one, where registers are scarce.

Whether a compiler finds registers for the operands of inline assembly is not known before it allocates them, and
depends on what surrounds the function after inlining. Each function of runtime_c's headers is called from loops with
twelve pointers alive, and with literals; each kernel, with its dimensions as literals, from one function that calls
it at fixed places of an arena, as a bundle does.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from glowc.board import Cpu
from glowc.codegen.kernels import identity
from tests.conftest import RUNTIME_DIRS
from tests.kernels.case import Case
from tests.kernels.functions import Function, Job, printed_function, runtime_headers
from tests.kernels.machines import Machine
from tests.kernels.program import make_jobs

SYSTEM_HEADERS = ("<stddef.h>", "<stdint.h>", "<string.h>", "<math.h>")
NEEDS = {"glow_fpu_greatest": "vcvtn"}  # FPv5 has the instruction; no macro tells it from FPv4
_LIVE = 12
_SPREAD = (8, 16, 64, 4)
_ATTRIBUTE = r"__attribute__\s*\(\([^;{}]*?\)\)"
_DEFINITION = re.compile(
    rf"(?:^|[;}}])\s*((?:(?:static|inline|const|{_ATTRIBUTE})\s+|[a-z_]\w*\s+\*?)+)(glow_\w+)\(([^;{{}}]*?)\)\s*\{{"
)
_INTEGERS = ("int32_t", "uint32_t", "int")


@dataclass(frozen=True)
class AsmFunction:
    """A function of a header whose body holds assembly: its name, the type it returns, those of its parameters."""

    name: str
    returns: str
    params: tuple[str, ...]


def compiler_argv(cpu: Cpu, compiler: str) -> list[str]:
    """Return the command of `compiler` ("gcc" or "clang") for a CPU, without what to compile."""
    return [*compiler_of(cpu, compiler), "-std=gnu11", "-w", *(f"-I{folder}" for folder in RUNTIME_DIRS)]


def compiler_of(cpu: Cpu, compiler: str) -> list[str]:
    """Return `compiler` with the flags that say which CPU."""
    if compiler == "gcc" or cpu.family == "host":
        return [cpu.cc if compiler == "gcc" else compiler, *cpu.cflags]
    target = cpu.cc.removesuffix("-gcc")
    found = subprocess.run([cpu.cc, "-print-file-name=include"], capture_output=True, text=True, check=True).stdout
    newlib = [f"-isystem{Path(found.strip()).parents[3] / target / 'include'}"] if target == "arm-none-eabi" else []
    known = [flag for flag in cpu.cflags if flag != "-mfpu=auto"]
    return ["clang", f"--target={target}", *newlib, *known]


def asm_functions(cpu: Cpu) -> Iterator[AsmFunction]:
    """Yield the functions of runtime_c's headers that hold assembly on a CPU, as its preprocessor leaves them."""
    argv = [*compiler_argv(cpu, "gcc"), "-E", "-P", "-xc", "-"]
    text = subprocess.run(argv, input=_includes(), capture_output=True, text=True, check=True).stdout
    for match in _DEFINITION.finditer(text):
        name = match[2]
        if "__asm__" in text[match.end() : _end_of_block(text, match.end())] and _has(cpu, name):
            returns = " ".join(w for w in re.sub(_ATTRIBUTE, "", match[1]).split() if w not in ("static", "inline"))
            yield AsmFunction(name, returns, tuple(_types(match[3])))


def _has(cpu: Cpu, name: str) -> bool:
    return name not in NEEDS or NEEDS[name] in cpu.features


def _includes(*more: str) -> str:
    """Return the lines that include all headers, the runtime's in the order of their names, as bundles have them."""
    return "".join(f"#include {header}\n" for header in (*SYSTEM_HEADERS, *sorted({*runtime_headers(), *more})))


def _end_of_block(text: str, at: int) -> int:
    depth = 1
    while depth:
        depth += (text[at] == "{") - (text[at] == "}")
        at += 1
    return at


def _types(params: str) -> Iterator[str]:
    """Yield the types of "const int8_t *restrict x, int32_t sum[4]"; an array is a pointer."""
    for param in re.sub(_ATTRIBUTE, "", params).split(",") if params != "void" else ():
        match = re.fullmatch(r"(.*?)(\w+)((?:\[[^\]]*\])*)", " ".join(param.split()))
        assert match, param
        kind = re.sub(r"\b(__)?restrict\b", "", match[1]).strip()
        first, *rest = re.findall(r"\[[^\]]*\]", match[3]) or [""]
        yield f"{kind} (*){''.join(rest)}" if rest else f"{kind} *" if first else kind


def callers(functions: Iterable[AsmFunction]) -> str:
    """Return C that calls each function with variables and `_LIVE` pointers alive, and with literals."""
    return "\n".join([_includes(), *(_crowded(f) + _fixed(f) for f in functions)])


def _crowded(f: AsmFunction) -> str:
    """A loop in a loop that moves every argument, while _LIVE pointers are in use."""
    held = "".join(f"int8_t *v{i} = w[{i}]; " for i in range(_LIVE))
    used = "".join(f"*v{i}++ = {i}; " for i in range(_LIVE))
    moved = "".join(f"a{i} += {i + 1}; " for i, kind in enumerate(f.params) if _moves(kind))
    loop = f"for (int32_t i = 0; i < n; i++) {{ for (int32_t j = 0; j < i; j++) {{ {_call(f)} {moved}}} {used}}}"
    return _definition(f, "crowded", f"{held}{_loaded(f)}{loop}")


def _moves(kind: str) -> bool:
    return kind in _INTEGERS or (kind.endswith("*") and "(" not in kind)


def _fixed(f: AsmFunction) -> str:
    """Integers are literals, pointers are places of an arena."""
    args = []
    for i, kind in enumerate(f.params):
        if kind in _INTEGERS:
            args.append(str(_SPREAD[(i + len(f.name)) % len(_SPREAD)]))
        else:
            args.append(f"({kind})(void *)((int8_t *)s + {192 * i})" if "*" in kind else f"*({kind} *)s[{i}]")
    return _definition(f, "fixed", f"for (int32_t i = 0; i < n; i++, s += 16) {{ {_call(f, args)} }}")


def _definition(f: AsmFunction, form: str, body: str) -> str:
    signature = f"void {form}_{f.name}(void **s, int8_t **w, int32_t n)"
    return f"{signature};\n{signature} {{ {body} }}\n"


def _loaded(f: AsmFunction) -> str:
    return "".join(
        f"{kind.replace('(*)', f'(*a{i})')}{'' if '(*)' in kind else f' a{i}'}; memcpy(&a{i}, s[{i}], sizeof a{i}); "
        for i, kind in enumerate(f.params)
    )


def _call(f: AsmFunction, args: Sequence[str] | None = None) -> str:
    call = f"{f.name}({', '.join(args or [f'a{i}' for i in range(len(f.params))])});"
    return call if f.returns == "void" else f"{f.returns} z = {call} memcpy(s[n], &z, sizeof z);"


def asm_kernels(cases: Iterable[Case], machine: Machine) -> str:
    """Return C with each kernel variant of a machine besides `ref` once, all called from one function."""
    chosen: dict[tuple[str, str], Job] = {}
    for job in make_jobs(cases, machine):
        key = (job.instr.kernel, job.instr.variant)
        if job.instr.variant != "ref" and not job.in_place:
            chosen.setdefault(key, replace(job, literal=True))
    distinct = {identity(job.instr, literal=True): job for job in chosen.values()}
    functions = [(printed_function(job, n), job) for n, job in enumerate(distinct.values())]
    head = _includes(*(header for f, _ in functions for header in f.headers))
    calls = "".join(f"  {_arena_call(f, job)}\n" for f, job in functions)
    infer = f"void infer(uint8_t *arena);\nvoid infer(uint8_t *arena) {{\n{calls}}}\n"
    helpers = {name: text for f, _ in functions for name, text in f.helpers.items()}
    return "\n".join([head, *helpers.values(), *(f.definition for f, _ in functions), infer])


def _arena_call(f: Function, job: Job) -> str:
    places = [f"(void *)(arena + {1024 * i})" for i in range(f.operands)]
    rows = [str(bound) for bound in job.instr.rows or ()]
    return f'{f.name}({", ".join([*places, *rows])}); __asm__ volatile("" ::: "memory");'
