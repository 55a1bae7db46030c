"""The plain variants of the kernels that unpack weights of few bits, and where these lie in what plain layers read."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN
from glowc.kernels.common.narrow import unpacking
from glowc.kernels.records import plain_records

_LAYER = replace(PLAIN, records=plain_records)

VARIANTS = {"conv_s8": (_LAYER,), "fc_s8": (_LAYER,), **unpacking(PLAIN, 1, "")}
