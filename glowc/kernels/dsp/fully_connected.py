"""fc_s8 on SMLAD: four outputs at a time, or eight (eight.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.assembly import Printed, joined
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.few import with_few
from glowc.kernels.common.singles import OutputsPlan, with_singles
from glowc.kernels.dsp.common_factor import EXACT, LEAD, Search, short_or_exact, short_or_long
from glowc.kernels.dsp.ends import ends_bytes
from glowc.kernels.dsp.forms import GROUP, summed_groups
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.dsp.row_tile import RowTile
from glowc.kernels.dsp.stream import Stream, accepts_any_zero, block_records, fours
from glowc.kernels.records import Records
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_MOST_SUMMED = 2  # groups of sums of inputs: a function has the products of each
_FEW_INPUTS = 20  # of outputs that are computed one by one
_HEADER = "glow_dsp_fc.h"


@dataclass(frozen=True, slots=True, kw_only=True)
class FcPlan(OutputsPlan):
    """The `form` of the stream, `outputs` of a block, the `end` of codes.

    `fixed`: codes end in a multiplier and a shift. `common`: one factor for all (common_factor.py), `exact`: by its
    exact form. `tail`: some inputs are left after whole groups; `short`: there are no whole ones. `summed`: groups of
    sums of inputs after these (forms.py). `after`: four outputs, or none, after blocks of eight. `steps` of a round
    that divide those of the layer (row_tile.py), 0: the loop is entered at one.
    """

    form: str
    end: str = "n8"
    outputs: int = GROUP
    fixed: bool = False
    common: bool = False
    exact: bool = False
    tail: bool = False
    short: bool = False
    summed: int = 0
    after: int = 0
    steps: int = 0

    def product(self, form: str) -> RowTile:
        """Return the function that multiplies blocks of a form."""
        by = "multiplier" if self.fixed else "scale"
        if self.common:
            by = "exact" if (self.exact if self.steps else self.fixed) else "short"
        end = self.end if form == "dual" else "n8"
        return RowTile(form, by, end, self.outputs, self.rest, self.steps)

    @property
    def others(self) -> RowTile:
        """The function of the outputs after blocks of eight."""
        return replace(self.product(self.form), outputs=GROUP)

    @property
    def rest(self) -> int:
        """Groups that are expanded."""
        return self.summed + self.tail

    @property
    def partial(self) -> bool:
        """True where the last block may be of fewer outputs."""
        return self.form != "mixed" and not self.singles and not self.common and self.outputs == GROUP

    @property
    def cost_path(self) -> str:
        """What the costs of a path are filed under."""
        return "eight" if self.outputs > GROUP else self.path

    @property
    def ends_bytes(self) -> int:
        """Bytes of biases and endings of a block of four outputs."""
        return 4 * GROUP if self.common else ends_bytes(fixed=self.fixed)

    def zero(self, p: Printed) -> str:
        """Return the zero point of the outputs as the functions take it."""
        return f"1 + 2 * {p['out_zp']}" if self.fixed else p["out_zp"]

    def begin(self, p: Printed) -> str:
        """Return where their stream begins."""
        return "runs + 1 + runs[0]" if self.form == "mixed" else self.after_singles(p)

    def after_singles(self, p: Printed) -> str:
        """Return where the stream of the others begins."""
        return f"(const int8_t *)weights + {self.single_bytes(p)}" if self.singles else "weights"

    def sizes(self, p: Printed) -> str:
        """Return how many blocks there are, and outputs and inputs after whole ones."""
        n, in_k, mixed, begin = self.in_blocks(p), p["in_k"], self.form == "mixed", self.after_singles(p)
        runs = f"({begin})" if self.singles else begin
        steps = f"(({in_k} + 3) / 4{f' + {self.summed}' if self.summed else ''}) * {32 if self.form == 'wide' else 16}"
        sized = mixed or self.partial or self.after
        return joined(
            [
                f"const int32_t blocks = ({n} + 3) / 4;" if mixed else f"const int32_t blocks = {n} / {self.outputs};",
                f"const int32_t groups = {'1' if self.short else f'{in_k} / 4'};",
                *([f"const uint32_t *runs = (const uint32_t *)(const void *){runs};"] if mixed else []),
                *([f"const int32_t rest = {n} % 4;"] if self.partial else []),
                *([f"const int32_t block_bytes = {self.ends_bytes} + {steps};"] if sized else []),
            ]
        )

    @property
    def lead(self) -> int:
        """Words in front of the blocks."""
        return LEAD if self.common else 0


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare fc_s8 by blocks of four outputs."""
    return prepared_stream(row_stream(constants, instr), instr)


def row_stream(constants: Arrays, instr: Instr) -> Stream:
    """Return the stream of a layer: inputs are multiplied as they are, their zero point is in the biases."""
    weights = constants["weights"].reshape(instr.int_("out_n"), -1)
    search: Search = short_or_exact if "mul" in constants else short_or_long
    return fours(weights, constants, instr, fold=True, crossed=True, search=search, summed=_summed(weights, instr))


def _summed(weights: np.ndarray, instr: Instr) -> int:
    """Return the groups of sums of inputs that a function may have the products of."""
    groups = summed_groups(weights, instr)
    return groups if groups <= _MOST_SUMMED else 0


def prepared_stream(stream: Stream, instr: Instr) -> Prepared:
    """Return what a layer has by a stream of blocks of four outputs."""
    in_k = instr.int_("in_k")
    plan = FcPlan(
        path="direct", form=stream.form, common=stream.common, tail=in_k % GROUP != 0 and in_k > GROUP,
        short=in_k < GROUP, exact=stream.common and bool(stream.words[LEAD - 1] >= EXACT), summed=stream.summed,
    )  # fmt: skip
    return Prepared(stream.constants, plan)


def records(instr: Instr) -> Records | None:
    """Return those of blocks of four outputs."""
    plan = instr.plan
    if not isinstance(plan, FcPlan):
        return None
    return block_records(instr, plan.form, instr.int_("out_n"), plan.ends_bytes, plan.lead)


def _accepts_few(instr: Instr) -> bool:
    """Accept fewer than four inputs, or outputs of not too many."""
    inputs, outputs = instr.int_("in_k"), instr.int_("out_n")
    return inputs < GROUP or (outputs < GROUP and inputs <= _FEW_INPUTS)


FC = KernelVariant(
    "dsp", also=FPU, rank=10, header=_HEADER, accepts=accepts_any_zero, prepare=prepare, packs=WEIGHTED,
    records=records,
)  # fmt: skip
FEW = with_few(FC, "glow_dsp_dot_s8", "glow_dsp_single.h", _accepts_few)

VARIANTS = {
    "fc_s8": (FC, with_singles(FC, "glow_dsp_dot_s8", "glow_dsp_single.h"), FEW),
}
