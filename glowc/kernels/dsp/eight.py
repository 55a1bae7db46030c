"""fc_s8 on SMLAD, eight outputs at a time: the inputs are expanded once for all eight.

On CPUs that issue two at a time the four outputs of `paired` take fewer cycles, where a layer ends in a float32 scale.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glowc.kernels.base import Prepared, Reads
from glowc.kernels.dsp.common_factor import short_or_exact, short_or_long
from glowc.kernels.dsp.forms import GROUP
from glowc.kernels.dsp.fully_connected import FC, FcPlan, prepare_direct, records
from glowc.kernels.dsp.needs import DUAL_ISSUE
from glowc.kernels.dsp.stream import fours
from glowc.kernels.records import Records, equal_records
from glowc.kernels.shapes import FullyConnected
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_OUTPUTS = 8


def accepts_eight(instr: Instr) -> bool:
    """Accept whole groups of inputs, and whole blocks of eight outputs."""
    shape = FullyConnected.of(instr)
    return FC.accepts(instr) and shape.out_n % _OUTPUTS == 0 and shape.in_k % GROUP == 0


def prepare_eight(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare fc_s8 by eight outputs; as `prepare_direct` where not all outputs are dual."""
    weights = constants["weights"].reshape(instr.int_("out_n"), -1)
    search = short_or_exact if "mul" in constants else short_or_long
    stream = fours(weights, constants, instr, fold=True, crossed=True, search=search)
    if stream.form != "dual":
        return prepare_direct(constants, instr)
    plan = FcPlan(path="direct", form=stream.form, eight=True, common=stream.common)
    lead, blocks = np.split(stream.words, [plan.lead])
    blocks = by_eight(blocks, instr.int_("out_n") // _OUTPUTS, instr.int_("in_k") // GROUP)
    return Prepared(replace(stream, words=np.concatenate((lead, blocks))).constants, plan)


def by_eight(words: np.ndarray, blocks: int, groups: int) -> np.ndarray:
    """Return the words of dual blocks of four as blocks of eight (runtime_c/dsp/glow_dsp_fc_eight.h)."""
    pairs = words.reshape(blocks, 2, -1)
    biases, weights, ends = np.split(pairs, [GROUP, GROUP + GROUP * groups], axis=2)
    halves = weights.reshape(blocks, 2, groups, 2, 2).transpose(0, 2, 1, 4, 3)
    return np.concatenate([part.reshape(blocks, -1) for part in (biases, halves, ends)], axis=1).reshape(-1)


def eight_records(instr: Instr) -> Records | None:
    """Return those of blocks of eight outputs."""
    plan = instr.plan
    if not isinstance(plan, FcPlan) or not plan.eight:
        return records(instr)
    tail = 2 * (plan.ends_bytes // 4 - GROUP)
    found = equal_records(instr, instr.int_("out_n") // _OUTPUTS, head=2 * GROUP, tail=tail, lead=plan.lead)
    return None if found is None else replace(found, joined=True)


EIGHT = replace(
    FC, form="eight", slow_with=DUAL_ISSUE, template="{}_eight", rank=11, header="glow_dsp_fc_eight.h",
    accepts=accepts_eight, prepare=prepare_eight, costs_of="dsp", records=eight_records,
    reads=Reads(at_once=8),
)  # fmt: skip

VARIANTS = {"fc_s8": (EIGHT,)}
