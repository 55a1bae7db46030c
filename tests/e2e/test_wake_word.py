"""examples/wake-word: probabilities that TFLM and LiteRT answer of the same sound, and what is heard."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from glowc.api.sound import codes_for
from tests.conftest import require_tflite, require_tool
from tests.tflite.runtime import Runtime

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "wake-word"
HOP, FRAME, STEPS = 160, 480, 3


@pytest.fixture(scope="module")
def demo() -> Iterator[ModuleType]:
    require_tflite("tflite_micro", "pymicro_features", "pymicro_wakeword")
    sys.path.insert(0, str(FOLDER))
    try:
        import demo as module  # type: ignore[import-not-found]

        yield module
    finally:
        sys.path.remove(str(FOLDER))


def _expected_features(samples: np.ndarray) -> np.ndarray:
    """Return what pymicro-features makes of samples with silence before them, as a window after a reset has it."""
    from pymicro_features import MicroFrontend  # type: ignore[import-untyped]

    frontend, found = MicroFrontend(), []
    padded = np.concatenate((np.zeros(FRAME - HOP, np.int16), samples))
    for at in range(0, len(padded) - HOP + 1, HOP):
        features = frontend.process_samples(padded[at : at + HOP].tobytes()).features
        found += [features] if features else []
    return np.array(found)


def _sounds(spoken: np.ndarray) -> np.ndarray:
    """Return speech, noise at two levels, silence and clicks."""
    rng = np.random.default_rng(1)
    clicks = np.zeros(4000, np.int16)
    clicks[::777] = 32767
    parts = (rng.normal(0, 200, 6000), np.zeros(2000), rng.integers(-32768, 32767, 4000), clicks, spoken // 40)
    return np.concatenate((spoken, *(np.asarray(part).astype(np.int16) for part in parts)))


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_the_firmware_hears_okay_nabu(demo: ModuleType, board: str, tmp_path: Path) -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "espeak-ng"):
        require_tool(tool)
    word = demo.okay_nabu()
    assert (word.window, word.cutoff) == (5, 0.85)
    made = demo.firmware(word, board, tmp_path)
    assert made.run_ms == 30
    samples = _sounds(demo.spoken(word.said))
    heard = demo.listen(made.image, board, samples)
    net = word.models(tmp_path)[1]
    np.testing.assert_array_equal(heard.answers * 256, _expected_codes(net, _expected_features(samples)))
    assert heard.means(word.window).max() > 0.98
    assert heard.text.startswith("wake word at ")
    other = demo.listen(made.image, board, demo.spoken(demo.OTHER))
    assert other.means(word.window).max() < 0.02
    assert other.text == ""


def _expected_codes(net: Path, features: np.ndarray) -> np.ndarray:
    """Return the probabilities that the TFLM runtime answers, the features quantised as pymicro-wakeword does."""
    scale, zero = codes_for(net).scalar
    codes = np.round(features / scale + zero).astype(np.int8)
    steps = len(codes) // STEPS
    calls = [(step,) for step in codes[: steps * STEPS].reshape(steps, 1, STEPS, -1)]
    with Runtime() as runtime:
        answers = runtime.run(net.read_bytes(), calls)
    return np.array([answer[0].reshape(-1)[0] for answer in answers])


def test_the_firmware_hears_hey_jarvis_as_the_runtime_does(demo: ModuleType, tmp_path: Path) -> None:
    require_tflite("pyopen_wakeword")
    require_tool("cc")
    require_tool("espeak-ng")
    word = demo.hey_jarvis()
    made = demo.firmware(word, "host", tmp_path)
    samples = demo.spoken(word.said)
    heard = demo.listen(made.image, "host", samples)
    # Sigmoid of float sums of some thousand products, each in another order
    np.testing.assert_allclose(heard.answers, _expected_words(samples, word.hop)[: len(heard.answers)], atol=1e-4)
    assert heard.answers.max() > 0.9
    assert heard.text.startswith("wake word at ")


def _expected_words(samples: np.ndarray, hop: int) -> np.ndarray:
    """Return what LiteRT answers for windows that end with the newest sample, line and embedding."""
    import pyopen_wakeword  # type: ignore[import-not-found]

    features = pyopen_wakeword.OpenWakeWordFeatures.from_builtin()
    word = pyopen_wakeword.OpenWakeWord.from_builtin(pyopen_wakeword.Model.HEY_JARVIS)
    features.new_audio_samples, features.new_mels, word.new_embeddings = 1760 - hop, 76 - 8, 16 - 1
    chunks = samples[: len(samples) // hop * hop].reshape(-1, hop)
    lines = (line for chunk in chunks for line in features.process_streaming(chunk.tobytes()))
    return np.array([answer for line in lines for answer in word.process_streaming(line)])


def test_a_plot_shows_where_the_probability_is_high(demo: ModuleType) -> None:
    means = np.array([0.0] * 5 + [0.5] + [1.0] * 4)
    top, _, low, marks = demo.terminal_plot(means, 0.85).splitlines()
    assert (top, low, marks) == ("  |      ████", "  |     █████", "  |------^^^^")
    assert 'polyline points="40.0,170.0' in demo.svg_plot(means, 0.85, 30, "x")


def test_sound_is_resampled_without_what_the_new_rate_cannot_hold(demo: ModuleType) -> None:
    import speech  # type: ignore[import-not-found]

    seconds = np.arange(22050) / 22050
    tone, high = (np.round(8000 * np.sin(2 * np.pi * hz * seconds)).astype(np.int16) for hz in (1000, 9500))
    want = 8000 * np.sin(2 * np.pi * 1000 * np.arange(16000) / 16000)
    inside = slice(100, -100)
    assert np.abs(speech.resampled(tone, 22050)[inside] - want[inside]).max() < 40
    assert np.abs(speech.resampled(high, 22050)[inside]).max() < 40
    assert demo.frontend.SAMPLE_HZ == 16000
