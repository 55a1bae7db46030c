"""fc_s8 on SMLAD, eight outputs at a time: the inputs are expanded once for all eight.

On CPUs that issue two at a time four outputs take fewer cycles, where a layer ends in a float32 scale.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowc.kernels.base import Prepared, Reads, plan_in
from glowc.kernels.dsp.forms import GROUP
from glowc.kernels.dsp.fully_connected import FC, FcPlan, prepared_stream, records, row_stream
from glowc.kernels.dsp.needs import DUAL_ISSUE
from glowc.kernels.records import Records, equal_records
from glowc.kernels.shapes import FullyConnected
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_OUTPUTS = 8


def accepts_eight(instr: Instr) -> bool:
    """Accept blocks of eight outputs, and one of four after them; a group of inputs at least."""
    shape = FullyConnected.of(instr)
    return FC.accepts(instr) and shape.out_n >= _OUTPUTS and shape.out_n % GROUP == 0 and shape.in_k >= GROUP


def prepare_eight(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare fc_s8 by eight outputs, the last ones by four; all by four where not all are dual."""
    stream = row_stream(constants, instr)
    prepared = prepared_stream(stream, instr)
    if stream.form != "dual":
        return prepared
    count, after = divmod(instr.int_("out_n"), _OUTPUTS)
    plan = replace(plan_in(prepared, FcPlan), outputs=_OUTPUTS, after=after)
    groups = -(-instr.int_("in_k") // GROUP) + plan.summed
    each = (stream.words.size - plan.lead) // -(-instr.int_("out_n") // GROUP)
    lead, blocks, others = np.split(stream.words, np.cumsum([plan.lead, 2 * count * each]))
    parts = (lead, by_eight(blocks, count, groups), *((lead, others) if after else ()))
    return Prepared(replace(stream, words=np.concatenate(parts)).constants, plan)


def by_eight(words: np.ndarray, blocks: int, groups: int) -> np.ndarray:
    """Return the words of dual blocks of four as blocks of eight (runtime_c/dsp/glow_dsp_fc.h)."""
    pairs = words.reshape(blocks, 2, -1)
    biases, weights, ends = np.split(pairs, [GROUP, GROUP + GROUP * groups], axis=2)
    halves = weights.reshape(blocks, 2, groups, 2, 2).transpose(0, 2, 1, 4, 3)
    return np.concatenate([part.reshape(blocks, -1) for part in (biases, halves, ends)], axis=1).reshape(-1)


def eight_records(instr: Instr) -> Records | None:
    """Return those of blocks of eight outputs."""
    plan = instr.plan
    if not isinstance(plan, FcPlan) or plan.outputs != _OUTPUTS:
        return records(instr)
    if plan.after:
        return None
    tail = 2 * (plan.ends_bytes // 4 - GROUP)
    found = equal_records(instr, instr.int_("out_n") // _OUTPUTS, head=2 * GROUP, tail=tail, lead=plan.lead)
    return None if found is None else replace(found, joined=True)


EIGHT = replace(
    FC, form="eight", slow_with=DUAL_ISSUE, rank=11, accepts=accepts_eight, prepare=prepare_eight, costs_of="dsp",
    records=eight_records, reads=Reads(at_once=8),
)  # fmt: skip

VARIANTS = {"fc_s8": (EIGHT,)}
