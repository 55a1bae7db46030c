"""The form `winograd` of conv_s8: F(2x2, 3x3) in integers, 16 products instead of 36 (3x3 kernels, stride 1).

Weights become U = (2G) g (2G)', int16 and exactly four times as large as in the formula; glow_dsp_winograd.h tells the
form. They take 32/9 of the flash, hence `speed_only`. Source: Lavin and Gray, arXiv:1509.09308.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.constants import EMPTY, WEIGHTED
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.dsp.stream import accepts_any_zero, ending, halfwords
from glowc.kernels.features import Stated
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_DOUBLED = np.asarray([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.float32)  # 2G
_COLUMNS = (1, 2, 0, 3)  # order of the products' columns
_CHANNELS = 4  # of a block
_WIDTH, _HEIGHT = 4, 2  # outputs computed together
_PIECE = 4 * 6  # inputs below two tiles
# Of 16 products in 4 outputs of two tiles: 11 instructions for two inputs and 7 besides; 17 an output; 60.
_STATED = Stated(tile_products=16 * 11 / 2, tiles=16 * 7 + 17 * _CHANNELS * _WIDTH * _HEIGHT + 60, tile_inputs=100)
_MAX_INPUTS = 1024  # 4 * 9 * 1024 * 255 * 128 < 2^31: four times a sum fits int32, whatever the weights


def accepts(instr: Instr) -> bool:
    """Accept 3x3 kernels, stride 1, channels of whole words."""
    if not accepts_any_zero(instr) or any(instr.int_(key) != 3 for key in ("k_h", "k_w")):
        return False
    if any(instr.int_(key) != 1 for key in ("stride_h", "stride_w", "dil_h", "dil_w", "in_ch")):
        return False
    inputs = instr.int_("in_c")
    dense = instr.int_("in_col") == inputs and inputs % _CHANNELS == 0
    return dense and inputs <= _MAX_INPUTS


def _products() -> int:
    """Return the products of a tile."""
    return header_number("glow_dsp_winograd.h", "GLOW_WINOGRAD_PRODUCTS")


def _row_bytes(instr: Instr) -> int:
    return -(-instr.int_("out_w") // _WIDTH) * _WIDTH * instr.int_("out_c")


def scratch_bytes(instr: Instr) -> int:
    """Inputs of the products of two tiles; their sums or the codes below; a row of outputs, four pixels of another."""
    inputs = instr.int_("in_c")
    own = _row_bytes(instr) + _WIDTH * instr.int_("out_c")
    return 4 * _products() * inputs + max(4 * 8 * _products(), _PIECE * inputs) + own


def transformed(weights: np.ndarray) -> np.ndarray:
    """Return the 16 products' U[O, 16, C] of weights[O, 3, 3, C], four times that of the formula; float32 is exact."""
    both = np.kron(_DOUBLED, _DOUBLED).reshape(4, 4, 9)[:, _COLUMNS].transpose(1, 0, 2).reshape(-1, 9)
    return np.asarray(both @ weights.astype(np.float32).reshape(len(weights), 9, -1))


@dataclass(frozen=True, slots=True, kw_only=True)
class WinogradPlan(Plan):
    """How codes are ended, and whether a product takes more steps than are printed, `long`."""

    end: str
    long: bool


def _plan(instr: Instr) -> WinogradPlan:
    end = ending(instr)
    inputs = 2 * header_number("glow_dsp_winograd.h", "GLOW_WINOGRAD_STEPS")
    return WinogradPlan(end=end if end in ("u8", "n8") else "s8", long=instr.int_("in_c") > inputs)


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Return the stream of conv_s8: per block of four channels the products' words, biases and scales."""
    out_c, in_c = instr.int_("out_c"), instr.int_("in_c")
    weights = constants["weights"].reshape(out_c, 9, in_c).astype(np.int32) - instr.int_("w_zp")
    blocks = -(-out_c // _CHANNELS)
    u = np.zeros((blocks * _CHANNELS, _products() * in_c), np.int16)
    u[:out_c] = transformed(halfwords(weights.reshape(out_c, -1))).reshape(out_c, -1)
    words = u.view(np.int32).reshape(blocks, _CHANNELS, -1).transpose(0, 2, 1).reshape(blocks, -1)
    ends = np.zeros((blocks * _CHANNELS, 2), np.int32)
    bias = constants["bias"].astype(np.int64) - instr.int_("in_zp") * weights.sum((1, 2), dtype=np.int64)
    ends[:out_c, 0] = ((bias + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int32)  # as the sums, modulo 2^32
    ends[:out_c, 1] = np.broadcast_to(constants["scale"].astype(np.float32), out_c).view(np.int32)
    body = np.concatenate((words, ends.reshape(blocks, -1)), axis=1)
    return Prepared({"weights": body.reshape(-1).view(np.int16), **EMPTY}, _plan(instr))


CONV = KernelVariant(
    "dsp", form="winograd", also=FPU, template="{}_winograd", rank=12, header="glow_dsp_winograd.h", accepts=accepts,
    prepare=prepare, packs=WEIGHTED, scratch_bytes=scratch_bytes, speed_only=True, stated=_STATED,
)  # fmt: skip

VARIANTS = {
    "conv_s8": (CONV,),
}
