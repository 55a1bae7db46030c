"""A second of sound -> 49 x 10 bytes: mel-frequency cepstral coefficients of 40 ms every 20 ms.

Source: S. Davis and P. Mermelstein, "Comparison of Parametric Representations for Monosyllabic Word Recognition",
IEEE Transactions on Acoustics, Speech, and Signal Processing, 1980.
"""

from __future__ import annotations

from functools import cache

import numpy as np

SAMPLE_HZ = 16_000
FRAME, HOP = 640, 320  # samples
BANDS, COEFFICIENTS = 40, 10
LOW_HZ, HIGH_HZ = 20.0, 7600.0
FLOOR = 1e-3  # of a band's energy: what is quieter is silence
ZERO, GAIN = 128, 6.0  # coefficient 0 -> byte 128
LOUDEST = 20.0  # subtracted of the first coefficient, which is the loudness


def features(samples: np.ndarray) -> np.ndarray:
    """Return uint8 [49,10] of float samples [16000] from -1 to 1."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME)[::HOP]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(FRAME), axis=1)))
    coefficients = np.log(power @ _bands().T + FLOOR) @ _cosines().T
    coefficients[:, 0] = (coefficients[:, 0] - LOUDEST) / 3
    return np.clip(np.rint(coefficients * GAIN + ZERO), 0, 255).astype(np.uint8)


@cache
def _bands() -> np.ndarray:
    """Return [40, 321]: triangles over the lines of a spectrum, equally wide in mel."""
    edges = np.linspace(_mel(LOW_HZ), _mel(HIGH_HZ), BANDS + 2)[:, None]
    lines = _mel(np.fft.rfftfreq(FRAME, 1 / SAMPLE_HZ))[None]
    rising, falling = (
        (lines - edges[:-2]) / np.diff(edges, axis=0)[:-1],
        (edges[2:] - lines) / np.diff(edges, axis=0)[1:],
    )
    return np.maximum(0, np.minimum(rising, falling))


def _mel(hertz: np.ndarray | float) -> np.ndarray:
    return 2595 * np.log10(1 + np.asarray(hertz) / 700)


@cache
def _cosines() -> np.ndarray:
    """Return [10, 40]: the first rows of the orthonormal DCT-II."""
    rows, columns = np.arange(COEFFICIENTS)[:, None], np.arange(BANDS)[None]
    matrix = np.sqrt(2 / BANDS) * np.cos(np.pi / BANDS * rows * (columns + 0.5))
    matrix[0] /= np.sqrt(2)
    return matrix
