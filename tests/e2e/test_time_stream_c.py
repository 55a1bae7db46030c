"""--input-stream time in C: every call on the host and on a Cortex-M4 gives the bytes of the whole window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.machine.execute import execute, load_bundle
from tests.conftest import require_tool
from tests.unit.time_nets import TimeNet, hops_of, signal, windows_of

pytestmark = pytest.mark.qemu
BOARDS = ("host", "mps2-an386")


def cnn(steps: int, *, real: bool = False) -> onnx.ModelProto:
    """A 1-D convolutional network with a stride and a shortcut; the window's mean is classified."""
    net = TimeNet(steps, channels=6, real=real).conv(12, 5).conv(12, 3, stride=2).residual(3).pool("MaxPool", 3, 1)
    return net.mean().classes(4)


def separable(steps: int, *, real: bool = False) -> onnx.ModelProto:
    """Depthwise and pointwise layers, and a Gemm over all steps."""
    net = TimeNet(steps, channels=8, real=real)
    for stride in (1, 2, 1):
        net.conv(0, 3, stride=stride, depthwise=True).conv(16, 1)
    return net.unary().classes(5)


def tcn(steps: int, *, real: bool = False) -> onnx.ModelProto:
    """Causal layers with dilations 1, 2, 4, 8 and shortcuts; a result for each step."""
    net = TimeNet(steps, channels=6, real=real).conv(10, 3, pads=(2, 0))
    for dilation in (2, 4, 8):
        net.residual(3, dilation, causal=True)
    return net.conv(3, 1, relu=False).done()


@dataclass(frozen=True)
class Case:
    """A model, its channels, its window, the steps of each call; a result for each step, or for a window, of which
    `head` multiplications see all steps."""

    name: str
    build: Callable[..., onnx.ModelProto]
    channels: int
    window: int
    hop: int
    head: int = 0
    each_step: bool = False
    real: bool = False


CASES = (
    Case("cnn", cnn, 6, 64, 4, 12 * 4 + 26 * 12), Case("separable", separable, 8, 48, 2, 16 * 19 * 5),
    Case("tcn", tcn, 6, 64, 4, each_step=True), Case("tcn_step", tcn, 6, 64, 1, each_step=True),
    Case("cnn_float", cnn, 6, 64, 8, real=True), Case("tcn_float", tcn, 6, 64, 4, each_step=True, real=True),
)  # fmt: skip


def compiled(case: Case, board: str, folder: Path, *, steps: int, hop: int | None = None) -> Compiled:
    path = folder / f"net{steps}.onnx"
    onnx.save(case.build(steps, real=case.real), path)
    options = CompileOptions(name="net", hop=hop, input_stream="time" if hop else "whole")
    done = compile_model(path, load_board(board), options)
    write_bundle(done, folder / f"out{steps}_{hop}")
    return done


def outputs(done: Compiled, folder: Path, samples: np.ndarray) -> np.ndarray:
    return next(iter(execute(load_bundle(folder), done.board, {"x": samples}).outputs.values()))


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_call_equals_whole_window_inference(case: Case, board: str, tmp_path: Path) -> None:
    require_tool(*(["qemu-system-arm"] if board != "host" else []), load_board(board).cpu.cc)
    calls = 24 if case.each_step else case.window // case.hop + 8
    x = signal(calls * case.hop, case.channels)
    done = compiled(case, board, tmp_path, steps=case.window, hop=case.hop)
    got = outputs(done, tmp_path / f"out{case.window}_{case.hop}", hops_of(x, case.hop))
    steps = x.shape[1] if case.each_step else case.window
    full = compiled(case, board, tmp_path, steps=steps)
    samples = x[None, None] if case.each_step else windows_of(x, case.hop, case.window)
    want = outputs(full, tmp_path / f"out{steps}_None", samples)
    if case.each_step:
        got, want = np.concatenate([y[0] for y in got], -1), want[0, 0]
    assert got.shape == want.shape
    assert len(np.unique(want)) > 10
    # float kernels for few steps may add up in another order than those for many
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max() if case.real else 0)


@pytest.mark.parametrize("case", [c for c in CASES if not c.real], ids=lambda c: c.name)
def test_multiplications_and_arena_of_a_call_are_a_fraction(case: Case, tmp_path: Path) -> None:
    """docs/MEMORY.md has the numbers."""
    full = compiled(case, "mps2-an386", tmp_path, steps=case.window)
    done = compiled(case, "mps2-an386", tmp_path, steps=case.window, hop=case.hop)
    new, old = (int(d.report["macs"]) for d in (done, full))  # type: ignore[call-overload]
    assert new - case.head <= 1.5 * (old - case.head) * case.hop / case.window
    assert done.plan.arena_bytes < full.plan.arena_bytes * 0.75


def test_reset_constants_are_one_step(tmp_path: Path) -> None:
    """All steps of a state begin alike: flash holds one of them, or none when a byte says it."""
    done = compiled(CASES[0], "host", tmp_path, steps=64, hop=4)
    states = {s["name"]: s["size_bytes"] for s in done.report["states"]}  # type: ignore[attr-defined]
    source = (tmp_path / "out64_4" / "net.c").read_text()
    assert source.count("memset(bytes + ") + source.count("for (uint32_t i = 0u; i < ") == len(states) > 3
    full = compiled(CASES[0], "host", tmp_path, steps=64)
    assert done.bundle.weights_bytes - full.bundle.weights_bytes <= 12 * len(states)
