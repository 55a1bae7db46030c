"""The verifier of programs: one injected error at a time, and the words that report it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.board import cpu_names, load_cpu
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import optimise
from glowc.errors import InternalError
from glowc.graph.types import DType, TensorType
from glowc.kernels.verify import call_problems, verify_program
from glowc.lower.lowering import lower_graph
from glowc.program.ir import Access, Instr, Operand, ParamValue, Program
from glowc.program.kernel import get_kernel
from glowc.program.text import parse_program
from glowc.program.verify import structure_problems
from tests.golden.nets import NETS
from tests.unit.onnx_builders import model, node

RECORD = '; {"params": {"n": 2}, "rows": null, "name": "NAME", "origin": [], "op": "", "macs": 0}'
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
  lut_s8__ref @in in %x : s8[4], @in lut %w : s8[4], @out out %h : s8[4] {RECORD.replace("NAME", "first")}
  dealloc %x
  alloc %y
  flip_sign__ref @in in %v : s8[2], @out out %y : s8[2] {RECORD.replace("NAME", "second")}
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
    "write to a constant": (("@in lut %w", "@out lut %w"), "first: writes constant w"),
    "read before write": (("@in in %x", "@in in %h"), "first: reads h before anything wrote it"),
    "missing buffer": (("@in in %v", "@in in %gone"), "second: operand in names no buffer: gone"),
    "operand too large": (("@in in %v : s8[2]", "@in in %v : s8[3]"), "second: in s8[3] does not fit 2 bytes"),
    "output never written": (("@out out %y", "@out out %h"), "output y is never written"),
    "use before alloc": (("  alloc %h\n", ""), "first: uses h outside its allocation"),
    "unknown kernel": (("lut_s8__ref", "lut_s9__ref"), "first: no kernel lut_s9"),
    "unknown variant": (("lut_s8__ref", "lut_s8__avx"), "first: kernel lut_s8 has no variant avx"),
    "missing operand": (("@in lut %w : s8[4], ", ""), "first: operand lut is missing"),
    "unknown operand": (("@in lut %w", "@in lot %w"), "first: unknown operand lot"),
    "operand twice": (("@in lut %w", "@in in %w"), "first: operand in stands 2 times"),
    "operands in another order": (
        ("@in in %x : s8[4], @in lut %w : s8[4]", "@in lut %w : s8[4], @in in %x : s8[4]"),
        "are not in the order of",
    ),
    "other access": (("@in lut %w", "@inout lut %w"), "first: operand lut is inout, declared in"),
    "other element kind": (("@in in %x : s8[4]", "@in in %x : u8[4]"), "first: operand in is u8[4], needs s8"),
    "other kind of a view": (("@out out %y : s8[2]", "@out out %y : f16[1]"), "needs s16|s8|u16|u8"),
    "unknown parameter": (('{"n": 2}', '{"n": 2, "m": 2}'), "first: unknown parameter m"),
    "missing parameter": (('{"n": 2}', "{}"), "first: parameter n is missing"),
    "parameter of another kind": (('{"n": 2}', '{"n": 2.0}'), "first: parameter n = 2.0: needs an int32"),
    "parameter that does not fit": (('{"n": 2}', '{"n": 2147483648}'), "parameter n = 2147483648: needs an int32"),
    "rows of a kernel without rows": (('"rows": null', '"rows": [0, 1]'), "rows (0, 1) of a kernel without rows"),
    "scratch that is read": (
        ("@in lut %w : s8[4], ", "@in lut %w : s8[4], @out out %h : s8[4], @in scratch %x : s8[4], "),
        "first: operand scratch is in, declared out",
    ),
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


def test_scratch_of_too_few_cores_is_found() -> None:
    program = parse_program(GOOD)
    scratch = Operand("scratch", "h", Access.OUT, TensorType((2,), DType.U8))
    for cores, words in ((2, []), (3, ["second: 3 times scratch u8[2] does not fit 4 bytes"])):
        last = [replace(i, operands=(*i.operands, scratch), shares=cores) for i in program.instrs if i.name == "second"]
        instrs = tuple(last[0] if i.name == "second" else i for i in program.instrs)
        assert structure_problems(replace(program, instrs=instrs)) == words


def pooling() -> Instr:
    """A call of a kernel with rows: the maximum of windows, six rows of 3x3 windows."""
    values = dict.fromkeys(get_kernel("max_pool_s8").params, 1) | {"in_h": 8, "out_h": 6, "k_h": 3}
    x, y = (TensorType((1, n, 1, 1), DType.S8) for n in (8, 6))
    operands = Operand("in", "x", Access.IN, x), Operand("out", "y", Access.OUT, y)
    return Instr("max_pool_s8", "ref", operands, values, (0, 6), "pool")


def test_a_part_that_ends_within_a_group_is_found() -> None:
    values = dict.fromkeys(get_kernel("lines_s8").param_names, 1) | {"n": 6, "channels": 4}
    x, lines = TensorType((6,), DType.S8), TensorType((4, 3), DType.S32)
    operands = (
        Operand("in", "x", Access.IN, x), Operand("lines", "l", Access.IN, lines), Operand("out", "y", Access.OUT, x)
    )  # fmt: skip
    assert call_problems(Instr("lines_s8", "ref", operands, values)) == ["n = 6 is not a multiple of channels"]


@pytest.mark.parametrize("rows", [(0, 6), (2, 3), (5, 6)])
def test_rows_of_the_output_pass(rows: tuple[int, int]) -> None:
    assert call_problems(replace(pooling(), rows=rows)) == []


@pytest.mark.parametrize("rows", [(9, 3), (3, 3), (-1, 2), (0, 7), (6, 7)])
def test_rows_outside_of_the_output_are_found(rows: tuple[int, int]) -> None:
    begin, end = rows
    assert call_problems(replace(pooling(), rows=rows)) == [f"rows {begin}..{end} are not rows of 6"]


def test_missing_rows_are_found() -> None:
    assert call_problems(replace(pooling(), rows=None)) == ["a kernel with rows has none"]


def softmax(scratch_bytes: int, variant: str = "a64") -> Instr:
    """A call of a variant that needs scratch."""
    x = TensorType((1, 16), DType.S16)
    params: dict[str, ParamValue] = {"outer": 1, "n": 16, "inner": 1, "out_zp": 0, "steps": 256.0}
    operands = (
        Operand("in", "x", Access.IN, x), Operand("table", "t", Access.IN, TensorType((512,), DType.F32)),
        Operand("out", "y", Access.OUT, x),
        Operand("scratch", "s", Access.OUT, TensorType((scratch_bytes,), DType.U8)),
    )  # fmt: skip
    return Instr("softmax_s16w", variant, operands, params, None, "softmax")


def test_scratch_that_is_missing_or_small_is_found() -> None:
    assert call_problems(softmax(64)) == []
    assert call_problems(softmax(63)) == ["63 bytes of scratch, needs 64"]
    without = replace(softmax(64), operands=softmax(64).operands[:3])
    assert call_problems(without) == ["0 bytes of scratch, needs 64"]


def test_number_that_is_a_word_is_found() -> None:
    wrong = replace(softmax(64), params={**softmax(64).params, "steps": "256"})
    assert call_problems(wrong) == ["parameter steps = '256': needs a number"]


def lowered(net: str, cpu: str, folder: Path, *, streaming: bool = False) -> Program:
    onnx.save(NETS[net](), folder / "net.onnx")
    graph = optimise(folder / "net.onnx", CompileOptions(name=net))
    return lower_graph(graph, load_cpu(cpu), lambda _: streaming)


def test_only_constants_that_a_variant_packs_may_be_of_another_kind(tmp_path: Path) -> None:
    packed = next(i for i in lowered("dense", "cortex-m4", tmp_path).instrs if i.variant != "ref")
    assert call_problems(packed) == []
    assert any("needs" in problem for problem in call_problems(replace(packed, variant="ref")))


@pytest.mark.parametrize("cpu", cpu_names())
@pytest.mark.parametrize("net", NETS)
def test_programs_of_sample_nets_are_what_their_kernels_declare(net: str, cpu: str, tmp_path: Path) -> None:
    for streaming in (False, True):
        verify_program(lowered(net, cpu, tmp_path, streaming=streaming), "lowering")


def test_quantising_kernel_takes_doubles(tmp_path: Path) -> None:
    """A model may quantise them, and the plain C reads any kind of real numbers."""
    inputs = {"s": np.float32(0.1), "z": np.int8(3)}
    net = model([node("QuantizeLinear", "x s z", "y")], {"x": "f64[1,8]"}, {"y": "s8[1,8]"}, inputs)
    onnx.save(net, tmp_path / "net.onnx")
    graph = optimise(tmp_path / "net.onnx", CompileOptions(name="net"))
    for cpu in cpu_names():
        verify_program(lower_graph(graph, load_cpu(cpu)), "lowering")


def test_constant_without_a_buffer_is_found() -> None:
    program = parse_program(GOOD)
    buffers = {name: b for name, b in program.buffers.items() if name != "w"}
    with pytest.raises(InternalError, match="constant w has no constant buffer"):
        verify_program(replace(program, buffers=buffers))


def test_all_errors_are_listed_at_once() -> None:
    broken = GOOD.replace("lut_s8__ref", "lut_s9__ref").replace("@in in %v : s8[2]", "@in in %v : s8[3]")
    with pytest.raises(InternalError) as caught:
        verify_program(parse_program(broken))
    assert len(caught.value.details) == 2


def test_error_in_the_program_is_exit_status_two() -> None:
    assert InternalError("x").exit_status == 2


def test_only_the_calls_that_a_pass_made_are_compared_with_their_kernels_again() -> None:
    good = parse_program(GOOD)
    instrs = tuple(replace(i, variant="avx") if i.name == "second" else i for i in good.instrs)
    broken = replace(good, instrs=instrs)
    with pytest.raises(InternalError, match="second: kernel flip_sign has no variant avx"):
        verify_program(broken, "a pass", good)
    verify_program(broken, "another pass", broken)
