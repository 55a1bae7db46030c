"""What is known of a layer is found once for all that are alike, so that a model of many takes as long for each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from glowc.board import load_board
from glowc.compiler.pipeline import compile_model
from glowc.graph.scope import once, scope
from glowc.kernels import features as features_module
from glowc.lower.lowering import Lowering
from glowc.select.alike import Alike
from glowc.select.pricing import Pricing
from tests.unit.conv_chain import conv_chain

CHANNELS = 16, 7  # of a layer whose constants are within their bound, and of one whose constants give way to it


def counted(patch: pytest.MonkeyPatch, of: object, name: str, calls: Counter[str]) -> None:
    """Let calls of a function be counted by its name."""
    function = getattr(of, name)

    def call(*args: object, **kwargs: object) -> object:
        calls[name] += 1
        return function(*args, **kwargs)

    patch.setattr(of, name, call)


def work(folder: Path, layers: int, channels: int) -> Counter[str]:
    """Return how often parts of a selection are called for a model of equal layers with different constants."""
    calls: Counter[str] = Counter()
    model = conv_chain(folder / f"{layers}_{channels}.onnx", (8, 8), (channels,) * (layers + 1))
    with pytest.MonkeyPatch.context() as patch:
        counted(patch, features_module, "numbers", calls)
        counted(patch, Pricing, "_bytes", calls)
        counted(patch, Alike, "price", calls)
        counted(patch, Lowering, "emit", calls)
        compile_model(model, load_board("mps2-an386"))
    return calls


@pytest.mark.parametrize("channels", CHANNELS)
def test_work_grows_no_faster_than_the_layers(channels: int, tmp_path: Path) -> None:
    """Features and bytes of code are those of kinds of layers; lowerings and steps of the search go with the layers."""
    few, many = work(tmp_path, 12, channels), work(tmp_path, 48, channels)
    assert many["numbers"] <= few["numbers"] + 48 * 2  # of the report, each call's sizes
    assert many["_bytes"] <= few["_bytes"] + 8
    assert many["emit"] <= 4 * few["emit"]
    assert many["price"] <= 5 * few["price"] + 20


def test_once_is_for_a_scope() -> None:
    calls: list[int] = []

    @once(abs)
    def doubled(number: int) -> int:
        calls.append(number)
        return 2 * abs(number)

    with scope():
        assert [doubled(n) for n in (3, -3, 4)] == [6, 6, 8]
        with scope():
            assert doubled(3) == 6
        assert doubled(-4) == 8
    assert calls == [3, 4, 3]
    assert [doubled(3), doubled(3)] == [6, 6]  # outside, each time
    assert calls == [3, 4, 3, 3, 3]
