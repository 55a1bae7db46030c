"""CPUs with DSP and no FPU, and with FPU and no DSP: what each can run is chosen, built by its own flags, and right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.kernels.choice import variant_of
from glowc.machine.execute import execute, load_bundle, random_inputs
from tests.conftest import ROOT
from tests.e2e.models import board_tools, model_path

BOARDS = {name: str(ROOT / "tests/e2e/boards" / name) for name in ("m4-nofpu", "m33-nodsp")}
CHOSEN = {
    ("m4-nofpu", "digits"): {"v7m", "dsp"},
    ("m4-nofpu", "deeploy_mlperf_ic"): {"v7m", "dsp", "soft", "ref"},
    ("m4-nofpu", "emx_micro_kws_m_static_fp32"): {"ref"},
    ("m33-nodsp", "digits"): {"v7m"},
    ("m33-nodsp", "deeploy_mlperf_ic"): {"v7m", "ref"},
    ("m33-nodsp", "emx_micro_kws_m_static_fp32"): {"fpu", "ref"},
}
"""Instruction sets of the kernels of each model."""
NO_VECTORS = {"m4-nofpu": {"fpu"}, "m33-nodsp": {"dsp"}}


@pytest.mark.qemu
@pytest.mark.parametrize(("board_name", "model"), CHOSEN)
def test_partial_core_runs_what_it_has_and_answers_as_portable_c_does(
    board_name: str, model: str, tmp_path: Path
) -> None:
    board_tools(BOARDS[board_name])
    board_tools("host")
    board, host = load_board(BOARDS[board_name]), load_board("host")
    compiled = compile_model(model_path(model), board)
    used = [variant_of(i) for i in compiled.program.instrs if not i.is_marker]
    assert {v.isa for v in used} == CHOSEN[board_name, model]
    assert not any(v.needs & NO_VECTORS[board_name] for v in used)
    write_bundle(compiled, tmp_path / "own")
    write_bundle(compile_model(model_path(model), host), tmp_path / "host")
    info = load_bundle(tmp_path / "own")
    inputs = random_inputs(info, 1)
    got = execute(info, board, inputs, timeout_s=300).outputs
    want = execute(load_bundle(tmp_path / "host"), host, inputs).outputs
    for name, array in want.items():
        if array.dtype == np.float32:  # sums in another order
            np.testing.assert_allclose(got[name], array, rtol=1e-4, atol=1e-5)
        else:
            assert np.array_equal(got[name], array)


@pytest.mark.parametrize(("board_name", "lacking"), [("m4-nofpu", "+nofp"), ("m33-nodsp", "+nodsp")])
def test_folder_of_a_board_may_bring_its_cpu(board_name: str, lacking: str) -> None:
    cpu = load_board(BOARDS[board_name]).cpu
    assert cpu.name == board_name
    assert any(lacking in flag for flag in cpu.cflags)
