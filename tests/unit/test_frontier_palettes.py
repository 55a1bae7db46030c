"""The search for the best bits: a palette where it errs less than numbers of as many bits and is fast enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

from glowc.quant import frontier
from glowc.quant.frontier import Choice, Point, Search, within
from glowc.quant.limits import Limits, Size
from glowc.quant.weight_types import WeightType

ERRORS = {
    "palettes": {"int4": 0.020, "palette4": 0.010, "int2": 0.2, "palette2": 0.1},
    "numbers": {"int4": 0.020, "palette4": 0.0195, "int2": 0.2, "palette2": 0.3},
}
BYTES = {8: 1000, 4: 500, 2: 250}
INSNS = {WeightType.INT8: 100, WeightType.INT4: 110, WeightType.INT2: 110}  # of palettes: 150


class OneLayer(Search):
    """A search in a network of one layer, whose errors and sizes are known."""

    def _simulated(self) -> tuple[Callable[[Choice], float], list[NodeProto]]:
        known: Mapping[str, float] = self.engine  # type: ignore[assignment]
        node = helper.make_node("Gemm", ["x", "w"], ["y"], name="fc")
        return lambda kinds: max((known[kind] for kind in kinds.values()), default=0.001), [node]

    def measured(self, choice: Choice, wide: tuple[str, ...] = ()) -> Any:
        kind = choice.get("fc", WeightType.INT8)
        size = Size(BYTES[kind.bits], 100, INSNS.get(kind, 150))
        done = SimpleNamespace(kind=kind), Point(dict(choice), size, float(kind.indexed), None)
        self._known[frozenset(choice.items()), wide] = done  # type: ignore[assignment]
        return done


def search(errors: str) -> OneLayer:
    net: Any = SimpleNamespace(consts={"w": np.zeros(1000, np.float32)})
    none: Any = None
    engine: Any = ERRORS[errors]
    return OneLayer(net, engine, none, [], none, none)


@pytest.fixture(autouse=True)
def _usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier, "is_usual", lambda _: True)


@pytest.mark.parametrize(
    ("errors", "kinds"),
    [("palettes", {WeightType.PALETTE4, WeightType.PALETTE2}), ("numbers", {WeightType.INT4, WeightType.INT2})],
)
def test_a_palette_is_a_step_where_it_errs_less_by_more_than_a_little(errors: str, kinds: set[WeightType]) -> None:
    assert {step.kind for step in search(errors).steps()} == kinds


def test_where_palettes_take_too_many_instructions_numbers_are_tried() -> None:
    roomy = within(search("palettes"), Limits(flash_bytes=600))
    assert roomy.point.weights == {"fc": WeightType.PALETTE4}
    fast = within(search("palettes"), Limits(flash_bytes=600, insns=120))
    assert fast.point.weights == {"fc": WeightType.INT4}
