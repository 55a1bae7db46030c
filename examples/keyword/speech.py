"""Words that espeak-ng speaks, in many voices, speeds and pitches, with noise: a second of sound each, at 16 kHz."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import numpy as np
from features import SAMPLE_HZ

SYNTHESISER = "espeak-ng"
WORDS = ("yes", "no", "up", "down", "left", "right", "stop", "go")
CLASSES = ("silence", "other", *WORDS)
OTHERS = ("bird", "cat", "dog", "tree", "house", "happy", "one", "two", "three", "four", "five", "six", "bed", "wow",
          "forward", "backward", "visual", "follow", "learn", "marvin", "note", "list", "cup", "gold", "light", "ride",
          "town", "lift", "step", "top", "guess", "low", "more", "yellow", "apple", "noon", "best", "drum",
          "again", "coffee", "music", "window", "people", "late", "rough")  # fmt: skip
UNHEARD_OTHERS = ("seven", "eight", "nine", "zero", "sheila", "water", "table", "open", "under", "near")
ACCENTS = ("en-gb", "en-us", "en-gb-scotland", "en-gb-x-gbclan", "en-gb-x-rp", "en-gb-x-gbcwmd", "en-029")
VOICES = ("f1", "f2", "f3", "f4", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "klatt", "klatt2", "klatt3", "klatt4",
          "Alex", "Alicia", "Andy", "Annie", "Denis", "Diogo", "Gene", "Henrique", "Hugo", "Jacky", "Lee", "Marco",
          "Mario", "Michael", "Storm", "anika", "antonio", "aunty", "benjamin", "david", "ed", "grandma", "grandpa",
          "iven", "john", "marcelo", "miguel", "paul", "pedro", "quincy", "rob", "robert", "shelby", "steph", "travis",
          "victor")  # fmt: skip
UNHEARD_VOICES = ("f5", "m8", "klatt5", "Andrea", "Mike", "adam", "belinda", "boris", "caleb", "edward", "gustave",
                  "kaukovalta", "linda", "max", "michel", "norbert", "pablo", "sandro", "zac")  # fmt: skip
LOUDNESS_DB = (-34, -12)  # of a word, root mean square; 0 is full scale
SNR_DB = (5, 30)  # a word over the noise
COLOURS = (0.0, 0.5, 1.0)  # of noise: its amplitude falls with the frequency to that power


def spoken(word: str, voices: Sequence[str], rng: np.random.Generator) -> np.ndarray:
    """Return a word in a voice by chance: float samples at 16 kHz, without the silence around."""
    voice = f"{rng.choice(ACCENTS)}+{rng.choice(voices)}"
    argv = [SYNTHESISER, "-v", voice, "-s", str(rng.integers(110, 230)), "-p", str(rng.integers(15, 86)), "--stdout"]
    wav = subprocess.run([*argv, word], capture_output=True, check=True).stdout
    rate = int.from_bytes(wav[24:28], "little")
    samples = resampled(np.frombuffer(wav[44:], "<i2") / 32768, rate)
    loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
    return samples[loud[0] : loud[-1] + 1]


def resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    """Return samples at 16 kHz, by their spectrum."""
    count = len(samples) * SAMPLE_HZ // rate
    spectrum = np.fft.rfft(samples)[: count // 2 + 1]
    return np.fft.irfft(spectrum, count) * (count / len(samples))


def second(word: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a second of sound: the word somewhere in it, or none where it is empty, and noise."""
    sound = np.zeros(SAMPLE_HZ)
    word = word[:SAMPLE_HZ]
    at = rng.integers(0, SAMPLE_HZ - len(word) + 1)
    level = 10 ** (rng.uniform(*LOUDNESS_DB) / 20)
    if len(word):
        sound[at : at + len(word)] = word * level / np.sqrt(np.mean(np.square(word)))
    sound += level * 10 ** (-rng.uniform(*SNR_DB) / 20) * noise(rng)
    return np.clip(sound, -1, 1)


def noise(rng: np.random.Generator) -> np.ndarray:
    """Return a second of noise of a colour by chance, its root mean square 1."""
    lines = SAMPLE_HZ // 2 + 1
    spectrum = rng.normal(size=lines) + 1j * rng.normal(size=lines)
    spectrum /= np.maximum(np.arange(lines), 20.0) ** rng.choice(COLOURS)
    found = np.fft.irfft(spectrum, SAMPLE_HZ)
    return found / np.sqrt(np.mean(np.square(found)))
