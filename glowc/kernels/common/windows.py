"""What variants ask of the windows of a layer."""

from __future__ import annotations

from glowc.program.ir import Instr


def is_point(instr: Instr) -> bool:
    """Say whether each output reads one pixel of adjacent channels, which lies inside of the image."""
    p = {key: int(value) for key, value in instr.params.items() if not isinstance(value, str)}
    one = p["k_h"] == p["k_w"] == 1 and p["pad_top"] == p["pad_left"] == 0
    inside = (p["out_h"] - 1) * p["stride_h"] < p["in_h"] and (p["out_w"] - 1) * p["stride_w"] < p["in_w"]
    return one and inside and p["in_ch"] == 1
