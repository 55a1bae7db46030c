"""The plain variant of lstm_s8, whose cells lie in scratch."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN
from glowc.kernels.common.recurrent import coded_scratch

VARIANTS = {"lstm_s8": (replace(PLAIN, header="glow_lstm.h", scratch_bytes=coded_scratch),)}
