"""What cannot fit on a board is said before variants are chosen and memory is planned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import glowc
from glowc.compiler import pipeline
from glowc.compiler.least import constant_bytes
from glowc.errors import LimitError
from glowc.frontend import import_model
from tests.unit.onnx_builders import model, node

RNG = np.random.default_rng(7)


def dense(inputs: int, outputs: int, values: int = 256) -> onnx.ModelProto:
    weights = (RNG.integers(0, values, (inputs, outputs)) / 100).astype(np.float32)
    return model([node("MatMul", "x w", "y")], {"x": f"f32[1,{inputs}]"}, {"y": "f32"}, {"w": weights})


@pytest.mark.parametrize(
    ("proto", "what"),
    [
        (dense(1024, 600), "at least 2457600 bytes of flash for its constants, board rpi-pico has"),
        (model([node("Relu", "x", "y")], {"x": "f32[1,3,224,224]"}, {"y": "f32"}, {}), "at least 602112 bytes of RAM"),
    ],
)
def test_network_beyond_a_board_is_refused_before_it_is_planned(
    proto: onnx.ModelProto, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took half a minute to say so of a network of megabytes."""
    monkeypatch.setattr(pipeline, "plan_narrow", lambda *_: pytest.fail("planned"))
    with pytest.raises(LimitError, match=what):
        glowc.compile(proto, tmp_path / "net", board="rpi-pico")


def test_constants_of_few_values_and_equal_ones_are_not_counted_whole() -> None:
    graph = import_model(dense(1024, 600, 16).SerializeToString())
    assert constant_bytes(graph) == {}
