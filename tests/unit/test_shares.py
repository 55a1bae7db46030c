"""runtime_c/glow_shares.h: the lines of its powers against 2^-x in double, the error that the header states."""

from __future__ import annotations

import re

import numpy as np

from glowc.paths import data_dir

STATED = 3e-5


def test_the_powers_of_all_distances_are_as_near_as_the_header_says() -> None:
    text = (data_dir("runtime_c") / "glow_shares.h").read_text("utf-8")
    table = text[text.index("glow_shares_lines[64] = {") : text.index("};")]
    lines = np.array([int(word, 16) for word in re.findall(r"0x([0-9A-F]{8})u", table)], np.uint32)
    one = re.search(r"GLOW_SHARES_ONE 0x([0-9A-F]+)u", text)
    assert len(lines) == 64
    assert one is not None
    distance = np.arange(1 << 20, dtype=np.int64)
    line = lines[distance >> 10 & 63]
    steps = (line & 0xFFFF).astype(np.int16).astype(np.int64) * distance.astype(np.int16)
    power = (line.astype(np.int64) + steps) >> (distance >> 16)
    assert power[0] == int(one[1], 16)
    assert np.abs(power / power[0] - 2.0 ** (-distance / 65536)).max() < STATED
    assert (power.max() + 0x8000) >> 16 == 0x7FFF, "a share has 16 bits, with a sign"
