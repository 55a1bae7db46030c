"""The audio preprocessor of TFLM on four machines: every call's bytes as the runtime answers them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from glowc.app.cli import app
from tests.conftest import require_tool

FOLDER = Path(__file__).parents[3] / "shared" / "tflite" / "tflm_audio_preprocessor_int8"
TOOLS = {
    "host": ("cc",), "mps2-an386": ("arm-none-eabi-gcc", "qemu-system-arm"),
    "mps3-an547": ("arm-none-eabi-gcc", "qemu-system-arm"),
    "linux-aarch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
}  # fmt: skip


@pytest.mark.qemu
@pytest.mark.parametrize("board", TOOLS)
def test_features_are_the_runtimes(board: str, tmp_path: Path) -> None:
    require_tool(*TOOLS[board])
    if not FOLDER.is_dir():
        pytest.skip(f"{FOLDER} is absent")
    inputs, golden = np.load(FOLDER / "inputs.npz"), np.load(FOLDER / "golden.npz")
    np.savez(tmp_path / "in.npz", audio_frame=inputs["input_0"])
    files = ["--input", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz")]
    done = CliRunner().invoke(app, ["run", str(FOLDER / "model.tflite"), "--board", board, *files])
    assert done.exit_code == 0, done.output
    (got,) = np.load(tmp_path / "out.npz").values()
    np.testing.assert_array_equal(got, golden["output_0"])
