"""Constants held to a bound: what the bound is, and which layers give way to it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from glowc.graph.types import DType, TensorType
from glowc.program.ir import Access, Instr, Operand
from glowc.select.budgets import Choice, Price, bound_bytes, constants_bytes, forced_within_bound, within_bound
from glowc.select.candidates import Layer

# By layer and variant: instructions, bytes of constants.
FORMS = {"a": {"fast": (100, 90), "lean": (108, 50)}, "b": {"fast": (400, 80), "lean": (401, 70)}}


def layer(name: str, sizes: Mapping[str, int]) -> Layer:
    weights = Operand("weights", f"{name}.w", Access.IN, TensorType((6, 5), DType.S8))
    forms = tuple(Instr("fc_s8", isa, (weights,), {"out_n": 6}, name=name) for isa in sizes)
    return Layer(name, forms, constants={isa: {f"{name}.{isa}": size} for isa, size in sizes.items()})


LAYERS = [layer(name, {isa: size for isa, (_, size) in forms.items()}) for name, forms in FORMS.items()]
FAST = {"a": "fast", "b": "fast"}


def moves(choice: Choice, *, saving: bool) -> list[Choice]:
    """Return the choices in which one layer has its other variant, of those that are `saving` only such."""
    return [
        {**choice, name: isa}
        for name, forms in FORMS.items()
        for isa, (_, size) in forms.items()
        if isa != choice[name] and (not saving or size < forms[choice[name]][1])
    ]


def chosen(bound: int, code: Mapping[str, int] | None = None, cycles: int = 0) -> Choice:
    """Return the choice for a bound; `code` are bytes of code by variant, `cycles` those of other layers."""

    def weigh(choice: Choice) -> Price:
        taken = sum(FORMS[name][isa][0] for name, isa in choice.items())
        return Price(
            cycles + taken, sum((code or {}).get(isa, 0) for isa in choice.values()), constants_bytes(LAYERS, choice)
        )

    return within_bound(FAST, bound, lambda choice: moves(choice, saving=True), weigh)


def test_the_bound_is_weights_biases_five_bytes_a_channel_and_a_percent() -> None:
    assert bound_bytes(LAYERS) == int(1.006 * 2 * (30 + 6 * 9))


def test_layers_without_weights_add_nothing_to_the_bound() -> None:
    table = Operand("table", "t", Access.IN, TensorType((256,), DType.F32))
    plain = Layer("s", (Instr("softmax_s8", "ref", (table,), {"n": 10}, name="s"),))
    assert bound_bytes([plain]) == 0


def test_a_constant_of_two_layers_counts_once() -> None:
    shared = [Layer(n, (), constants={"ref": {"w": 40, n: 2}}) for n in ("x", "y")]
    assert constants_bytes(shared, {"x": "ref", "y": "ref"}) == 44


@pytest.mark.parametrize(
    ("bound", "want"), [(170, FAST), (165, {**FAST, "b": "lean"}), (130, {"a": "lean", "b": "lean"})]
)
def test_the_fewest_instructions_a_byte_are_paid_until_in_bound(bound: int, want: Choice) -> None:
    assert chosen(bound, cycles=10_000) == want


def test_what_costs_more_than_a_percent_stays() -> None:
    assert chosen(120) == {**FAST, "b": "lean"}  # "a" would take 8 instructions for 40 of 50 bytes; all may take 5


def test_flash_does_not_grow() -> None:
    assert chosen(130, code={"lean": 41}, cycles=10_000) == FAST


def forced(bound: int, code: Mapping[str, int] | None = None, lean: int = 1, kb_most: float | None = None) -> Choice:
    """Return the choice that the bound forces; the lean form of "a" takes `lean` times what it does."""

    def weigh(choice: Choice) -> Price:
        times = {("a", "lean"): lean}
        insns = sum(FORMS[name][isa][0] * times.get((name, isa), 1) for name, isa in choice.items())
        return Price(insns, sum((code or {}).get(isa, 0) for isa in choice.values()), constants_bytes(LAYERS, choice))

    return forced_within_bound(FAST, bound, lambda choice: moves(choice, saving=False), weigh, 0.03, kb_most)


@pytest.mark.parametrize(
    ("bound", "want"),
    [(170, FAST), (165, {**FAST, "b": "lean"}), (130, {**FAST, "a": "lean"}), (119, {"a": "lean", "b": "lean"})],
)
def test_constants_over_the_bound_give_way_and_no_further(bound: int, want: Choice) -> None:
    assert forced(bound, code={"lean": 500}) == want


def test_what_takes_half_of_the_cycles_more_does_not_give_way() -> None:
    assert forced(119, lean=3) == {"a": "lean", "b": "lean"}  # 725 of 500 instructions
    assert forced(119, lean=4) == {**FAST, "b": "lean"}


def test_a_kilobyte_costs_no_more_than_it_is_worth() -> None:
    assert forced(119, kb_most=0.42) == {"a": "lean", "b": "lean"}  # 8 of 500 instructions for 40 bytes, 1 for 10
    assert forced(119, kb_most=0.4) == {**FAST, "b": "lean"}
    assert forced(119, kb_most=0.2) == FAST


def test_constants_do_not_give_way_to_more_code() -> None:
    assert forced(119, code={"lean": 24}, kb_most=1) == {"a": "lean", "b": "lean"}  # 50 bytes of constants, 48 of code
    assert forced(119, code={"lean": 25}, kb_most=1) == FAST


def test_a_bound_that_nothing_holds_takes_the_least_constants() -> None:
    assert forced(10) == {"a": "lean", "b": "lean"}


def test_tables_and_operands_are_in_the_bound() -> None:
    table = Operand("table", "t", Access.IN, TensorType((256,), DType.S8))
    plain = Instr("lut_s8", "ref", (table,), {"n": 10}, name="s")
    layers = [Layer(name, (plain,), constants={"ref": {"t": 256}}) for name in ("s", "r")]
    assert bound_bytes(layers) == int(256 * 1.006)


def test_parameters_of_a_plain_kernel_beyond_nine_bytes_a_channel_are_in_the_bound() -> None:
    wide = layer("c", {"ref": 30 + 6 * 12})
    assert bound_bytes([wide]) == int(1.006 * (30 + 6 * 12))
