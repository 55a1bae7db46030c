"""Every variant of every kernel on every machine, against `KernelDef.interpret`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from glowc.codegen.kernels import args_struct
from glowc.errors import ToolError
from glowc.kernels.registry import variants_of
from glowc.kernels.verify import call_problems
from glowc.program.kernel import all_kernels
from tests.conftest import require_tool
from tests.kernels import functions
from tests.kernels.case import compared
from tests.kernels.collect import all_cases, wants
from tests.kernels.execute import check, report
from tests.kernels.machines import MACHINES, Machine, machine, used_machines
from tests.kernels.program import make_jobs

_KERNELS = [kernel for kernel in all_kernels().values() if wants(kernel.name)]


@pytest.mark.qemu
@pytest.mark.parametrize("machine", used_machines(), ids=lambda m: m.name)
def test_kernels_give_the_interpreters_bytes(machine: Machine, tmp_path: Path) -> None:
    require_tool(*machine.tools)
    try:
        failures = check(all_cases(), machine, tmp_path)
    except ToolError as error:  # the compiler's own words, without our stack
        pytest.fail(str(error), pytrace=False)
    if failures:
        pytest.fail(report(failures), pytrace=False)


def test_every_kernel_and_variant_has_a_case() -> None:
    cases = {
        kernel.name: [case.instr for case in all_cases() if case.instr.kernel == kernel.name] for kernel in _KERNELS
    }
    missing = [
        f"{kernel.name}__{variant.name}"
        for kernel in _KERNELS
        for variant in variants_of(kernel.name)
        if not any(machine.runs(variant) for machine in used_machines())
        or not any(variant.accepts(replace(instr, variant=variant.name)) for instr in cases[kernel.name])
    ]
    assert not missing, f"no case in kernel_cases() of tests/ops/, or no machine has what it needs: {missing}"


def test_every_case_checks_an_output() -> None:
    blind = [case.label for case in all_cases() if not compared(case)]
    assert not blind


def _only_of_a_case(problem: str) -> bool:
    """A case has no scratch before a variant is chosen, and may be the middle rows of a larger output."""
    return "scratch" in problem or problem.startswith("rows ")


def test_every_case_is_a_call_as_its_kernel_declares_it() -> None:
    """The element kinds above all: what a kernel is tested with is what the verifier of programs lets through."""
    wrong = {}
    for case in all_cases():
        problems = [text for text in call_problems(case.instr) if not _only_of_a_case(text)]
        if problems:
            wrong[case.label] = problems
    assert not wrong


def test_a_tolerance_has_a_reason() -> None:
    unexplained = [case.label for case in all_cases() if (case.atol or case.rtol) and not case.why]
    assert not unexplained


def test_argument_struct_has_just_the_params() -> None:
    """GCC does not warn about a field that a designated initialiser leaves out."""
    for case in all_cases():
        instr = case.instr
        kernel = all_kernels()[instr.kernel]
        struct = args_struct(instr, "args_t")
        names = [name for name, _ in struct.fields]
        assert names == [*kernel.params, *kernel.float_params], instr.kernel
        assert set(names) | set(kernel.print_params) == set(instr.params), instr.kernel
        given = re.findall(r"\.(\w+) = ", struct.initializer(instr.params))
        assert given == names, instr.kernel


def test_names_do_not_depend_on_what_was_printed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a compiler's object of an earlier run serves (tests/compile_once.sh)."""
    jobs = make_jobs(all_cases()[::100], machine("mps2-an386"))
    printed = []
    for order in (jobs, jobs[::-1]):
        for store in ("_printed", "_texts", "_helpers"):
            monkeypatch.setattr(functions, store, {})
        monkeypatch.setattr(functions, "_named", functions.NamedByText())
        called = map(functions.function_of, order)
        printed.append({f.name: (f.definition, f.helpers) for f in called})
    assert printed[0] == printed[1]


def test_machine_names_are_distinct() -> None:
    names = [machine.name for machine in MACHINES]
    assert len(names) == len(set(names))
