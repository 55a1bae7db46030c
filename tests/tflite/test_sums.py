"""Sums whose codes no fast form gives: they run on the plain kernel, which has the functions that it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model
from tests.conftest import require_tflite
from tests.tflite.writer import Build, Tensor, quant

require_tflite()


@pytest.mark.parametrize("board", ["linux-aarch64", "linux-armhf"])
@pytest.mark.parametrize(("scale", "form"), [(0.2916408181190491, "ref"), (0.0061, "fast")])
def test_a_sum_without_a_fast_form_is_plain(board: str, scale: float, form: str, tmp_path: Path) -> None:
    build = Build()
    inputs = [
        build.input((4, 40), "int8", quant(0.00592904957011342, 0)),
        build.input((4, 40), "int8", quant(scale, 127)),
    ]
    build.op("ADD", inputs, Tensor((4, 40), "int8", quant(0.006425249390304089, 0)), fusedActivationFunction=0)
    path = tmp_path / "sum.tflite"
    path.write_bytes(build.bytes())
    text = compile_model(path, load_board(board)).bundle.files["sum.c"]
    assert ("add_s8q31__ref" in text) == (form == "ref")
    assert ("glow_q31.h" in text) or form == "fast"
