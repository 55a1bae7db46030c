"""Inferences on an emulated board over a bad line, with resets, beside those of this machine."""

from __future__ import annotations

import random
import threading
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import execute, load_bundle, random_inputs
from glowc.machine.firmware import build_wire
from glowc.machine.wire.client import Patience, Wire
from glowc.machine.wire.port import open_port
from tests.conftest import ROOT
from tests.wire.line import Monitor, Noise, emulated

MODEL = ROOT / "examples/firmware-make/models/digits.onnx"
_SECONDS_BETWEEN_RESETS = (0.2, 1.0)
_SAMPLES = 50


@dataclass(frozen=True)
class Found:
    """What came of it."""

    inferences: int
    wrong: int
    frames: int
    spoiled: int
    resets: int
    asked_again: int


class _Resets(threading.Thread):
    """Presses the button at random times until told to stop."""

    def __init__(self, monitor: Monitor, dice: random.Random) -> None:
        super().__init__(daemon=True)
        self._monitor, self._dice, self._end, self.count = monitor, dice, threading.Event(), 0

    def run(self) -> None:
        while not self._end.wait(self._dice.uniform(*_SECONDS_BETWEEN_RESETS)):
            self._monitor.reset()
            self.count += 1

    def stop(self) -> None:
        self._end.set()
        self.join()


def soak(name: str, folder: Path, inferences: int, dice: random.Random) -> Found:
    """Run so many inferences; each must give the bytes that the same bundle gives on this machine."""
    board = load_board(name)
    write_bundle(compile_model(MODEL, board), folder / "bundle")
    info = load_bundle(folder / "bundle")
    elf = build_wire(info, board, folder / "app.elf", None)
    inputs = random_inputs(info, _SAMPLES)
    expected = execute(info, load_board("host"), inputs).outputs
    samples = [b"".join(inputs[p.name][i].tobytes() for p in info.inputs) for i in range(_SAMPLES)]
    wanted = [
        b"".join(np.ascontiguousarray(expected[p.name][i]).tobytes() for p in info.outputs) for i in range(_SAMPLES)
    ]
    with emulated(board, elf.path, folder) as (port, monitor), closing(open_port(port)) as line:
        noise = Noise(line, dice)
        wire = Wire(noise, Patience(retry_s=0.1))
        about = wire.hello()
        resets = _Resets(monitor, random.Random(dice.random()))
        resets.start()
        try:
            answers = [wire.infer(samples[i % _SAMPLES], about).outputs for i in range(inferences)]
        finally:
            resets.stop()
    wrong = sum(answer != wanted[i % _SAMPLES] for i, answer in enumerate(answers))
    return Found(len(answers), wrong, noise.frames, noise.spoiled, resets.count, wire.asked_again)
