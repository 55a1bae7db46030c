"""Fully connected layers of so few inputs or outputs that blocks of four of them do not pay: outputs one by one.

Weights stay as they are. Of int8 layers the zero point of the inputs is in the biases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from glowc.graph.types import DType
from glowc.kernels.base import KernelVariant, Prepared
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

FEW = 4
_BIASED = frozenset({"weights", "bias"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FewPlan(Plan):
    """`short`: inputs of a row where they are fewer than four, and printed one by one; 0: there are more.

    `dot` is the C function that multiplies rows of int8.
    """

    short: int
    dot: str = ""

    @property
    def products(self) -> str:
        """The sum of the products of a short row, else nothing."""
        return " + ".join(f"in[{k}] * w[{k}]" for k in range(self.short))


def few_plan(instr: Instr, dot: str = "") -> FewPlan:
    """Return the plan of a layer."""
    inputs = instr.int_("in_k")
    return FewPlan(path="few", short=inputs if inputs < FEW else 0, dot=dot)


def with_few(plain: KernelVariant, dot: str, header: str, accepts: Callable[[Instr], bool]) -> KernelVariant:
    """Return a variant of fc_s8 whose sums the C function `dot` of `header` computes; weights have no zero point."""

    def accepts_few(instr: Instr) -> bool:
        codes = all(instr.operand(role).type.dtype is DType.S8 for role in ("in", "weights", "out"))
        return codes and instr.int_("w_zp") == 0 and accepts(instr)

    def prepare_few(constants: Arrays, instr: Instr) -> Prepared:
        sums = constants["weights"].reshape(instr.int_("out_n"), -1).astype(np.int64).sum(1)
        bias = constants["bias"].astype(np.int64) - instr.int_("in_zp") * sums
        return Prepared({"bias": bias.astype(np.int32)}, few_plan(instr, dot))  # modulo 2^32, as the sums

    return replace(
        plain, form="few", rank=plain.rank - 2, template="{}_few", header=header, accepts=accepts_few,
        prepare=prepare_few, packs=_BIASED,
    )  # fmt: skip
