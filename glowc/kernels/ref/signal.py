"""The plain variants of the signal operators' kernels: transforms by runtime_c/glow_fft.h, others by glow_signal.h."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN

_FFT = replace(PLAIN, header="glow_fft.h")
_SIGNAL = replace(PLAIN, header="glow_signal.h")

VARIANTS = {
    **dict.fromkeys(("fft", "rfft", "irfft"), (_FFT,)),
    **dict.fromkeys(("signal_scale_bits", "signal_square_root", "signal_log"), (_SIGNAL,)),
    "signal_pcan": (replace(_SIGNAL, in_place=True),),
}
