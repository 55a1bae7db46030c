"""The text form of programs: what it prints reads back to the same program, whatever the names are."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.errors import GlowcError
from glowc.graph.types import DType, QuantParams, TensorType
from glowc.kernels.verify import verify_program
from glowc.program.ir import Access, Buffer, BufferKind, Instr, Operand, Program
from glowc.program.text import dump_program, parse_program
from tests.golden.nets import NETS
from tests.unit.conv_chain import conv_chain

ODD = ("a b", 'quo"te', "back\\slash", "x : y", "p ; {q", "n = m", "größe", "%z", "in %x, @out", "two\nlines", "_")
TEXT = """\
program "net" {
  buffer %x : input 4 align 1
  buffer %y : output 2 align 1
  buffer %h : activation 4 align 4
  buffer %v : activation 2 align 1 alias %h + 2
  const %w : s8[2,4] = [[1, 2, 3, 4], [5, 6, 7, 8]]
  input %x in %x : s8[1,4] q(0.5, -3)
  output %out in %y : s8[1,2]@nhwc q([0.25, 0.5], [0, 0], axis=1)
  alloc %h
  unary__ref @in in %x : s8[1,4] q(0.5, -3), @out out %h : s8[1,4] ; {"params": {"n": 4, "op": "relu", "a": 0.5}, \
"rows": null, "name": "relu", "origin": ["a/b", "c"], "op": "Relu", "macs": 0}
  conv_s8__dsp @in in %v : s8[2], @in weights %w : s8[2,4], @inout out %y : s8[2] ; {"params": {}, "rows": [0, 3], \
"name": "conv", "origin": [], "op": "Conv", "macs": 12}
  dealloc %h
}
"""


def test_text_reads_back_to_the_same_text() -> None:
    assert dump_program(parse_program(TEXT)) == TEXT


def test_every_field_is_read() -> None:
    program = parse_program(TEXT)
    assert program.name == "net"
    assert program.buffers["v"] == Buffer("v", BufferKind.ACTIVATION, 2, 1, "h", 2)
    assert program.buffers["w"] == Buffer("w", BufferKind.CONST, 8, 1)
    quant = QuantParams((0.25, 0.5), (0, 0), 1)
    assert program.outputs == (Operand("out", "y", Access.OUT, TensorType((1, 2), DType.S8, quant, "nhwc")),)
    alloc, relu, conv, dealloc = program.instrs
    assert alloc.is_marker
    assert dealloc.is_marker
    assert relu.params == {"n": 4, "op": "relu", "a": 0.5}
    assert relu.origin == ("a/b", "c")
    assert (conv.kernel, conv.variant, conv.rows, conv.macs, conv.op) == ("conv_s8", "dsp", (0, 3), 12, "Conv")
    assert [o.access for o in conv.operands] == [Access.IN, Access.IN, Access.INOUT]
    assert program.consts["w"].tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


@pytest.mark.parametrize("name", ODD)
def test_any_name_can_be_read_back(name: str) -> None:
    type_ = TensorType((2,), DType.S8)
    other = f"{name}2"
    buffers = {
        name: Buffer(name, BufferKind.INPUT, 2, 1),
        other: Buffer(other, BufferKind.OUTPUT, 2, 1, None, 0),
        "const " + name: Buffer("const " + name, BufferKind.CONST, 2, 1),
    }
    operands = tuple(
        Operand(role, buffer, access, type_)
        for role, buffer, access in (
            ("in", name, Access.IN),
            ("w", "const " + name, Access.IN),
            ("out", other, Access.OUT),
        )
    )
    instr = Instr("k_s8", "ref", operands, {"word": name}, None, name, (name,), name, 3)
    consts = {"const " + name: np.array([1, -2], np.int8)}
    ends = (operands[0], operands[2])
    program = Program(name, (ends[0],), (ends[1],), buffers, consts, (instr,))
    again = parse_program(dump_program(program))
    assert dump_program(again) == dump_program(program)
    assert again.instrs == program.instrs
    assert again.buffers == program.buffers


def test_large_constants_come_from_the_caller() -> None:
    array = np.arange(100, dtype=np.int8)
    text = TEXT.replace("const %w : s8[2,4] = [[1, 2, 3, 4], [5, 6, 7, 8]]", "const %w : s8[100] = #0123456789ab")
    assert parse_program(text, {"w": array}).consts["w"].tolist() == array.tolist()


@pytest.mark.parametrize(
    "line",
    [
        "buffer %x : nowhere 4 align 1",
        "const %w : s8[2] = [1, 2",
        "relu__ref @in in %x ; {}",
        'relu__ref @in in %x : s8[4] ; {"params"',
        "alloc %missing",
        "nonsense",
    ],
)
def test_error_names_the_line(line: str) -> None:
    with pytest.raises(GlowcError, match="line 2 of the program text") as caught:
        parse_program(f'program "net" {{\n  {line}\n}}\n')
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("net", "board"),
    [
        *itertools.product(NETS, ("host", "mps2-an386", "mps3-an547", "linux-aarch64")),
        ("depthwise", "mps2-an386"), ("depthwise", "mps2-an500"),
    ],
)  # fmt: skip
def test_compiled_programs_read_back(net: str, board: str, tmp_path: Path) -> None:
    path = tmp_path / f"{net}.onnx"
    if net in NETS:
        path.write_bytes(NETS[net]().SerializeToString())
    else:
        conv_chain(path, (12, 12), (16, 16), depthwise=True)
    program = compile_model(path, load_board(board), CompileOptions()).program
    again = parse_program(dump_program(program), program.consts)
    assert dump_program(again) == dump_program(program)
    assert again.instrs == program.instrs
    assert again.buffers == program.buffers
    assert again.inputs == program.inputs
    assert again.outputs == program.outputs
    verify_program(again)
