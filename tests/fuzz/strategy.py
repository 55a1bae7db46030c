"""Random recipes, from a seed or as a hypothesis strategy: every drawn number shrinks towards a plainer network."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tests.fuzz.build import RANGE
from tests.fuzz.computing import (
    draw_binary,
    draw_conv,
    draw_conv_transpose,
    draw_dense,
    draw_normalised,
    draw_pool,
    draw_product,
    draw_reduce,
    draw_softmax,
    draw_unary,
)  # fmt: skip
from tests.fuzz.dice import Dice, Net, scale_for
from tests.fuzz.moving import draw_concat, draw_move, draw_split, draw_width
from tests.fuzz.recipe import Exposed, Recipe, Value

MOST_LAYERS = 9
Draw = Callable[[Net, int], bool]
KINDS: tuple[Draw, ...] = (
    draw_conv, draw_binary, draw_dense, draw_unary, draw_pool, draw_move, draw_conv, draw_concat, draw_split,
    draw_softmax, draw_reduce, draw_product, draw_binary, draw_move, draw_normalised, draw_conv_transpose, draw_unary,
    draw_width,
)  # fmt: skip


def seeded(seed: int) -> tuple[Recipe, list[int]]:
    """Return the network of a seed, and the numbers that were drawn for it."""
    dice = Dice(random.Random(seed).randint)
    return draw_recipe(dice), dice.rolled


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """Return a strategy of the same networks."""
    return draw_recipe(Dice(lambda low, high: draw(st.integers(low, high))))


def draw_recipe(dice: Dice) -> Recipe:
    """Return a network of one to nine layers."""
    dice.round_scales = dice.chance(4)
    dtype = "s16" if dice.chance(12) else dice.pick(["s8", "u8", "s8"])
    rank = dice.pick([4, 2, 3, 4])
    shape = {
        2: lambda: (1, dice.pick([8, 16, 5, 33])),
        3: lambda: (1, dice.pick([4, 8, 3]), dice.pick([8, 12, 5])),
        4: lambda: (1, dice.pick([4, 3, 8, 1, 16]), dice.pick([6, 8, 5, 4]), dice.pick([6, 8, 7, 4])),
    }[rank]()
    reach = dice.pick([1.0, 8.0, 128.0])
    spans = [(-reach, reach)] * (1 + dice.chance(4))
    inputs = [Value(shape, dtype, *scale_for(dice, dtype, span)) for span in spans]
    spans = [((low - v.zero_point) * v.scale, (high - v.zero_point) * v.scale)
             for v in inputs for low, high in (RANGE[dtype],)]  # fmt: skip
    net = Net(dice, inputs, [], spans)
    for _ in range(dice.whole(1, MOST_LAYERS)):
        numbers = [n for n in range(len(net.values)) if n not in net.unused]
        i = numbers[-1 - min(dice.whole(0, 4), len(numbers) - 1)] if dice.chance(3) else numbers[-1]
        if not dice.pick(KINDS)(net, i):
            draw_unary(net, i)
    recipe = Recipe(tuple(net.inputs), tuple(net.layers), dice.chance(3), not dice.chance(3), dice.seed())
    numbers = [n for n in range(len(net.values)) if n not in net.unused]
    likely = {*range(len(net.inputs)), *net.layers[-1].inputs}  # the last layers write over what dies in them
    return replace(recipe, exposed=_exposed(dice, [*numbers, *sorted(likely) * len(numbers)]))


def _exposed(dice: Dice, numbers: Sequence[int]) -> tuple[Exposed, ...]:
    """Return tensors of a network that are outputs besides, for every other network. No name is there twice."""
    if not dice.chance(2):
        return ()
    forms = ["name", "identity", "reshape", "name", "constant"]
    drawn = (Exposed(dice.pick(numbers), dice.pick(forms), dice.chance(2)) for _ in range(dice.whole(1, 3)))
    return tuple({(e.number, e.form) if e.form == "name" else n: e for n, e in enumerate(drawn)}.values())
