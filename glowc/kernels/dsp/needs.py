"""What kernels of this set need besides it."""

from __future__ import annotations

FPU = frozenset({"fpu"})
"""Sums are scaled and rounded, or codes made of floats, by the FPU."""

DUAL_ISSUE = frozenset({"dual-issue"})
"""Two instructions at once, in order: loads of several registers and transfers from the FPU stand alone there."""
