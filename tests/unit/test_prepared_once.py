"""Every candidate of a layer is prepared once for a compile, however often the graph is lowered."""

from __future__ import annotations

from collections import Counter

import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.base import prepare as prepare_variant
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays
from glowc.select import candidates
from tests.conftest import ROOT


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
@pytest.mark.parametrize("limit", [None, 3000])
def test_each_candidate_is_prepared_once(board: str, limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[tuple[str, str]] = Counter()

    def counted(variant: KernelVariant, constants: Arrays, instr: Instr) -> Prepared:
        calls[instr.name, variant.name] += 1
        return prepare_variant(variant, constants, instr)

    monkeypatch.setattr(candidates, "prepare", counted)
    model = ROOT / "examples" / "digits" / "digits.onnx"
    compiled = compile_model(model, load_board(board), CompileOptions(ram_limit=limit, plan="auto"))
    forms = {(layer.name, form.variant) for layer in compiled.selection.layers for form in layer.forms}
    withheld = {layer.name for layer in compiled.selection.layers if layer.withheld}
    assert forms <= set(calls)
    assert {name for name, _ in set(calls) - forms} <= withheld
    assert set(calls.values()) == {1}
