"""The computed worst case of the stack, on listings as objdump prints them."""

from __future__ import annotations

import pytest

from glowc.machine.listing import parse_listing
from glowc.machine.stack import Bounds, UnboundedError


def bound(text: str, name: str = "f") -> int:
    """Return the bound of a function; each line is `ADDRESS: MNEMONIC OPERANDS` or `ADDRESS <NAME>:`."""
    lines = []
    for line in text.strip().splitlines():
        address, _, rest = line.strip().partition(" ")
        lines.append(line.strip() if rest.startswith("<") else "\t".join([address, *rest.split(" ", 1)]))
    return Bounds(parse_listing("\n".join(lines)), [name]).of(name)


@pytest.mark.parametrize(
    ("insn", "pushed"),
    [
        ("push {r4, r5, r6, lr}", 16), ("push {r4-r11, lr}", 36), ("vpush {d8-d15}", 64), ("vpush {s16-s17}", 8),
        ("stmdb sp!, {r4, r5, r6, r7, r8, r9, sl, fp, lr}", 36), ("sub sp, #8", 8), ("sub.w sp, sp, #1040", 1040),
        ("str.w lr, [sp, #-4]!", 4), ("strd r4, r5, [sp, #-16]!", 16), ("vstmdb sp!, {d8}", 8),
        ("subw sp, sp, #1100", 1100),
        ("str r0, [sp, #4]", 0), ("add r0, sp, #8", 0), ("stmia.w sp, {r0, r1}", 0), ("mov r7, sp", 0),
    ],
)  # fmt: skip
def test_instruction_that_moves_the_stack_pointer(insn: str, pushed: int) -> None:
    assert bound(f"0 <f>:\n0: {insn}\n4: bx lr") == pushed


def test_deepest_path_counts_and_not_the_last_one() -> None:
    text = """
    0 <f>:
    0: push {r4, lr}
    2: cbz r0, 10 <f+0x10>
    4: sub sp, #64
    6: add sp, #64
    8: pop {r4, pc}
    10: sub sp, #16
    12: add sp, #16
    14: pop {r4, pc}
    """
    assert bound(text) == 72


def test_what_a_call_into_a_function_names_may_be_a_number_of_the_linker_script() -> None:
    text = """
    0 <f>:
    0: push {r4, lr}
    2: bl 14 <__stack_size+0x4>
    6: pop {r4, pc}
    10 <g>:
    10: push {r4, r5, r6, lr}
    14: push {r4, lr}
    16: pop {r4, pc}
    """
    assert bound(text) == 32


def test_calls_and_tail_calls_add_what_they_push() -> None:
    text = """
    0 <f>:
    0: push {r4, lr}
    2: bl 20 <g>
    6: pop {r4, lr}
    8: b.w 30 <h>
    20 <g>:
    20: push {r4, r5, r6, lr}
    22: pop {r4, r5, r6, pc}
    30 <h>:
    30: sub sp, #40
    32: add sp, #40
    34: bx lr
    """
    assert bound(text) == 40
    assert bound(text.replace("sub sp, #40", "sub sp, #4").replace("add sp, #40", "add sp, #4")) == 24


def test_conditional_return_goes_on_as_deep_as_before() -> None:
    text = """
    0 <f>:
    0: push {r4, lr}
    2: it eq
    4: popeq {r4, pc}
    6: sub sp, #8
    8: add sp, #8
    10: pop {r4, pc}
    """
    assert bound(text) == 16


def test_computed_jump_into_assembly_keeps_its_depth() -> None:
    text = """
    0 <f>:
    0: push {r4-r11, lr}
    4: bx r2
    6: sub sp, #16
    8: add sp, #16
    10: pop {r4-r11, pc}
    """
    assert bound(text) == 52


def test_far_jump_of_small_cores_is_no_call() -> None:
    text = """
    0 <f>:
    0: push {r4, lr}
    2: bl 8 <f+0x8>
    6: sub sp, #100
    8: pop {r4, pc}
    """
    assert bound(text) == 8


def test_large_frame_comes_from_a_word_of_the_function() -> None:
    text = """
    0 <f>:
    0: push {r4, lr}
    2: ldr r4, [pc, #8]
    4: add sp, r4
    6: bx lr
    c: .word 0xfffffc00
    """
    assert bound(text) == 8 + 1024


def test_call_through_a_pointer_may_reach_what_the_code_knows() -> None:
    text = """
    0 <f>:
    0: push {r4, lr}
    2: ldr r0, [pc, #4]
    4: bl 20 <g>
    6: pop {r4, pc}
    8: .word 0x00000031
    20 <g>:
    20: push {r3, lr}
    22: blx r0
    24: pop {r3, pc}
    30 <h>:
    30: sub sp, #48
    32: add sp, #48
    34: bx lr
    """
    assert bound(text) == 8 + 8 + 48
    last = text.replace("22: blx r0", "22: pop {r3, lr}").replace("24: pop {r3, pc}", "24: bx r0\n    26: nop")
    assert bound(last) == 8 + 48
    with pytest.raises(UnboundedError, match="through a pointer"):
        bound(text.replace(".word 0x00000031", ".word 0x00000099"))


def test_recursion_and_unknown_code_have_no_bound() -> None:
    with pytest.raises(UnboundedError, match="calls itself"):
        bound("0 <f>:\n0: push {r4, lr}\n2: bl 0 <f>\n6: pop {r4, pc}")
    with pytest.raises(UnboundedError, match="no code"):
        bound("0 <f>:\n0: bl 80 <gone>\n4: bx lr")
    with pytest.raises(UnboundedError, match="register to sp"):
        bound("0 <f>:\n0: mov sp, r3\n4: bx lr")
    with pytest.raises(UnboundedError, match="a loop pushes"):
        bound("0 <f>:\n0: push {r4}\n2: b.n 0 <f>\n4: bx lr")
