"""unpack_s4, unpack_s2: the constants of a layer with weights of bytes, from those with weights of 4 or 2 bits.

out = lead words, then `count` records of `head` words, `body` words of weights, `tail` words, then `rest` words. A byte
of weights is a code; `joined`: two of them are a halfword, 256 * even + odd. How they are stored is the
variant's own (glowc/kernels/common/narrow.py); the interpreter reads the original.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.shapes import NARROW_BITS
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class UnpackParams(Params):
    """Of the kernels that unpack."""

    lead: int
    count: int
    head: int
    body: int
    tail: int
    rest: int
    joined: int


def interpret(arrays: Arrays, _: UnpackParams) -> None:
    """Evaluate unpack_s4, unpack_s2."""
    arrays["out"][...] = arrays["packed"]


KERNELS = tuple(
    KernelDef(f"unpack_s{bits}", ("in packed:u32", "out out:u32"), UnpackParams, interpret, template="unpack",
              doc=f"weights of {bits} bits to bytes")
    for bits in NARROW_BITS
)  # fmt: skip
