"""fc_f32_blocks by digits (runtime_c/glow_digits.h): streams of weights, each of a vector of outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared, plan_of
from glowc.kernels.common.constants import padded
from glowc.kernels.features import Stated
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_DIGITS = 3
_STEP = 16  # inputs of a step
_INFO_BYTES = 16  # of what a block starts with
_GROUP_BYTES = 65536
_FEW_BYTES = 8192  # of a group, where it may make the arena grow
_LARGEST_DIGIT = 128 * 257  # the lower two, as their sums are added


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitsPlan(Plan):
    """Of codes with `bits`, stored less `point`: `group` rows are gathered before weights go over them.

    `zeros`: words of zero points that a block has. `call` is the C function of an instruction set.
    """

    numbers: ClassVar[tuple[str, ...]] = ("group",)
    group: int
    bits: int
    point: int
    zeros: int
    call: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """A vector of `lanes` outputs; `signed`: bytes of codes have a sign. `call` is the C function."""

    lanes: int
    signed: bool
    call: str


def accepts(instr: Instr) -> bool:
    """Accept blocks of whole steps, the sums of which fit in 32 bits."""
    block, largest = instr.int_("block"), (1 << int(instr.params["bits"])) - 1
    return block % _STEP == 0 and _LARGEST_DIGIT * largest * block < 1 << 31


def _row_bytes(instr: Instr) -> int:
    return instr.int_("blocks") * (_INFO_BYTES + _DIGITS * instr.int_("block"))


def _codes(weights: np.ndarray, bits: int) -> np.ndarray:
    """Return the codes u8[N, K] of packed bytes [N, bytes], low bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((weights[:, :, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(len(weights), -1)


def _tiles(values: np.ndarray, lanes: int) -> np.ndarray:
    """Return [N, ...] as [tiles, lanes, ...]; outputs that are missing in the last tile are 0."""
    tiles = padded(len(values), lanes)
    rest = np.zeros((tiles - len(values), *values.shape[1:]), values.dtype)
    return np.concatenate([values, rest]).reshape(-1, lanes, *values.shape[1:])


def _words(weights: np.ndarray, bits: int, lanes: int, point: int, blocks: int) -> np.ndarray:
    """Return the words u32[tiles, blocks, words] of codes: a byte has those of inputs four apart."""
    per = 8 // bits
    codes = _tiles(_codes(weights, bits) - np.uint8(point), lanes)
    apart = codes.reshape(len(codes), lanes, blocks, -1, per, 4).transpose(0, 2, 3, 1, 5, 4)
    shifted = (apart << np.arange(0, 8, bits, dtype=np.uint8)).sum(-1, dtype=np.uint8)
    return np.ascontiguousarray(shifted).view(np.uint32).reshape(len(codes), blocks, -1)


def _heads(values: np.ndarray, lanes: int) -> np.ndarray:
    """Return the numbers [N, blocks] of outputs as words u32[tiles, blocks, words]."""
    return np.ascontiguousarray(_tiles(values, lanes).transpose(0, 2, 1)).view(np.uint32)


def _with_group(instr: Instr, plan: DigitsPlan, room_bytes: int) -> DigitsPlan:
    return replace(plan, group=min(instr.int_("rows"), max(1, min(room_bytes, _GROUP_BYTES) // _row_bytes(instr))))


def prepare(constants: Arrays, instr: Instr, to: Lanes) -> Prepared:
    """Join biases, scales, zero points and codes to one stream."""
    n, blocks, bits = instr.int_("out_n"), instr.int_("blocks"), int(instr.params["bits"])
    point = 128 if to.signed and bits == 8 else 0
    parts = [_heads(constants["scale"].reshape(n, blocks).astype(np.float32), to.lanes)]
    if instr.int_("zero_step") == 1:
        parts.append(_heads(constants["zero"].reshape(n, blocks) - np.uint8(point), to.lanes))
    plan = DigitsPlan(group=1, bits=bits, point=point, zeros=sum(part.shape[2] for part in parts[1:]), call=to.call)
    parts.append(_words(constants["weights"].reshape(n, -1), bits, to.lanes, point, blocks))
    each = np.concatenate(parts, 2)
    bias = _heads(constants["bias"].astype(np.float32).reshape(n, 1), to.lanes)
    stream = np.concatenate([bias.reshape(len(each), -1), each.reshape(len(each), -1)], 1).reshape(-1)
    unread = {"scale": np.zeros(1, np.float32), "bias": np.zeros(1, np.float32)}
    unread |= {"zero": np.zeros(1, np.uint8)} if plan.zeros else {}
    return Prepared({"weights": stream, **unread}, _with_group(instr, plan, _FEW_BYTES))


def _spend(instr: Instr, room_bytes: int) -> Plan:
    return _with_group(instr, plan_of(instr, DigitsPlan), room_bytes)


def scratch_bytes(instr: Instr) -> int:
    """Bytes of a group of rows."""
    return plan_of(instr, DigitsPlan).group * _row_bytes(instr)


def by_digits(plain: KernelVariant, to: Lanes, header: str, macs: float) -> KernelVariant:
    """Return a variant of fc_f32_blocks that states so many instructions for a product."""
    return replace(
        plain, header=header, template="common/fc_f32_digits", accepts=accepts, prepare=partial(prepare, to=to),
        packs=frozenset({"weights", "scale", "zero", "bias"}), scratch_bytes=scratch_bytes, spends=_spend,
        stated=Stated(macs=macs, outputs=20.0),
    )  # fmt: skip
