"""--input-stream samples: NAME_push() of a front end, and of chains with networks of several kinds."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.api.sound import codes_for, log_mel, mel_bank
from glowc.board import load_board
from glowc.compiler.log_mel import LogMel
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.machine.execute import execute, load_bundle
from tests.conftest import require_tflite, require_tool
from tests.tflite.runtime import Runtime

SHARED = Path(__file__).resolve().parents[3] / "shared"
SMALL = LogMel(window=64, fft=64, bins=4)
RNG = np.random.default_rng(7)


def expected(how: LogMel, frames: np.ndarray) -> np.ndarray:
    """Return features [n, bins] of frames [n, window], in float64."""
    x = frames / 32768.0
    x[:, 1:] -= how.preemphasis * x[:, :-1].copy()
    power = np.abs(np.fft.rfft(x * np.hamming(how.window), how.fft)) ** 2 / how.window
    level = 10 * np.log10(np.maximum(power @ mel_bank(how), how.floor))
    return np.asarray(np.clip((level + how.offset_db) / how.range_db, 0, 1))


def frames_of(samples: np.ndarray, window: int, hop: int) -> np.ndarray:
    """Return the windows that end with each hop; silence is before the first sample."""
    padded = np.concatenate((np.zeros(window - hop, samples.dtype), samples)).astype(float)
    return np.stack([padded[at : at + window] for at in range(0, len(samples) - hop + 1, hop)])


def compiled(models: Sequence[Path], folder: Path, hop: int, board: str = "host", **options: object) -> Compiled:
    """Compile models that follow each other, for samples."""
    how = CompileOptions(name="net", input_stream="samples", hop=hop, chain=tuple(models[1:]), **options)  # type: ignore[arg-type]
    done = compile_model(models[0], load_board(board), how)
    write_bundle(done, folder)
    return done


def answers(done: Compiled, folder: Path, samples: np.ndarray) -> list[np.ndarray]:
    """Return the outputs of a bundle for samples, hop by hop."""
    (size,) = (o.type.elements for o in done.program.inputs)
    hops = samples[: len(samples) // size * size].reshape(-1, 1, size)
    return list(execute(load_bundle(folder), done.board, {done.graph.inputs[0]: hops}).outputs.values())


def dense(path: Path, window: int, bins: int) -> np.ndarray:
    """Write a network of floats [1, window, bins] whose one layer sees all; returns its weights."""
    weights = RNG.normal(size=(window * bins, 2)).astype(np.float32)
    nodes = [helper.make_node("Reshape", ["x", "flat"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])]
    graph = helper.make_graph(
        nodes, "dense", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, window, bins])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(np.array([1, window * bins]), "flat"), numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return weights


def test_features_are_those_of_the_formula(tmp_path: Path) -> None:
    require_tool("cc")
    how = LogMel(
        window=400, fft=512, bins=20, low_hz=60, high_hz=3800, preemphasis=0.0, floor=1e-9, offset_db=90, range_db=90
    )
    samples = RNG.integers(-3000, 3000, 1600).astype(np.int16)
    for name, model in (("reference", LogMel()), ("other", how)):
        log_mel(tmp_path / f"{name}.onnx", model)
        hop = model.window // 2
        done = compiled([tmp_path / f"{name}.onnx"], tmp_path / name, hop)
        (got,) = answers(done, tmp_path / name, samples)
        want = expected(model, frames_of(samples[: len(got) * hop], model.window, hop))
        # float32 sums of some hundred products before a logarithm: 0.001 dB
        np.testing.assert_allclose(got.reshape(want.shape), want, atol=1e-3 / model.range_db)


MAIN = """
#include <stdio.h>
#include "net.h"
int main(void) {
  static int16_t samples[640];
  size_t used = 0, taken = 0;
  for (int i = 0; i < 640; i++) { samples[i] = (int16_t)(i * 7919 % 4001 - 2000); }
  if (net_push(NULL, 1, &taken) != GLOW_ERROR_NULL || net_push(samples, 1, NULL) != GLOW_ERROR_NULL) { return 1; }
  for (int start = 0; start < 2; start++, used = 0) {
    net_reset();
    for (size_t piece = 1; used < 640; piece = piece % 97 + 11) {
      const size_t count = piece < 640 - used ? piece : 640 - used;
      const int status = net_push(samples + used, count, &taken);
      used += taken;
      if (status == GLOW_OK) { printf("%zu %.6f %.6f\\n", used, (double)net_output()[0], (double)net_output()[1]); }
      else if (status != GLOW_MORE || taken != count) { return 2; }
    }
    net_push(samples, 5, &taken); /* a reset forgets these */
  }
  return 0;
}
"""


def test_push_takes_samples_in_any_pieces_and_keeps_windows(tmp_path: Path) -> None:
    require_tool("cc")
    log_mel(tmp_path / "mel.onnx", SMALL)
    weights, out = dense(tmp_path / "net.onnx", 6, SMALL.bins), tmp_path / "out"
    compiled([tmp_path / "mel.onnx", tmp_path / "net.onnx"], out, 32)
    (tmp_path / "main.c").write_text(MAIN)
    flags = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Wvla", "-Werror"]
    program = tmp_path / "main"
    sources = [str(p) for p in (tmp_path / "main.c", *out.glob("*.c"))]
    subprocess.run(["cc", *flags, f"-I{out}", *sources, "-lm", "-o", str(program)], check=True)
    lines = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]
    got = np.array([[float(word) for word in line.split()] for line in lines])
    assert got[:, 0].tolist() == [*range(32, 641, 32)] * 2  # a reset begins anew
    samples = (np.arange(640) * 7919 % 4001 - 2000).astype(np.int16)
    features = np.concatenate((np.zeros((5, 4)), expected(SMALL, frames_of(samples, 64, 32))))
    want = np.stack([features[i : i + 6].reshape(-1) @ weights for i in range(20)])
    np.testing.assert_allclose(got[:, 1:], np.concatenate((want, want)), atol=1e-4)


def _shared(*names: str) -> list[Path]:
    found = [SHARED / name / "model.tflite" for name in names]
    if missing := [str(path) for path in found if not path.exists()]:
        pytest.skip(f"not there: {', '.join(missing)}")
    return found


@pytest.mark.parametrize("board", ["host", pytest.param("mps2-an386", marks=pytest.mark.qemu)])
def test_mlperf_wake_word_in_time_steps_answers_as_on_whole_windows(board: str, tmp_path: Path) -> None:
    require_tool("cc" if board == "host" else "qemu-system-arm")
    require_tflite("tflite_micro")
    (net,) = _shared("tflite3/sww")
    codes = codes_for(net)
    log_mel(tmp_path / "mel.onnx", codes=codes)
    done = compiled([tmp_path / "mel.onnx", net], tmp_path / "out", 512, board)
    assert done.plan.arena_bytes <= 16384
    assert sum(i.macs for i in done.program.instrs) < 60_000  # one step of the network, not its window of 30
    sweep = 6000 * np.sin(np.arange(512 * 40) ** 2 / 4e5) + RNG.normal(0, 100, 512 * 40)
    samples = sweep.astype(np.int16)
    (got,) = answers(done, tmp_path / "out", samples)
    scale, zero = codes.scalar
    features = np.rint(expected(LogMel(), frames_of(samples, 1024, 512)) / scale) + zero
    padded = np.concatenate((np.full((29, 40), zero), np.clip(features, -128, 127))).astype(np.int8)
    with Runtime() as runtime:
        calls = [(padded[i : i + 30].reshape(1, 30, 1, 40),) for i in range(len(features))]
        want = np.stack([answer[0] for answer in runtime.run(net.read_bytes(), calls)])
    # A feature between two codes may be rounded to the other one than float64 does.
    assert np.abs(got.reshape(-1, 3).astype(int) - want.reshape(-1, 3)).max() <= 1


def test_a_network_with_states_gets_three_results_of_the_front_end(tmp_path: Path) -> None:
    require_tool("cc")
    require_tflite("tflite_micro")
    front, net = _shared("tflite/tflm_audio_preprocessor_int8", "tflite/microwakeword_okay_nabu")
    done = compiled([front, net], tmp_path / "out", 160)
    assert done.program.inputs[0].type.elements == 480
    samples = RNG.normal(0, 3000, 4800).astype(np.int16)
    (got,) = answers(done, tmp_path / "out", samples)
    frames = frames_of(samples, 480, 160).astype(np.int16)
    with Runtime() as runtime:
        codes = [answer[0] for answer in runtime.run(front.read_bytes(), [(f[None],) for f in frames])]
        steps = [(np.stack(codes[i : i + 3]).reshape(1, 3, 40),) for i in range(0, len(codes), 3)]
        want = np.stack([answer[0] for answer in runtime.run(net.read_bytes(), steps)])
    np.testing.assert_array_equal(got.reshape(-1), want.reshape(-1))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hop": None}, "needs --hop"), ({"hop": 65}, "at most the 64"),
        ({"hop": 32, "io_buffers": "caller"}, "--io-buffers caller"),
        ({"hop": 32, "time_axis": 1}, "--time-axis without"), ({"hop": 32, "chain": ("net.onnx",)}, "whole steps"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_said(options: dict[str, object], said: str, tmp_path: Path) -> None:
    log_mel(tmp_path / "mel.onnx", SMALL)
    dense(tmp_path / "net.onnx", 6, 3)
    options["chain"] = tuple(tmp_path / str(name) for name in options.get("chain", ()))  # type: ignore[attr-defined]
    with pytest.raises(GlowcError) as error:
        compile_model(tmp_path / "mel.onnx", load_board("host"), CompileOptions(input_stream="samples", **options))  # type: ignore[arg-type]
    assert said in f"{error.value} {error.value.hint} {error.value.details}"


def test_a_model_of_codes_is_no_sound(tmp_path: Path) -> None:
    log_mel(tmp_path / "mel.onnx", SMALL)
    net = tmp_path / "two.onnx"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in "aby"]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "two", values[:2], values[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), net)
    with pytest.raises(GlowcError, match=r'two.onnx takes "a" f32.*, "b" f32'):
        compile_model(net, load_board("host"), CompileOptions(input_stream="samples", hop=4))
