"""No function stands twice in the objects of a bundle; scripts/twice.py looks for them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from glowc.board import load_board
from tests.conftest import ROOT
from tests.e2e.models import board_tools, model_path

SHARED = [pytest.param(name, marks=pytest.mark.shared) for name in ("mlperf_kws_dscnn", "mlperf_ic_resnet8")]


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import twice

    return twice


@pytest.mark.parametrize("board", ["microbit", "mps2-an386"])
@pytest.mark.parametrize("name", ["digits", *SHARED])
def test_no_function_stands_twice(name: str, board: str, twice: ModuleType) -> None:
    board_tools(board)
    assert twice.equal(twice.of_model(Path(model_path(name)), load_board(board))) == []


def test_equal_functions_are_found_but_for_what_they_refer_to(twice: ModuleType) -> None:
    def body(name: str, callee: str, last: str) -> list[str]:
        lines = [f"00000000 <{name}>:", *(f"  {4 * n:x}:\tf04f 0000 \tmov.w\tr0, #0" for n in range(16))]
        return [*lines, f"  40:\t{last} \tbl\t0 <x>", f"\t\t\t40: R_ARM_THM_CALL\t{callee}"]

    listing = [*body("a", "x", "f7ff fffe"), *body("b", "y", "f7ff fffe"), *body("c", "x", "f7ff fffc")]
    assert [str(found) for found in twice.equal(twice.functions(listing))] == ["68 bytes of b are in a too"]
