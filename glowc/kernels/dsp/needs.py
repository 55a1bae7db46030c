"""What a CPU must have for these kernels: SMLAD and the FPU that scales sums; words at any address."""

from __future__ import annotations

NEEDS = frozenset({"dsp", "fpu", "unaligned"})
