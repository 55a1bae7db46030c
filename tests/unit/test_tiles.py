"""Functions of one text that differ in the tiles that they call: printed once, the tile a field of the arguments."""

from __future__ import annotations

import pytest

from glowc.board import load_board
from glowc.codegen import view
from glowc.codegen.kernels import ArgsStruct, Helpers, identity, tiles_of, with_tiles
from glowc.compiler.pipeline import compile_model
from glowc.program.ir import Instr
from tests.unit.cli_calls import DIGITS

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


def test_a_tile_that_comes_later_is_printed_before_the_function_that_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    instrs = compile_model(DIGITS, load_board("mps2-an386")).program.instrs
    first, other, last = list({identity(i, literal=False): i for i in instrs if not i.is_marker}.values())[:3]
    layers = [
        first,
        first,
        other,
        last,
        last,
    ]  # `first` and `last` share a text, `other` has the tile of `last` earlier
    tiles = {id(first): ("", "a"), id(other): ("puts();", "b"), id(last): ("", "b")}

    def rendered(instr: Instr, name: str, helpers: Helpers, *_: object, **__: object) -> str:
        text, tile = tiles[id(instr)]
        called = helpers.runtime(f"glow_{tile}", f"static void glow_{tile}(void) {{}}")
        return f"void {name}(args_t *p) {{\n  {text}\n  glowc_tile_{called}();\n}}\n"

    monkeypatch.setattr(view, "render_function", rendered)
    table = view.FunctionTable("m", frozenset())
    table.count(layers)
    assert len({table.get(layer).name for layer in layers}) == 2
    code = "\n".join(table.definitions)
    assert "p->tile == 0 ? glow_a : glow_b" in code
    for tile in ("glow_a", "glow_b"):
        assert code.count(f"static void {tile}(") == 1
        assert code.index(f"static void {tile}(") < code.index("p->tile")
