"""conv_s8 on A64 and A32: paths, constants and scratch of `a64`, `dot`, `i8mm` and `a32` (glow_a64.h, glow_a32.h).

A block is `pixels` x `outputs`. Its inputs come in steps of 64 bytes: `grain` inputs of each of its pixels. A block of
outputs is one stream: biases with the input's zero point folded in, scales, then 64 bytes of weights a step:

    a64    grain 16: for each of 4 outputs its 16 weights
    dot    grain 8: inputs 0..3 of outputs 0..3, of outputs 4..7, then inputs 4..7 of both
    i8mm   grain 8: outputs (0,1), (2,3), (4,5), (6,7), 8 weights of each
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared, plan_of
from glowc.kernels.common.constants import WEIGHTED, accepts_codes, padded
from glowc.kernels.common.sums import shifted
from glowc.kernels.records import Records
from glowc.kernels.shapes import Conv
from glowc.kernels.simd.conv_plan import ConvPlan
from glowc.kernels.simd.core import CORES, Core
from glowc.kernels.simd.stream import CHUNK, Packed, Parts, block_records, blocks, pack_rows
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

HEADER = "glow_a64.h"


@dataclass(frozen=True, slots=True)
class Block:
    """What one block computes, and inputs of a pixel in one step.

    `narrow`: outputs that blocks may have in place of `outputs`: those after whole ones the first number, so that
    layers share a function, and the only block of a layer any that is enough.
    """

    pixels: int
    outputs: int
    grain: int
    narrow: tuple[int, ...] = ()


_UNROLLED = 7  # columns of a window whose steps are printed one after another
_MOST_RUNS = 256  # pointers to columns, on the stack

BLOCKS = {"a32": Block(2, 4, 16), "a64": Block(4, 4, 16), "dot": Block(8, 8, 8, (2, 4)), "i8mm": Block(8, 8, 8, (4,))}


def is_dense_point(s: Conv) -> bool:
    """Say whether a window is one pixel, of at least eight adjacent channels, and none is padding."""
    one = s.k_h == s.k_w == 1 and s.pad_top == s.pad_left == 0
    inside = (s.out_h - 1) * s.stride_h < s.in_h and (s.out_w - 1) * s.stride_w < s.in_w
    return one and inside and s.in_ch == 1 and s.in_c >= 8


def is_spread(s: Conv) -> bool:
    """Say whether the columns of a window lie apart."""
    return s.dil_w > 1 and s.k_w > 1


def row_slots(s: Conv) -> int:
    """Padded rows held at a time: those of one window."""
    return (s.k_h - 1) * s.dil_h + 1


def accepts(instr: Instr) -> bool:
    """Accept int8 layers without groups."""
    return accepts_codes(instr) and instr.int_("groups") == 1


def path_of(isa: str, s: Conv) -> str:
    """Choose where a block of pixels reads its inputs.

    direct: the tensor itself (8 inputs are half a step of grain 16); point: gathered from the tensor; rows: padded
    rows in scratch, one plane for each `grain` channels; pixels: windows gathered from padded rows.
    """
    block = BLOCKS[isa]
    if is_dense_point(s):
        adjacent = s.in_c == s.in_col * s.stride_w and s.in_c in (8, block.grain)
        return "direct" if adjacent and not _spans(isa, s) else "point"
    dense, waste = s.in_ch == 1 and s.in_c >= 8, padded(s.in_c, block.grain) - s.in_c
    few = s.k_w <= _UNROLLED or s.taps * padded(s.in_c, block.grain) <= _MOST_RUNS * block.grain
    planes = dense and waste * 5 <= s.in_c and few and s.stride_w <= (1 if is_spread(s) else 4)
    return "rows" if planes and s.out_w >= block.pixels else "pixels"


def _spans(isa: str, s: Conv) -> bool:
    """Say whether a block may hold pixels of several rows: where whole blocks do not fill each of them well."""
    pixels = BLOCKS[isa].pixels
    return s.out_w < pixels or (s.out_h > 1 and (padded(s.out_w, pixels) - s.out_w) * 10 > s.out_w)


def _parts(isa: str, out_c: int) -> Parts:
    """Return whole blocks, and narrow ones where up to four outputs are left; of few outputs a narrow one alone."""
    outputs, narrow = BLOCKS[isa].outputs, BLOCKS[isa].narrow
    if not narrow or out_c < outputs:
        return blocks(out_c, outputs, next((few for few in narrow if out_c <= few), 0))
    left = padded(out_c % outputs, narrow[0])
    if left > 4:
        return blocks(out_c, outputs)
    whole = out_c - out_c % outputs
    return [*blocks(whole, outputs), *((begin, narrow[0]) for begin in range(out_c - left, out_c, narrow[0]))]


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer as it is cut: its path, `rest` inputs after the last whole step, blocks of outputs."""

    isa: str
    shape: Conv
    path: str
    rest: int
    parts: Parts

    @staticmethod
    def of(isa: str, instr: Instr, *, tight: bool) -> _Layer:
        """Return how a layer is cut; `tight`: windows keep a rest as well."""
        s = Conv.of(instr)
        path = path_of(isa, s)
        inputs = s.inputs if path == "pixels" and tight else s.in_c if path == "point" else 0
        return _Layer(isa, s, path, inputs % BLOCKS[isa].grain, _parts(isa, s.out_c))

    @property
    def block(self) -> Block:
        """The block of the instruction set."""
        return BLOCKS[self.isa]

    @property
    def core(self) -> Core:
        """How the instruction set multiplies."""
        return CORES[self.isa]

    @property
    def grain(self) -> int:
        """Inputs of a pixel in one step."""
        return min(self.block.grain, self.shape.in_c) if self.path == "direct" else self.block.grain

    @property
    def steps(self) -> int:
        """Steps of a block."""
        s, grain = self.shape, self.grain
        return s.taps * padded(s.in_c, grain) // grain if self.path == "rows" else padded(s.inputs, grain) // grain

    @property
    def narrow(self) -> bool:
        """True when the last block has fewer outputs."""
        return self.parts[-1][1] < self.block.outputs


def _reach(s: Conv) -> int:
    return (s.k_w - 1) * s.dil_w


def _pixels_twice(layer: _Layer) -> bool:
    """Say whether A32 takes two steps of gathered pixels at a time."""
    inputs = layer.shape.in_c if layer.path == "point" else layer.shape.inputs
    whole = inputs // layer.block.grain if layer.rest else layer.steps
    return layer.core.a32 and layer.path in ("point", "pixels") and whole % 2 == 0


def _plan(layer: _Layer, instr: Instr, packed: Packed) -> ConvPlan:
    s, block, narrow = layer.shape, layer.block, layer.narrow
    few = s.out_c < layer.parts[-1][1]
    plan = ConvPlan(
        path=layer.path, isa=layer.isa, pixels=block.pixels, outputs=block.outputs, grain=layer.grain,
        ending=packed.ending, pairs=packed.pairs, shifted=instr.int_("w_zp") != 0,
        span=layer.path in ("point", "pixels") and _spans(layer.isa, s), few=few,
        narrow=layer.parts[-1][1] if narrow else block.narrow[0] if layer.rest and not few and block.narrow else 0,
        rest=layer.rest > 0 or (narrow and layer.path == "point"), twice=_pixels_twice(layer),
    )  # fmt: skip
    if layer.path in ("rows", "pixels"):
        plan = replace(plan, k_w=s.k_w, k_h=s.k_h, slots=row_slots(s), reach=_reach(s))
    return _rows_plan(layer, plan) if layer.path == "rows" else _windows_plan(layer, plan)


def _rows_plan(layer: _Layer, plan: ConvPlan) -> ConvPlan:
    s, grain = layer.shape, layer.block.grain
    plan = replace(
        plan, stride=s.stride_w, groups=padded(s.in_c, grain) // grain, single=s.k_w > _UNROLLED,
        apart=(s.dil_w if is_spread(s) else 1) * grain,
    )  # fmt: skip
    return replace(plan, twice=not layer.core.paired and plan.run_count % 2 == 0)


def _windows_plan(layer: _Layer, plan: ConvPlan) -> ConvPlan:
    s = layer.shape
    if layer.path != "pixels":
        return plan
    pieces, piece = (s.k_w, s.in_c) if is_spread(s) else (1, s.k_w * s.in_c)
    return replace(plan, pieces=pieces, piece=piece, width=padded(s.inputs, CHUNK), steps=layer.steps)


def _row_bytes(plan: ConvPlan, s: Conv) -> int:
    """Bytes of one padded row in scratch; a copy of 16 bytes may read after the last window."""
    if plan.path == "rows":
        return (s.out_w + plan.reach // s.stride_w) * s.stride_w * plan.groups * plan.grain
    return padded(_row_columns(plan, s) * s.in_c + CHUNK, CHUNK)


def _row_columns(plan: ConvPlan, s: Conv) -> int:
    return (s.out_w - 1) * s.stride_w + plan.reach + 1


def scratch_bytes(instr: Instr) -> int:
    """Bytes: a block of outputs, of inputs, the windows of a block, padded rows, their sums; in this order."""
    plan, s = plan_of(instr, ConvPlan), Conv.of(instr)
    size = padded(plan.pixels * s.out_c, CHUNK) if plan.span else 0
    if plan.path == "point":
        size += padded(s.in_c, plan.grain) * plan.pixels
    if plan.path == "pixels":
        size += plan.pixels * plan.steps * plan.grain + plan.windows_bytes
    if plan.path == "rows" and plan.shifted:
        size += 4 * plan.slots * _row_columns(plan, s)
    return size + (plan.slots * _row_bytes(plan, s) if plan.path in ("rows", "pixels") else 0)


def _planes(layer: _Layer, weights: np.ndarray) -> np.ndarray:
    """Return the weights of path rows: of each row and plane, the columns of one phase of the stride adjacent."""
    s, grain = layer.shape, layer.grain
    planes = np.zeros((s.out_c, s.k_h, s.k_w, padded(s.in_c, grain)), np.int8)
    planes[..., : s.in_c] = weights
    columns = sorted(range(s.k_w), key=lambda kx: kx % s.stride_w)
    taps = planes.reshape(s.out_c, s.k_h, s.k_w, -1, grain)[:, :, columns]
    return taps.transpose(0, 1, 3, 2, 4).reshape(s.out_c, -1)


def _windows(layer: _Layer, weights: np.ndarray) -> np.ndarray:
    """Return the weights of whole windows, without the zeros of the last step where it is a rest."""
    s, unit = layer.shape, layer.core.group
    rows = np.zeros((s.out_c, padded(s.inputs, unit if layer.rest else layer.grain)), np.int8)
    rows[:, : s.inputs] = weights.reshape(s.out_c, -1)
    return rows


def _pack(layer: _Layer, constants: Arrays, instr: Instr) -> Packed:
    s, core = layer.shape, layer.core
    coded = shifted(constants["weights"].reshape(s.out_c, s.k_h, s.k_w, s.in_c), instr.int_("w_zp"))
    rows = (_planes if layer.path == "rows" else _windows)(layer, coded[0])
    spare = -rows.shape[1] % layer.grain * (layer.parts[-1][1] if core.group > 1 else 1)
    grain = core.group if core.group > 1 else layer.grain
    return pack_rows(constants, coded, rows, instr, layer.parts, grain, spare, in_pairs=core.paired)


def _prepare(isa: str, constants: Arrays, instr: Instr, *, tight: bool = False) -> Prepared:
    layer = _Layer.of(isa, instr, tight=tight)
    packed = _pack(layer, constants, instr)
    return Prepared(packed.constants, _plan(layer, instr, packed))


def _records(isa: str, instr: Instr, *, tight: bool = False) -> Records:
    layer = _Layer.of(isa, instr, tight=tight)
    s, unit = layer.shape, layer.core.group if layer.rest else layer.grain
    columns = s.taps * padded(s.in_c, layer.grain) if layer.path == "rows" else padded(s.inputs, unit)
    return block_records(instr, layer.parts, layer.block.outputs, columns)


def conv_variant(isa: str, rank: int, header: str = HEADER) -> KernelVariant:
    """Return a variant of conv_s8."""
    return KernelVariant(
        isa, rank=rank, accepts=accepts, header=header, packs=WEIGHTED, streams=True,
        prepare=lambda constants, instr: _prepare(isa, constants, instr), scratch_bytes=scratch_bytes,
        row_block=BLOCKS[isa].pixels, records=lambda instr: _records(isa, instr),
    )  # fmt: skip


def tight_variant(plain: KernelVariant) -> KernelVariant:
    """Return `plain` for windows whose weights fill no whole step with zeros."""
    isa = plain.isa

    def accepts_tight(instr: Instr) -> bool:
        s = Conv.of(instr)
        return accepts(instr) and path_of(isa, s) == "pixels" and s.inputs % BLOCKS[isa].grain > 0

    return replace(
        plain, form="tight", rank=plain.rank - 4, like=plain.name, accepts=accepts_tight,
        prepare=lambda constants, instr: _prepare(isa, constants, instr, tight=True),
        records=lambda instr: _records(isa, instr, tight=True),
    )  # fmt: skip


A32 = conv_variant("a32", 30, "glow_a32.h")
A64 = (
    conv_variant("a64", 30),
    conv_variant("dot", 32),
    conv_variant("i8mm", 33),
)
TIGHT = tuple(tight_variant(variant) for variant in (A32, *A64[:2]))

VARIANTS = {"conv_s8": (A32, *A64, *TIGHT)}
