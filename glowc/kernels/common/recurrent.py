"""What the recurrent kernels of all instruction sets need besides their operands."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.program.ir import Instr, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan(Plan):
    """What multiplies rows of weights: the `fpu`'s registers, vectors, or plain C."""

    fpu: bool = False
    vector: bool = False


def layer_scratch(instr: Instr) -> int:
    """Return the bytes of the next state; a GRU that resets before it multiplies also keeps r * h."""
    twice = instr.kernel.startswith("gru") and not instr.params["linear_before_reset"]
    return (1 + twice) * instr.int_("hidden") * instr.operand("h").type.dtype.bytes


def dynamic_scratch(instr: Instr) -> int:
    """Return the bytes of the codes of input and state, 16 bits each."""
    return 2 * (instr.int_("in_k") + instr.int_("hidden"))
