"""The sums that layers can reach, over all inputs."""

from __future__ import annotations

import numpy as np

from glowc.program.ir import Instr


def sums(weights: np.ndarray, instr: Instr) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest sum of weights[O, K], less their zero point, over all inputs."""
    kind = instr.operand("in").type.dtype
    ends = [weights * (x - instr.int_("in_zp")) for x in (kind.qmin, kind.qmax)]
    return np.minimum(*ends).sum(1), np.maximum(*ends).sum(1)
