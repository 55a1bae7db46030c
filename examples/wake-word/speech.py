"""Sound for the demo: a WAV file, or text that espeak-ng speaks, as 16 kHz samples of 16 bits."""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
import wave
from pathlib import Path

import numpy as np
from frontend import SAMPLE_HZ

_TAPS = 32  # of the resampler, on each side
_SILENCE_S = (0.5, 1.0)  # before and after spoken text
_SYNTHESISER = "espeak-ng"


class SpeechError(Exception):
    """The sound cannot be had; the message says why and what helps."""


def read_wav(path: Path) -> np.ndarray:
    """Return the first channel of a WAV file at 16 kHz."""
    try:
        with wave.open(str(path)) as file:
            rate, channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
            data = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error) as error:
        raise SpeechError(f"{path} cannot be read as a WAV file: {error}") from error
    if width != 2:
        raise SpeechError(f"{path} has samples of {8 * width} bits; 16 are needed")
    return resampled(np.frombuffer(data, np.int16)[::channels], rate)


def spoken(text: str) -> np.ndarray:
    """Return a text as espeak-ng speaks it, with silence around."""
    if shutil.which(_SYNTHESISER) is None:
        raise SpeechError(f"{_SYNTHESISER} is not installed: apt-get install {_SYNTHESISER}, or give a WAV file")
    with tempfile.TemporaryDirectory(prefix="wake-word-") as folder:
        path = Path(folder) / "speech.wav"
        subprocess.run([_SYNTHESISER, "-w", str(path), text], check=True)
        samples = read_wav(path)
    before, after = (np.zeros(int(s * SAMPLE_HZ), np.int16) for s in _SILENCE_S)
    return np.concatenate((before, samples, after))


def resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    """Return samples at 16 kHz: a sinc that lets pass what both rates can hold, under a Hann window."""
    if rate == SAMPLE_HZ:
        return samples
    cut = min(1.0, SAMPLE_HZ / rate)
    count = len(samples) * SAMPLE_HZ // rate
    at = np.arange(count) * (rate / SAMPLE_HZ)
    reach = math.ceil(_TAPS / cut)
    padded = np.concatenate((np.zeros(reach), samples, np.zeros(reach + 1)))
    first = np.floor(at).astype(int)
    total = np.zeros(count)
    for tap in range(-reach + 1, reach + 1):
        distance = at - (first + tap)
        weight = cut * np.sinc(cut * distance) * (0.5 + 0.5 * np.cos(np.pi * np.clip(distance / reach, -1, 1)))
        total += weight * padded[first + tap + reach]
    return np.clip(np.round(total), -32768, 32767).astype(np.int16)
