"""The verifier of programs: one injected error at a time, and the words that report it."""

from __future__ import annotations

import pytest

from glowc.errors import InternalError
from glowc.instr.text import parse_program
from glowc.instr.verify import verify_program

RECORD = '; {"params": {}, "rows": null, "name": "NAME", "origin": [], "op": "", "macs": 0}'
GOOD = f"""
program "net" {{
  buffer %x : input 4 align 1
  buffer %h : activation 4 align 1
  buffer %v : activation 2 align 1 alias %h + 2
  buffer %y : output 2 align 1
  const %w : s8[4] = [1, 2, 3, 4]
  input %x in %x : s8[4]
  output %y in %y : s8[2]
  alloc %x
  alloc %h
  k__ref @in in %x : s8[4], @in w %w : s8[4], @out out %h : s8[4] {RECORD.replace("NAME", "first")}
  dealloc %x
  alloc %y
  k__ref @in in %v : s8[2], @out out %y : s8[2] {RECORD.replace("NAME", "second")}
  dealloc %h
  dealloc %y
}}
"""
ALIAS = "alias %h + 2"
ERRORS = {
    "alias beyond the end": ((ALIAS, "alias %h + 3"), "v: bytes 3..5 lie outside h"),
    "alias before the start": ((ALIAS, "alias %h + -1"), "v: bytes -1..1 lie outside h"),
    "alias of nothing": ((ALIAS, "alias %gone + 2"), "v: alias of gone, which is missing or circular"),
    "alias of itself": ((ALIAS, "alias %v + 0"), "v: alias of v, which is missing or circular"),
    "circular alias": (
        ("buffer %h : activation 4 align 1", "buffer %h : activation 4 align 1 alias %v + 0"),
        "which is missing or circular",
    ),
    "write to a constant": (("@in w %w", "@out w %w"), "first: writes constant w"),
    "read before write": (("@out out %h", "@in out %h"), "second: reads v before anything wrote it"),
    "missing buffer": (("@in in %v", "@in in %gone"), "second: operand in names no buffer: gone"),
    "operand too large": (("@in in %v : s8[2]", "@in in %v : s8[3]"), "second: in s8[3] does not fit 2 bytes"),
    "output never written": (("@out out %y", "@in out %y"), "output y is never written"),
    "use before alloc": (("  alloc %h\n", ""), "first: uses h outside its allocation"),
    "allocated twice": (("  alloc %h\n", "  alloc %h\n  alloc %h\n"), "h allocated twice"),
    "missing output buffer": (("output %y in %y", "output %y in %gone"), "model tensor y names no buffer: gone"),
    "missing input buffer": (("input %x in %x", "input %x in %gone"), "model tensor x names no buffer: gone"),
}


def test_good_program_passes() -> None:
    verify_program(parse_program(GOOD))


@pytest.mark.parametrize("error", ERRORS)
def test_error_is_found(error: str) -> None:
    (old, new), message = ERRORS[error]
    assert old in GOOD
    with pytest.raises(InternalError, match="invalid program 'net' after a pass") as caught:
        verify_program(parse_program(GOOD.replace(old, new, 1)), "a pass")
    assert message in str(caught.value)


def test_use_after_dealloc_is_found() -> None:
    moved = GOOD.replace("  dealloc %h\n", "", 1).replace("  dealloc %x\n", "  dealloc %x\n  dealloc %h\n")
    with pytest.raises(InternalError, match="second: uses v outside its allocation"):
        verify_program(parse_program(moved))


def test_constant_without_a_buffer_is_found() -> None:
    program = parse_program(GOOD)
    buffers = {name: b for name, b in program.buffers.items() if name != "w"}
    from dataclasses import replace

    with pytest.raises(InternalError, match="constant w has no constant buffer"):
        verify_program(replace(program, buffers=buffers))


def test_all_errors_are_listed_at_once() -> None:
    broken = GOOD.replace("@in w %w", "@out w %w").replace("@in in %v : s8[2]", "@in in %v : s8[3]")
    with pytest.raises(InternalError) as caught:
        verify_program(parse_program(broken))
    assert len(caught.value.details) == 2


def test_error_in_the_program_is_exit_status_two() -> None:
    assert InternalError("x").exit_status == 2
