"""Cycles of short sequences of instructions against what the manuals' tables give, a case for each rule."""

from __future__ import annotations

import pytest

from glowc.machine.cycles.rules import CORES, Kind, cycles_of, kind_of
from glowc.machine.listing import Insn


def insns(text: str) -> list[Insn]:
    """Return the instructions of a text, separated by semicolons."""
    parts = (line.strip().partition(" ") for line in text.split(";"))
    return [Insn(2 * i, name, operands.strip()) for i, (name, _, operands) in enumerate(parts)]


# core, instructions, cycles by the manual's table (without wait states, branches not taken)
CASES = [
    ("cortex-m4", "adds r0, r1, r2; eor.w r0, r0, r3", 2),
    ("cortex-m4", "ldr r0, [r1]", 2),
    ("cortex-m4", "ldr r0, [r1]; ldr r2, [r1, #4]", 3),  # the second load's address is sent while the first waits
    ("cortex-m4", "ldr r0, [r1]; ldr r2, [r0]", 4),  # but not when it is what the first one brings
    ("cortex-m4", "ldr r0, [r1]; ldrb.w r2, [r1, #4]; ldrsh.w r3, [r1, #8]", 4),
    ("cortex-m4", "ldr r0, [r1]; add r3, r3; ldr r2, [r1, #4]", 5),  # not in a row
    ("cortex-m4", "str r0, [r1]", 1),
    ("cortex-m4", "ldmia.w r0!, {r4, r5, r6, r7}", 5),
    ("cortex-m4", "ldrd r4, r5, [r0]", 3),
    ("cortex-m4", "strd r4, r5, [r0]", 3),
    ("cortex-m4", "push {r4, r5, lr}", 4),
    ("cortex-m4", "vldmia r0!, {s0-s3}", 5),
    ("cortex-m4", "vldmia r0!, {d0-d1}", 5),
    ("cortex-m4", "vpush {d8-d15}", 17),
    ("cortex-m4", "smlad r0, r1, r2, r0", 1),
    ("cortex-m4", "smull r0, r1, r2, r3", 1),
    ("cortex-m4", "mla r0, r1, r2, r3", 1),
    ("cortex-m4", "sdiv r0, r1, r2", 6),
    ("cortex-m4", "vadd.f32 s0, s1, s2", 1),
    ("cortex-m4", "vadd.f32 s0, s1, s2; vmul.f32 s3, s0, s0", 3),  # uses the result of the one before
    ("cortex-m4", "vadd.f32 s0, s1, s2; vmul.f32 s3, s4, s5", 2),
    ("cortex-m4", "vfma.f32 s0, s1, s2", 3),
    ("cortex-m4", "vdiv.f32 s0, s1, s2", 14),
    ("cortex-m4", "vsqrt.f32 s0, s1", 14),
    ("cortex-m4", "vmov r0, s1", 1),
    ("cortex-m4", "vmov r0, r1, s2, s3", 2),
    ("cortex-m4", "vldr s0, [r1]", 2),
    ("cortex-m4", "bne.n 800 <f>", 1),
    ("cortex-m4", "it ne; movne r0, r1", 2),
    ("cortex-m3", "mul r0, r1, r2", 1),
    ("cortex-m3", "mla r0, r1, r2, r3", 2),
    ("cortex-m3", "smlal r0, r1, r2, r3", 4),
    ("cortex-m3", "ldr r0, [r1]; ldr r2, [r1, #4]; ldr r3, [r1, #8]", 4),
    ("cortex-m33", "ldr r0, [r1]; add r2, r3", 2),
    ("cortex-m33", "ldr r0, [r1]; add r2, r0", 3),  # load to use
    ("cortex-m33", "ldr r0, [r1]; ldr r2, [r0]", 3),
    ("cortex-m33", "ldmia.w r0!, {r4, r5, r6, r7}", 4),
    ("cortex-m33", "ldrd r4, r5, [r0]; smlad r0, r4, r5, r0", 4),
    ("cortex-m0plus", "ldr r0, [r1, #0]; ldr r2, [r1, #4]", 4),
    ("cortex-m0plus", "strb r0, [r1, #0]", 2),
    ("cortex-m0plus", "ldmia r0!, {r4, r5, r6, r7}", 5),
    ("cortex-m0plus", "muls r0, r1", 1),
    ("cortex-m0plus", "bl 800 <f>", 2),
]


@pytest.mark.parametrize(("core", "text", "cycles"), CASES)
def test_sequence_takes_the_cycles_of_the_manual(core: str, text: str, cycles: int) -> None:
    assert cycles_of(insns(text), CORES[core]).total == cycles


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("bls.n 10 <f>", Kind.PLAIN), ("ldrsb.w r0, [r1]", Kind.LOAD), ("ldrne r0, [r1]", Kind.LOAD),
        ("ldmia r0!, {r1}", Kind.LOAD_MANY), ("smulbb r0, r1, r2", Kind.MULTIPLY), ("smmulr r0, r1, r2", Kind.MULTIPLY),
        ("smlald r0, r1, r2, r3", Kind.MULTIPLY_LONG), ("umull r0, r1, r2, r3", Kind.MULTIPLY_LONG),
        ("mls r0, r1, r2, r3", Kind.MULTIPLY_ADD), ("vmov.f32 s0, s1", Kind.FLOAT),
        ("vfms.f32 s0, s1, s2", Kind.FLOAT_ADD),
        ("stmdb sp!, {r4, r5}", Kind.STORE_MANY), ("strh.w r0, [r1]", Kind.STORE), ("muls r0, r1", Kind.MULTIPLY),
        ("ldrex r0, [r1]", Kind.LOAD), ("blx r3", Kind.CALL), ("vstr s0, [r1]", Kind.STORE),
    ],
)  # fmt: skip
def test_instruction_is_of_its_row_of_the_tables(text: str, kind: Kind) -> None:
    assert kind_of(insns(text)[0]) is kind


def test_causes_are_told_apart() -> None:
    cycles = cycles_of(insns("ldr r0, [r1]; sdiv r2, r3, r4; vdiv.f32 s0, s1, s2; bl 10 <f>"), CORES["cortex-m4"])
    assert (cycles.issue, cycles.load, cycles.multiply, cycles.fpu, cycles.branch) == (4, 1, 5, 13, 0)
    assert cycles.times(3).total == 3 * cycles.total
