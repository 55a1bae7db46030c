"""examples/keyword: the commands of its page, what int8 loses on voices nobody trained with, what the board hears."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.conftest import ROOT, require_module, require_tool
from tests.unit.cli_calls import Glowc

KEYWORD = ROOT / "examples/keyword"
MODULES = ("demo", "features", "speech")


@pytest.fixture(name="demo")
def _demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program of the example, with its modules; other examples have modules of the same names."""
    monkeypatch.syspath_prepend(str(KEYWORD))
    others = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    import demo  # type: ignore[import-not-found]

    yield demo
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.modules.update(others)


def evaluated(glowc: Glowc) -> list[dict[str, float]]:
    """Run the commands of the page, and return what its `glowc eval` says of each machine."""
    page = (KEYWORD / "README.md").read_text("utf-8")
    (block,) = re.findall(r"## From float to the board\n+```sh\n(.*?)```", page, re.S)
    scores: list[dict[str, float]] = []
    for _, command, *argv in map(shlex.split, block.splitlines()):
        done = glowc(command, *argv, *(["--json"] if command == "eval" else []))
        assert done.status == 0, done.err
        scores += json.loads(done.out)["scores"] if command == "eval" else []
    return scores


@pytest.mark.qemu
def test_int8_loses_at_most_a_point_and_the_board_hears_words(
    glowc: Glowc, demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_module("onnxruntime")
    require_tool("gcc", "arm-none-eabi-gcc", "qemu-system-arm", "espeak-ng")
    for file in KEYWORD.iterdir():
        if file.suffix in (".onnx", ".npz", ".txt"):
            shutil.copy(file, tmp_path)
    exact, _, host, board = evaluated(glowc)
    assert exact["top1"] > 0.9
    assert 100 * (exact["top1"] - host["top1"]) <= 1.0
    assert board["agree"] >= 0.9
    shutil.copy("keyword.onnx", "build/keyword.onnx")
    monkeypatch.setattr(sys, "argv", ["demo.py", "stop", "-o", "build"])
    assert demo.main() == 0
    assert re.search(r"^stop +\w+$", capsys.readouterr().out, re.M)


def test_features_of_a_tone_lie_in_its_bands_and_loudness_in_the_first_only(demo: ModuleType) -> None:
    tone = np.sin(2 * np.pi * 1000 / 16000 * np.arange(16000))
    quiet, loud = (demo.features(level * tone).astype(int) for level in (0.1, 0.2))
    assert quiet.shape == (49, 10)
    assert (loud[:, 0] > quiet[:, 0]).all()
    low, high = (demo.features(np.sin(2 * np.pi * f / 16000 * np.arange(16000)))[24, 1] for f in (300, 4000))
    assert low > 128 > high
    assert (demo.features(np.zeros(16000))[:, 1:] == 128).all()
