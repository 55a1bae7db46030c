"""A few cases of `make sweep`: models for every CPU with every option value, whose C must compile without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from glowc.board import load_board
from scripts.sweep import BUG, BUILT, DOES_NOT_BUILD, attempt, cpus, models, option_values, product, sampled, wrong_c
from tests.conftest import ROOT, require_tool

CASES = 6


@pytest.mark.parametrize("seed", range(CASES))
def test_sampled_case_builds_or_is_refused_with_a_reason(seed: int, tmp_path: Path) -> None:
    (case,) = sampled(product(models(ROOT / "examples")), 1, seed)
    require_tool("arm-none-eabi-gcc", "aarch64-linux-gnu-gcc", "arm-linux-gnueabihf-gcc", "gcc")
    kind, why = attempt(case, tmp_path / "bundle")
    assert kind not in (BUG, DOES_NOT_BUILD), why


def test_product_has_every_cpu_and_option_value() -> None:
    assert {"cortex-m0", "cortex-m4", "cortex-m55", "cortex-a53", "host"} <= {cpu for _, cpu in cpus()}
    values = option_values()
    assert {} in values
    assert {"opt": "size"} in values
    assert {"guard": True} in values
    assert {"weights": "blob"} in values


def test_object_that_lacks_a_function_is_found(tmp_path: Path) -> None:
    require_tool("gcc")
    cases = product([ROOT / "examples/digits/digits.onnx"])
    (case,) = (c for c in cases if c.cpu == "host" and not c.option)
    assert attempt(case, tmp_path)[0] == BUILT
    text = "int glow_missing(void);\nint more(void);\nint more(void) { return glow_missing(); }\n"
    (tmp_path / "more.c").write_text(text)
    assert "glow_missing" in wrong_c(sorted(tmp_path.glob("*.c")), tmp_path, load_board("host"), "-O0")
