"""Predicted bytes of code: what a text leads to, and what functions of one program share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glowc.codegen.headers import reached, with_included
from glowc.select.code import ANY, WAYS, CodeSizes, parse_code, way_of
from glowc.select.cost import Costs, key_of
from glowc.select.pricing import Pricing
from tests.unit.test_costs import conv

PRODUCT = "glow_dsp_gemm_dual_n8"
HEADERS = with_included(["glow_dsp_rows.h"])


def test_a_text_leads_to_what_the_functions_that_it_names_call() -> None:
    found = reached("const rows_fn rows = glow_dsp_rows_s8;", HEADERS)
    assert found >= {"glow_dsp_rows_s8", "glow_dsp_rows_of_fours", "glow_rows_s8"}
    assert not reached("rows(x);", HEADERS)


def test_functions_of_headers_that_a_text_does_not_include_are_not_known() -> None:
    assert reached("glow_dsp_rows_s8(x);", []) == {"glow_dsp_rows_s8"}
    assert reached("glow_of_a_plugin();", ["none.h"]) == {"glow_of_a_plugin"}


def test_ways_are_numbered_as_they_are_listed() -> None:
    numbers = [way_of(opt, literal=literal) for opt in ("balanced", "size") for literal in (True, False)]
    assert [WAYS[n] for n in numbers] == ["literal", "shared", "literal_size", "shared_size"]
    assert way_of("speed", literal=True) == 0


def test_sizes_that_are_equal_in_all_ways_are_written_once() -> None:
    data = {"functions": {"f": 8, "g": [1, 2, 3, 4]}, "texts": {"": [[1, 2], 3, 3, 3]}, "base": [[5, 6], [7, 8]]}
    code = parse_code(data)
    assert code.called(("f", "g", "h"), 2) == {"f": 8, "g": 3}
    assert [code.text((), way, 10) for way in (0, 1)] == [21, 30]
    assert code.besides(10, "balanced") == 65
    assert code.besides(10, "size") == 87


def test_a_kernel_that_was_not_measured_takes_what_all_do_a_line() -> None:
    code = CodeSizes({"k": ((10.0, 1.0),) * 4, ANY: ((0.0, 9.0),) * 4})
    assert (code.text(("k",), 0, 5), code.text(("other", "k"), 0, 5), code.text(("x",), 0, 5)) == (15, 15, 45)
    assert CodeSizes().text(("x",), 0, 5) == 60


@pytest.mark.parametrize("opt", ["balanced", "size"])
def test_functions_of_the_runtime_count_once_however_many_kernels_call_them(opt: str) -> None:
    forms = [conv("dsp", name=f"conv.{n}", size=n) for n in (6, 7, 8, 9)]
    sizes = CodeSizes({key_of(forms[0]): ((100.0, 0.0),) * 4}, {PRODUCT: (700, 720, 640, 650)})
    costs = Costs("test", code=sizes)

    def code(count: int) -> float:
        return Pricing(costs, {}, opt, lambda _: "shared").code(forms[:count])

    without = Pricing(replace(costs, code=replace(sizes, functions={})), {}, opt, lambda _: "shared")
    assert code(1) - without.code(forms[:1]) == (640 if opt == "size" else 700)
    assert code(4) - without.code(forms) == (650 if opt == "size" else 720)


def test_a_function_whose_calls_all_have_the_same_numbers_is_as_small_as_one_for_a_shape() -> None:
    forms = [conv("v7m", name=f"conv.{n}", size=n) for n in (6, 7, 8)]
    costs = Costs("test", code=CodeSizes({key_of(forms[0]): ((100.0, 0.0), (900.0, 0.0), (0.0, 0.0), (0.0, 0.0))}))
    pricing = Pricing(costs, {}, "balanced", lambda _: "shared")
    assert pricing.code(forms) == 900  # of three shapes, which share it
    assert pricing.code(forms[:2]) == 200  # two are printed
    code = pricing.facts(forms[0]).code
    assert sum(pricing._taken_by(code, code.shared, constant=True).values()) == 100


def test_a_function_of_the_runtime_that_one_kernel_alone_calls_becomes_a_part_of_it() -> None:
    forms = [conv("dsp", name=f"conv.{n}", size=n) for n in (6, 7)]
    sizes = CodeSizes(
        {key_of(forms[0]): ((0.0, 0.0),) * 4}, {"glow_expand_pair": (800,) * 4}, {"glow_expand_pair": 0.25}
    )
    pricing = Pricing(Costs("test", code=sizes), {}, "balanced", lambda _: "shared")
    assert (pricing.code(forms[:1]), pricing.code(forms)) == (200, 800)
