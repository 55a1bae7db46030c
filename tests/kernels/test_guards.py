"""The harness catches kernels that stray: each toy variant makes one mistake, on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jinja2
import numpy as np
import pytest

from glowc.codegen import kernels
from glowc.graph.scope import scope
from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant
from glowc.kernels.registry import register_variants
from glowc.ops.params import Elements
from glowc.program.kernel import KNOWN_KERNELS, Arrays, KernelDef
from tests.conftest import require_tool
from tests.kernels.case import make_case
from tests.kernels.execute import Failure, check
from tests.kernels.machines import machine

_BODIES = {
    "good": "",
    "over_read": "{ const volatile int8_t *far = in; (void)far[{{ p.n }}]; }",
    "over_write": "out[{{ p.n }}] = 0;",
    "under_write": "out[-1] = 0;",
    "writes_input": "((int8_t *)(uintptr_t)in)[0] ^= 1;",
    "wrong_tail": "out[{{ p.n }} - 1] ^= 1;",
    "unwritten_tail": "out[{{ p.n }} - 1] = (int8_t)0xA5;",
    "only_literal": '{% if p.n != "p->n" %}out[0] ^= 1;{% endif %}',
    "signed_overflow": "{ volatile int32_t big = INT32_MAX; big = big + {{ p.n }}; }",
}
_TEXT = """{{ signature }} {
  for (int32_t i = 0; i < {{ p.n }}; i++) {
    out[i] = in[i];
  }
  BODY
}
"""


def _copy(arrays: Arrays, _: object) -> None:
    arrays["out"][...] = arrays["in"]


@pytest.fixture
def _toy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make `toy` a kernel whose only variant is the test's parameter `mistake`."""
    mistake = request.getfixturevalue("mistake")
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(_TEXT.replace("BODY", _BODIES[mistake]))
    definition = KernelDef("toy", ("in in", "out out"), Elements, _copy, in_place=("in",))
    monkeypatch.setattr(kernels, "kernel_template", lambda _, __: template)
    with scope():
        KNOWN_KERNELS.add({"toy": definition})
        register_variants({"toy": [KernelVariant("ref", in_place=mistake == "good")]})
        yield


def _failures(machine_name: str, folder: Path) -> list[Failure]:
    chosen = replace(machine(machine_name), beyond=None, sampled=None, portable=True)  # the toy
    require_tool(*chosen.tools)
    cases = [
        make_case("toy", {"in": np.arange(n, dtype=np.int8)}, {"n": n}, out={"out": ((n,), DType.S8)})
        for n in (5, 16, 37)
    ]
    return check(cases, chosen, folder)


_HOST, _PAGE, _METAL, _HELIUM = "host", "linux-aarch64", "mps2-an386", "mps3-an547"


@pytest.mark.qemu
@pytest.mark.usefixtures("_toy")
@pytest.mark.parametrize("machine_name", [_HOST, _PAGE, _METAL, _HELIUM])
@pytest.mark.parametrize("mistake", ["good"])
def test_a_correct_kernel_passes(machine_name: str, mistake: str, tmp_path: Path) -> None:
    assert _failures(machine_name, tmp_path) == []


@pytest.mark.qemu
@pytest.mark.usefixtures("_toy")
@pytest.mark.parametrize(
    ("machine_name", "mistake", "what"),
    [
        (_HOST, "over_read", "heap-buffer-overflow"),
        (_PAGE, "over_read", "crashed with exit status"),
        (_METAL, "over_read", "crashed with exit status 3"),
        (_HELIUM, "over_read", "crashed with exit status 3"),
        (_HOST, "over_write", "heap-buffer-overflow"),
        (_PAGE, "over_write", "crashed with exit status"),
        (_METAL, "over_write", "crashed with exit status 3"),
        (_HELIUM, "over_write", "crashed with exit status 3"),
        (_HOST, "under_write", "heap-buffer-overflow"),
        (_PAGE, "under_write", "wrote outside of operand out"),
        (_METAL, "under_write", "wrote outside of operand out"),
        (_HOST, "writes_input", "wrote to its input in"),
        (_METAL, "writes_input", "wrote to its input in"),
        (_HOST, "wrong_tail", "1 of 5 elements differ"),
        (_METAL, "unwritten_tail", "1 of 5 elements differ"),
        (_HOST, "signed_overflow", "crashed with exit status"),
    ],
)
def test_a_mistake_is_reported(machine_name: str, mistake: str, what: str, tmp_path: Path) -> None:
    failures = _failures(machine_name, tmp_path)
    assert {failure.job.case.instr.params["n"] for failure in failures} == {5, 16, 37}  # past each crash
    assert all("toy__ref" in str(failure) for failure in failures)
    assert what in str(failures[0])


@pytest.mark.usefixtures("_toy")
@pytest.mark.parametrize("mistake", ["only_literal"])
def test_a_difference_between_the_modes_is_reported(mistake: str, tmp_path: Path) -> None:
    failures = _failures(_HOST, tmp_path)
    assert any("other bytes than the function with an argument struct" in str(f) for f in failures)
