"""unpack_s4, unpack_s2, unpack_p4, unpack_p2: constants of a layer with weights of bytes, from those of 4 or 2 bits.

out = lead words, then `count` records of `head` words, `body` words of weights, `tail` words, then `rest` words. A byte
of weights is a code; `joined`: two of them are a halfword, 256 * even + odd. What is stored of a code is the code, or
its place in a palette of 16 or 4 codes. How they are stored is the variant's own (glowc/kernels/common/narrow.py); the
interpreter reads the original.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowc.graph.few_codes import NARROW_BITS
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
    """Evaluate the kernels that unpack."""
    arrays["out"][...] = arrays["packed"]


KERNELS = (
    *(KernelDef(f"unpack_s{bits}", ("in packed:u32", "out out:u32"), UnpackParams, interpret, template="unpack",
                doc=f"weights of {bits} bits to bytes")
      for bits in NARROW_BITS),
    *(KernelDef(f"unpack_p{bits}", ("in packed:u32", "in palette:s8", "out out:u32"), UnpackParams, interpret,
                template="unpack_palette", doc=f"weights of a palette, places of {bits} bits, to bytes")
      for bits in NARROW_BITS),
)  # fmt: skip
