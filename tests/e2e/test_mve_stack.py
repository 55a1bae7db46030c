"""Helium kernels keep what they work on in the arena or in registers: the stack of whole models stays small."""

from __future__ import annotations

from pathlib import Path

import pytest

from glowc.board import load_board
from glowc.compiler.pipeline import write_bundle
from glowc.machine.execute import bench, load_bundle
from tests.conftest import require_tool
from tests.e2e.models import MLPERF, board_tools, compiled, model_path, sample

_BOARD = "mps3-an547"
_BYTES = 576  # two descriptors of 100 to 150 bytes, saved registers (104 of them vectors'), and the calls above


@pytest.mark.qemu
@pytest.mark.shared
@pytest.mark.parametrize("name", MLPERF)
def test_stack_of_models_holds_no_tables_and_no_pixels(name: str, tmp_path: Path) -> None:
    board_tools(_BOARD)
    require_tool("gcc")  # builds the plugin that counts
    model_path(name)
    write_bundle(compiled(name, _BOARD), tmp_path)
    info, inputs = load_bundle(tmp_path), sample(name).first(1)
    report = bench(info, load_board(_BOARD), {p.name: p.to_bundle(inputs[p.name]) for p in info.inputs})
    assert 0 < int(report["stack_bytes"]) <= _BYTES
