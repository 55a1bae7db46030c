"""unpack_s4: the constants of a layer with its weights as bytes, from those with weights of 4 bits, two in a byte.

out = lead words, then `count` records of `head` words, `body` words of weights, `tail` words, then `rest` words. A byte
of weights is a code from -8 to 7; `joined`: two of them are a halfword, 256 * even + odd. How they are stored is the
variant's own (glowc/kernels/common/nibbles.py); the interpreter reads the original.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params


@dataclass(frozen=True, slots=True)
class UnpackParams(Params):
    """Of unpack_s4."""

    lead: int
    count: int
    head: int
    body: int
    tail: int
    rest: int
    joined: int


def interpret(arrays: Arrays, _: UnpackParams) -> None:
    """Evaluate unpack_s4."""
    arrays["out"][...] = arrays["packed"]


KERNELS = (
    KernelDef("unpack_s4", ("in packed:u32", "out out:u32"), UnpackParams, interpret, doc="weights of 4 bits to bytes"),
)
