"""fc_s8 on SMLAD: four outputs at a time."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.common.assembly import Printed, joined
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.common.few import with_few
from glowc.kernels.common.singles import OutputsPlan, with_singles
from glowc.kernels.dsp.common_factor import LEAD, short
from glowc.kernels.dsp.ends import ends_bytes
from glowc.kernels.dsp.forms import GROUP, summed_groups
from glowc.kernels.dsp.needs import FPU
from glowc.kernels.dsp.row_tile import assembly
from glowc.kernels.dsp.stream import accepts_any_zero, block_records, ending, fours
from glowc.kernels.records import Records
from glowc.program.ir import Instr
from glowc.program.kernel import Arrays

_MAX_EXPANDED = 1024  # inputs that may take two bytes of scratch each
_FEW_INPUTS = 20  # of outputs that are computed one by one
_HEADER = "glow_dsp_fc.h"


@dataclass(frozen=True, slots=True, kw_only=True)
class FcPlan(OutputsPlan):
    """The `form` of the stream and the `end` of codes; `paired`: instructions issue two at a time.

    path: "direct", inputs are expanded again for every block; "units", once, in units of eight.
    `tail`, where paired: some inputs are left after whole groups. `fixed`: codes end in a multiplier and a shift.
    `eight`: blocks are of eight outputs (kernels/dsp/eight.py). `common`: one factor for all (common_factor.py).
    `summed`: groups of sums of inputs after these (forms.py).
    `steps` of a round of the function that is printed (row_tile.py), 0: one of the runtime; `exact`: by the exact form
    of the factor.
    """

    form: str
    end: str = ""
    paired: bool = False
    tail: bool = False
    fixed: bool = False
    eight: bool = False
    common: bool = False
    summed: int = 0
    steps: int = 0
    exact: bool = False

    @property
    def tile(self) -> str:
        """The assembly of blocks of four outputs with crossed sums."""
        return assembly(self.steps, exact=self.exact)

    @property
    def cost_path(self) -> str:
        """What the costs of a path are filed under: eight outputs were measured where they end in a float32 scale."""
        return "eight" if self.eight and not self.fixed else self.path

    @property
    def ends_bytes(self) -> int:
        """Bytes of biases and endings of a block of four outputs."""
        return 4 * GROUP if self.common else ends_bytes(fixed=self.fixed)

    @property
    def family(self) -> str:
        """How the functions of all forms of the stream begin."""
        end = "q31_" if self.fixed and not self.common else ""
        return f"glow_dsp_fc_{end}{'' if self.path == 'direct' else 'units_'}"

    @property
    def product(self) -> str:
        """The function that multiplies blocks of four outputs; of a mixed stream those in halfwords."""
        form = "dual" if self.form == "mixed" else self.form
        if self.paired and form == "dual":
            return f"glow_dsp_fc_paired{'' if self.tail else '_whole'}"
        end = f"_{self.end}" if self.end and form == "dual" else ""
        return f"{self.family}{'common' if self.common else form}{end}"

    @property
    def less(self) -> str:
        """What the functions that expand inputs take from them."""
        return "0u" if self.paired else "neg_zp"

    def zero(self, p: Printed) -> str:
        """Return the zero point of the outputs as the functions take it."""
        return f"1 + 2 * {p['out_zp']}" if self.fixed else p["out_zp"]

    def begin(self, p: Printed) -> str:
        """Return where their stream begins."""
        return "runs + 1 + runs[0]" if self.form == "mixed" else self._after_singles(p)

    def _after_singles(self, p: Printed) -> str:
        return f"(const int8_t *)weights + {self.single_bytes(p)}" if self.singles else "weights"

    def sizes(self, p: Printed) -> str:
        """Return how many blocks there are, and outputs and inputs after whole ones; what is taken from the inputs."""
        n, in_k, mixed, begin = self.in_blocks(p), p["in_k"], self.form == "mixed", self._after_singles(p)
        unit = 8 if self.path == "units" else 4
        runs = f"({begin})" if self.singles else begin
        steps = f"(({in_k} + {unit - 1}) / {unit}) * {unit * (8 if self.form == 'wide' else 4)}"
        steps += f" + {4 * GROUP * self.summed}" if self.summed else ""
        return joined(
            [
                f"const int32_t blocks = ({n} + 3) / 4;" if mixed else f"const int32_t blocks = {n} / 4;",
                *([f"const uint32_t *runs = (const uint32_t *)(const void *){runs};"] if mixed else []),
                *([f"const int32_t rest = {n} % 4;"] if not mixed and not self.singles else []),
                f"const int32_t k_rest = {in_k} % 4;",
                *([f"const int32_t block_bytes = {self.ends_bytes} + {steps};"] if mixed or not self.singles else []),
                *([] if self.paired else [f"const uint32_t neg_zp = glow_twice16(-{p['in_zp']});"]),
            ]
        )

    @property
    def lead(self) -> int:
        """Words in front of the blocks."""
        return LEAD if self.common else 0


def prepare_direct(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare fc_s8 with inputs that are expanded again for every block."""
    stream = fours(constants["weights"].reshape(instr.int_("out_n"), -1), constants, instr)
    return Prepared(stream.constants, FcPlan(path="direct", form=stream.form))


def prepare_units(constants: Arrays, instr: Instr) -> Prepared:
    """Prepare fc_s8 with inputs that are expanded once."""
    weights = constants["weights"].reshape(instr.int_("out_n"), -1)
    summed = summed_groups(weights, instr, unit=2)
    stream = fours(weights, constants, instr, unit=2, crossed=True, search=short, summed=summed)
    end = common_end(ending(instr)) if stream.common else ending(instr)
    plan = FcPlan(path="units", form=stream.form, end=end, common=stream.common, summed=summed)
    return Prepared(stream.constants, plan)


def common_end(end: str) -> str:
    """Tell how codes by one factor are ended where those by others are by `end`: r8, without limits, v8, with them."""
    return "v8" if end in ("v8", "s8") else "r8"


def accepts_units(instr: Instr) -> bool:
    """Accept what is more than one block, of inputs that may take two bytes of scratch each."""
    return accepts_any_zero(instr) and instr.int_("in_k") <= _MAX_EXPANDED and instr.int_("out_n") > GROUP


def units_scratch(instr: Instr) -> int:
    """The inputs as int16, and their sums."""
    return -(-instr.int_("in_k") // 8) * 16 + 2 * GROUP * _summed(instr)


def _summed(instr: Instr) -> int:
    return instr.plan.summed if isinstance(instr.plan, FcPlan) else 0


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
    "dsp", also=FPU, rank=10, header=_HEADER, accepts=accepts_any_zero, prepare=prepare_direct, packs=WEIGHTED,
    records=records,
)  # fmt: skip
UNITS = KernelVariant(
    "dsp", form="units", also=FPU, rank=11, header=_HEADER, speed_only=True, accepts=accepts_units,
    prepare=prepare_units, packs=WEIGHTED, scratch_bytes=units_scratch, records=records,
)  # fmt: skip


FEW = with_few(FC, "glow_dsp_dot_s8", "glow_dsp_single.h", _accepts_few)

VARIANTS = {
    "fc_s8": (FC, UNITS, with_singles(FC, "glow_dsp_dot_s8", "glow_dsp_single.h"), FEW),
}
