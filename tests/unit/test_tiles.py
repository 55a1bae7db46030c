"""Functions of one text that differ in the tiles that they call: printed once, the tile a field of the arguments."""

from __future__ import annotations

from glowc.codegen.kernels import ArgsStruct, tiles_of, with_tiles

BODY = "void f(void) {{\n  {0}(&q);\n  if (odd) {{\n    {1}({0});\n  }}\n}}\n"


def marked(*names: str) -> str:
    return BODY.format(*(f"glowc_tile_{name}" for name in names))


def test_texts_that_differ_in_their_tiles_are_equal_with_numbers() -> None:
    (one, first), (other, second) = tiles_of(marked("dual_u8", "wide")), tiles_of(marked("dual_n8", "wide"))
    assert one == other
    assert (first, second) == (("dual_u8", "wide"), ("dual_n8", "wide"))
    assert tiles_of(marked("dual_u8", "dual_u8"))[0] != one


def test_tiles_of_one_row_are_named() -> None:
    text, tiles = tiles_of(marked("dual_u8", "wide"))
    assert with_tiles(text, [tiles]) == BODY.format("dual_u8", "wide")


def test_tiles_of_several_rows_are_chosen_by_the_arguments() -> None:
    text, _ = tiles_of(marked("a", "wide"))
    chosen = "(p->tile == 0 ? a : p->tile == 1 ? b : c)"
    assert with_tiles(text, [("a", "wide"), ("b", "wide"), ("c", "wide")]) == BODY.format(chosen, "wide")


def test_first_row_needs_no_initialiser() -> None:
    struct = ArgsStruct("args_t", (("n", "int32_t"),))
    assert struct.initializer({"n": 3}) == "{.n = 3}"
    assert struct.initializer({"n": 3}, tile=2) == "{.n = 3, .tile = 2}"
