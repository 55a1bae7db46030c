"""How features of sound are computed (`glowc log-mel`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from glowc.board.checked import Checked, Count, Flag


@dataclass(frozen=True, slots=True, repr=False)
class LogMel(Checked):
    """How features are computed; frequencies in Hz, lengths in samples, levels in decibels of a full-scale sample.

    A feature is clip((10 log10(max(band, floor)) + offset_db) / range_db, 0, 1).
    """

    sample_rate: Annotated[Count, Flag("samples a second")] = 16000
    window: Annotated[Count, Flag("samples of a frame (Hamming window)")] = 1024
    fft: Annotated[Count, Flag("points of the transform; zeros follow a shorter frame")] = 1024
    bins: Annotated[Count, Flag("mel bands")] = 40
    low_hz: Annotated[float, Flag("lower edge of the first band")] = 0.0
    high_hz: Annotated[float, Flag("upper edge of the last band")] = 8000.0
    preemphasis: Annotated[float, Flag("share of the sample before that is taken away")] = 1 - 2**-5
    floor: Annotated[float, Flag("least power of a band")] = 1e-30
    offset_db: Annotated[float, Flag("added to the decibels")] = 52.0
    range_db: Annotated[float, Flag("decibels of the range 0 to 1")] = 64.0
