"""A network's C on a board: the same codes as in numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.machine.execute import execute, load_bundle
from tests.fuzz.check import C_DIFFERS, Finding


def check_board(finding: Finding, board_name: str, work: Path) -> Finding | None:
    """Compile, build and run the network for a board; None when its codes are those of numpy."""
    assert finding.model is not None and finding.samples is not None and finding.codes is not None  # noqa: PT018
    board, path, folder = load_board(board_name), work / "board.onnx", work / "board"
    onnx.save(finding.model, path)
    try:
        write_bundle(compile_model(path, board, CompileOptions(name="net")), folder)
        info = load_bundle(folder)
        inputs = {p.name: p.to_bundle(finding.samples[p.name]) for p in info.inputs}
        outputs = execute(info, board, inputs).outputs
    except GlowcError as error:
        return Finding(C_DIFFERS, f"{board_name}: {error}")
    for port in info.outputs:
        got, want = port.to_exported(outputs[port.name]), finding.codes[port.name]
        if not np.array_equal(got, want):
            return Finding(
                C_DIFFERS, f"{board_name}: {port.name}: {int((got != want).sum())} of {got.size} codes differ"
            )
    return None
