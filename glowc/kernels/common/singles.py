"""Variants of fc_s8 that compute the outputs which fill no block of four one by one: no byte for outputs that are none.

The stream begins with these outputs, each as bias (the zero points of inputs and weights folded in), scale, and its
weights filled up to words; then comes the stream that the ordinary variant has for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared, prepare
from glowc.kernels.common.assembly import Printed
from glowc.kernels.common.constants import WEIGHTED, LayerPlan
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

_BLOCK = 4


def singles(instr: Instr) -> int:
    """Return how many outputs are computed one by one."""
    return instr.int_("out_n") % _BLOCK


def _others(instr: Instr) -> Instr:
    return replace(instr, params={**instr.params, "out_n": instr.int_("out_n") - singles(instr)})


def single_rows(constants: Arrays, instr: Instr) -> np.ndarray:
    """Return the words of the last outputs."""
    out_n, in_k, count = instr.int_("out_n"), instr.int_("in_k"), singles(instr)
    weights = constants["weights"].reshape(out_n, in_k)[out_n - count :]
    scale = np.broadcast_to(constants["scale"].reshape(-1), (out_n,))[out_n - count :].astype(np.float32)
    sums = weights.astype(np.int64).sum(1) - in_k * instr.int_("w_zp")
    bias = constants["bias"].reshape(-1)[out_n - count :].astype(np.int64) - instr.int_("in_zp") * sums
    rows = np.zeros((count, 8 + -(-in_k // 4) * 4), np.int8)
    rows[:, :4] = bias.astype(np.int32).view(np.int8).reshape(count, 4)  # modulo 2^32, as the sums
    rows[:, 4:8] = scale.view(np.int8).reshape(count, 4)
    rows[:, 8 : 8 + in_k] = weights
    return rows.reshape(-1).view(np.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsPlan(LayerPlan):
    """Of a fully connected layer: how many outputs are computed one by one, and by which C function."""

    singles: int = 0
    dot: str = ""

    def in_blocks(self, p: Printed) -> str:
        """Return how many outputs are computed in blocks."""
        return f"({p['out_n']} - {self.singles})" if self.singles else p["out_n"]

    def single_bytes(self, p: Printed) -> str:
        """Return the bytes of the others, which come first in the stream."""
        return f"{self.singles} * (8 + ({p['in_k']} + 3) / 4 * 4)"


def with_singles(plain: KernelVariant, dot: str, header: str) -> KernelVariant:
    """Return `plain` for outputs in fours, the last one to three by the C function `dot`, which `header` has."""

    def accepts(instr: Instr) -> bool:
        return singles(instr) > 0 and instr.int_("out_n") > _BLOCK and plain.accepts(_others(instr))

    def prepare_both(constants: Arrays, instr: Instr) -> Prepared:
        count = instr.int_("out_n") - singles(instr)
        wide = instr.int_("scale_step") and constants["scale"].size > 1
        others = {
            "weights": constants["weights"].reshape(instr.int_("out_n"), -1)[:count],
            "bias": constants["bias"].reshape(-1)[:count],
            "scale": constants["scale"].reshape(-1)[:count] if wide else constants["scale"],
        }
        prepared = prepare(plain, others, _others(instr))
        words = prepared.constants["weights"]
        joined = np.concatenate((single_rows(constants, instr).view(words.dtype), words.reshape(-1)))
        return Prepared({**prepared.constants, "weights": joined}, _with(prepared.plan, singles(instr), dot))

    return replace(
        plain, form=f"{plain.form}_single".lstrip("_"), rank=plain.rank - 1, like=plain.name, header=header,
        accepts=accepts, prepare=prepare_both, packs=WEIGHTED,
    )  # fmt: skip


def _with(plan: Plan, count: int, dot: str) -> Plan:
    assert isinstance(plan, OutputsPlan)
    return replace(plan, singles=count, dot=dot)
