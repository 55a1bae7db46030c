"""Compressed constants and boxes of a detector: what is damaged is told, and what is left out of the options."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from flatbuffers import flexbuffers  # type: ignore[import-untyped]

from glowc.errors import GlowcError, ModelError
from glowc.frontend import import_model
from tests.conftest import require_tflite
from tests.tflite.cases import make_case
from tests.tflite.cases.custom import MAKERS
from tests.tflite.writer import Build, Tensor

require_tflite()


def compressed(codes: bytes, about: bytes, kind: str = "int8", shape: tuple[int, ...] = (8,)) -> bytes:
    """Return a model whose output is a compressed constant."""
    build = Build()
    build.input((1,), "float32")
    pair = [build.const(np.frombuffer(part, np.uint8)) for part in (codes, about)]
    build.op("TFLM_DECODE", pair, Tensor(shape, kind))
    return build.bytes()


def head(which: int, *params: int, versions: tuple[int, int] = (1, 1)) -> bytes:
    return bytes((which, versions[0], 0, 0, versions[1], *params)).ljust(16, b"\0")


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (compressed(b"\0", head(0, 2, 4) + bytes(4)), "its compressed data end before the 8 elements"),
        (compressed(b"\xff\xff", head(0, 2, 4) + bytes(3)), "entry 3 of a table of 3"),
        (compressed(b"\xff\xff", head(0, 0, 4) + bytes(3)), "indices have 0 bits"),
        (compressed(b"\xff", head(2) + bytes(7)), "8 elements are not zero, but there are 7 values"),
        (compressed(b"\xff" * 8, head(1, 1)), "entry 1 of a table of 0"),
        (compressed(b"\0" * 8, head(1, 0), "int16"), "a table of 16 bits for int16"),
        (compressed(b"\0", head(7)), "compression 7 is not known"),
        (compressed(b"\0", head(0, 1, 1, versions=(1, 2)) + bytes(1)), "versions 1 and 2"),
        (compressed(b"\0", bytes(15)), "15 bytes; 16 are the least"),
        (compressed(b"\0", head(1, 0), "float32"), "cannot be its result"),
    ],
)
def test_compressed_constants_that_are_damaged_are_told(model: bytes, says: str) -> None:
    with pytest.raises(ModelError, match=rf"operator 0 \(TFLM_DECODE\).*{says}"):
        import_model(model)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "its options have no nms_iou_threshold"),
        ({"nms_iou_threshold": 1.5}, "nms_iou_threshold is 1.5"),
        ({"nms_iou_threshold": 0.5, "num_classes": 0}, "num_classes is 0"),
    ],
)
def test_options_of_boxes_that_do_not_fit_are_told(options: dict[str, float], says: str) -> None:
    build = Build()
    inputs = [build.input(shape, "float32") for shape in ((1, 5, 4), (1, 5, 2), (5, 4))]
    outs = [Tensor(shape, "float32") for shape in ((1, 3, 4), (1, 3), (1, 3), (1,))]
    build.op("TFLite_Detection_PostProcess", inputs, outs, bytes(flexbuffers.Dumps(options)))
    with pytest.raises(ModelError, match=rf"operator 0 \(TFLite_Detection_PostProcess\).*{says}"):
        import_model(build.bytes())


def test_mutated_files_are_refused_or_read() -> None:
    rng = np.random.default_rng(0)
    for code in MAKERS:
        for seed in range(6):
            data = make_case(code, seed).model
            for _ in range(15):
                mutated = bytearray(data)
                for at in rng.integers(8, len(data), int(rng.integers(1, 6))):
                    mutated[at] = int(rng.integers(256))
                with suppress(GlowcError):
                    import_model(bytes(mutated))
