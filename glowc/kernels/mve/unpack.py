"""unpack_s4 on Helium (runtime_c/mve/glow_mve_unpack.h)."""

from __future__ import annotations

from dataclasses import replace

from glowc.kernels.common.nibbles import PACKED, holds_bytes, stored_by
from glowc.kernels.mve.shared import FAST

_UNPACK = replace(FAST, accepts=holds_bytes, header="glow_mve_unpack.h", packs=PACKED, prepare=stored_by(4))

VARIANTS = {"unpack_s4": (_UNPACK,)}
