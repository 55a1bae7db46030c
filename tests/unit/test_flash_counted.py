"""`--flash-limit` is held by what the compiler makes of the C, not by what was predicted of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from glowc.board import load_board
from glowc.compiler.flash import Printed, counted, fitted
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.errors import LimitError
from glowc.machine.execute import bench, load_bundle
from glowc.quant.limits import Limits, Size
from tests.conftest import require_tool
from tests.unit.cli_calls import DIGITS, Glowc, refused


@dataclass(frozen=True)
class Fake:
    """A model whose code is predicted as `code_bytes` and takes `real` bytes."""

    code_bytes: int
    real: int
    flash_bytes: int | None = None

    @property
    def selection(self) -> SimpleNamespace:
        return SimpleNamespace(order=self.code_bytes)

    def predicted(self, factor: float = 1.0) -> int:
        return round(factor * self.code_bytes)


def fit(limit: int, *, off: float, least: int = 4000, compiler: bool = True) -> tuple[Fake, int]:
    """Fit a model of 10,000 predicted bytes, `off` times as many in truth; returns it and how often it was counted."""
    counts = 0

    def attempt(aim: int | None) -> Printed:
        code = 10_000 if aim is None else min(max(aim, least), 10_000)
        return Fake(code, round(off * code))  # type: ignore[return-value]

    def count(printed: Printed) -> Printed:
        nonlocal counts
        counts += 1
        return replace(printed, flash_bytes=printed.real) if compiler else printed  # type: ignore[attr-defined]

    return fitted(attempt, count, limit), counts  # type: ignore[return-value]


@pytest.mark.parametrize("off", [0.72, 0.9, 1.0, 1.1, 1.28])
@pytest.mark.parametrize("limit", [3000, 4300, 5000, 7000, 9000, 10_000, 11_000, 13_000])
def test_what_fits_is_taken_and_what_does_not_is_not(limit: int, off: float) -> None:
    done, _ = fit(limit, off=off)
    if round(off * 10_000) <= limit:
        assert done.code_bytes == 10_000  # nothing is made smaller that fits
    elif round(off * 4000) <= limit:
        assert done.flash_bytes is not None
        assert done.flash_bytes <= limit
    else:
        assert done.flash_bytes == round(off * 4000)  # the least there is, which is refused


def test_nothing_is_counted_without_a_doubt() -> None:
    assert fit(20_000, off=1.0)[1] == 0


def test_without_a_compiler_the_prediction_is_what_there_is() -> None:
    done, _ = fit(7000, off=1.1, compiler=False)
    assert (done.code_bytes, done.flash_bytes) == (7000, None)


def limited(limit: int | None) -> Compiled:
    return compile_model(DIGITS, load_board("mps2-an386"), CompileOptions(flash_limit=limit))


def test_limit_is_that_of_the_objects_which_bench_measures(glowc: Glowc) -> None:
    require_tool("arm-none-eabi-gcc")
    board = load_board("mps2-an386")
    need = counted(limited(None).printed, board).flash_bytes
    assert need is not None
    assert glowc("compile", DIGITS, "-b", "mps2-an386", "--flash-limit", need, "-o", "out").status == 0
    report = bench(load_bundle(Path("out")), replace(board, run_argv=()))
    assert (report["text_bytes"] or 0) + (report["rodata_bytes"] or 0) == need
    smaller = limited(need - 1).printed
    assert smaller.flash_bytes is not None
    assert smaller.flash_bytes < need
    assert smaller.bundle.files != limited(need).printed.bundle.files


def test_refusal_says_what_is_needed_and_which_options_help(glowc: Glowc) -> None:
    require_tool("arm-none-eabi-gcc")
    with pytest.raises(LimitError) as caught:
        limited(9000)
    need = caught.value.need_bytes
    assert need is not None
    argv = ("compile", DIGITS, "-b", "mps2-an386", "-o", "out", "--flash-limit")
    says = [f"needs {need} bytes of flash for its constants and its code, --flash-limit 9000 allows 9000"]
    refused(glowc, *argv, 9000, says=says, hint="--opt size shares functions; glowc quantize --flash-limit", status=3)
    done = glowc(*argv, need)
    assert done.status == 0, done.err
    assert "bytes of constants and code, counted; 11,853 are allowed" in done.out.replace(f"{need:,}", "11,853")


def test_limit_of_quantize_counts_code_as_compile_does() -> None:
    limits = Limits(flash_bytes=2048)
    assert limits.hold(Size(1000, 0, 0, 1048))
    assert limits.exceeded(Size(1000, 0, 0, 1049)) == ["2,049 bytes of flash for constants and code, at most 2,048"]
