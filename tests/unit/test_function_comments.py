"""The comment above a kernel's function: meaning, layers, contract; safe whatever the user's nodes are called."""

from __future__ import annotations

import re
from dataclasses import replace

from glowc.codegen.comments import User, commented, function_comment
from glowc.codegen.kernels import args_struct
from glowc.graph.types import DType, TensorType
from glowc.program.ir import Access, Instr, Operand

BYTES = TensorType((1, 4, 4, 2), DType.S8)
ADD = Instr(
    kernel="add_s8",
    operands=tuple(
        Operand(role, role, Access.OUT if role == "out" else Access.IN, BYTES) for role in ("a", "b", "out")
    ),
    variant="ref",
    name="add.0",
    origin=("sum",),
    op="Add",
)


def users(*names: str) -> list[User]:
    return [User(index, replace(ADD, origin=(name,))) for index, name in enumerate(names)]


def test_one_layer() -> None:
    assert function_comment(users("sum"), None) == (
        "/* Quantized sum or difference.\n * Layer (Add): 0 sum.\n"
        " * Sizes: a 1x4x4x2, b 1x4x4x2, out 1x4x4x2; the output may be a or b. */\n"
    )


def test_many_layers_share_a_function() -> None:
    text = function_comment(users(*"abcdefg"), args_struct(ADD, "m_add_s8_args_t"))
    assert "Layers (Add): 0 a, 1 b, 2 c, 3 d and 3 more." in text
    assert "Parameters: m_add_s8_args_t; the output may be a or b." in text


def test_scratch_is_the_largest_of_all_layers() -> None:
    scratch = [Operand("scratch", "s", Access.OUT, TensorType((n,), DType.U8)) for n in (16, 40)]
    calls = [User(i, replace(ADD, operands=(*ADD.operands, s))) for i, s in enumerate(scratch)]
    assert "scratch takes up to 40 bytes" in function_comment(calls, args_struct(ADD, "args_t"))
    assert "scratch takes 16 bytes" in function_comment(calls[:1], None)


def test_names_cannot_end_the_comment() -> None:
    text = function_comment(users("a*/b", "c\n/*d", "what??/", "x" * 500), None)
    assert re.fullmatch(r"/\*(?:(?!\*/|/\*|\?\?).)*\*/\n", text, re.DOTALL)
    assert max(map(len, text.splitlines())) <= 120


def test_helpers_stay_before_the_comment() -> None:
    code = "static float f_exp(void) {\n}\n\nstatic void f(void) {\n}\n"
    assert commented(code, "f", "/* x */\n") == code.replace("static void", "/* x */\nstatic void")
    assert commented("int g;\n", "f", "/* x */\n") == "/* x */\nint g;\n"
