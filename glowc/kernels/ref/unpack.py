"""The plain variant of unpack_s4, word by word."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.base import PLAIN
from glowc.kernels.common.nibbles import PACKED, stored_by
from glowc.kernels.records import plain_records

_LAYER = replace(PLAIN, records=plain_records)

VARIANTS = {
    "conv_s8": (_LAYER,),
    "fc_s8": (_LAYER,),
    "unpack_s4": (replace(PLAIN, packs=PACKED, prepare=stored_by(1)),),
}
