"""The `dsp` variant of fc_f32_blocks: floats as integers of 31 bits, times codes of two outputs by SMLAD."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common import blocks
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.features import Stated
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Join the words of codes, and the scales, of two outputs block by block."""
    n, count = instr.int_("out_n"), instr.int_("blocks")
    words = np.ascontiguousarray(constants["weights"]).reshape(n, -1).view(np.uint32).reshape(n, count, -1)
    scales = np.ascontiguousarray(constants["scale"], np.float32).reshape(n, count, 1).view(np.uint32)
    each = np.concatenate([words, scales], 2)
    each = np.concatenate([each, each[-1:]])[: n + n % 2]
    stream = each.reshape(-1, 2, *each.shape[1:]).transpose(0, 2, 3, 1).reshape(-1)
    plain = blocks.prepare(constants, instr)
    empty = np.zeros(1, np.float32)
    return replace(plain, constants={**plain.constants, "weights": np.ascontiguousarray(stream), "scale": empty})


VARIANTS = {
    "fc_f32_blocks": (
        KernelVariant(
            "dsp",
            also=FPU,
            rank=10,
            header="glow_dsp_blocks.h",
            accepts=lambda instr: blocks.accepts(instr, 32),
            prepare=prepare,
            packs=frozenset({"weights", "scale", "bias"}),
            scratch_bytes=blocks.scratch_bytes,
            stated=Stated(macs=2.5, outputs=20.0),
        ),
    ),
}
