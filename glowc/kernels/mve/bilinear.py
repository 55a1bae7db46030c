"""Bilinear interpolation of int8 codes on Helium (runtime_c/mve/glow_mve_bilinear.h)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from glowc.kernels.common.bilinear import accepts_codes, is_adjacent
from glowc.kernels.mve.shared import FAST

_CHANNELS = 4
_BILINEAR = replace(FAST, header="glow_mve_bilinear.h")

VARIANTS = {
    "bilinear_codes_s8": (replace(_BILINEAR, accepts=partial(accepts_codes, _CHANNELS)),),
    "bilinear_s8": (replace(_BILINEAR, accepts=partial(is_adjacent, _CHANNELS)),),
}
