"""What templates print by calls, and how `make house` counts what they decide."""

from __future__ import annotations

from types import ModuleType

import pytest

from glowc.codegen.kernels import environment
from glowc.codegen.loops import each, loops, place
from glowc.kernels.common.assembly import all_ins, indented, joined, operands
from tests.conftest import ROOT

P = {"d0": "4", "d1": "p->d1", "a0": "8", "a1": "1"}


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import house

    return house


def test_a_line_for_each_item() -> None:
    assert each(2, "acc{k} = x[{4k}];") == "acc0 = x[0];\nacc1 = x[4];\n"
    assert each(range(1, 3), "{ v{k}++; }") == "{ v1++; }\n{ v2++; }\n"
    assert each(["in", "out"], "(void){k};") == "(void)in;\n(void)out;\n"
    assert each([("i", 0), ("o", 1)], "acc_{0} = bd[{1}];") == "acc_i = bd[0];\nacc_o = bd[1];\n"
    assert each(0, "never;") == ""


def test_nested_loops_and_the_place_of_an_element() -> None:
    assert loops(P, 2) == ("  for (int32_t x0 = 0; x0 < 4; x0++) {\n  for (int32_t x1 = 0; x1 < p->d1; x1++) {\n")
    assert place(P, "a", 2) == "x0 * 8 + x1 * 1"
    assert loops(P, 0) == place(P, "a", 0) == ""


def test_templates_have_them() -> None:
    text = '{{ each(2, "x{k}++;") -}}{{ place(p, "a", 1) }}'
    assert environment().from_string(text).render(p=P) == "x0++;\nx1++;\nx0 * 8"


def test_lines_of_assembly() -> None:
    assert joined(indented(all_ins("nop", "bx lr"))) == '  "nop\\n"\n  "bx lr\\n"\n'
    assert operands({'"r"(a)': True, '"r"(b)': False, '"r"(c)': True}) == '"r"(a), "r"(c)'


def test_logic_is_counted_by_line(house: ModuleType) -> None:
    plain = "{# a comment #}\nint x = {{ v.x }};\n"
    assert house.logic_lines(plain) == 0
    assert house.logic_lines('{% extends "a" %}\n{% block b %}\n' + plain + "{% endblock %}\n") == 0
    assert house.logic_lines("{% if v.x %}\n" + plain + "{% endif %}\n") == 2
    assert house.logic_lines("int x{% if v.x %} = 1{% endif %};\n") == 1
    assert house.logic_lines('{% set x = ["a",\n  "b"] %}\n') == 2
