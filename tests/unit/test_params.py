"""Parameters of instructions: what their dataclasses may hold, the way to the mapping and back, and what mypy sees."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pytest

from glowc.errors import InternalError
from glowc.graph.types import DType, TensorType
from glowc.ops.params import PerAxis
from glowc.program.ir import Access, Instr, Operand
from glowc.program.kernel import Arrays, KernelDef, all_kernels
from glowc.program.params import NO_PARAMS, Kind, Params, Printed, PrintedNumber, Suffixes, as_mapping, parts, typed
from glowc.program.verify import declaration_problems
from tests.conftest import ROOT


@dataclass(frozen=True, slots=True)
class Inner(Params):
    k: int
    alpha: float


@dataclass(frozen=True, slots=True)
class Whole(Params):
    n: int
    inner: Inner
    in_: Annotated[tuple[int, ...], Suffixes(("_h", "_w"))]
    rank: Printed
    slope: PrintedNumber
    sign: str
    beta: float


VALUES = Whole(7, Inner(2, 0.5), (3, 4), 1, 0.25, "+", 1.5)
MAPPING = {"n": 7, "k": 2, "alpha": 0.5, "in_h": 3, "in_w": 4, "rank": 1, "slope": 0.25, "sign": "+", "beta": 1.5}


def ignore(_: Arrays, __: Params) -> None:
    """Compute nothing."""


def test_fields_say_the_names_kinds_and_order() -> None:
    kernel = KernelDef("whole", ("in x",), Whole, ignore)
    assert kernel.params == ("n", "k", "in_h", "in_w")
    assert kernel.float_params == ("alpha", "beta")
    assert kernel.print_params == ("rank", "slope", "sign")
    assert kernel.param_names == set(MAPPING)


def test_mapping_and_back() -> None:
    assert as_mapping(VALUES) == MAPPING
    assert list(as_mapping(VALUES)) == list(MAPPING)
    assert typed(Whole, MAPPING) == VALUES
    assert typed(Inner, MAPPING) == Inner(2, 0.5), "a part of a larger mapping"


def test_no_parameters() -> None:
    assert as_mapping(NO_PARAMS) == {}
    assert typed(Params, {"n": 1}) == NO_PARAMS


@dataclass(frozen=True, slots=True)
class Listed(Params):
    values: list[int]


@dataclass(frozen=True, slots=True)
class Flag(Params):
    on: bool


@dataclass(frozen=True, slots=True)
class Twice(Params):
    k: int
    inner: Inner


class Bare(Inner):
    more: int


@pytest.mark.parametrize(
    ("takes", "message"),
    [
        (Listed, r"parameter values of Listed is list\[int\]"),
        (Flag, "parameter on of Flag is <class 'bool'>"),
        (Twice, "Twice has parameters twice: k"),
        (Bare, "Bare.* not a dataclass"),
        (Arrays, "not a dataclass"),
        (("n",), r"parameters are \('n',\), not a dataclass"),
    ],
)
def test_a_class_that_is_none_of_parameters_is_a_bug(takes: type[Params], message: str) -> None:
    with pytest.raises(InternalError, match=message):
        KernelDef("wrong", (), takes, ignore)


def test_a_missing_parameter_is_named() -> None:
    less = {key: value for key, value in MAPPING.items() if key not in ("k", "in_w")}
    with pytest.raises(InternalError, match="Whole lacks parameters: k, in_w"):
        typed(Whole, less)
    x = Operand("x", "x", Access.IN, TensorType((1,), DType.S8))
    kernel = KernelDef("whole", ("in x",), Whole, ignore)
    instr = Instr("whole", "ref", (x,), less | {"m": 1})
    wanted = ["parameter in_w is missing", "parameter k is missing", "unknown parameter m"]
    assert declaration_problems(kernel, instr) == wanted


def test_a_tuple_of_another_length_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Loops(Params):
        d: PerAxis

    with pytest.raises(ValueError, match="shorter"):
        as_mapping(Loops((1, 2)))


def test_a_kernel_has_one_meaning() -> None:
    with pytest.raises(InternalError, match="needs one of interpret and interpret_rows"):
        KernelDef("none", (), Params)


def test_rows_are_given_to_spatial_kernels_only() -> None:
    seen: list[range] = []
    spatial = KernelDef("rows", (), Inner, interpret_rows=lambda _, p, rows: seen.append(rows))
    spatial.run({}, {"k": 1, "alpha": 1.0}, (2, 5))
    assert seen == [range(2, 5)]
    assert (spatial.rows, KernelDef("plain", (), Inner, ignore).rows) == (True, False)
    with pytest.raises(InternalError, match="rows None"):
        spatial.run({}, {"k": 1, "alpha": 1.0})


@pytest.mark.parametrize("kernel", all_kernels().values(), ids=lambda kernel: kernel.name)
def test_every_kernel_of_glowc_counts_by_a_parameter_and_has_a_documented_class(kernel: KernelDef[Params]) -> None:
    assert not kernel.length or kernel.length in kernel.params
    assert kernel.takes.__doc__
    assert not kernel.takes.__doc__.startswith(f"{kernel.takes.__name__}("), "dataclass's own words say nothing"
    assert [part.field for part in parts(kernel.takes)] == [field.name for field in fields(kernel.takes)]
    assert {kind for part in parts(kernel.takes) for kind in part.kinds} <= set(Kind)


MISSPELT = """
from dataclasses import dataclass
from glowc.ops.base import Arrays, KernelDef, Params

@dataclass(frozen=True)
class Gain(Params):
    n: int
    factor: float

@dataclass(frozen=True)
class Other(Params):
    n: int

def good(arrays: Arrays, p: Gain) -> None:
    arrays["out"][:] = arrays["in"][: p.n] * p.factor

def bad(arrays: Arrays, p: Gain) -> None:
    arrays["out"][:] = arrays["in"] * p.facter  # attr-defined

Gain(n=1, facter=2.0)  # call-arg
KERNELS = (
    KernelDef("gain", ("in in", "out out"), Gain, good),
    KernelDef("other", ("in in", "out out"), Other, good),  # arg-type
)
"""


def test_mypy_sees_a_misspelt_parameter_and_an_interpreter_of_others(tmp_path: Path) -> None:
    file = tmp_path / "gain.py"
    file.write_text(MISSPELT)
    argv = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent", str(file)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = MISSPELT.splitlines()
    wanted = {(i, line.rpartition("# ")[2]) for i, line in enumerate(lines, 1) if "# " in line}
    errors = [line.split(":", 3) for line in done.stdout.splitlines() if ": error:" in line]
    found = {(int(line), text.rpartition("[")[2].rstrip("]")) for _, line, _, text in errors}
    assert found == wanted, done.stdout
