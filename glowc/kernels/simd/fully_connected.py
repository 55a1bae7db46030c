"""fc_s8 and fc_dynamic on A64 and A32: a row a block (glow_a64.h, glow_a32.h), of fc_dynamic two.

A block of outputs is a stream as that of conv.py: whole steps of 16 inputs, then what is left (dot: always steps of 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.constants import WEIGHTED, accepts_codes, padded
from glowc.kernels.common.few import with_few
from glowc.kernels.common.singles import OutputsPlan, with_singles
from glowc.kernels.common.sums import shifted
from glowc.kernels.records import Records
from glowc.kernels.shapes import Conv, FullyConnected
from glowc.kernels.simd.conv import BLOCKS, HEADER, is_dense_point
from glowc.kernels.simd.conv import accepts as accepts_conv
from glowc.kernels.simd.core import CORES
from glowc.kernels.simd.ending import Ending
from glowc.kernels.simd.row_block import RowBlock
from glowc.kernels.simd.stream import CHUNK, Packed, Parts, block_records, blocks, pack_rows
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_FEW_WEIGHTS = 320  # of a layer whose outputs may be computed one by one
_OUTPUTS = {"a32": 8, "a64": 8, "dot": 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class FcPlan(RowBlock, OutputsPlan):
    """What the template prints by.

    `outputs` of a block; `whole`: there is a block of so many; `narrow` outputs of the last block, where it has fewer,
    `few`: more than there are. `steps`: there are 16 inputs; `rest`: inputs are left (dot: groups of four). `pairs`:
    two products fit 16 bits. `shifted`: the weights have a zero point, the shifts of their codes are in place of the
    biases.
    """

    isa: str
    outputs: int
    whole: bool
    few: bool
    narrow: int
    steps: bool
    rest: int
    ending: Ending
    pairs: bool
    shifted: bool
    pixel: bool


def shape_of(instr: Instr) -> FullyConnected:
    """Return the layer, or that which a convolution of 1x1 is for each of its pixels."""
    names = ("in_c", "out_c") if is_pixel(instr) else ("in_k", "out_n")
    return FullyConnected(*map(instr.int_, names))


def is_pixel(instr: Instr) -> bool:
    """Say whether an instruction is a convolution."""
    return "in_c" in instr.params


def _parts(isa: str, out_n: int) -> Parts:
    outputs = _OUTPUTS[isa]
    return blocks(out_n, outputs, padded(out_n % outputs, 4))


def _pack(isa: str, parts: Parts, constants: Arrays, instr: Instr) -> Packed:
    s = shape_of(instr)
    coded = shifted(constants["weights"].reshape(s.out_n, s.in_k), instr.int_("w_zp"))
    core = CORES[isa]
    columns, grain = padded(s.in_k, core.group), CHUNK if core.paired else core.group
    rows = np.zeros((s.out_n, columns), np.int8)
    rows[:, : s.in_k] = coded[0]
    return pack_rows(constants, coded, rows, instr, parts, grain, -columns % grain, in_pairs=core.paired)


def _prepare(isa: str, constants: Arrays, instr: Instr) -> Prepared:
    s, outputs, core = shape_of(instr), _OUTPUTS[isa], CORES[isa]
    parts, rest = _parts(isa, s.out_n), s.in_k % CHUNK
    packed, width = _pack(isa, parts, constants, instr), parts[-1][1]
    plan = FcPlan(
        isa=isa, outputs=outputs, whole=s.out_n >= outputs, few=s.out_n < width,
        narrow=width if s.out_n % outputs else 0, steps=s.in_k >= CHUNK,
        rest=int(rest > 0) if core.paired else -(-rest // core.group), ending=packed.ending,
        pairs=packed.pairs, shifted=instr.int_("w_zp") != 0, pixel=is_pixel(instr),
    )  # fmt: skip
    return Prepared(packed.constants, plan)


def _records(isa: str, instr: Instr) -> Records:
    s = shape_of(instr)
    return block_records(instr, _parts(isa, s.out_n), _OUTPUTS[isa], padded(s.in_k, CORES[isa].group))


def _variant(isa: str, rank: int, header: str = HEADER) -> KernelVariant:
    return KernelVariant(
        isa, rank=rank, accepts=accepts_codes, header=header, packs=WEIGHTED,
        prepare=lambda constants, instr: _prepare(isa, constants, instr),
        records=lambda instr: _records(isa, instr),
    )  # fmt: skip


A32 = _variant("a32", 30, "glow_a32.h")
A64 = (_variant("a64", 30), _variant("dot", 32))
SINGLE = (
    with_singles(A32, "glow_neon_dot_s8", "glow_a32_single.h"),
    *(with_singles(variant, "glow_neon_dot_s8", "glow_a64_single.h") for variant in A64),
)


def _is_small(instr: Instr) -> bool:
    return instr.int_("in_k") * instr.int_("out_n") <= _FEW_WEIGHTS


FEW = (
    with_few(A32, "glow_neon_dot_s8", "glow_neon_single.h", _is_small),
    with_few(A64[0], "glow_neon_dot_s8", "glow_neon_single.h", _is_small),
)


def _accepts_pixels(isa: str, instr: Instr) -> bool:
    """Accept convolutions of 1x1 of fewer pixels than fill two tiles."""
    s, tile = Conv.of(instr), BLOCKS[isa].pixels
    pixels = s.batch * s.out_h * s.out_w
    return accepts_conv(instr) and is_dense_point(s) and pixels < 2 * tile and pixels != tile


def _by_pixels(plain: KernelVariant) -> KernelVariant:
    """Return the variant of conv_s8 that is `plain` for each pixel."""
    return replace(
        plain, form="row", rank=plain.rank - 10, template="{}_row",
        accepts=lambda instr: _accepts_pixels(plain.isa, instr),
    )  # fmt: skip


ROW = tuple(map(_by_pixels, A64))


def _dynamic(isa: str) -> KernelVariant:
    """Return a variant of fc_dynamic; its scratch are two rows in 16 bits."""
    return KernelVariant(
        isa, rank=30, header="glow_neon_f32.h",
        accepts=lambda instr: instr.operand("in").type.dtype.bits == 8 and instr.int_("out_n") >= 4,
        scratch_bytes=lambda instr: 4 * instr.int_("in_k"),
    )  # fmt: skip


DYNAMIC = (_dynamic("a32"), _dynamic("a64"))

VARIANTS = {
    "fc_dynamic": DYNAMIC,
    "conv_s8": ROW,
    "fc_s8": (A32, *A64, *SINGLE, *FEW),
}
