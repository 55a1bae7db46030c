"""examples/wake-word: features of pymicro-features, probabilities of the TFLM runtime, and what is heard."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

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
    """Return what pymicro-features makes of samples."""
    from pymicro_features import MicroFrontend  # type: ignore[import-untyped]

    frontend, found = MicroFrontend(), []
    for at in range(0, len(samples) - HOP + 1, HOP):
        features = frontend.process_samples(samples[at : at + HOP].tobytes()).features
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
def test_the_firmware_hears_the_wake_word(demo: ModuleType, board: str, tmp_path: Path) -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "espeak-ng"):
        require_tool(tool)
    net = demo.network()
    assert (net.window, net.cutoff) == (5, 0.85)
    image = demo.firmware(net, board, tmp_path)
    samples = _sounds(demo.spoken(demo.SAID))
    heard = demo.listen(image, board, samples)
    np.testing.assert_array_equal(heard.features * 0.0390625, _expected_features(samples))
    np.testing.assert_array_equal(heard.codes, _expected_codes(net, heard.features))
    means = heard.means(net.window)
    assert means.max() > 0.98
    assert heard.text.startswith("wake word at ")
    other = demo.listen(image, board, demo.spoken(demo.OTHER))
    assert other.means(net.window).max() < 0.02
    assert other.text == ""


def _expected_codes(net: object, features: np.ndarray) -> np.ndarray:
    """Return the probabilities that the TFLM runtime answers, the features quantised as pymicro-wakeword does."""
    scale, zero = net.input_quantisation()  # type: ignore[attr-defined]
    codes = np.round(features * 0.0390625 / scale + zero).astype(np.int8)
    steps = len(codes) // STEPS
    calls = [(step,) for step in codes[: steps * STEPS].reshape(steps, 1, STEPS, -1)]
    with Runtime() as runtime:
        answers = runtime.run(net.path.read_bytes(), calls)  # type: ignore[attr-defined]
    return np.array([answer[0].reshape(-1)[0] for answer in answers])


def test_a_plot_shows_where_the_probability_is_high(demo: ModuleType) -> None:
    means = np.array([0.0] * 5 + [0.5] + [1.0] * 4)
    top, _, low, marks = demo.terminal_plot(means, 0.85).splitlines()
    assert (top, low, marks) == ("  |      ████", "  |     █████", "  |------^^^^")
    assert 'polyline points="40.0,170.0' in demo.svg_plot(means, 0.85, "x")


def test_sound_is_resampled_without_what_the_new_rate_cannot_hold(demo: ModuleType) -> None:
    import speech  # type: ignore[import-not-found]

    seconds = np.arange(22050) / 22050
    tone, high = (np.round(8000 * np.sin(2 * np.pi * hz * seconds)).astype(np.int16) for hz in (1000, 9500))
    want = 8000 * np.sin(2 * np.pi * 1000 * np.arange(16000) / 16000)
    inside = slice(100, -100)
    assert np.abs(speech.resampled(tone, 22050)[inside] - want[inside]).max() < 40
    assert np.abs(speech.resampled(high, 22050)[inside]).max() < 40
    assert demo.frontend.SAMPLE_HZ == 16000
